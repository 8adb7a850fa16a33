"""The report of `bread.lab.path_sampling`: one group, with values by target, and estimates by target and pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from bread.backends.base import Model
from bread.report.types import Report
from bread.report.verb import verb_container
from bread.running.path_sampling.path_sampling import PathPairs
from bread.running.state.exactness_results import DirectTests
from bread.statistics.evidence.unbiased_means import UnbiasedMean, unbiased_mean

GROUP = "path_sampling"
EVIDENCE = "log evidence"


def path_sampling_container(
    model: Model, run: PathPairs, direct: DirectTests, root: int, settings: Mapping[str, Any], seconds: float
) -> Report:
    """Return the report.

    Parameters
    ----------
    model : Model
    run : PathPairs
    direct : DirectTests
        Tests of exact draws.
    root : int
        Root entropy.
    settings : mapping
        Arguments, as JSON can hold them.
    seconds : float
        Wall time.

    Returns
    -------
    InferenceData or DataTree
        With the groups ``path_sampling``, see `path_sampling_dataset`, and ``direct_tests``, see
        `bread.report.direct_tests.direct_tests_dataset`.
    """
    return verb_container(GROUP, path_sampling_dataset(run, settings), model, root, settings, seconds, direct)


def path_sampling_dataset(run: PathPairs, settings: Mapping[str, Any]) -> xr.Dataset:
    """Return values (target), estimates (target, pair) and what the pilots said (knot).

    Returns
    -------
    Dataset
        `value`, `standard_error`, `lower`, `upper`, `tail_index`: see
        `bread.statistics.evidence.unbiased_means.UnbiasedMean`; `doubts`: why there is no interval, "" where there is
        one. `estimate`, `inverse_temperature`, `meeting_time`, `lag`: see
        `bread.running.path_sampling.path_sampling.PathPairs`; no pairs where a pilot's did not meet. `pilot_mean`,
        `pilot_spread`, `pilot_share` by the inverse temperature `knot`. Attributes: `level`, `horizon`, `n_pairs` (of
        a target), `n_unmet`, `is_pilot`, `unmet_at`, `n_gradients`, `is_leave_one_out`, and of leave-one-out scores
        `total`, `total_standard_error`, `total_lower`, `total_upper` (NaN unless every target has an interval).
    """
    level, left_out = float(settings["level"]), settings["leave_out"]
    targets = [EVIDENCE] if left_out is None else [str(index) for index in left_out]
    nan = float("nan")
    if run.n_unmet_pilots:
        found = [UnbiasedMean(nan, nan, -np.inf, np.inf, 0, nan, ("pairs of a pilot did not meet",)) for _ in targets]
    else:
        found = [unbiased_mean(row, level) for row in run.estimates]
    total, error, lower, upper = _total(found, level) if left_out is not None else (nan, nan, nan, nan)

    def column(name: str) -> Any:
        return ("target", np.array([getattr(one, name) for one in found], dtype=np.float64))

    return xr.Dataset(
        {
            **{name: column(name) for name in ("value", "standard_error", "lower", "upper")},
            "tail_index": column("tail"),
            "doubts": ("target", np.array(["; ".join(one.doubts) for one in found], dtype=np.str_)),
            "estimate": (("target", "pair"), run.estimates),
            "inverse_temperature": (("target", "pair"), run.inverse_temperatures),
            "meeting_time": (("target", "pair"), run.meeting_times),
            "lag": (("target", "pair"), run.lags),
            "pilot_mean": ("knot", run.means),
            "pilot_spread": ("knot", run.spreads),
            "pilot_share": ("knot", run.shares),
        },
        coords={"target": np.array(targets, dtype=np.str_), "knot": run.knots},
        attrs={
            "level": level,
            "horizon": int(settings["max_iterations"]),
            "n_pairs": int(settings["pairs"]),
            "n_unmet": int(np.isinf(run.meeting_times).sum()) + run.n_unmet_pilots,
            "is_pilot": int(run.n_unmet_pilots > 0),
            "unmet_at": run.unmet_at,
            "n_gradients": int(run.n_gradients),
            "is_leave_one_out": int(left_out is not None),
            "total": total,
            "total_standard_error": error,
            "total_lower": lower,
            "total_upper": upper,
        },
    )


def _total(found: Sequence[UnbiasedMean], level: float) -> tuple[float, float, float, float]:
    """Return the sum of independent scores with its standard error and Student's limits, by the smallest sample."""
    total = float(sum(one.value for one in found))
    error = float(np.sqrt(sum(one.standard_error**2 for one in found)))
    margin = float(stdtrit(min(one.n for one in found) - 1, 0.5 + level / 2.0)) * error if error == error else error
    return total, error, total - margin, total + margin
