"""Tests of simulator against density where joint draws are thrown away, or cannot be had everywhere."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.base import Discarded, Simulations
from bread.running.exactness.joint import draw_joint
from bread.running.exactness.score_tests import score_tests
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.exactness.means import are_few
from tests.models.reference import HMCKernel, NormalMean
from tests.support.direct_models import (
    CLEAN,
    LimitedData,
    NoDataAbove,
    UncorrectedDrift,
    WideDataDraws,
    WidePriorDraws,
    direct_tests,
)

pytestmark = pytest.mark.statistical
LEVEL = 0.001
Y = np.array([0.3, -1.0, 2.0, 0.5])
NUMBERS = (Y, 1.0, 2.0, 1.5, HMCKernel(n_leapfrog=4))
NEAR = np.random.default_rng(1).normal(0.4, 0.7, 1000)  # draws of a fit
HELD = SimpleNamespace(names=("mean",), direct=lambda index: {"mean": NEAR[index]})


class WidePriorLimited(WidePriorDraws, LimitedData):
    """Draws the mean with its variance for its standard deviation, and cannot represent large outcomes."""


class WideDataLimited(WideDataDraws, LimitedData):
    """Draws data with the variance for the standard deviation, and cannot represent large ones."""


class WidePriorUndrawable(WidePriorDraws, NoDataAbove):
    """Draws the mean with its variance for its standard deviation; large ones have no data."""


class WideDataUndrawable(WideDataDraws, NoDataAbove):
    """Draws data with the variance for the standard deviation, where there are any."""


def scores(model, held=None):
    found = score_tests(model.info, 1, 8, 50, lambda tasks: [task.run(model) for task in tasks], held)
    return found, {test.name: combined_p_value(test.p_values.ravel()) for test in found.tests}


def test_draws_made_again_do_not_accuse_a_sound_model():
    """Of ``mean`` the kept draws do not follow the prior, nor y the likelihood given it; given y it is exact."""
    found, p_values = scores(LimitedData(*NUMBERS))
    assert found.discarded.n_by_chance > 30 and np.mean(found.joint.states) < 0.5 < CLEAN.prior_mean
    assert list(p_values) == ["prior score"] and p_values["prior score"] > LEVEL
    assert "only where they can be represented (y is too large)" in found.left_out["outcome score"]
    assert "likelihood score" in found.left_out


def test_parameters_of_kept_draws_are_exact_given_outcomes_that_alone_decide():
    """The kernel is tested on them; a state that hardly ever has outcomes is none from which kept ones come."""
    found = direct_tests(LimitedData(*NUMBERS), 1, n_temperatures=64)
    p_values = {test.name: combined_p_value(test.p_values.ravel()) for test in found.tests}
    assert min(p_values.values()) > LEVEL and "kernel at beta = 0" in p_values
    assert 0.2 < found.share_discarded < 0.8 and found.why_discarded == "y is too large"


def test_a_wrong_prior_is_found_on_draws_that_no_outcome_decides_upon():
    for model in (WidePriorLimited(*NUMBERS), WidePriorUndrawable(*NUMBERS)):
        assert scores(model)[1]["prior score"] < LEVEL


def test_a_wrong_likelihood_is_found_at_draws_of_the_fit_where_joint_draws_are_conditioned():
    right, p_values = scores(LimitedData(Y, 1.0, 2.0, 0.5, HMCKernel(n_leapfrog=4)), HELD)
    assert {"prior score", "likelihood score", "outcome score"} == set(p_values) and min(p_values.values()) > LEVEL
    assert not {"likelihood score", "outcome score"} & set(right.left_out)
    narrow = WideDataLimited(Y, 1.0, 2.0, 0.5, HMCKernel(n_leapfrog=4))
    assert scores(narrow, HELD)[1]["outcome score"] < LEVEL


def test_one_draw_that_fails_switches_nothing_off():
    """Some 31% of the prior has no data; the rest tests all that it can."""
    found, p_values = scores(NoDataAbove(*NUMBERS))
    assert {"prior score", "likelihood score", "outcome score"} == set(p_values) and min(p_values.values()) > LEVEL
    assert found.discarded.n_by_chance == 0 and len(found.joint) == 400
    assert scores(WideDataUndrawable(*NUMBERS))[1]["outcome score"] < LEVEL


def test_outcomes_that_may_come_from_where_none_can_be_drawn_are_no_test_of_a_kernel():
    """Data of a mean just below 2 may come from one above, so that the draws are not the posterior's given them."""
    found = direct_tests(NoDataAbove(*NUMBERS), 1, n_temperatures=64, pilots=CLEAN)
    assert "may come from parameters at which none can be drawn" in found.left_out["kernel at beta = 1"]
    assert found.untested == {"kernel at beta = 1": found.left_out["kernel at beta = 1"]}
    near = (Y, 1.0, 2.0, 0.002, HMCKernel(n_leapfrog=4))  # data know their mean to 0.001
    far = direct_tests(NoDataAbove(*near), 1, n_temperatures=64, pilots=NormalMean(*near))
    assert not far.untested and far.share_discarded > 0.0
    assert min(combined_p_value(test.p_values.ravel()) for test in far.tests) > LEVEL


