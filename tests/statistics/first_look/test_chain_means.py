"""Means of autocorrelated values: the level where effective draws are few."""

from __future__ import annotations

import numpy as np
import pytest

from bread.statistics.agreement.agreement import effective_sample_size
from bread.statistics.first_look.chain_means import mean_test


@pytest.mark.statistical
def test_the_level_holds_where_effective_draws_are_few() -> None:
    """Two chains of 200 that are worth 133 draws: at 0.001, of 20,000 means, at most three standard errors above 20."""
    rng, below, tested = np.random.default_rng(3), 0, 0
    for _ in range(5):
        x, state = np.empty((2, 200, 4000)), rng.standard_normal((2, 4000))
        for t in range(200):
            state = 0.5 * state + np.sqrt(0.75) * rng.standard_normal(state.shape)
            x[:, t] = state
        p_values = mean_test(x, effective_sample_size(x), 1.0).p_values
        below, tested = below + int((p_values < 0.001).sum()), tested + int(np.isfinite(p_values).sum())
        shifted = x[..., :10] + 1.0
        control = mean_test(shifted, effective_sample_size(shifted), 1.0)
        assert np.nanmax(control.p_values) < 0.001
    assert tested > 0.8 * 20_000
    assert below < 0.001 * tested + 3.0 * np.sqrt(0.001 * tested)
