"""Ranks of exact draws in chains: uniform for reversible kernels, and only for them."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.errors import InvalidArgumentError
from bread.statistics.exactness.chain_ranks import chain_rank_p_values, chain_ranks


def chains(rng, n, n_others, slope=0.7, deviation=None, drift=0.0):
    """Autoregressive chains both ways from exact normal draws: x, x^2 and the sign, which has ties."""
    start = rng.normal(size=n)
    deviation = np.sqrt(1.0 - slope**2) if deviation is None else deviation
    ways = []
    for _ in range(2):
        x, states = start, []
        for _ in range(n_others):
            x = slope * x + drift + deviation * rng.normal(size=n)
            states.append(x)
        ways.append(np.stack(states, axis=1))

    def functions(x):
        return np.stack([x, x**2, np.sign(x)], axis=-1)

    position = rng.integers(n_others + 1, size=n)
    return chain_ranks(functions(start), *map(functions, ways), position, rng.random((n, 3)))


@pytest.mark.statistical
@pytest.mark.parametrize("n", [5, 200])
def test_ranks_of_reversible_chains_are_uniform(n):
    rng = np.random.default_rng(1)
    p = np.stack([chain_rank_p_values(chains(rng, n, 6)) for _ in range(400)])
    for level in (0.05, 0.01):
        assert ((p <= level).sum(axis=0) <= binom.ppf(0.9999, 400, level)).all()  # nine counts


@pytest.mark.statistical
def test_a_wrong_law_is_found_by_the_kind_it_is():
    rng = np.random.default_rng(2)
    wider, shifted = chains(rng, 5000, 6, deviation=1.0), chains(rng, 500, 6, drift=0.2)
    wide, shift = chain_rank_p_values(wider), chain_rank_p_values(shifted)
    assert wide[0, 1] < 1e-20 and wide[1, 0] < 1e-6 and wide[0, 0] > 1e-3
    assert shift[0, 0] < 1e-8 and shift[0, 2] < 1e-3
    assert abs(np.mean(shifted[:, 0]) - 0.5) > 0.05


@pytest.mark.statistical
def test_a_fixed_position_is_not_uniform():
    """Negative control: the first state of a chain that has drifted away ranks low."""
    rng = np.random.default_rng(3)
    start, later = rng.normal(size=(300, 1)), 1.0 + rng.normal(size=(300, 4, 1))
    ranks = chain_ranks(start, later, later, np.zeros(300, dtype=int), rng.random((300, 1)))
    assert chain_rank_p_values(ranks)[0, 0] < 1e-10


def test_ranks_by_hand_and_errors():
    start, back, ahead = [[2.0]], [[[1.0], [3.0]]], [[[2.0], [0.0]]]
    by_hand = {0: (1 + 0.5 * 2) / 3, 1: (1 + 0.5 * 2) / 3, 2: (1 + 0.5) / 3}
    for position, rank in by_hand.items():
        assert chain_ranks(start, back, ahead, [position], [[0.5]])[0, 0] == pytest.approx(rank)
    with pytest.raises(InvalidArgumentError, match="positions"):
        chain_ranks(start, back, ahead, [3], [[0.5]])
    with pytest.raises(InvalidArgumentError, match="shape"):
        chain_ranks(start, back, ahead, [0, 1], [[0.5]])
