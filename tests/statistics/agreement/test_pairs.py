"""Products of pairs: what they are, which are taken, and that the choice does not favour differences."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.statistics.agreement.agreement import agreement_test
from bread.statistics.agreement.pairs import products_of_pairs


def test_products_are_centred_and_named():
    rng = np.random.default_rng(1)
    user, annealed = 5 + rng.normal(size=(2, 30, 3)), 5 + rng.normal(size=(20, 3))
    user[..., 1] = annealed[:, 1] = 7.0
    names, ours, theirs = products_of_pairs(user, annealed, ("a", "b", "c"), 10)
    assert names == ("a * c",)  # b is constant
    centre = np.median(np.concatenate([user.reshape(-1, 3), annealed]), axis=0)
    np.testing.assert_allclose(ours[..., 0], (user[..., 0] - centre[0]) * (user[..., 2] - centre[2]))
    np.testing.assert_allclose(theirs[:, 0], (annealed[:, 0] - centre[0]) * (annealed[:, 2] - centre[2]))
    alone = products_of_pairs(user[..., :1], annealed[:, :1], ("a",), 10)
    assert alone[0] == () and alone[1].shape == (2, 30, 0) and alone[2].shape == (20, 0)


def test_the_most_correlated_pairs_are_taken():
    rng = np.random.default_rng(2)
    user, annealed = rng.normal(size=(2, 500, 6)), rng.normal(size=(400, 6))
    for draws in (user, annealed):
        draws[..., 4] = np.exp(draws[..., 1] + 0.3 * draws[..., 4])
        draws[..., 3] -= draws[..., 0]
    names, _, _ = products_of_pairs(user, annealed, tuple("abcdef"), 2)
    assert names == ("a * d", "b * e")


@pytest.mark.statistical
def test_choosing_pairs_keeps_the_level():
    rng = np.random.default_rng(3)
    names, upper = tuple("abcdefghijkl"), np.triu_indices(12, 1)
    n_runs, chosen, worst = 100, 0, 0
    for _ in range(n_runs):
        user, annealed = rng.normal(size=(2, 100, 12)), rng.normal(size=(200, 12))
        _, ours, theirs = products_of_pairs(user, annealed, names, 3)
        chosen += agreement_test({"x": ours}, {"x": theirs}).p_value_combined <= 0.05
        _, ours, theirs = products_of_pairs(user, annealed, names, 66)  # control: those that differ most
        correlations = [np.corrcoef(x.reshape(-1, 12), rowvar=False)[upper] for x in (user, annealed)]
        taken = np.argsort(-np.abs(correlations[0] - correlations[1]))[:3]
        worst += agreement_test({"x": ours[..., taken]}, {"x": theirs[:, taken]}).p_value_combined <= 0.05
    assert chosen <= binom.ppf(0.99, n_runs, 0.05)
    assert worst > binom.ppf(0.9999, n_runs, 0.05)
