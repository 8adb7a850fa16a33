"""What a report found, as plain numbers: the facts that verdict and sentences are made from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from bread.backends.base import Failure
from bread.reading.gap import gap_location
from bread.report.compat import read_attributes, read_group

_NAN = float("nan")
EXACT_SIMULATIONS = ("prior", "localised")  # values of simulate_from under which everything is exact


@dataclass(frozen=True)
class Findings:
    """Numbers of a report at its final T; NaN (or None) where the report lacks them.

    Attributes
    ----------
    estimate, lower, upper : float
        The bound that decides, with its interval, in nats: B, or the bound of KL(p||q) where B is unreliable.
    is_jeffreys : bool
        Whether that bound is B.
    is_reliable : bool
        Whether the bound that decides has a finite mean.
    jeffreys : float
        Estimate of B, reliable or not.
    tail_index : float
        The larger lower-tail index of first log ratios and forward log weights.
    previous : float
        The same bound at the largest T below (search simulations), to see whether it still falls.
    n_zero, n_failed, n_forward : int
        Forward chains that met a ratio of zero; chains in either direction that failed; forward chains in all.
    was_chosen : bool
        Whether path="auto" chose the path.
    effect : float
        Real minus simulated data, nats, at the T where it is largest; positive = real data harder.
    agreement : bool or None
        Whether the user's own draws agree with the annealed ones; None without draws, or too few to tell.
    """

    simulate_from: str
    kernel: str
    backend: str
    log_ratio_name: str
    path: str
    was_chosen: bool
    start_name: str
    target: float
    level: float
    is_interrupted: bool
    is_confirmed: bool
    n_temperatures: int
    n_simulations: int
    n_chains: int
    max_temperatures: int | None = None
    init_steps: int | None = None
    estimate: float = _NAN
    lower: float = _NAN
    upper: float = _NAN
    is_jeffreys: bool = True
    is_reliable: bool = False
    jeffreys: float = _NAN
    tail_index: float = _NAN
    total_variation: float = _NAN
    previous: float = _NAN
    n_zero: int = 0
    n_failed: int = 0
    n_forward: int = 0
    gap_beta: float = _NAN
    consistency_p_value: float = _NAN
    effect: float = _NAN
    alarm_p_value: float = _NAN
    rank_p_value: float = _NAN
    rank_function: str = ""
    agreement: bool | None = None
    agreement_p_value: float = _NAN
    agreement_parameter: str = ""
    agreement_shift: float = _NAN
    agreement_n_effective: float = _NAN


AGREEMENT_LEVEL = 0.01
MINIMUM_EFFECTIVE = 5.0  # effective draws per chain of the user, below which agreement says nothing


def read_findings(report: Any) -> Findings:
    """Return the facts of a report, of either kind, complete or interrupted."""
    attributes = read_attributes(report)
    settings = json.loads(str(attributes.get("settings", "{}")))
    facts: dict[str, Any] = {
        "simulate_from": str(attributes.get("simulate_from", "prior")),
        "kernel": str(attributes.get("kernel", "")),
        "backend": str(attributes.get("inference_library", "")),
        "log_ratio_name": str(attributes.get("log_ratio_name", "log ratio")),
        "path": str(attributes.get("path", "prior")),
        "was_chosen": settings.get("path") == "auto",
        "start_name": str(attributes.get("path_start", "prior")),
        "target": float(attributes.get("target", 1.0)),
        "level": float(attributes.get("level", 0.95)),
        "is_interrupted": bool(attributes.get("is_interrupted", 0)),
        "is_confirmed": 0 < int(attributes.get("n_confirming", 0)) == int(attributes.get("n_confirmed", 0)),
        "n_temperatures": int(attributes.get("n_temperatures", 0)),
        "n_chains": int(attributes.get("n_chains", 0)),
        "n_simulations": 0,
        "max_temperatures": None if settings.get("n_temperatures") else settings.get("max_temperatures"),
        "init_steps": settings.get("init_steps"),
    }
    bounds = read_group(report, "bounds")
    n_temperatures = facts["n_temperatures"]
    if bounds is not None and n_temperatures in bounds["n_temperatures"].values:
        facts |= _bounds(bounds, n_temperatures)
        facts |= _failures(report, bounds, n_temperatures)
    for name, read in (
        ("annealing_path", _path),
        ("consistency", _consistency),
        ("alarm", _alarm),
        ("agreement", _agreement),
    ):
        dataset = read_group(report, name)
        if dataset is not None:
            facts |= read(dataset)
    return Findings(**facts)


def _bounds(bounds: xr.Dataset, n_temperatures: int) -> dict[str, Any]:
    here = bounds.sel(n_temperatures=n_temperatures)
    is_finite = bool(here["jeffreys_reliable"])
    # An infinite gap that was seen needs no tail index: it decides.
    is_jeffreys = is_finite or bool(np.isposinf(here["jeffreys"]))
    name = "jeffreys" if is_jeffreys or not np.isfinite(here["kl_exact_approx"]) else "kl_exact_approx"
    lower, upper = (float(value) for value in here[f"{name}_ci"].values)
    below = bounds[name].values[bounds["n_temperatures"].values < n_temperatures]
    shapes = np.array([float(here["tail_index"]), float(bounds["start_tail_index"])])
    return {
        "estimate": float(here[name]),
        "lower": lower,
        "upper": upper,
        "is_jeffreys": name == "jeffreys",
        "is_reliable": is_jeffreys or (name == "kl_exact_approx" and bool(here["kl_exact_approx_reliable"])),
        "jeffreys": float(here["jeffreys"]),
        "tail_index": float(np.nanmax(shapes)) if not np.isnan(shapes).all() else _NAN,
        "total_variation": float(here["total_variation"]),
        "n_simulations": int(here["n_simulations"]),
        "previous": float(below[-1]) if len(below) else _NAN,
    }


def _failures(report: Any, bounds: xr.Dataset, n_temperatures: int) -> dict[str, Any]:
    """Count failures among the simulations that gave the bound."""
    used = bounds["used"].sel(n_temperatures=n_temperatures).values.astype(bool)
    counts = {"n_zero": 0, "n_failed": 0, "n_forward": 0}
    for direction in ("forward", "reverse"):
        runs = read_group(report, direction)
        if runs is None:
            continue
        failure = runs["failure"].sel(n_temperatures=n_temperatures).values[used]
        counts["n_failed"] += int(np.count_nonzero(failure > Failure.ZERO_RATIO))
        if direction == "forward":
            counts["n_zero"] = int(np.count_nonzero(failure == Failure.ZERO_RATIO))
            counts["n_forward"] = int(failure.size)
    return counts


def _path(path: xr.Dataset) -> dict[str, Any]:
    log_ratio = path["log_ratio"]
    betas = path["inverse_temperature"].values
    return {
        "gap_beta": gap_location(
            betas, log_ratio.sel(direction="forward").values, log_ratio.sel(direction="reverse").values
        )
    }


def _consistency(consistency: xr.Dataset) -> dict[str, Any]:
    effect = consistency["effect"].values
    largest = effect[int(np.nanargmax(np.abs(effect)))] if np.isfinite(effect).any() else _NAN
    return {"consistency_p_value": float(consistency["p_value"]), "effect": float(largest)}


def _alarm(alarm: xr.Dataset) -> dict[str, Any]:
    p_values = alarm["weighted_rank_p_value"].values
    known = np.isfinite(p_values).any()
    return {
        "alarm_p_value": float(alarm["p_value"]),
        "rank_p_value": float(alarm["weighted_rank_p_value_combined"]),
        "rank_function": str(alarm["function"].values[int(np.nanargmin(p_values))]) if known else "",
    }


def _agreement(agreement: xr.Dataset) -> dict[str, Any]:
    p_value = float(agreement["p_value_combined"])
    worst = int(np.argmin(agreement["p_value"].values))
    n_effective = agreement["n_effective"].values
    fewest = int(np.argmin(n_effective))
    is_enough = n_effective[fewest] >= MINIMUM_EFFECTIVE * int(agreement.attrs.get("n_chains", 1))
    agrees: bool | None = None
    if p_value < AGREEMENT_LEVEL:
        agrees = False
    elif is_enough and not np.isnan(p_value):
        agrees = True
    named = worst if agrees is False else fewest
    return {
        "agreement": agrees,
        "agreement_p_value": p_value,
        "agreement_parameter": str(agreement["parameter"].values[named]),
        "agreement_shift": float(agreement["shift"].values[named]),
        "agreement_n_effective": float(n_effective[named]),
    }
