"""What the plots show, as arrays computed from a report; nothing here draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import gaussian_kde

from bread.errors import InvalidArgumentError
from bread.reading.other_verbs.debug import is_debug
from bread.reading.sentences.gap import gap_location
from bread.report.compat import read_attributes, read_group
from bread.statistics.bounds.goal import Goal
from bread.statistics.evidence.evidence import bennett

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Quartile band and mean of many values at each x."""

    x: FloatArray
    lower: FloatArray
    mean: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class CertificateData:
    """V against T with its limits, what its limit is to reach, and B at the final T.

    ``limit_exact`` takes no population of data sets for granted; ``is_final`` marks the T that decides.
    """

    x: FloatArray
    error: FloatArray
    lower: FloatArray
    upper: FloatArray
    limit_exact: FloatArray
    is_final: NDArray[np.bool_]
    max_error: float
    size_of_b: str


@dataclass(frozen=True)
class BoundsData:
    """Log weights minus the log evidence estimate of their data set, against T, in nats."""

    forward: Curve
    reverse: Curve
    observed: Curve | None
    base_name: str
    certificate: CertificateData


@dataclass(frozen=True)
class ConsistencyData:
    """Forward curves minus their value at the largest T, in nats."""

    x: FloatArray
    simulated: FloatArray  # (simulation, n_temperatures)
    observed: FloatArray  # (n_temperatures,)
    p_value: float
    effect: FloatArray


@dataclass(frozen=True)
class WorkData:
    """Forward and reverse log weights at one T, and where their densities should cross, in nats."""

    forward: FloatArray
    reverse: FloatArray
    log_evidence: float
    n_temperatures: int
    n_simulations: int
    is_shifted: bool


@dataclass(frozen=True)
class PathData:
    """Mean log ratio up and down the path, relative to the mean at the exact posterior draws, in nats.

    On an axis of ``beta ** power`` the temperatures spread about evenly.
    """

    betas: FloatArray
    forward: FloatArray
    reverse: FloatArray
    gap_location: float
    gap: float
    power: float
    log_ratio_name: str
    n_temperatures: int
    base_name: str


def require(report: Any, name: str, plot: str) -> xr.Dataset:
    """Return a group that a plot needs.

    Raises
    ------
    InvalidArgumentError
        The report lacks it.
    """
    group = read_group(report, name)
    if group is None:
        reasons = {
            "consistency": "it needs at least two numbers of temperatures on the real data and on the simulations",
            "fit": "no real data were annealed, or no part of the model can be drawn given what it depends on",
            "agreement": "there were no draws (posterior=, or a fit), or it ended before it annealed the real data",
            "first_look": "no draws were looked at",
            "annealing_path": "no simulated data set was annealed both ways",
        }
        if is_debug(report):
            reasons = {name: "it is one of bread.debug, which plot_debug draws"}
        reason = reasons.get(name, "the check was interrupted before it could be computed")
        raise InvalidArgumentError(f"{plot} needs the group '{name}', which this report lacks: {reason}.")
    return group


def log_evidence_estimates(forward: FloatArray, reverse: FloatArray) -> FloatArray:
    """Return Bennett's estimate of each simulation's log evidence at the largest T it has, in nats.

    Parameters
    ----------
    forward, reverse : ndarray, shape (n_temperatures, simulation, chain)
        Log weights, NaN where not finished.

    Returns
    -------
    ndarray, shape (simulation,)
        NaN where nothing was annealed both ways.

    References
    ----------
    Bennett (1976), "Efficient estimation of free energy differences from Monte Carlo data", equation 12.
    """
    estimates = np.full(forward.shape[:2], np.nan)
    for row, column in np.ndindex(*estimates.shape):
        up, down = forward[row, column], reverse[row, column]
        if not (np.isnan(up).any() or np.isnan(down).any()):
            estimates[row, column] = _bennett(up, down)
    return _last_known(estimates)


def _bennett(forward: FloatArray, reverse: FloatArray) -> float:
    """Return Bennett's estimate; the mean of reverse where every forward weight is zero."""
    value = bennett(forward, reverse).value
    return float(reverse.mean()) if np.isnan(value) else value


