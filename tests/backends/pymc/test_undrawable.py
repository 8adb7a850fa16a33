"""Priors some of whose draws have no data: simulator and density are tested all the same."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.running.exactness.score_tests import score_tests
from bread.statistics.bounds.alarms import combined_p_value

pytestmark = [pytest.mark.pymc, pytest.mark.statistical]
LEVEL = 0.001
X = np.linspace(-2.0, 2.0, 20)
COUNTS = np.random.default_rng(0).poisson(np.exp(0.5 + 0.3 * X))
FIT = np.random.default_rng(1).normal([0.5, 0.3], 0.15, (300, 2))
HELD = SimpleNamespace(names=("a", "b"), direct=lambda i: {"a": FIT[i, 0], "b": FIT[i, 1]})


def counts(rate=1.0, variance=False, largest=np.inf):
    """A regression of counts whose slope may be 20: NumPy draws none of a mean above 2^63.

    The density has ``rate`` times the mean that is drawn; ``variance``: of ``b``, the square of the sd that is drawn.
    Means above ``largest`` are drawn as that.
    """
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 10.0)
        b = pm.CustomDist(
            "b", 10.0,
            logp=lambda value, sd: pm.logp(pm.Normal.dist(0.0, pt.sqrt(sd) if variance else sd), value),
            random=lambda sd, rng=None, size=None: rng.normal(0.0, sd, size=size),
        )  # fmt: skip
        pm.CustomDist(
            "y", pt.exp(a + b * X),
            logp=lambda value, mean: pm.logp(pm.Poisson.dist(rate * mean), value),
            random=lambda mean, rng=None, size=None: rng.poisson(np.minimum(mean, largest), size=size),
            dtype="int64", observed=COUNTS,
        )  # fmt: skip
    return open_model(model, OpenOptions(simulate_from="fitted"))


def p_values(model, held):
    found = score_tests(model.info, 1, 6, 50, lambda tasks: [task.run(model) for task in tasks], held)
    assert "lam value too large" in found.discarded.reason and not found.inexact
    return {test.name: combined_p_value(test.p_values.ravel()) for test in found.tests}


@pytest.mark.parametrize("held", [None, HELD])
def test_a_sound_model_with_draws_that_have_no_data_is_not_accused(held):
    found = p_values(counts(), held)
    assert {"prior score", "likelihood score"} == set(found) and min(found.values()) > LEVEL


def test_planted_faults_are_found_though_some_draws_have_no_data():
    assert p_values(counts(variance=True), None)["prior score"] < LEVEL
    assert p_values(counts(rate=1.2), HELD)["likelihood score"] < LEVEL


def test_a_likelihood_is_tested_near_the_data_though_all_draws_have_data():
    """Counts up to 1e18 tell nothing of a rate: the prior is so wide that its outcomes are no test."""
    capped = counts(rate=1.2, largest=1e18)

    def likelihood(held):
        found = score_tests(capped.info, 1, 6, 50, lambda tasks: [task.run(capped) for task in tasks], held)
        assert not found.discarded.n_outcomes
        (test,) = [test for test in found.tests if test.name == "likelihood score"]
        return combined_p_value(test.p_values.ravel())

    assert likelihood(HELD) < LEVEL < likelihood(None)
