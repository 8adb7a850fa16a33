"""Quantities of the user's, tested after the check, from the draws that its report keeps: no chain runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.support.draw_forms import plain_form
from bread.backends.support.posterior_draws import is_fitted_by_bambi, posterior_group, read_posterior
from bread.backends.values import Fit
from bread.errors import InvalidArgumentError
from bread.report.agreement import ALPHA, Columns, comparison_dataset
from bread.report.compat import group_names, make_container, read_attributes, read_group
from bread.report.labels import coordinate_values
from bread.report.opening import takes_report
from bread.report.quantity_values import Quantity, checked_quantities, evaluate
from bread.report.ranks import path_ranks
from bread.report.types import Report
from bread.statistics.agreement.draws import are_constant
from bread.statistics.bounds.alarms import combined_p_value, rank_p_values
from bread.statistics.bounds.certificate import error_interval

GROUP, COMPARISON = "quantities", "quantity_agreement"


@takes_report
def add_quantities(report: Any, quantities: Mapping[str, Callable[..., Any]], *, posterior: Any = None) -> Report:
    """Test functions of parameters and data after a check, from the draws that its report keeps.

    Each quantity is ranked: the exact draw of each simulated data set among its annealed draws, by their weights. With
    your own draws it is also compared with the annealed draws on the real data, as parameters are. Nothing is annealed.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check`, finished or not.
    quantities : dict of str to callable
        Functions ``f(parameters)`` or ``f(parameters, data)`` that return one number; infinite ones are allowed where
        there is no ``posterior``. ``parameters`` is a dict of one draw (deterministic variables too), ``data`` a dict
        of the data set that the draw belongs to and of covariates: arrays by the names in the report. A quantity that
        takes the data, such as a log likelihood, often sees what parameters alone do not.
    posterior : InferenceData, DataTree, Dataset or dict, optional
        Your own draws on the real data, (chain, draw, ...), with the variables that the quantities read; 100
        effective ones of each quantity.

    Returns
    -------
    InferenceData or DataTree
        A new report, of the installed ArviZ, that has two groups more.

        `quantities`: `value` (simulation, ranked_path, quantity), NaN for chains of weight zero; `weighted_rank`
        (simulation, quantity) with `weighted_rank_p_value` (quantity), Kolmogorov-Smirnov, and
        `weighted_rank_p_value_combined`, their smallest times the number of quantities; `annealed` (chain, draw,
        quantity), the quantities of annealed draws on the real data, where there are any.

        `quantity_agreement`, with ``posterior``: what `agreement` has for parameters (interval contents, shifts,
        tests at level 0.01 for all quantities together), with quantities as `parameter`.

        `bread.verdict` reads both: a combined p-value of at most 0.0033 is status "bug" where simulations are exact
        ("prior", "localised"), and own draws whose quantities differ by more than V explains are a "disagreement".
        That adds 0.0033 and 0.01 to the rates of false alarms of the check. These hold for all quantities that are
        passed at once; choosing among several calls those that ring has no level.

    Raises
    ------
    InvalidArgumentError
        It is no report of `bread.check`, keeps no ranked draws or, with ``posterior``, no annealed draws on the real
        data; it has quantities already; a function fails or does not return one number.

    Notes
    -----
    Simulations with a failed chain are left out, as in the tests of the check. Random numbers divide ties; they come
    from the report's seed and the quantity's name, so that ranks do not depend on what else is ranked.
    """
    functions = checked_quantities(quantities)
    _require_no_quantities(report)
    paths, alarm = read_group(report, "ranked_paths"), read_group(report, "alarm")
    if paths is None or alarm is None or "ranked_log_weight" not in alarm:
        raise InvalidArgumentError(
            f"Quantities are ranked among the draws of the group 'ranked_paths', which this report lacks: "
            f"{_why_no_paths(report)}"
        )
    annealed = read_group(report, "posterior")
    columns = None if posterior is None else _compared(report, functions, posterior, annealed)
    ranked = _ranked(report, functions, paths.load(), alarm.load())
    groups = {name: read_group(report, name).load() for name in group_names(report)}  # type: ignore[union-attr]
    groups[GROUP] = ranked if annealed is None else ranked.assign(_annealed(report, functions, annealed))
    if columns is not None:
        groups[COMPARISON] = _comparison(report, columns)
    return make_container(groups, read_attributes(report))


def _require_no_quantities(report: Any) -> None:
    held = read_group(report, GROUP)
    if held is not None:
        raise InvalidArgumentError(
            f"The report has quantities already: {', '.join(map(str, held['quantity'].values))}. P-values are adjusted "
            "for the number of quantities: pass all at once, with the report that bread.check returned."
        )


def _why_no_paths(report: Any) -> str:
    names = group_names(report)
    if "debug" in names or "compare" in names or "forward" not in names:
        return "it is none of bread.check, or nothing was annealed before it ended. Run bread.check to its end."
    if read_group(report, "alarm") is None:
        return "no simulated data set was annealed both ways without a failed chain. Run bread.check to its end."
    return "an older version of bread made it. Run bread.check again."


def _ranked(report: Any, functions: Mapping[str, Quantity], paths: xr.Dataset, alarm: xr.Dataset) -> xr.Dataset:
    """Return the group `quantities`, without the draws on the real data."""
    simulations = paths["simulation"].values
    log_weight = alarm["ranked_log_weight"].sel(simulation=simulations).values
    counts = ~np.isneginf(log_weight)
    simulated, constants = read_group(report, "simulated_data"), _arrays(read_group(report, "constant_data"))
    table = np.full((*log_weight.shape, len(functions)), np.nan)
    for row, simulation in enumerate(simulations):
        here = paths.isel(simulation=row, ranked_path=np.flatnonzero(counts[row]))
        data = constants if simulated is None else {**constants, **_arrays(simulated.sel(simulation=simulation))}
        for column, (name, function) in enumerate(functions.items()):
            where = f"a draw of simulation {int(simulation)}"
            table[row, counts[row], column] = evaluate(
                name, function, _arrays(here), int(counts[row].sum()), data, where
            )
    attributes = read_attributes(report)
    ranks = np.column_stack(
        [
            path_ranks(name, table[..., column], simulations, log_weight, int(attributes["seed"]))
            for column, name in enumerate(functions)
        ]
    )
    p_values = rank_p_values(ranks, float(alarm.get("effective_share", 1.0)))  # which old reports lack
    return xr.Dataset(
        {
            "value": (("simulation", "ranked_path", "quantity"), table),
            "weighted_rank": (("simulation", "quantity"), ranks, {"description": "uniform in theory"}),
            "weighted_rank_p_value": ("quantity", p_values),
            "weighted_rank_p_value_combined": ((), np.float64(combined_p_value(p_values))),
        },
        coords={
            "simulation": simulations,
            "ranked_path": paths["ranked_path"].values,
            "quantity": np.array(list(functions), dtype=np.str_),
        },
        attrs={"meaning": alarm.attrs["meaning"], "n_excluded": int(alarm["n_excluded"])},
    )


def _annealed(report: Any, functions: Mapping[str, Quantity], annealed: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the quantities of annealed draws on the real data, (chain, draw, quantity)."""
    shape = annealed.sizes["chain"], annealed.sizes["draw"]
    values = _on_real_data(report, functions, _draws(annealed), "an annealed draw on the real data")
    dims = ("chain", "draw", "quantity")
    coords = {"chain": annealed["chain"].values, "draw": annealed["draw"].values}
    return {"annealed": xr.DataArray(values.reshape(*shape, -1), dims=dims, coords=coords)}


def _compared(report: Any, functions: Mapping[str, Quantity], posterior: Any, annealed: xr.Dataset | None) -> Columns:
    """Return the quantities of the user's draws and of the annealed ones."""
    kind = type(posterior).__name__
    if str(read_attributes(report).get("simulate_from")) == "localised":
        raise InvalidArgumentError(
            "posterior= cannot be compared under simulate_from='localised': the annealed draws are those of a model "
            f"with another prior; got a {kind}. Run bread.check with another simulate_from, or leave posterior= out."
        )
    if annealed is None:
        raise InvalidArgumentError(
            f"posterior= is compared with annealed draws on the real data, which this report does not keep (draws=0, "
            f"or the check ended before them); got a {kind}. Run bread.check to its end, or leave posterior= out."
        )
    fit = _read_own(posterior, annealed)
    own = fit.draws
    n_chains, n_draws = next(iter(own.values())).shape[:2]
    flat = {name: values.reshape(n_chains * n_draws, *values.shape[2:]) for name, values in own.items()}
    ours = _on_real_data(report, functions, flat, "a draw of posterior=")
    theirs = _on_real_data(report, functions, _draws(annealed), "an annealed draw on the real data")
    for column, name in enumerate(functions):
        if not (np.isfinite(ours[:, column]).all() and np.isfinite(theirs[:, column]).all()):
            raise InvalidArgumentError(
                f"quantity {name!r} is infinite at some draws on the real data, and cannot be compared. Leave "
                "posterior= out, or return finite numbers."
            )
    if are_constant(ours, theirs).all():
        raise InvalidArgumentError(
            f"On the real data none of {list(functions)} varies: there is nothing to compare. Leave posterior= out."
        )
    return Columns(tuple(functions), ours.reshape(n_chains, n_draws, -1), theirs, False, fit.distinct_share)


def _read_own(posterior: Any, annealed: xr.Dataset) -> Fit:
    """Return the user's draws of the variables that the annealed draws have too."""
    group = posterior_group(plain_form(posterior))
    if is_fitted_by_bambi(getattr(group, "attrs", {})):
        raise InvalidArgumentError(
            f"posterior= comes from Bambi's fit, which moves intercepts by the means of the predictors; got a "
            f"{type(posterior).__name__}. The annealed draws are those of the PyMC model: pass draws of pm.sample on "
            "model.backend.model, or leave posterior= out."
        )
    variables = annealed.data_vars
    names = [str(name) for name in variables if isinstance(group, Mapping) and name in group]
    if isinstance(group, Mapping) and not names:
        raise InvalidArgumentError(
            f"posterior= has none of the variables of the annealed draws: {', '.join(map(str, variables))}."
        )
    if isinstance(group, xr.Dataset):  # labels as reports keep them
        labels = {dim: coordinate_values(group[dim].values) for dim in group.dims if dim in group.coords}
        group = group.assign_coords(labels)
    dims = {name: tuple(str(dim) for dim in variables[name].dims[2:]) for name in names}
    coords = {str(dim): values.values for dim, values in annealed.coords.items() if dim not in ("chain", "draw")}
    shapes = {name: variables[name].shape[2:] for name in names}
    return read_posterior(group, shapes, dims, coords)


def _on_real_data(
    report: Any, functions: Mapping[str, Quantity], draws: dict[str, NDArray[Any]], where: str
) -> FloatArray:
    """Return the quantities at draws on the real data, (n, quantity)."""
    data = {**_arrays(read_group(report, "constant_data")), **_arrays(read_group(report, "observed_data"))}
    n = len(next(iter(draws.values())))
    return np.column_stack([evaluate(name, function, draws, n, data, where) for name, function in functions.items()])


def _comparison(report: Any, columns: Columns) -> xr.Dataset:
    """Return the group `quantity_agreement`."""
    certificate = read_group(report, "certificate")
    level = float("nan") if certificate is None else float(certificate.attrs["level"])
    observed = read_group(report, "observed_forward")
    weights = np.empty(0) if observed is None or "draw_log_weight" not in observed else observed["draw_log_weight"]
    return comparison_dataset(
        columns,
        error=_error_limit(report, level),
        shared_error=_error_limit(report, 1.0 - ALPHA / 2.0),
        attributes={
            "source": "posterior=",
            "n_dropped": int(np.count_nonzero(~np.isfinite(weights))),
            "n_zero": int(np.count_nonzero(np.isneginf(weights))),
        },
    )


def _error_limit(report: Any, level: float) -> float:
    """Return V's upper limit at the final T, one-sided at ``level``; NaN where it is not known."""
    bounds, certificate = read_group(report, "bounds"), read_group(report, "certificate")
    number = int(read_attributes(report)["n_temperatures"])
    if bounds is None or certificate is None or number not in certificate["n_temperatures"].values:
        return float("nan")
    used = bounds["used"].sel(n_temperatures=number).values.astype(bool)
    errors = certificate["error_by_simulation"].sel(n_temperatures=number).values[used]
    return error_interval(errors, level).upper if errors.size and np.isfinite(errors).all() else float("nan")


def _draws(group: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Return variables (chain, draw, ...) with the first two axes joined."""
    n = group.sizes["chain"] * group.sizes["draw"]
    return {
        str(name): variable.transpose("chain", "draw", ...).values.reshape(n, *variable.shape[2:])
        for name, variable in group.data_vars.items()
    }


def _arrays(group: xr.Dataset | None) -> dict[str, NDArray[Any]]:
    return {} if group is None else {str(name): variable.values for name, variable in group.data_vars.items()}
