"""Groups of the report with the model's own names, dims and coords: exact draws, simulated data, annealed draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.report.labels import model_dataset
from bread.running.state.results import CheckResult

Constrain = Callable[[FloatArray], dict[str, NDArray[Any]]]


def truth_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `truth`: the exact draws, one a simulation, in the model's own coordinates."""
    return _simulated(result, result.simulations.parameters, result.info.layout.parameters)


def simulated_data_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `simulated_data`: one data set a simulation."""
    return _simulated(result, result.simulations.data, result.info.data.observed_dims)


def _simulated(
    result: CheckResult, values: dict[str, NDArray[Any]], dims: dict[str, tuple[str, ...]]
) -> xr.Dataset | None:
    n = min(len(result.simulations), len(result.roles))
    if n == 0 or not values:
        return None
    shortened = {name: array[:n] for name, array in values.items()}
    return model_dataset(shortened, dims, result.info.data.coords, {"simulation": np.arange(n)})


def observed_data_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `observed_data`: the real data."""
    if not result.info.data.observed:
        return None
    return model_dataset(result.info.data.observed, result.info.data.observed_dims, result.info.data.coords, {})


def constant_data_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `constant_data`: covariates."""
    constants = result.info.data.constants
    if not constants:
        return None
    values = {name: np.asarray(array) for name, (_, array) in constants.items()}
    return model_dataset(values, {name: dims for name, (dims, _) in constants.items()}, result.info.data.coords, {})


def approximate_posterior_dataset(
    result: CheckResult, constrain: Constrain | None, n_temperatures: int
) -> xr.Dataset | None:
    """Return the group `approximate_posterior`: where forward chains on simulated data ended, at one T.

    Compare with `truth`: each is one draw from the law that the bounds are about. A chain that failed has NaN.
    """
    simulations = [index for index in range(len(result.roles)) if (index, "forward", n_temperatures) in result.runs]
    if constrain is None or not simulations:
        return None
    states = np.concatenate([result.runs[index, "forward", n_temperatures].state_at_end for index in simulations])
    values = constrained(constrain, states)
    if len(states) != len(simulations) * result.n_chains or not values:
        return None
    shape = (len(simulations), result.n_chains)
    leading = {"simulation": np.array(simulations), "chain": np.arange(result.n_chains)}
    shaped = {name: array.reshape(*shape, *array.shape[1:]) for name, array in values.items()}
    return model_dataset(shaped, result.info.layout.parameters, result.info.data.coords, leading)


def annealed_draws(result: CheckResult, constrain: Constrain | None) -> dict[str, NDArray[Any]] | None:
    """Return annealed draws on the real data in the model's own coordinates, name -> (n, ...); None without any."""
    if constrain is None or result.observed_draws is None or not len(result.observed_draws):
        return None
    return constrain(result.observed_draws)


def posterior_dataset(result: CheckResult, draws: dict[str, NDArray[Any]] | None) -> xr.Dataset | None:
    """Return the group `posterior`: annealed draws on the real data as (chain, draw).

    Every draw is the end of a chain of its own, so the draws are independent: `chain` numbers equal shares of them.
    One share where their number is no multiple of the number of chains.
    """
    if not draws:
        return None
    n = len(next(iter(draws.values())))
    n_chains = result.n_chains if n % result.n_chains == 0 else 1
    shape = (n_chains, n // n_chains)
    leading = {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}
    shaped = {name: array.reshape(*shape, *array.shape[1:]) for name, array in draws.items()}
    return model_dataset(shaped, result.info.layout.parameters, result.info.data.coords, leading)


def constrained(constrain: Constrain, states: FloatArray) -> dict[str, NDArray[Any]]:
    """Map states to named values; rows that are not finite (a failed chain) become NaN."""
    is_finite = np.isfinite(states).all(axis=1)
    if not is_finite.any():
        return {}
    values = {name: np.asarray(array) for name, array in constrain(states[is_finite]).items()}
    if is_finite.all():
        return values
    padded = {}
    for name, array in values.items():
        padded[name] = np.full((len(states), *array.shape[1:]), np.nan)
        padded[name][is_finite] = array
    return padded
