"""Groups `certificate`, V (the bound of the error of a probability) at every T, and `by_data_set`, its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import IntArray
from bread.report.bounds import CI_BOUND, bound_simulations, usable_simulations
from bread.report.runs import ran_temperatures
from bread.running.state.results import CheckResult
from bread.statistics.bounds import certificate
from bread.statistics.bounds.betting import betting_upper_limit

_NAN = float("nan")


def certificate_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `certificate`; None when nothing has finished.

    `error` (n_temperatures): V, from the simulations that give the bounds at this T; `error_ci` (.., ci_bound):
    limits, each one-sided at the level in the attributes (upper: as `error_interval`, which has that level where data
    sets are alike or differ by factors); `error_limit_exact`: a limit by betting, which has it for every population;
    `error_raw`, the form that does not use Crooks' relation, with `forms_difference`, its standard error and the
    p-value of an exact test that both forms have one mean (small: a bug). `error_by_simulation` and
    `error_raw_by_simulation` (n_temperatures, simulation), NaN where a direction is missing.
    """
    temperatures = ran_temperatures(result)
    if not len(result.roles) or not len(temperatures):
        return None
    by_simulation = _by_simulation(result, temperatures)
    rows = [
        _certificate_at(result, int(n), by_simulation["error_by_simulation"][row]) for row, n in enumerate(temperatures)
    ]
    variables: dict[str, Any] = {
        name: ("n_temperatures", np.array([row[name] for row in rows])) for name in rows[0] if name != "error_ci"
    }
    limits = np.array([row["error_ci"] for row in rows])
    variables["error_ci"] = (("n_temperatures", "ci_bound"), limits, {"level": result.error_level, "sides": 1})
    for name, values in by_simulation.items():
        variables[name] = (("n_temperatures", "simulation"), values)
    return xr.Dataset(
        variables,
        coords={"n_temperatures": temperatures, "simulation": np.arange(len(result.roles)), "ci_bound": CI_BOUND},
        attrs={"level": float(result.error_level)},
    )


def by_data_set_dataset(result: CheckResult, n_temperatures: int) -> xr.Dataset | None:
    """Return the group `by_data_set`: V and B of each data set, as ArviZ's plots and summaries take draws.

    `error` and `jeffreys` (chain, draw): one chain, whose draws are the simulations that give V and B at this T (their
    numbers label `draw`), so that the means are those of the groups `certificate` and `bounds`. `jeffreys`, nats, is
    left out where a gap is infinite.

    Parameters
    ----------
    result : CheckResult
    n_temperatures : int
        The final T.
    """
    found = _bound_weights(result, n_temperatures)
    if found is None:
        return None
    simulations, forward, reverse = found
    values = {
        "error": certificate.error_by_simulation(forward, reverse),
        "jeffreys": certificate.conditional_gaps(forward, reverse),
    }
    units = {"error": {}, "jeffreys": {"units": "nats"}}
    return xr.Dataset(
        {name: (("chain", "draw"), one[None], units[name]) for name, one in values.items() if np.isfinite(one).all()},
        coords={"chain": [0], "draw": simulations},
        attrs={"n_temperatures": int(n_temperatures)},
    )


def error_limit(result: CheckResult, n_temperatures: int, level: float) -> float:
    """Return V's upper limit at this T, one-sided at ``level``; NaN where it is not known."""
    found = _bound_weights(result, n_temperatures)
    if found is None:
        return _NAN
    _, forward, reverse = found
    return certificate.error_interval(certificate.error_by_simulation(forward, reverse), level).upper


def _bound_weights(
    result: CheckResult, n_temperatures: int
) -> tuple[IntArray, NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the simulations that give the bounds at this T, and their log weights; None where V is not known."""
    _, simulations = bound_simulations(result, n_temperatures)
    forward = result.log_weights("forward", n_temperatures, simulations)
    reverse = result.log_weights("reverse", n_temperatures, simulations)
    if not len(simulations) or not usable_simulations(forward, reverse).all():
        return None
    return simulations, forward, reverse


def _by_simulation(result: CheckResult, temperatures: IntArray) -> dict[str, NDArray[np.float64]]:
    """Return both forms of V for every simulation at every T."""
    shape = (len(temperatures), len(result.roles))
    tables = {name: np.full(shape, _NAN) for name in ("error_by_simulation", "error_raw_by_simulation")}
    for row, n_temperatures in enumerate(temperatures):
        forward = result.log_weights("forward", int(n_temperatures))
        reverse = result.log_weights("reverse", int(n_temperatures))
        usable = usable_simulations(forward, reverse)
        if usable.any():
            pair = forward[usable], reverse[usable]
            tables["error_by_simulation"][row, usable] = certificate.error_by_simulation(*pair)
            tables["error_raw_by_simulation"][row, usable] = certificate.raw_error_by_simulation(*pair)
    return tables


def _certificate_at(result: CheckResult, n_temperatures: int, errors: NDArray[np.float64]) -> dict[str, Any]:
    """Return everything `certificate` says about one T."""
    row: dict[str, Any] = dict.fromkeys(
        ("error", "error_limit_exact", "error_raw", "forms_difference", "forms_difference_se", "forms_p_value"), _NAN
    )
    row["error_ci"] = (_NAN, _NAN)
    found = _bound_weights(result, n_temperatures)
    if found is None:
        return row
    simulations, forward, reverse = found
    interval = certificate.error_interval(errors[simulations], result.error_level)
    forms = certificate.compare_forms(forward, reverse)
    return {
        "error": interval.estimate,
        "error_ci": (interval.lower, interval.upper),
        "error_limit_exact": betting_upper_limit(errors[simulations], result.error_level),
        "error_raw": float(certificate.raw_error_by_simulation(forward, reverse).mean()),
        "forms_difference": forms.difference,
        "forms_difference_se": forms.standard_error,
        "forms_p_value": forms.p_value,
    }
