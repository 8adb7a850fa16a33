"""Groups of the report that hold what was run, as it came: weights, counts, paths, kernels, cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import Direction, FloatArray, IntArray
from bread.report.labels import safe_name, storable
from bread.running.state.results import OBSERVED, SHARED, CheckResult

MISSING = -1  # integer variables of runs that are not finished
_COUNTS = ("n_gradients", "n_evaluations", "n_divergences", "failure")


def ran_temperatures(result: CheckResult) -> IntArray:
    """Return every T with a schedule or a finished run, in increasing order."""
    return np.array(sorted(set(result.schedules) | {key[2] for key in result.runs}), dtype=np.int64)


def _schedules(result: CheckResult, temperatures: IntArray) -> FloatArray:
    """Return inverse temperatures (n_temperatures, knot), NaN beyond the last knot of each row."""
    table = np.full((len(temperatures), max((int(n) for n in temperatures), default=0)), np.nan)
    for row, n_temperatures in enumerate(temperatures):
        betas = result.schedules.get(int(n_temperatures))
        if betas is not None:
            table[row, : len(betas)] = betas
    return table


def _run_table(result: CheckResult, direction: Direction, simulations: IntArray) -> dict[str, NDArray[Any]]:
    """Return arrays (n_temperatures, simulation, chain), and seconds (n_temperatures, simulation)."""
    temperatures = ran_temperatures(result)
    shape = (len(temperatures), len(simulations), result.n_chains)
    table: dict[str, NDArray[Any]] = {"log_weight": np.full(shape, np.nan)}
    for name in _COUNTS:
        table[name] = np.full(shape, MISSING, dtype=np.int64)
    table["finished"] = np.zeros(shape, dtype=bool)
    table["seconds"] = np.full(shape[:2], np.nan)
    for row, n_temperatures in enumerate(temperatures):
        for column, simulation in enumerate(simulations):
            run = result.runs.get((int(simulation), direction, int(n_temperatures)))
            if run is None:
                continue
            n = min(len(run.log_weight), result.n_chains)
            for name in ("log_weight", *_COUNTS):
                table[name][row, column, :n] = getattr(run, name)[:n]
            table["finished"][row, column, :n] = True
            table["seconds"][row, column] = run.seconds
    return table


_DESCRIPTIONS = {
    "log_weight": {"units": "nats"},
    "failure": {"description": "0 none, 1 zero ratio, 2 zero start, 3 NaN, 4 exception; -1 not finished"},
    "seconds": {"units": "s"},
}


def direction_dataset(result: CheckResult, direction: Direction) -> xr.Dataset | None:
    """Return the group `forward` or `reverse`; None when no run was made in that direction.

    Log weights are in nats, of shape (n_temperatures, simulation, chain); what was not finished is NaN (counts: -1)
    and False in `finished`. `inverse_temperature` (n_temperatures, knot) is the schedule of each T, padded with NaN.
    """
    if not any(key[0] != OBSERVED and key[1] == direction for key in result.runs):
        return None
    simulations = np.arange(len(result.roles), dtype=np.int64)
    table = _run_table(result, direction, simulations)
    dims = ("n_temperatures", "simulation", "chain")
    return _runs_dataset(result, table, dims, {"simulation": simulations, "role": role_coordinate(result)})


def observed_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `observed_forward`; None when the real data were not annealed.

    Beside what `forward` has: `draw_log_weight` (annealed_draw), log weights of the chains that ended in the draws of
    the group `posterior`, in nats, at the number of temperatures in its attribute `n_temperatures`; -inf where a chain
    met a ratio of zero, NaN where it failed, so that there may be more than draws. `draw_log_ratio` (annealed_draw,
    path_end): the log ratio at both ends of these chains.
    """
    if not any(key[0] == OBSERVED for key in result.runs):
        return None
    table = _run_table(result, "forward", np.array([OBSERVED], dtype=np.int64))
    table = {name: values[:, 0] for name, values in table.items()}
    dataset = _runs_dataset(result, table, ("n_temperatures", "chain"), {})
    if result.observed_log_weight is None or result.observed_log_ratio is None:
        return dataset
    attributes = {"units": "nats", "n_temperatures": int(result.draw_temperatures)}
    return dataset.assign(
        draw_log_weight=("annealed_draw", result.observed_log_weight, attributes),
        draw_log_ratio=(("annealed_draw", "path_end"), result.observed_log_ratio, {"units": "nats"}),
    ).assign_coords(path_end=np.array(["base", "posterior"]))


