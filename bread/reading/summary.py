"""`bread.summary`: the report as a table, one row per parameter, or per number of temperatures."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import Failure
from bread.errors import InvalidArgumentError
from bread.reading.other_verbs.compare import compare_summary, is_compare
from bread.reading.other_verbs.data_annealing import data_annealing_summary, is_data_annealing
from bread.reading.other_verbs.debug import debug_summary, is_debug
from bread.reading.other_verbs.path_sampling import is_path_sampling, path_sampling_summary
from bread.reading.other_verbs.unbiased import is_unbiased, unbiased_summary
from bread.reading.sentences.carriers import n_carrying
from bread.reading.sentences.numbers import rounded
from bread.reading.sentences.parameters import parameter_table
from bread.report.compat import read_group, require_group
from bread.report.opening import takes_report

KINDS = ("parameters", "bounds")
_COLUMNS = {  # of a table without rows, each with its type
    **dict.fromkeys(("error", "error_limit", "error_limit_exact", "jeffreys", "lower", "upper"), "float64"),
    "reliable": "bool",
    **dict.fromkeys(("kl_exact_approx", "kl_exact_approx_upper", "kl_approx_exact_upper"), "float64"),
    "role": "object", "n_simulations": "int64", "n_carrying": "Int64", "n_gradients": "int64",
    "n_evaluations": "int64", "seconds": "float64", "n_failures": "int64", "n_divergences": "int64",
}  # fmt: skip


@takes_report
def summary(report: Any, *, kind: Literal["parameters", "bounds"] = "parameters") -> pd.DataFrame:
    """Return a table of a report, one row per parameter: your draws, and how far they may be off.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check` or `bread.look`, reopened from a file, or the path of that file (netCDF or zarr). Reports of
        other verbs have one table each, whatever ``kind``. Of `bread.debug`: its tests. Of `bread.compare`: V and B
        with their limits, and what a chain costs, by model and T. Of `bread.lab.unbiased`: the bound of the total
        variation and its limits, by iteration. Of `bread.lab.data_annealing`: log evidence of each simulated data set
        with limits from both sides, and what it cost. Of `bread.lab.path_sampling`: log evidence, or the score of each
        left-out observation, with limits.
    kind : {"parameters", "bounds"}, default "parameters"
        "bounds" is the table by number of temperatures T: empty where nothing was annealed. It is also what a report
        gives that says nothing of any draws but the certified ones.

    Returns
    -------
    DataFrame
        Numbers have three significant digits, those with a standard deviation or error its decimals. A column is
        missing where the report has nothing of it, a value is NaN where it is not known. Of "parameters", the index is
        ``parameter``, in the order of the model, then quantities that were added; your draws are those that you gave,
        else those of bread's fit:

        * ``mean``, ``sd``: of your draws;
        * ``in_90``: share of the certified draws between the 5% and the 95% quantile of yours, 0.9 in theory;
        * ``shift``, ``shift_se``, ``sd_ratio``, ``sd_ratio_se``: by the first look, how far your mean is from the
          posterior's, in standard deviations, and your standard deviation over the posterior's, with standard errors;
        * ``error_limit``: by how much at most ``P(parameter <= c)`` of your draws is off, for any c, V included, which
          is an average over simulated data sets;
        * ``detectable_shift``, ``detectable_sd_ratio``, where there are no certified draws: what the first look would
          have called a disagreement 9 times in 10.

        Of "bounds", the index is ``n_temperatures``. ``error``: V, the bound of the error of a probability computed
        from one certified draw, with ``error_limit``, the limit that decides, if the simulated data sets are typical,
        and ``error_limit_exact``, one that holds whatever other data sets are like. In nats:

        * ``jeffreys``, ``lower``, ``upper``: B and its interval; means nothing where ``reliable`` is False;
        * ``kl_exact_approx``, ``kl_exact_approx_upper``: the one-sided bound of KL(p||q), posterior mass that draws
          miss; ``kl_approx_exact_upper``: of KL(q||p), draws where the posterior has no mass.

        ``role`` says whether the bounds come from
        simulations that chose T ("search", too small by 10 to 20 %) or from fresh ones ("confirm"), ``n_simulations``
        from how many: 0 where the consistency test alone has run. ``n_carrying``: how many of those hold 80% of V;
        where they are few, look at them before running more. ``n_gradients``, ``n_evaluations``, ``seconds`` (of
        work, summed over processes), ``n_divergences`` and ``n_failures`` count all chains at that T.
        ``missed_modes``, where modes were looked for: how many of those found on the real data the certified draws at
        the largest T miss. ``log_constant``, where priors do not integrate to one whatever their parents are: the sum
        of the logs of their integrals, in nats, which log evidences leave out.

    Raises
    ------
    InvalidArgumentError
        It is no report of bread, or ``kind`` is not one of the two.
    """
    if kind not in KINDS:
        raise InvalidArgumentError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    if is_debug(report):
        return debug_summary(report)
    if is_compare(report):
        return compare_summary(report)
    if is_data_annealing(report):
        return data_annealing_summary(report)
    if is_unbiased(report):
        return unbiased_summary(report)
    if is_path_sampling(report):
        return path_sampling_summary(report)
    table = parameter_table(report) if kind == "parameters" else None
    return _bounds_table(report) if table is None else table


def _bounds_table(report: Any) -> pd.DataFrame:
    """Return the table by number of temperatures."""
    bounds = read_group(report, "bounds")
    if bounds is None:
        index = pd.Index([], name="n_temperatures", dtype=np.int64)
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in _COLUMNS.items()}, index=index)
    temperatures = bounds["n_temperatures"].values
    certificate = require_group(report, "certificate").sel(n_temperatures=temperatures)
    columns: dict[str, Any] = {
        "error": rounded(certificate["error"].values),
        "error_limit": rounded(certificate["error_ci"].sel(ci_bound="upper").values),
        "error_limit_exact": rounded(certificate["error_limit_exact"].values),
        "jeffreys": rounded(bounds["jeffreys"].values),
        "lower": rounded(bounds["jeffreys_ci"].sel(ci_bound="lower").values),
        "upper": rounded(bounds["jeffreys_ci"].sel(ci_bound="upper").values),
        "reliable": bounds["jeffreys_reliable"].values.astype(bool),
        "kl_exact_approx": rounded(bounds["kl_exact_approx"].values),
        "kl_exact_approx_upper": rounded(bounds["kl_exact_approx_ci"].sel(ci_bound="upper").values),
        "kl_approx_exact_upper": rounded(bounds["kl_approx_exact_ci"].sel(ci_bound="upper").values),
        "role": bounds["role_used"].values.astype(object),
        "n_simulations": bounds["n_simulations"].values,
        "n_carrying": pd.array(n_carrying(report, temperatures), dtype="Int64"),
    }
    columns |= _costs(report, temperatures)
    modes = read_group(report, "modes")
    if modes is not None:
        counts = np.full(len(temperatures), pd.NA, dtype=object)
        counts[-1] = int(modes["missed"].values.sum())
        columns["missed_modes"] = pd.array(counts, dtype="Int64")
    integrals = read_group(report, "prior_integrals")
    if integrals is not None and integrals["is_named"].values.any():
        columns["log_constant"] = np.full(len(temperatures), round(float(integrals.attrs["log_constant"]), 3))
    return pd.DataFrame(columns, index=pd.Index(temperatures, name="n_temperatures"))


def _costs(report: Any, temperatures: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Sum counts over every chain that was finished at each T, real data included."""
    totals = {name: np.zeros(len(temperatures), dtype=np.int64) for name in ("n_gradients", "n_evaluations")}
    seconds = np.zeros(len(temperatures))
    totals |= {name: np.zeros(len(temperatures), dtype=np.int64) for name in ("n_divergences", "n_failures")}
    for group in ("forward", "reverse", "observed_forward"):
        runs = read_group(report, group)
        if runs is None:
            continue
        runs = runs.sel(n_temperatures=temperatures)
        for name in ("n_gradients", "n_evaluations", "n_divergences"):
            totals[name] += _total(runs[name].where(runs["finished"], 0))
        totals["n_failures"] += _total(runs["failure"] > Failure.NONE)
        seconds += np.nansum(runs["seconds"].values.reshape(len(temperatures), -1), axis=1)
    return {
        "n_gradients": totals["n_gradients"],
        "n_evaluations": totals["n_evaluations"],
        "seconds": np.round(seconds, 2),
        "n_failures": totals["n_failures"],
        "n_divergences": totals["n_divergences"],
    }


def _total(values: xr.DataArray) -> NDArray[np.int64]:
    others = [dim for dim in values.dims if dim != "n_temperatures"]
    return np.asarray(values.sum(others).values, dtype=np.int64)
