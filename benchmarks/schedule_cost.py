"""Gradient evaluations until the bound B falls to 1 nat: the adaptive schedule against the fixed ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from measuring import NAMES, SEED, build_model, check, fit, print_table
from numpy.typing import NDArray

from bread._compat import read_group
from bread.bounds import simulation_gaps
from bread.schedules import NAMES as SCHEDULES

TARGET = 1.0  # nats
SIMULATIONS = 40
CHAINS = 4
FIRST_TEMPERATURES, LAST_TEMPERATURES = 2, 512
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
        curves = {schedule: _curve(model, posterior, schedule) for schedule in SCHEDULES}
        reference = curves["adaptive"]
        for schedule, curve in curves.items():
            temperatures, gradients = _crossing(curve, slice(None))
            factor = gradients / _crossing(reference, slice(None))[1]
            rows.append((name, schedule, temperatures, gradients, factor, *_factor_interval(curve, reference)))
    print_table(
        f"Gradient evaluations per simulation (forward and reverse, {CHAINS} chains each) to reach B = {TARGET:g} nat",
        ("model", "schedule", "T", "gradients", "times adaptive", "2.5 %", "97.5 %"),
        rows,
        f"log B interpolated against log gradients between T and 2 T; {SIMULATIONS} simulations, the same for every "
        "schedule; quantiles of the factor from\nresampled simulations. The pilot that places the adaptive "
        "temperatures also tunes the kernel, which every schedule needs: not counted.",
    )


def _curve(model: Any, posterior: Any, schedule: str) -> Curve:
    """Double T until B is at most the target."""
    temperatures, gaps, gradients = [], [], []
    n_temperatures = FIRST_TEMPERATURES
    while n_temperatures <= LAST_TEMPERATURES:
        report = check(
            model, posterior=posterior, schedule=schedule, n_temperatures=n_temperatures,
            simulations=SIMULATIONS, chains=CHAINS, draws=0,
        )  # fmt: skip
        forward, reverse = (read_group(report, direction) for direction in ("forward", "reverse"))
        assert forward is not None and reverse is not None
        temperatures.append(n_temperatures)
        gaps.append(simulation_gaps(forward["log_weight"].values[0], reverse["log_weight"].values[0]))
        gradients.append((forward["n_gradients"] + reverse["n_gradients"]).sum("chain").values[0].astype(float))
        if gaps[-1].mean() <= TARGET:
            break
        n_temperatures *= 2
    return Curve(np.array(temperatures), np.array(gaps), np.array(gradients))


def _crossing(curve: Curve, chosen: Any) -> tuple[float, float]:
    """Return T and gradients where B of the chosen simulations crosses the target; NaN where it does not."""
    bounds, costs = curve.gaps[:, chosen].mean(axis=1), curve.gradients[:, chosen].mean(axis=1)
    below = np.flatnonzero(bounds <= TARGET)
    last = int(below[0]) if len(below) else len(bounds) - 1  # a resampled B may end just above: extrapolated
    if last == 0 or not np.all(np.isfinite(bounds[last - 1 : last + 1])) or bounds[last] <= 0.0:
        return np.nan, np.nan
    low, high = np.log(bounds[last - 1] / TARGET), np.log(bounds[last] / TARGET)
    share = low / (low - high)
    return (
        float(curve.temperatures[last - 1] * (curve.temperatures[last] / curve.temperatures[last - 1]) ** share),
        float(costs[last - 1] * (costs[last] / costs[last - 1]) ** share),
    )


def _factor_interval(curve: Curve, reference: Curve) -> tuple[float, float]:
    """Return a 95 % percentile interval of the factor over resampled simulations."""
    generator = np.random.default_rng(SEED)
    factors = []
    for _ in range(RESAMPLES):
        chosen = generator.integers(SIMULATIONS, size=SIMULATIONS)
        factors.append(_crossing(curve, chosen)[1] / _crossing(reference, chosen)[1])
    low, high = np.nanquantile(factors, [0.025, 0.975])
    return float(low), float(high)