def _last_known(table: FloatArray) -> FloatArray:
    """Return for each column of (n_temperatures, ...) its last entry that is not NaN."""
    result = np.full(table.shape[1:], np.nan)
    for row in table:
        result = np.where(np.isnan(row), result, row)
    return np.asarray(result, dtype=np.float64)


def bounds_data(report: Any) -> BoundsData:
    """Return the data of `bread.plot_bounds`, over all chains of the simulations that gave the bound at each T."""
    bounds = require(report, "bounds", "plot_bounds")
    if not bounds["used"].values.any():
        raise InvalidArgumentError("plot_bounds needs a simulated data set that was annealed both ways; none was.")
    forward = require(report, "forward", "plot_bounds")
    reverse = require(report, "reverse", "plot_bounds")
    temperatures = bounds["n_temperatures"].values.astype(float)
    level = log_evidence_estimates(forward["log_weight"].values, reverse["log_weight"].values)[:, None]
    used = bounds["used"].values.astype(bool)

    def rows(runs: xr.Dataset) -> list[FloatArray]:
        shifted = runs["log_weight"].values - level[None]
        return [values[mask].ravel() for values, mask in zip(shifted, used, strict=True)]

    observed = read_group(report, "observed_forward")
    observed_curve = None
    if observed is not None:
        log_weights = observed["log_weight"].values
        own = logsumexp(log_weights, axis=1) - np.log(log_weights.shape[1])
        last = _last_known(own[:, None])[0]
        observed_curve = _curve(temperatures, [row - last for row in log_weights])
    base_name = str(read_attributes(report).get("path_start", "prior"))
    return BoundsData(
        _curve(temperatures, rows(forward)),
        _curve(temperatures, rows(reverse)),
        observed_curve,
        base_name,
        _certificate_data(report, bounds),
    )


def _certificate_data(report: Any, bounds: xr.Dataset) -> CertificateData:
    certificate, attributes = require(report, "certificate", "plot_bounds"), read_attributes(report)
    temperatures = certificate["n_temperatures"].values
    known = np.isfinite(certificate["error"].values)
    is_final = temperatures == int(attributes.get("n_temperatures", 0))
    lower, upper = certificate["error_ci"].values[known].T
    goal = Goal(float(attributes["max_error"]), attributes.get("target"))
    return CertificateData(
        temperatures[known].astype(float),
        certificate["error"].values[known],
        lower,
        upper,
        certificate["error_limit_exact"].values[known],
        is_final[known],
        goal.decides(False)[1],
        _size_of_b(bounds.isel(n_temperatures=int(np.argmax(is_final)))) if is_final.any() else "",
    )


def _size_of_b(here: xr.Dataset) -> str:
    low, high = (float(value) for value in here["jeffreys_ci"].values)
    value, number = float(here["jeffreys"]), int(here["n_temperatures"])
    if np.isnan(value):
        return ""
    if np.isinf(value):
        return f"B is infinite at {number} temperatures"
    limits = f" ({low:.2g} to {high:.2g})" if np.isfinite([low, high]).all() else ""
    doubt = "" if bool(here["jeffreys_reliable"]) else ", which may have no finite mean"
    return f"B = {value:.2g} nats{limits} at {number} temperatures{doubt}"


