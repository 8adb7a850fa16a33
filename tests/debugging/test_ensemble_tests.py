"""Pairs of walkers: what is counted, its level on right ensembles, and the bug that single walkers do not show."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from bread.debugging.bare import BareSubject
from bread.debugging.battery import TESTS, n_tests_of_chance, suited_tests
from bread.debugging.ensemble_tests import MOST_OF_GROUP, PairDistances, run_pairs_of_walkers
from bread.debugging.targets import copies
from bread.errors import InvalidArgumentError
from tests.support import bare_kernels as kernels
from tests.support.mutants import MUTANTS
from tests.support.mutants.case import TARGETS
from tests.support.mutants.power import run_on
from tests.support.stretch_chains import sample_of

LEVELS = (0.2, 0.05, 0.01)


def test_distances_are_in_units_of_each_coordinates_spread():
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(4000, 6)) * np.tile([1.0, 100.0], 3)
    pairs = PairDistances(draws, 3)
    state = np.array([0.0, 0.0, 3.0, 0.0, 0.0, 400.0])  # three walkers: apart by 3, by 4, and by 5 spreads
    found = pairs.distances(state, np.array([[0, 1], [0, 2], [1, 2]]))
    np.testing.assert_allclose(found, np.array([3.0, 4.0, 5.0]) / 0.967, rtol=0.08)


def test_shares_of_near_pairs_are_the_quantiles_that_set_them():
    rng = np.random.default_rng(2)
    pairs = PairDistances(rng.normal(size=(4000, 12)), 4)
    states = rng.normal(size=(4000, 5, 12))
    assert pairs.single(states).shape == (4000, 5, 12) and pairs.groups(states).shape == (4000, 5, 6)
    single, groups = pairs.single(states).mean(axis=(0, 1)), pairs.groups(states).mean(axis=(0, 1))
    np.testing.assert_allclose(single.reshape(6, 2), np.tile([0.02, 0.1], (6, 1)), rtol=0.6)
    expected = {"q0.5": 0.005, "q2": 0.02, "q10": 0.1}
    for label, value in zip(pairs.group_labels, groups, strict=True):
        assert abs(value / expected[label.function.split("< ")[1]] - 1.0) < 0.6
    names = {label.quantity for label in pairs.group_labels}
    assert names == {"all pairs", "pairs across the halves"}  # halves of two have one pair each, looked at alone
    close = states.copy()
    close[..., 9:] = close[..., 6:9]
    assert pairs.single(close)[..., -2:].all() and not pairs.single(close)[..., :2].all()


def test_large_ensembles_are_looked_at_by_groups_of_some_pairs():
    rng = np.random.default_rng(3)
    pairs = PairDistances(rng.normal(size=(400, 40)), 40)
    assert not pairs.labels and len(pairs.group_labels) == 12
    assert pairs.every(rng.normal(size=(3, 40))).shape == (3, 12)
    assert max(len(group) for group in pairs._groups) == MOST_OF_GROUP  # noqa: SLF001


def test_pairs_are_asked_of_ensembles_alone_and_cost_the_others_no_level():
    one, many = BareSubject(kernels.normal(), None), BareSubject(copies(kernels.normal(), 3), None)
    assert many.n_walkers == 3 and BareSubject(copies(copies(kernels.normal(), 2), 3), None).n_walkers == 6
    assert {test.name for test in set(suited_tests(many)) - set(suited_tests(one))} == {"pairs of walkers"}
    assert n_tests_of_chance([many]) == n_tests_of_chance([one]) + 1
    assert {test.about for test in set(TESTS) - set(suited_tests(many))} == {"annealing", "between"}
    with pytest.raises(InvalidArgumentError, match="n_walkers"):
        BareSubject(replace(kernels.normal(), n_walkers=7), None)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["log-gamma", "correlated normal"])
def test_a_half_that_moves_against_itself_is_seen_by_near_pairs(name):
    """1000 ensembles; p-values of 1e-8 and less under every seed tried, where functions of walkers need 10^5."""
    bad = run_pairs_of_walkers(sample_of(TARGETS[name], is_bad=True, n=1000, seed=1))
    assert bad.p_value < 1e-5 and bad.worst.quantity == "walkers 3, 4"
    good = run_pairs_of_walkers(sample_of(TARGETS[name], is_bad=False, n=1000, seed=1))
    assert good.p_value > 1e-3


def levels_over(seeds, is_bad=False, n=250):
    return np.array(
        [
            run_pairs_of_walkers(sample_of(TARGETS["log-gamma"], is_bad=is_bad, n=n, seed=seed, n_steps=20)).p_value
            for seed in seeds
        ]
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_levels_over_200_right_ensembles_and_power():
    found = levels_over(range(200))
    for level in LEVELS:
        assert (found <= level).sum() <= binom.ppf(0.99, len(found), level)
    bad = levels_over(range(20), is_bad=True, n=2000)
    assert (bad <= 1e-4).all(), bad


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["half-against-itself", *(n for n in MUTANTS if n.startswith("swap-"))])
def test_the_battery_finds_bugs_of_ensembles(name):
    assert run_on(MUTANTS[name], targets=[None] if name.startswith("swap-") else [TARGETS["log-gamma"]]).alarm
