"""Integrals of priors: missing constants are found and taken out, those that vary are told apart, sound priors pass."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from bread.jobs.executors import open_executor
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from bread.running.exactness.prior_integrals import integrate_priors, prior_integrals
from bread.running.state.ledger import Ledger
from bread.running.state.prior_integral_results import LEVEL, PriorIntegral, PriorIntegrals, without_constant
from bread.statistics.exactness.normalisation import Normalisation
from tests.support.fake_results import fake_result
from tests.support.toy_priors import ToyPriors

pytestmark = pytest.mark.statistical
STANDARD_ERRORS = 4.0


def half(mu):
    return -np.log(2.0) + 0.0 * mu


def slope(mu):
    return 0.3 * mu


def integrals(model, seed=1):
    nodes = [node for node in model.nodes() if node.log_integral is None]
    return prior_integrals(model, nodes, seed)


@pytest.mark.parametrize("is_joint", [False, True])
def test_a_missing_constant_is_found_and_named(is_joint):
    found = integrals(ToyPriors(half, is_joint=is_joint))
    (one,) = found.integrals
    assert one.standard_error < 0.02
    assert abs(one.log_integral + 3.0 * np.log(2.0)) < STANDARD_ERRORS * one.standard_error
    assert found.is_named(one) and not found.varies(one)
    assert found.log_constant == one.log_integral


def test_all_elements_count_where_a_few_have_a_constant():
    (one,) = integrals(ToyPriors(half, n=8)).integrals
    assert abs(one.log_integral + 8.0 * np.log(2.0)) < STANDARD_ERRORS * one.standard_error


def test_an_integral_that_varies_with_the_parents_is_no_constant():
    found = integrals(ToyPriors(slope))
    (one,) = found.integrals
    assert found.varies(one) and not found.is_named(one)
    assert one.varies_p_value < 1e-6
    assert found.log_constant == 0.0


@pytest.mark.parametrize("is_joint", [False, True])
def test_draws_of_another_law_are_a_bug_and_no_constant(is_joint):
    """Gamma draws of shape 2.5 where the density has 2; the bridge would call it a constant that varies or not."""
    found = integrals(ToyPriors(is_joint=is_joint, drawn_shape=2.5))
    (one,) = found.integrals
    assert found.draws_differ(one) and not found.varies(one) and not found.is_named(one)
    assert found.log_constant == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_a_sound_prior_is_silent(seed):
    found = integrals(ToyPriors(), seed)
    (one,) = found.integrals
    assert not found.varies(one) and not found.is_named(one) and not found.draws_differ(one)
    assert found.log_constant == 0.0 and not found.left_out


def test_states_of_density_zero_count_as_that():
    """A density cut where few draws lie is zero at exact draws, which is said; far out it changes nothing."""
    far = integrals(ToyPriors(breaks=2.9))
    assert sum(one.n_zero for one in far.integrals[0].by_parents) > 0 and not far.is_named(far.integrals[0])
    near = integrals(ToyPriors(breaks=1.0))
    assert not near.integrals and "exact draws" in near.left_out["x"]


def test_a_node_of_many_dependent_coordinates_is_left_out():
    found = integrals(ToyPriors(n=21, is_joint=True))
    assert not found.integrals and "too many" in found.left_out["x"]


def test_what_cannot_be_drawn_given_its_parents_is_left_out():
    assert "no replicates here" in integrals(ToyPriors(can_replicate=False)).left_out["x"]


def test_parts_that_depend_on_each_other_are_integrated_together():
    class Chained(ToyPriors):
        """Terms of one element that also name its neighbour; their sum is as before."""

        def node_log_prior(self, node, states):
            terms = super().node_log_prior(node, states)
            swapped = 0.1 * states[:, 1:]
            return terms + swapped - np.roll(swapped, 1, axis=1)

    found = integrals(Chained())
    assert not found.is_named(found.integrals[0]) and not found.varies(found.integrals[0])
    wrong = integrals(Chained(half))
    assert wrong.is_named(wrong.integrals[0])


def test_the_constant_leaves_log_weights_along_reference_paths_alone():
    run = next(iter(fake_result().runs.values()))
    one = PriorIntegral("x", (Normalisation(-0.5, 0.001, 0),))
    found = PriorIntegrals((one,))
    path = ReferencePath(diagonal(np.zeros(1), np.ones(1)))
    moved = without_constant(run, path, found)
    np.testing.assert_array_equal(moved.log_weight, run.log_weight + 0.5)
    np.testing.assert_array_equal(moved.log_ratio, run.log_ratio + 0.5)
    assert without_constant(run, PriorPath(), found) is run
    assert (
        without_constant(run, path, PriorIntegrals((replace(one, by_parents=(Normalisation(0.0, 0.001, 0),)),))) is run
    )
    assert without_constant(run, path, None) is run


def test_the_phase_leaves_results_and_costs_and_does_nothing_where_all_is_known():
    for model, n_found in ((ToyPriors(half), 1), (ToyPriors(is_known=True), 0)):
        result = fake_result()
        with Display(is_visible=False) as display, open_executor(model, 1) as executor:
            integrate_priors(model, 1, result, Ledger(result, executor, display))
        assert len(result.prior_integrals.integrals) == n_found
        assert (result.n_gradients.get("prior integrals", 0) > 0) == bool(n_found)
        assert ("prior integrals" in result.seconds) == bool(n_found)


@pytest.mark.slow
def test_level():
    """Each p-value below 0.05 in at most the 99.9% quantile of 200 seeds; nothing is named, nothing varies."""
    found = [integrals(ToyPriors(), seed) for seed in range(1000, 1200)]
    most = binom.ppf(0.999, len(found), 0.05)
    assert sum(each.integrals[0].p_value < 0.05 for each in found) <= most
    assert sum(each.integrals[0].varies_p_value < 0.05 for each in found) <= most
    assert sum(each.integrals[0].draws_p_value < 0.05 for each in found) <= most
    rings = sum(test(each.integrals[0]) for each in found for test in (each.varies, each.is_named, each.draws_differ))
    assert rings <= binom.ppf(0.999, len(found), 3.0 * LEVEL)
