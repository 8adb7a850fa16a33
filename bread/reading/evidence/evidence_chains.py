"""Which chains of a report tell the log evidence: forward ones on the real data, both directions on simulated data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.errors import InvalidArgumentError
from bread.reading.other_verbs.debug import is_debug
from bread.reading.other_verbs.other_reports import refuse_other_reports
from bread.report.compat import read_attributes, read_group

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ObservedChains:
    """Forward chains on the real data at one number of temperatures.

    Attributes
    ----------
    log_weight : ndarray, shape (n,)
        Nats; a chain that met a ratio of zero has -inf, and so has one that failed: its weight is at least that.
    log_ratio : ndarray, shape (m, 2)
        At the base and at the end of the chains of the draws, NaN where one was not reached; empty where the report has
        none.
    n_failed : int
    n_temperatures : int
    """

    log_weight: FloatArray
    log_ratio: FloatArray
    n_failed: int
    n_temperatures: int


@dataclass(frozen=True)
class SimulatedChains:
    """Chains of both directions on the simulated data sets that gave the bound at the final number of temperatures.

    Attributes
    ----------
    simulation : ndarray of int, shape (n_simulations,)
    forward, reverse : ndarray, shape (n_simulations, n_chains)
        Log weights, nats.
    betas : ndarray, shape (T,)
    forward_log_ratio, reverse_log_ratio : ndarray, shape (n_simulations, n_chains, T)
        NaN where the report has none.
    """

    simulation: NDArray[np.int64]
    forward: FloatArray
    reverse: FloatArray
    betas: FloatArray
    forward_log_ratio: FloatArray
    reverse_log_ratio: FloatArray


def require_evidence(report: Any, what: str = "report") -> None:
    """Raise InvalidArgumentError where a report holds no evidence of the user's model."""
    if is_debug(report):
        raise InvalidArgumentError(f"{what} is one of bread.debug, which anneals no data. Pass one of bread.check.")
    refuse_other_reports(report, what, "bread.check")
    if str(read_attributes(report).get("simulate_from")) == "localised":
        raise InvalidArgumentError(
            f"{what} was made with simulate_from='localised', whose model has a fit to the data as the law of its "
            "hyperparameters: its evidence is not that of your prior. Run bread.check with simulate_from='fitted' or "
            "'prior'."
        )


def observed_chains(report: Any) -> ObservedChains | None:
    """Return the chains on the real data; None where none was annealed.

    Those of the draws, and those of the check at the same number of temperatures, which are as many as its chains.
    """
    group = read_group(report, "observed_forward")
    if group is None:
        return None
    finished = group["finished"].values.astype(bool)
    temperatures = group["n_temperatures"].values
    draws, ratio = np.zeros(0), np.zeros((0, 2))
    if "draw_log_weight" in group:
        draws = np.asarray(group["draw_log_weight"].values, dtype=np.float64)
        ratio = np.asarray(group["draw_log_ratio"].values, dtype=np.float64)
        n_temperatures = int(group["draw_log_weight"].attrs["n_temperatures"])
    elif finished.any():
        n_temperatures = int(temperatures[finished.any(axis=1)].max())
    else:
        return None
    own = np.zeros(0)
    if n_temperatures in temperatures:
        row = int(np.flatnonzero(temperatures == n_temperatures)[0])
        own = np.asarray(group["log_weight"].values[row][finished[row]], dtype=np.float64)
    values = np.concatenate([own, draws])
    is_failed = np.isnan(values)
    return ObservedChains(
        np.where(is_failed, -np.inf, values),
        ratio,
        int(is_failed.sum()),
        n_temperatures,
    )


def simulated_chains(report: Any) -> SimulatedChains | None:
    """Return the chains on simulated data; None where no data set was annealed both ways."""
    bounds, forward, reverse = (read_group(report, name) for name in ("bounds", "forward", "reverse"))
    n_temperatures = int(read_attributes(report).get("n_temperatures", 0))
    if bounds is None or forward is None or reverse is None or n_temperatures not in bounds["n_temperatures"].values:
        return None
    used = bounds["used"].sel(n_temperatures=n_temperatures).values.astype(bool)
    up, down = (runs["log_weight"].sel(n_temperatures=n_temperatures).values[used] for runs in (forward, reverse))
    whole = ~np.isnan(up).any(axis=1) & np.isfinite(down).all(axis=1)
    if not whole.any():
        return None
    simulation = np.asarray(bounds["simulation"].values[used][whole], dtype=np.int64)
    betas, ratios = _log_ratios(report, simulation, up.shape[1])
    return SimulatedChains(simulation, up[whole], down[whole], betas, *ratios)


def _log_ratios(report: Any, simulation: NDArray[np.int64], n_chains: int) -> tuple[FloatArray, list[FloatArray]]:
    path = read_group(report, "annealing_path")
    if path is None or not np.isin(simulation, path["simulation"].values).all():
        empty = np.full((len(simulation), n_chains, 2), np.nan)
        return np.array([0.0, 1.0]), [empty, empty]
    chosen = path["log_ratio"].sel(simulation=simulation)
    ratios = [np.asarray(chosen.sel(direction=way).values, dtype=np.float64) for way in ("forward", "reverse")]
    return np.asarray(path["inverse_temperature"].values, dtype=np.float64), ratios


def constant_error(report: Any) -> tuple[float, str]:
    """Return the standard error of the prior's constant in the log weights (nats), and why it is not known at all.

    Along the path from the prior the constant cancels: the error is 0. Along a reference path it was integrated.

    Returns
    -------
    tuple of float and str
        The reason is "" where the constant is known.
    """
    attributes = read_attributes(report)
    if attributes.get("path") != "reference":
        return 0.0, ""
    if json.loads(str(attributes.get("settings", "{}"))).get("simulator") is not None:
        return 0.0, "with simulator= nobody knows what the prior integrates to, which counts on a reference path"
    left_out = json.loads(str(attributes.get("not_integrated", "[]")))
    if left_out:
        return 0.0, (
            f"what the density of {', '.join(left_out)} integrates to is not known, which counts on a reference path"
        )
    integrals = read_group(report, "prior_integrals")
    if integrals is None:
        return 0.0, ""
    errors = integrals["standard_error"].values[integrals["is_named"].values.astype(bool)]
    return float(np.sqrt(np.sum(errors**2))), ""
