"""Gradient evaluations until the bound B falls to 1 nat: the adaptive schedule against the fixed ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from measuring import NAMES, SEED, build_model, check, fit, print_table
from numpy.typing import NDArray

from bread.paths.schedules import NAMES as SCHEDULES
from bread.report.compat import read_group
from bread.statistics.bounds.bounds import simulation_gaps

TARGET = 1.0  # nats
SIMULATIONS = 16
CHAINS = 4
TEMPERATURES = {  # around the crossing
    "eight schools": dict.fromkeys(SCHEDULES, (2, 4, 8, 16)),
    "logistic 532 x 7": {**dict.fromkeys(SCHEDULES, (128, 256)), "linear": (256, 512)},
}
RESAMPLES = 1000


class Curve(NamedTuple):
    """What one schedule reached at growing numbers of temperatures, one row each."""

    temperatures: NDArray[np.int64]
    gaps: NDArray[np.float64]  # (T, simulation), in nats
    gradients: NDArray[np.float64]  # (T, simulation): forward and reverse, all chains


def run() -> None:
    """Measure and print."""
    rows: list[tuple[Any, ...]] = []
    for name in NAMES:
        model = build_model(name)
        posterior = fit(model)
        curves = {schedule: _curve(model, posterior, schedule, TEMPERATURES[name][schedule]) for schedule in SCHEDULES}
        reference = curves["adaptive"]
        for schedule, curve in curves.items():
            temperatures, gradients = _crossing(curve, slice(None))
            factor = gradients / _crossing(reference, slice(None))[1]
            measured = ", ".join(
                f"{bound:.2f} at {number}"
                for bound, number in zip(curve.gaps.mean(axis=1), curve.temperatures, strict=True)
            )
            interval = (1.0, 1.0) if curve is reference else _factor_interval(curve, reference)
            rows.append((name, schedule, measured, temperatures, gradients, factor, *interval))
    print_table(
        f"Gradient evaluations per simulation (forward and reverse, {CHAINS} chains each) to reach B = {TARGET:g} nat",
        ("model", "schedule", "B at T", "T of 1 nat", "gradients", "times adaptive", "2.5 %", "97.5 %"),
        rows,
        "log B is interpolated against log gradients (beyond the T that were run: extrapolated). The same "
        f"{SIMULATIONS} simulations for every schedule; quantiles of the factor from resampled simulations. The pilot "
        "that places the adaptive temperatures also tunes the kernel, which every schedule needs: not counted.",
    )


def _curve(model: Any, posterior: Any, schedule: str, temperatures: tuple[int, ...]) -> Curve:
    report = check(
        model, stop_before="consistency", posterior=posterior, schedule=schedule, n_temperatures=temperatures,
        simulations=SIMULATIONS, chains=CHAINS, draws=0,
    )  # fmt: skip
    forward, reverse = (read_group(report, direction) for direction in ("forward", "reverse"))
    assert forward is not None and reverse is not None
    forward, reverse = (runs.isel(simulation=runs["role"].values == "confirm") for runs in (forward, reverse))
    weights = zip(forward["log_weight"].values, reverse["log_weight"].values, strict=True)
    return Curve(
        np.array(temperatures),
        np.array([simulation_gaps(up, down) for up, down in weights]),
        (forward["n_gradients"] + reverse["n_gradients"]).sum("chain").values.astype(float),
    )


def _crossing(curve: Curve, chosen: Any) -> tuple[float, float]:
    """Return T and gradients where B of the chosen simulations crosses the target; NaN where it cannot be told."""
    bounds, costs = curve.gaps[:, chosen].mean(axis=1), curve.gradients[:, chosen].mean(axis=1)
    below = np.flatnonzero(bounds <= TARGET)
    last = max(1, int(below[0])) if len(below) else len(bounds) - 1
    pair = slice(last - 1, last + 1)
    if not np.all(np.isfinite(bounds[pair]) & (bounds[pair] > 0.0)) or bounds[last] >= bounds[last - 1]:
        return np.nan, np.nan
    first, second = np.log(bounds[pair] / TARGET)
    share = first / (first - second)
    temperatures = curve.temperatures[pair]
    return tuple(float(values[0] * (values[1] / values[0]) ** share) for values in (temperatures, costs[pair]))


def _factor_interval(curve: Curve, reference: Curve) -> tuple[float, float]:
    """Return a 95 % percentile interval of the factor over resampled simulations."""
    generator = np.random.default_rng(SEED)
    factors = []
    for _ in range(RESAMPLES):
        chosen = generator.integers(SIMULATIONS, size=SIMULATIONS)
        factors.append(_crossing(curve, chosen)[1] / _crossing(reference, chosen)[1])
    low, high = np.nanquantile(factors, [0.025, 0.975])
    return float(low), float(high)
