"""Groups of the report that say what the path was and what happened along it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bread.backends.base import Direction, IntArray
from bread.paths.knots import kept_knots
from bread.paths.mixture import Reference
from bread.report.labels import storable
from bread.running.state.results import OBSERVED, SHARED, CheckResult

_NAMES = {OBSERVED: "observed", SHARED: "shared"}


def path_dataset(result: CheckResult, n_temperatures: int, simulations: IntArray) -> xr.Dataset | None:
    """Return the group `annealing_path`: log ratios up and down the path at one T.

    Parameters
    ----------
    result : CheckResult
    n_temperatures : int
    simulations : ndarray of int
        Those whose runs are finished in both directions.

    Returns
    -------
    Dataset or None
        `log_ratio` (direction, simulation, chain, knot) in nats, `inverse_temperature` (knot): all of up to 1024
        temperatures, of more those that `bread.paths.knots` keeps, with averages.
    """
    schedule = result.schedules.get(n_temperatures)
    if schedule is None or not len(simulations):
        return None
    betas = np.asarray(schedule, dtype=float)[kept_knots(len(schedule))]
    directions: tuple[Direction, Direction] = ("forward", "reverse")
    log_ratio = np.full((2, len(simulations), result.n_chains, len(betas)), np.nan)
    for row, direction in enumerate(directions):
        for column, simulation in enumerate(simulations):
            values = result.runs[int(simulation), direction, n_temperatures].log_ratio
            if values.shape[1] == len(betas):
                log_ratio[row, column, : len(values)] = values
    return xr.Dataset(
        {
            "log_ratio": (
                ("direction", "simulation", "chain", "knot"),
                log_ratio,
                {"long_name": result.path.ratio_name, "start": result.path.base_name, "units": "nats"},
            ),
            "inverse_temperature": ("knot", betas),
        },
        coords={
            "direction": np.array(directions),
            "simulation": simulations,
            "chain": np.arange(result.n_chains),
        },
    )


def reference_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `reference`: mean and standard deviation of the reference of each data set.

    `mean`, `standard_deviation` (data_set, coordinate), unconstrained; `criterion` (family) is the estimated Jeffreys
    divergence (nats) between posterior and reference that chose the family, on the extra simulated data set;
    `predicted_gradients` (path) is what each path that was considered would cost a data set; `localisation_mean` and
    `localisation_standard_deviation` (hyperparameter) are the law of the hyperparameters under "localised". None where
    there is nothing of it.
    """
    paths = [(SHARED, result.path), *sorted(result.paths.items())]
    references: dict[int, Reference] = {index: path.reference for index, path in paths if path.reference}
    fitted = {index: path.fitted for index, path in paths if path.fitted}
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    attributes: dict[str, str] = {}
    if fitted:
        moments = [item.moments() for item in fitted.values()]
        variables["mean"] = (("data_set", "coordinate"), np.array([mean for mean, _ in moments]))
        variables["standard_deviation"] = (
            ("data_set", "coordinate"),
            np.array([deviation for _, deviation in moments]),
        )
        coords["data_set"] = np.array([_NAMES.get(index, str(index)) for index in fitted], dtype=np.str_)
        coords["coordinate"] = storable(np.array(result.info.layout.coordinates, dtype=np.str_))
    if references:
        attributes["label"] = (
            references[SHARED].label if SHARED in references else next(iter(references.values())).label
        )
    if result.reference_fit is not None and result.reference_fit.criterion:
        criterion = result.reference_fit.criterion
        variables["criterion"] = ("family", np.array(list(criterion.values())), {"units": "nats"})
        coords["family"] = np.array(list(criterion), dtype=np.str_)
    if result.path_costs:
        variables["predicted_gradients"] = ("path", np.array(list(result.path_costs.values())))
        coords["path"] = np.array(list(result.path_costs), dtype=np.str_)
    if result.localisation is not None:
        mean, deviation = result.localisation.moments()
        names = _hyperparameter_coordinates(result)
        variables["localisation_mean"] = ("hyperparameter", mean)
        variables["localisation_standard_deviation"] = ("hyperparameter", deviation)
        coords["hyperparameter"] = storable(np.array(names, dtype=np.str_))
        attributes["localisation"] = result.localisation.label
    return xr.Dataset(variables, coords=coords, attrs=attributes) if variables else None


def _hyperparameter_coordinates(result: CheckResult) -> list[str]:
    layout = result.info.layout
    chosen = np.sort(np.concatenate([layout.positions[name] for name in result.settings["hyperparameters"]]))
    return [layout.coordinates[int(index)] for index in chosen]