def _runs_dataset(
    result: CheckResult, table: dict[str, NDArray[Any]], dims: tuple[str, ...], coords: dict[str, Any]
) -> xr.Dataset:
    temperatures = ran_temperatures(result)
    variables: dict[str, Any] = {
        name: (dims[: values.ndim], values, _DESCRIPTIONS.get(name, {})) for name, values in table.items()
    }
    variables["inverse_temperature"] = (("n_temperatures", "knot"), _schedules(result, temperatures))
    return xr.Dataset(variables, coords={"n_temperatures": temperatures, "chain": np.arange(result.n_chains), **coords})


def role_coordinate(result: CheckResult) -> tuple[str, NDArray[np.str_]]:
    """Return the role of each simulation ("search", "confirm" or "forward") along `simulation`."""
    return ("simulation", np.array(result.roles, dtype=np.str_))


def kernel_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `kernel`: the frozen settings at each knot, by the data set they were tuned on.

    `data_set` is "shared" (one extra simulated data set for all), "observed" (the real data) or the number of a
    simulation. Settings of one number per coordinate have the dimension `coordinate`.
    """
    if not result.kernels:
        return None
    names = {OBSERVED: "observed", SHARED: "shared"}
    by_data_set = dict(sorted(result.kernels.items()))  # not in the order in which they were finished
    kernels = list(by_data_set.values())
    n_knots = max(len(kernel.betas) for kernel in kernels)
    betas = np.full((len(kernels), n_knots), np.nan)
    variables: dict[str, Any] = {}
    for row, kernel in enumerate(kernels):
        betas[row, : len(kernel.betas)] = kernel.betas
        for name, values in kernel.settings.items():
            dims = tuple(
                "coordinate" if length == result.info.layout.dim else f"{name}_dim_{axis}"
                for axis, length in enumerate(values.shape[1:])
            )
            if len(set(dims)) < len(dims):
                dims = tuple(f"{name}_dim_{axis}" for axis in range(len(dims)))
            table = variables.setdefault(
                safe_name(name),
                (("data_set", "knot", *dims), np.full((len(kernels), n_knots, *values.shape[1:]), np.nan)),
            )[1]
            table[row, : len(values)] = values
    variables["inverse_temperature"] = (("data_set", "knot"), betas)
    variables["source"] = ("data_set", np.array([kernel.source for kernel in kernels], dtype=np.str_))
    coords: dict[str, Any] = {
        "data_set": np.array([names.get(index, str(index)) for index in by_data_set], dtype=np.str_)
    }
    if any("coordinate" in dims for dims, *_ in variables.values()):
        coords["coordinate"] = storable(np.array(result.info.layout.coordinates, dtype=np.str_))
    return xr.Dataset(variables, coords=coords)


def cost_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `cost`: seconds and gradient evaluations of each phase of the check."""
    phases = list(dict.fromkeys([*result.seconds, *result.n_gradients]))
    if not phases:
        return None
    return xr.Dataset(
        {
            "seconds": ("phase", np.array([float(result.seconds.get(phase, np.nan)) for phase in phases])),
            "n_gradients": ("phase", np.array([int(result.n_gradients.get(phase, 0)) for phase in phases])),
        },
        coords={"phase": np.array(phases, dtype=np.str_)},
    )
