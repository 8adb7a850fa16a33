"""Diagnostics of a fit: equal to ArviZ's, and they see chains that disagree."""

from __future__ import annotations

import numpy as np
import pytest
from arviz import rhat

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.mixing import FEWEST_EFFECTIVE, LARGEST_R_HAT, mixing, rank_r_hat


def chains(seed: int = 0, n: int = 400) -> np.ndarray:
    """Independent, shifted, drifting, heavy-tailed, with another scale in one chain, with ties."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(4, n, 6))
    draws[0, :, 1] += 1.0
    draws[:, :, 2] = np.cumsum(draws[:, :, 2], axis=1)
    draws[:, :, 3] = rng.standard_cauchy((4, n))
    draws[3, :, 4] *= 4.0
    draws[:, :, 5] = np.round(draws[:, :, 5])
    return draws


@pytest.mark.parametrize("n", [400, 101, 9])
def test_r_hat_is_that_of_arviz(n: int) -> None:
    draws = chains(n=n)
    expected = [float(rhat(draws[:, :, column])) for column in range(6)]
    np.testing.assert_allclose(rank_r_hat(draws), expected, rtol=1e-9)


def test_the_worst_component_is_named() -> None:
    draws = chains()
    found = mixing({"a": draws[:, :, 0], "b": draws[:, :, [0, 2]], "constant": np.ones((4, 400))})
    assert found.r_hat_name == found.n_effective_name == "b[1]"
    assert found.is_doubtful and found.r_hat > LARGEST_R_HAT and found.n_effective < FEWEST_EFFECTIVE
    clean = mixing({"a": draws[:, :, [0, 3, 5]]})
    assert not clean.is_doubtful and clean.r_hat < 1.01 and clean.n_effective > 1000


@pytest.mark.parametrize("column", [1, 2, 4])
def test_chains_that_disagree_are_doubtful(column: int) -> None:
    """A scale of its own in one chain is seen by the folded ranks alone."""
    assert mixing({"x": chains()[:, :, column]}).r_hat > LARGEST_R_HAT


def test_few_draws_are_doubtful_and_nothing_to_look_at_is_not() -> None:
    short = mixing({"x": np.random.default_rng(1).normal(size=(4, 6))})
    assert np.isnan(short.r_hat) and short.is_doubtful
    constant = mixing({"x": np.ones((4, 100))})
    assert np.isnan(constant.n_effective) and not constant.is_doubtful
    stuck = mixing({"x": np.repeat([[0.0], [1.0]], 100, axis=1)})
    assert stuck.r_hat > 1e6 and stuck.is_doubtful
    with pytest.raises(InvalidArgumentError, match=r"'x' must have shape \(chain, draw, ...\), but has \(3,\)"):
        mixing({"x": np.zeros(3)})