def _curve(x: FloatArray, rows: list[FloatArray]) -> Curve:
    """Return quartiles and means of the values at each x; x without finite values are left out.

    Quartiles count -inf; the mean is -inf, and so not drawn, where a value is.
    """
    kept = [(at, row[~np.isnan(row)]) for at, row in zip(x, rows, strict=True) if not np.isnan(row).all()]
    quartiles = [np.quantile(row, (0.25, 0.75), method="inverted_cdf") for _, row in kept]
    table = np.array([(at, low, row.mean(), high) for (at, row), (low, high) in zip(kept, quartiles, strict=True)])
    table = table.reshape(-1, 4)
    return Curve(table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def consistency_data(report: Any) -> ConsistencyData:
    """Return the data of `bread.plot_consistency`."""
    group = require(report, "consistency", "plot_consistency")
    return ConsistencyData(
        x=group["n_temperatures"].values.astype(float),
        simulated=group["simulated_curve"].transpose("simulation", "n_temperatures").values,
        observed=group["observed_curve"].values,
        p_value=float(group["shape_p_value"]),
        effect=group["effect"].values,
    )


def work_data(report: Any, simulation: int | None, n_temperatures: int | None) -> WorkData:
    """Return the data of `bread.plot_work`.

    Raises
    ------
    InvalidArgumentError
        The T or the simulation is not in the report, or has not finished both directions.
    """
    bounds = require(report, "bounds", "plot_work")
    if not bounds["used"].values.any():
        raise InvalidArgumentError("plot_work needs a simulated data set that was annealed both ways; none was.")
    temperatures = [int(n) for n in bounds["n_temperatures"].values]
    chosen = int(read_attributes(report).get("n_temperatures", 0)) if n_temperatures is None else int(n_temperatures)
    if chosen not in temperatures:
        raise InvalidArgumentError(
            f"n_temperatures must be one of those in the report, {', '.join(map(str, temperatures))}, got {chosen}."
        )
    runs = {name: require(report, name, "plot_work")["log_weight"] for name in ("forward", "reverse")}
    level = log_evidence_estimates(runs["forward"].values, runs["reverse"].values)
    log_weights = {name: values.sel(n_temperatures=chosen).values for name, values in runs.items()}
    if simulation is None:
        used = bounds["used"].sel(n_temperatures=chosen).values.astype(bool)
        shifted = {name: (values - level[:, None])[used].ravel() for name, values in log_weights.items()}
        return WorkData(shifted["forward"], shifted["reverse"], 0.0, chosen, int(used.sum()), True)
    known = [int(index) for index in bounds["simulation"].values]
    if simulation not in known:
        raise InvalidArgumentError(f"simulation must be None or one of 0 to {len(known) - 1}, got {simulation!r}.")
    forward, reverse = log_weights["forward"][simulation], log_weights["reverse"][simulation]
    if np.isnan(forward).any() or np.isnan(reverse).any():
        raise InvalidArgumentError(
            f"simulation {simulation} has not finished both directions at {chosen} temperatures; choose another."
        )
    return WorkData(forward, reverse, float(level[simulation]), chosen, 1, False)


def density(values: FloatArray, grid: FloatArray) -> FloatArray | None:
    """Return a Gaussian kernel density estimate on ``grid``; None for fewer than three different finite values.

    The density of the finite values times their share of all.
    """
    finite = values[np.isfinite(values)]
    if len(np.unique(finite)) < 3:
        return None
    share = len(finite) / max(1, int(np.count_nonzero(~np.isnan(values))))
    return np.asarray(gaussian_kde(finite)(grid) * share, dtype=np.float64)


def path_data(report: Any) -> PathData:
    """Return the data of `bread.plot_path`: means over chains and simulations."""
    path = require(report, "annealing_path", "plot_path")
    betas = path["inverse_temperature"].values
    forward = path["log_ratio"].sel(direction="forward").values
    reverse = path["log_ratio"].sel(direction="reverse").values
    up, down = (np.nanmean(values.reshape(-1, len(betas)), axis=0) for values in (forward, reverse))
    reference = float(down[-1])
    increments = np.diff(betas) * (down - up)[:-1]
    return PathData(
        betas=betas,
        forward=up - reference,
        reverse=down - reference,
        gap_location=gap_location(betas, forward, reverse),
        gap=float(increments.sum()),
        power=_spreading_power(betas),
        log_ratio_name=str(path["log_ratio"].attrs.get("long_name", "log ratio")),
        n_temperatures=len(betas),
        base_name=str(path["log_ratio"].attrs.get("start", "prior")),
    )


def _spreading_power(betas: FloatArray) -> float:
    """Return the power, at most a half, that brings the median temperature to the middle of the axis."""
    median = float(np.median(betas))
    return float(np.clip(np.log(0.5) / np.log(np.clip(median, 1e-9, 0.999)), 0.1, 0.5))


def smoothed(betas: FloatArray, values: FloatArray, power: float, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Average a curve over bins that are even in ``beta ** power``; both ends and empty bins stay as they are.

    Returns
    -------
    tuple of ndarray
        Mean inverse temperature and mean value of each bin that holds a temperature.
    """
    bins = np.minimum((betas**power * n_bins).astype(int), n_bins - 1)
    bins[0], bins[-1] = -1, n_bins  # the ends by themselves
    _, index = np.unique(bins, return_inverse=True)
    count = np.bincount(index)
    return np.bincount(index, betas) / count, np.bincount(index, values) / count