def test_a_wrong_kernel_is_found_where_joint_draws_fail():
    found = direct_tests(NoDataAbove(Y, 1.0, 2.0, 6.0, UncorrectedDrift()), 1, pilots=CLEAN)
    (kernel,) = [test for test in found.tests if test.name == "kernel at beta = 0"]
    assert combined_p_value(kernel.p_values.ravel()) < LEVEL


def test_where_no_joint_draw_can_be_had_the_base_is_tested_and_the_rest_is_named():
    found = direct_tests(NoDataAbove(Y, 1.0, 2.0, 6.0, UncorrectedDrift(), limit=-50.0), 1, pilots=CLEAN)
    p_values = {test.name: combined_p_value(test.p_values.ravel()) for test in found.tests}
    assert p_values["prior score"] > LEVEL > p_values["kernel at beta = 0"]
    assert set(found.untested) == {"likelihood score", "outcome score", "kernel at beta = 1"}
    assert "no draws here" in found.untested["kernel at beta = 1"]


def test_parameters_that_cannot_be_drawn_everywhere_accuse_nobody():
    """As of a function of the user's that raises where its data overflow: the others follow another prior."""

    class NoParameters(type(CLEAN)):
        def draw_state(self, generator, fixed):
            drawn = super().draw_state(generator, fixed)
            if drawn[0] > 2.0:
                raise ValueError("no parameters here")
            return drawn

    for held, names in ((None, {"likelihood score", "outcome score"}), (HELD, {"likelihood score", "outcome score"})):
        found, p_values = scores(NoParameters(*NUMBERS), held)
        assert set(p_values) == names and min(p_values.values()) > LEVEL
        assert "no parameters here" in found.left_out["prior score"] and found.inexact


def test_draws_that_are_not_finite_are_discarded_too():
    class Overflowing(type(CLEAN)):
        def draw_data(self, parameters, generator):
            drawn = super().draw_data(parameters, generator)["y"]
            return {"y": np.where(parameters["mean"] > 2.0, np.inf, drawn)}

    drawn = draw_joint(Overflowing(*NUMBERS), 200, SeedSequence(1))
    assert np.isfinite(drawn.data["y"]).all() and drawn.discarded.n_outcomes > 30
    assert all(state[0] > 2.0 for state in drawn.discarded.states) and "not finite" in drawn.discarded.reason


def test_a_tenth_of_a_standard_error_is_few():
    assert are_few(3.0, 1000) and not are_few(4.0, 1000)
    none = Simulations(np.empty((0, 1)), {}, {}, discarded=Discarded(n_outcomes=2.0))
    some = Simulations(np.zeros((1, 1)), {}, {}, discarded=Discarded(n_by_chance=1.0, reason="why"))
    assert none.joined(some).discarded == Discarded(0.0, 2.0, 1.0, (), "why")


class FarAway(NormalMean):
    """Outcomes of a noise of 1e-13 beside a mean of about 1: their digits do not hold it."""

    def draw_data(self, parameters, generator):
        drawn = super().draw_data(parameters, generator)["y"]
        return {"y": np.round(drawn, 13)}


def test_outcomes_that_lost_their_digits_accuse_nobody():
    """As explosive series do: the noise is gone, and the mean score by it is not zero."""
    found, p_values = scores(FarAway(Y, 1.0, 2.0, 1e-13, HMCKernel(n_leapfrog=4)))
    assert found.discarded.n_outcomes > 300 and set(p_values) == {"prior score"} and p_values["prior score"] > LEVEL
    assert "rounding the outcomes" in found.left_out["outcome score"]
    assert not scores(NormalMean(*NUMBERS))[0].discarded.n_outcomes  # the control
