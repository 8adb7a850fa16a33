"""Forecasts of V against Gaussian log weights, whose V is known, and what is bought with them."""

from __future__ import annotations

import numpy as np
import pytest

from bread.statistics.bounds.allocation import allocations, best, cheapest_to_reach
from bread.statistics.bounds.certificate import conditional_gaps, error_by_simulation, error_interval
from bread.statistics.bounds.forecast import Round, forecast

K = 4


def gaussian_round(n_temperatures: int, product: float, power: float, n: int, rng: np.random.Generator) -> Round:
    """Log weights of variance product / (T - 1)^power; chains of a data set are independent."""
    variance = product / (n_temperatures - 1) ** power
    forward = rng.normal(-variance / 2, np.sqrt(variance), size=(n, K))
    reverse = rng.normal(variance / 2, np.sqrt(variance), size=(n, K))
    return Round(n_temperatures, error_by_simulation(forward, reverse), conditional_gaps(forward, reverse))


def inside(power: float, assumed: float | None = None, n_runs: int = 60) -> float:
    """Return the share of limits, measured at T = 256 with 40 simulations, in the intervals predicted at 4 and 16."""
    hits = 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        rounds = [gaussian_round(t, 8.0, power, 10, rng) for t in (4, 16)]
        if assumed is not None:  # a broken forecast: the second round is taken for one at another T
            rounds[1] = rounds[1]._replace(n_temperatures=int(assumed))
        predicted = forecast(rounds, K, 0.95, (4, 2.0)).limit(256, 40, 0.975)
        found = error_interval(gaussian_round(256, 8.0, power, 40, rng).errors, 0.975).upper
        hits += predicted.lower <= found <= predicted.upper
    return hits / n_runs


@pytest.mark.statistical
@pytest.mark.parametrize("power", [1.0, 0.7])
def test_intervals_hold_the_outcome(power: float) -> None:
    """Meant to hold 90 %, wider on purpose; 0.75 is four standard errors (0.039) below."""
    assert inside(power) >= 0.75


def test_a_forecast_from_a_wrong_temperature_is_seen() -> None:
    assert inside(1.0, assumed=200.0) < 0.3


def test_saturated_rounds_are_read_by_their_gaps() -> None:
    rng = np.random.default_rng(5)
    rounds = [gaussian_round(t, 400.0, 1.0, 10, rng) for t in (4, 16)]
    predicted = forecast(rounds, K, 0.95, None).error(1601)
    assert predicted.lower < 0.22 < predicted.upper  # 2 Phi(0.5 sqrt(1.25) / 2) - 1 at s = 0.5


def test_what_is_bought() -> None:
    rng = np.random.default_rng(3)
    line = forecast([gaussian_round(t, 8.0, 1.0, 10, rng) for t in (4, 16)], K, 0.95, None)
    options = allocations(line, lambda t, n: float(t * n), [4, 16, 64, 256, 1024], [20, 40, 100], 0.975)
    cheap = best(options, 20 * 64.0, 0.01)
    assert cheap is not None and cheap.cost <= 20 * 64 and cheap.n_temperatures == 64
    assert best(options, 10.0, 0.01) is None
    reached = best(options, 1e9, 0.3)
    assert reached == cheapest_to_reach(options, 0.3) and reached is not None
    assert reached.limit.upper <= 0.3 and reached.cost < 1024 * 100
    assert all(option.cost >= reached.cost for option in options if option.limit.upper <= 0.3)
