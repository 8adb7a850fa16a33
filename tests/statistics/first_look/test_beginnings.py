"""Chains that begin unlike they end: level at stationary chains, power where warm-up was left in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from bread.statistics.first_look.beginnings import beginning_test
from bread.statistics.first_look.first_look import LEVEL

Array = NDArray[np.float64]


def _autoregressive(rng: Generator, correlation: float, n_chains: int = 4, n_draws: int = 250) -> Array:
    x, state = np.empty((n_chains, n_draws)), rng.standard_normal(n_chains)
    for t in range(n_draws):
        state = correlation * state + np.sqrt(1.0 - correlation**2) * rng.standard_normal(n_chains)
        x[:, t] = state
    return x


STATIONARY: dict[str, Callable[[Generator], Array]] = {
    "independent": lambda rng: rng.standard_normal((4, 250)),
    "one chain": lambda rng: _autoregressive(rng, 0.7, 1, 1000),
    "slow": lambda rng: _autoregressive(rng, 0.8),
    "a slow log density": lambda rng: -(_autoregressive(rng, 0.9) ** 2),
    "a tail without a mean": lambda rng: -np.abs(rng.standard_cauchy((4, 250))),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_chains_pass(name: str) -> None:
    # Ten sets at level 0.001 each: one below it has probability 0.01, and the seed is fixed.
    rng = default_rng(20261130)
    assert np.nanmin([beginning_test(STATIONARY[name](rng)) for _ in range(10)]) > LEVEL


@pytest.mark.statistical
def test_warm_up_is_seen() -> None:
    """A log density in ten dimensions, a twentieth of each chain on its way from four standard deviations out."""
    rng, way = default_rng(5), 4.0 * np.linspace(1.0, 0.0, 12, endpoint=False)[:, None]
    seen = 0
    for _ in range(10):
        x = rng.standard_normal((4, 250, 10))
        assert beginning_test(-(x**2).sum(axis=-1)) > LEVEL  # the negative control
        x[:, :12] += way
        seen += beginning_test(-(x**2).sum(axis=-1)) < LEVEL
    assert seen >= 8  # with power 0.95 of each, fewer has probability 0.01


def test_chains_that_have_not_mixed_tell_nothing() -> None:
    """Four chains in four places: the log density of one coordinate may mix where the coordinate does not."""
    rng = np.random.default_rng(3)
    values, apart = (
        rng.standard_normal((4, 250)),
        np.arange(4.0)[:, None, None] + 0.1 * rng.standard_normal((4, 250, 1)),
    )
    assert np.isfinite(beginning_test(values, rng.standard_normal((4, 250, 1))))
    assert np.isnan(beginning_test(values, apart))


def test_few_effective_draws_tell_nothing() -> None:
    rng = default_rng(2)
    assert np.isnan(beginning_test(np.repeat(rng.standard_normal((4, 10)), 25, axis=1)))
    assert np.isnan(beginning_test(rng.standard_normal((4, 250)), distinct_share=0.01))
    assert np.isnan(beginning_test(np.zeros((4, 250))))
