"""Schedules: ends, order, known formulas, and the adaptive schedule against an exact thermodynamic length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from bread.errors import InvalidArgumentError
from bread.paths import schedules

PRIOR_SD, N, MEAN = 10.0, 10, 3.0  # theta ~ N(0, 100); ten observations with mean 3 and known unit variance


def _draws(beta: float, n: int, rng: np.random.Generator) -> np.ndarray:
    variance = 1 / (1 / PRIOR_SD**2 + N * beta)
    theta = rng.normal(variance * N * beta * MEAN, np.sqrt(variance), n)
    return -0.5 * N * (theta - MEAN) ** 2


def _exact_density(beta: np.ndarray) -> np.ndarray:
    """Standard deviation of the log likelihood at beta, a scaled non-central chi square."""
    variance = 1 / (1 / PRIOR_SD**2 + N * beta)
    offset = variance * N * beta * MEAN - MEAN
    return 0.5 * N * np.sqrt(2 * variance**2 + 4 * variance * offset**2)


def _pilot(seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    betas, draws = [0.0], [_draws(0.0, 1000, rng)]
    while betas[-1] < 1:
        betas.append(schedules.next_knot(betas[-1], draws[-1], 0.1))
        draws.append(_draws(betas[-1], 200, rng))
    return np.array(betas), draws


@given(n=st.integers(2, 300), name=st.sampled_from(["linear", "sigmoid", "geometric", "adaptive"]))
def test_every_schedule_rises_strictly_from_zero_to_one(n: int, name: str) -> None:
    length = schedules.PathLength(np.array([0.0, 0.01, 0.2, 1.0]), np.array([0.0, 3.0, 3.0, 4.0]))
    betas = schedules.schedule(name, n, length)
    assert betas.shape == (n,)
    assert betas[0] == 0.0
    assert betas[-1] == 1.0
    assert np.all(np.diff(betas) > 0)


def test_sigmoid_is_the_published_formula() -> None:
    raw = expit(4.0 * (2 * np.arange(1, 11) / 10 - 1))
    np.testing.assert_allclose(schedules.sigmoid(10), (raw - raw[0]) / (raw[-1] - raw[0]), atol=1e-15)


def test_geometric_is_a_power() -> None:
    np.testing.assert_allclose(schedules.geometric(5), np.linspace(0, 1, 5) ** 5)


@pytest.mark.parametrize(
    ("betas", "message"),
    [
        ([0.0], "at least two"),
        ([[0.0, 1.0]], "one-dimensional"),
        ([0.1, 1.0], "from 0.0 to 1.0"),
        ([0.0, 0.5, 0.5, 1.0], "increase strictly"),
        ([0.0, np.nan, 1.0], "increase strictly"),
        ([0.0, 2.0], "from 0.0 to 1.0"),
    ],
)
def test_bad_arrays_are_refused(betas: list, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        schedules.explicit(betas)


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(InvalidArgumentError, match="adaptive, linear, sigmoid, geometric"):
        schedules.schedule("cosine", 8, None)


def test_knots_overlap_as_asked() -> None:
    values = _draws(0.0, 20_000, np.random.default_rng(3))
    beta = schedules.next_knot(0.0, values, 0.3)
    weights = np.exp(beta * (values - values.max()))
    assert weights.mean() ** 2 / np.mean(weights**2) == pytest.approx(0.3, rel=5e-3)


def test_knot_skips_impossible_draws_and_constant_ratios() -> None:
    assert schedules.next_knot(0.2, np.array([-np.inf, -1.0, -1.0]), 0.1) == 1.0
    assert schedules.next_knot(0.2, np.array([-np.inf, -np.inf]), 0.1) == 1.0


@pytest.mark.statistical
def test_thermodynamic_length_is_the_exact_integral() -> None:
    # 20 pilots; the standard deviation of a sample of 200 has a relative error of about 10 %, over ~3 knots ~ 6 %
    grid = np.geomspace(1e-9, 1, 4000)
    exact = np.trapezoid(_exact_density(grid), grid)
    totals = np.array([schedules.thermodynamic_length(*_pilot(seed)).total for seed in range(20)])
    assert abs(totals.mean() - exact) < 4 * totals.std(ddof=1) / np.sqrt(20) + 0.1 * exact


def _largest_step(betas: np.ndarray) -> float:
    grid = np.geomspace(1e-9, 1, 4000)
    density = _exact_density(grid)
    length = np.concatenate([[0], np.cumsum(np.diff(grid) * 0.5 * (density[1:] + density[:-1]))])
    return float(np.max(np.diff(np.interp(betas, grid, length))) / (length[-1] / (len(betas) - 1)))


@pytest.mark.statistical
def test_adaptive_spreads_length_evenly_and_linear_does_not() -> None:
    knots, draws = _pilot(7)
    betas = schedules.adaptive(32, schedules.thermodynamic_length(knots, draws))
    assert _largest_step(betas) < 1.5
    assert _largest_step(schedules.linear(32)) > 5  # the same measure sees a schedule that is not adapted


@pytest.mark.statistical
def test_infinite_variance_at_zero_gives_a_finite_length() -> None:
    # log likelihood of a normal sample with a half-normal scale: -1 / (2 sigma^2) has no mean under the prior
    rng = np.random.default_rng(11)
    totals = []
    for size in (1000, 100_000):
        sigma = np.abs(rng.normal(size=size))
        values = -5 / sigma**2 - 10 * np.log(sigma)
        tempered = values[rng.choice(size, 400, p=np.exp(values - np.logaddexp.reduce(values)))]
        totals.append(schedules.thermodynamic_length(np.array([0.0, 1.0]), [values, tempered]).total)
    plain = [np.std(-5 / np.abs(rng.normal(size=n)) ** 2) for n in (1000, 100_000)]
    assert totals[1] < 1.5 * totals[0]  # does not grow with the number of draws
    assert plain[1] > 10 * plain[0] or plain[1] > 1e5  # the sample variance does


@pytest.mark.parametrize("largest", [1e10, 1e160, 1e200])
def test_log_ratios_without_a_square_leave_the_length_finite(largest: float) -> None:
    rng = np.random.default_rng(1)
    start, end = -rng.chisquare(1, 1000), -rng.chisquare(1, 1000) / 3
    usual = schedules.thermodynamic_length(np.array([0.0, 1.0]), [start, end]).total
    start[0] = -largest
    length = schedules.thermodynamic_length(np.array([0.0, 1.0]), [start, end])
    assert np.isfinite(length.length).all() and usual < length.total < 10 * usual


def test_log_ratios_of_vague_priors_do_not_overflow() -> None:
    values = np.random.default_rng(12).gamma(0.2, 1.0, 100) * -100
    betas = np.geomspace(1e-4, 1.0, 9)
    expected = schedules.reweighted_spread(values, betas)
    huge = schedules.reweighted_spread(np.ldexp(values, 700), np.ldexp(betas, -700))
    np.testing.assert_array_equal(huge, np.ldexp(expected, 700))
    np.testing.assert_allclose(schedules.spread(np.ldexp(values, 700)), np.ldexp(np.std(values), 700), rtol=1e-12)


def test_mean_length_averages() -> None:
    one = schedules.PathLength(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 2.0]))
    two = schedules.PathLength(np.array([0.0, 1.0]), np.array([0.0, 4.0]))
    mean = schedules.mean_length([one, two])
    assert mean.total == 3.0
    assert np.interp(0.5, mean.betas, mean.length) == 1.5
