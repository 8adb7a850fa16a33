"""What a classifier tells apart: the distance that is really there is not passed, and none is seen where none is."""

import numpy as np
import pytest
from scipy.stats import binomtest

from bread.statistics.agreement.agreement import agreement_test
from bread.statistics.agreement.lower_bound import ToldApart, tell_apart
from bread.statistics.agreement.repeats import find_repeats

ALPHA = 0.025


def normal(seed, d=3, n=600, shape=(4, 300)):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((*shape, d)), rng.standard_normal((n, d))


def triple(own):
    """Three coordinates whose product is never negative: marginals and pairs are right, TV is 0.5."""
    own[..., 2] = np.abs(own[..., 2]) * np.sign(own[..., 0] * own[..., 1])


def limit(own, certified):
    found = tell_apart(own, certified, distinct_share=find_repeats(own).distinct_share)
    return 0.0 if found is None else found.lower_limit(ALPHA)


@pytest.mark.statistical
def test_three_signs_whose_product_is_wrong_are_seen_and_by_no_more_than_they_are():
    own, certified = normal(1)
    triple(own)
    assert 0.15 < limit(own, certified) < 0.5
    quantities = {f"x{i}": own[..., i] for i in range(3)}, {f"x{i}": certified[:, i] for i in range(3)}
    assert agreement_test(*quantities, most_pairs=3).p_value_combined > 0.01, "pairs do not see it"


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["a comb of ten teeth", "a hole of a fifth in the middle"])
def test_gaps_are_seen(kind):
    """TV 0.5 and 0.2, of uniform draws."""
    rng = np.random.default_rng(2)
    own, certified = rng.uniform(size=(4, 500, 3)), rng.uniform(size=(1000, 3))
    u = own[..., 0]
    if "comb" in kind:
        u[:] = (np.floor(10 * u) + 10 * u % 1.0 / 2) / 10
        assert 0.15 < limit(own, certified) < 0.5
    else:
        u[:] = np.where(u < 0.5, 0.8 * u, 1.0 - 0.8 * (1.0 - u))
        assert 0.02 < limit(own, certified) < 0.2


def slow(own, seed):
    """Chains whose autocorrelations are powers of 0.97: 18 effective draws, not 1200."""
    for draw in range(1, own.shape[1]):
        own[:, draw] = 0.97 * own[:, draw - 1] + np.sqrt(1.0 - 0.97**2) * own[:, draw]
    return own


RIGHT = {
    "independent draws": lambda own, seed: own,
    "slow chains": slow,
    "chains that are copies up to rounding": lambda own, seed: np.concatenate([own[:2], own[:2] * (1 + 1e-12)]),
    "draws taken again with replacement": lambda own, seed: own.reshape(-1, 3)[
        np.random.default_rng(seed).integers(1200, size=(4, 300))
    ],
    "draws rounded to a tenth": lambda own, seed: np.round(own, 1),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", RIGHT)
def test_right_draws_are_not_told_apart(kind):
    """Two runs at 0.025 each, of seeds at which independent draws pass. Without its guard a kind fails in most runs."""
    for seed in (1, 3):
        own, certified = normal(seed)
        assert limit(RIGHT[kind](own, seed), certified) <= 0.0


def test_the_limit_is_that_of_counts():
    """With the other share at 0 for certain, it is Clopper and Pearson's, one-sided; the p-value turns it round."""
    found = ToldApart(own=0.6, certified=0.0, n_own=50.0, n_certified=1e12)
    exact = binomtest(30, 50).proportion_ci(1.0 - 2 * ALPHA, "exact").low
    assert found.lower_limit(ALPHA) == pytest.approx(exact, abs=1e-9)
    assert found.p_value(exact) == pytest.approx(ALPHA, rel=1e-6)
    both = ToldApart(0.55, 0.45, 5000.0, 5000.0)
    assert both.lower_limit(ALPHA) == pytest.approx(0.1 - 1.96 * np.sqrt(2 * 0.2475 / 5000), abs=5e-4)
    assert both.p_value(0.0) < 1e-20 and both.p_value(0.1) == 1.0 and ToldApart(0.4, 0.5, 9.0, 9.0).p_value(0.0) == 1.0


@pytest.mark.parametrize(
    ("own", "certified"),
    [
        (np.zeros((4, 300, 2)), np.zeros((600, 2))),
        (normal(1)[0], normal(1)[1][:60]),
        (np.repeat(normal(1)[0][:1], 4, axis=0), normal(1)[1]),
    ],
    ids=["nothing varies", "few certified draws", "one chain four times"],
)
def test_with_too_little_to_learn_from_nothing_is_said(own, certified):
    assert tell_apart(own, certified) is None


def test_counts_and_many_coordinates_are_taken():
    rng = np.random.default_rng(3)
    counts = tell_apart(rng.poisson(1.0, (4, 200, 2)) * 1.0, rng.poisson(1.0, (400, 2)) * 1.0)
    assert counts is not None and counts.lower_limit(ALPHA) < 0.0
    assert tell_apart(rng.standard_normal((4, 100, 40)), rng.standard_normal((200, 40))) is not None
