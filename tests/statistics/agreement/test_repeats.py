"""Draws that are copies of others count once: exact shares, and the level of the comparison with its control."""

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.agreement import agreement_test
from bread.statistics.agreement.repeats import find_repeats

RNG = np.random.default_rng(7)
CHAINS = RNG.standard_normal((4, 50, 2))


def test_independent_draws_have_no_repeats():
    found = find_repeats(CHAINS)
    assert found == (1.0, 200, 200, ())


def test_copied_chains():
    copied = np.stack([CHAINS[0]] * 4)
    assert find_repeats(copied) == (0.25, 200, 50, (1, 2, 3))
    one = np.stack([CHAINS[0], CHAINS[1], CHAINS[0], CHAINS[2]])
    assert find_repeats(one) == (pytest.approx(200**2 / (100 + 50 * 4) / 200), 200, 150, (2,))


def test_a_chain_shared_in_part():
    found = find_repeats(np.stack([CHAINS[0], np.roll(CHAINS[0], 25, axis=0)]))
    assert found == (0.5, 100, 50, ())


def test_a_sampler_that_stays_has_no_copies():
    """Rejections are seen by autocorrelations, and must not count twice."""
    stays = np.repeat(CHAINS, 3, axis=1)
    assert find_repeats(stays) == (1.0, 200, 200, ())


def test_whole_numbers_are_no_copies():
    counts = RNG.integers(0, 3, size=(4, 100, 2)).astype(float)
    assert find_repeats(counts).distinct_share == 1.0
    both = np.concatenate([counts[:, :50], CHAINS], axis=2)
    assert find_repeats(both).distinct_share == 1.0


def test_resampled_draws_are_worth_what_their_mean_says():
    """The variance of a mean of n draws taken with replacement from n is 2/n of one draw's, up to 1/n."""
    rng = np.random.default_rng(3)
    n, means, shares = 400, [], []
    for _ in range(2000):
        pool = rng.standard_normal(n)
        drawn = pool[rng.integers(0, n, n)]
        means.append(drawn.mean())
        shares.append(find_repeats(drawn[None, :, None]).distinct_share)
    worth = 1.0 / np.var(means)
    # The standard error of a variance from 2000 means is sqrt(2/2000) = 3.2%.
    assert abs(n * np.mean(shares) / worth - 1.0) < 4 * 0.032
    assert abs(n / worth - 1.0) > 10 * 0.032  # control: not what n independent draws would have


def p_values(share, n_runs=400):
    rng = np.random.default_rng(11)
    found = []
    for _ in range(n_runs):
        chain, annealed = rng.standard_normal((1, 250)), rng.standard_normal(500)
        copied = np.repeat(chain, 4, axis=0)
        found.append(agreement_test({"x": copied}, {"x": annealed}, distinct_share=share).p_value_combined)
    return np.array(found)


def test_the_level_of_the_comparison_holds_with_copied_chains():
    # Binomial, 400 runs at 0.05: 4 standard errors are 0.044.
    assert (p_values(0.25) < 0.05).mean() < 0.05 + 0.044
    assert (p_values(1.0) < 0.05).mean() > 0.15  # control: without the share copies look like a difference


def test_a_share_is_between_zero_and_one():
    with pytest.raises(InvalidArgumentError, match="distinct_share must lie between 0 and 1, but got 0"):
        agreement_test({"x": np.zeros((1, 20))}, {"x": np.zeros(5)}, distinct_share=0.0)
