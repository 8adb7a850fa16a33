"""Relaxation times of chains, and what thinning leaves."""

from __future__ import annotations

import numpy as np
import pytest

from bread.statistics.exactness.relaxation import relaxation_time, thinned


def chain(correlation: float, n: int = 20_000) -> np.ndarray:
    noise = np.random.default_rng(3).standard_normal(n)
    values = np.empty(n)
    values[0] = noise[0]
    for i in range(1, n):
        values[i] = correlation * values[i - 1] + np.sqrt(1.0 - correlation**2) * noise[i]
    return values


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_an_autoregression_forgets_as_it_should(correlation: float) -> None:
    """(1 + rho) / (1 - rho), to a fifth."""
    assert relaxation_time(chain(correlation)) == pytest.approx((1 + correlation) / (1 - correlation), rel=0.2)


def test_thinned_values_are_nearly_independent() -> None:
    values = thinned(chain(0.9))
    assert 0.7 < len(values) * 19.0 / 20_000 < 1.3
    assert relaxation_time(values) < 2.0
    assert len(thinned(np.ones(7))) == 7
