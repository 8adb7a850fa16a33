"""Step methods that `bread.check` refuses, run as they are for tests of samplers."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import Failure, Kernel, OpenOptions
from bread.errors import UnsupportedKernelError
from bread.paths.kinds import PriorPath

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

START = np.array([0.4])
STATES_AT = (1, 5, 20)


class AlwaysAccepted(pm.Metropolis):
    """A subclass of a user's, with a step of its own."""

    def astep(self, q0):
        """Propose, and accept whatever the density says."""
        moved, statistics = super().astep(q0)
        return type(moved)(q0.data + 1.0, q0.point_map_info), statistics


class Counting(AlwaysAccepted):
    """It keeps what PyMC's sampling state knows nothing of."""

    calls = 0

    def astep(self, q0):
        """Move by the number of calls so far, in this chain and in all before it."""
        moved, statistics = super().astep(q0)
        self.calls += 1
        return type(moved)(moved.data + self.calls, q0.point_map_info), statistics


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", mu, 1.0, observed=np.array([0.3, 1.2]))
    return model


def evolved(model, kernel, *, beta=1.0, n_chains=2):
    """Return the states of chains with one seed, one after another on one object."""
    opened = open_model(model, OpenOptions(kernel=kernel, any_kernel=True))
    posterior = opened.condition(opened.info.data.observed)
    adapted = posterior.adapt(PriorPath(), beta, START, SeedSequence(1), 50, None)
    settings = Kernel(np.array([beta]), {name: value[None] for name, value in adapted.settings.items()})
    return [
        posterior.evolve(PriorPath(), settings, beta, START, STATES_AT, SeedSequence(3)).states for _ in range(n_chains)
    ]


def test_a_subclass_runs_its_own_step(model):
    first, second = evolved(model, AlwaysAccepted)
    np.testing.assert_array_equal(first, START + np.array(STATES_AT)[:, None])
    np.testing.assert_array_equal(second, first)


def test_the_same_class_is_refused_where_it_must_be_right(model):
    with pytest.raises(UnsupportedKernelError, match="AlwaysAccepted cannot be run in reverse"):
        open_model(model, OpenOptions(kernel=AlwaysAccepted))


def test_a_chain_begins_from_the_sampling_state_that_pm_sample_restores(model):
    first, second = evolved(model, pm.DEMetropolisZ)
    np.testing.assert_array_equal(second, first)


def test_a_history_outside_that_state_shows(model):
    first, second = evolved(model, Counting)
    assert not np.array_equal(first, second)


def test_a_step_method_of_pymc_keeps_its_frozen_settings(model):
    opened = open_model(model, OpenOptions(kernel=pm.NUTS, any_kernel=True))
    assert opened.engine.setting_names == ("step_size", "inverse_metric")


def test_the_reversal_of_what_is_not_known_is_refused(model):
    opened = open_model(model, OpenOptions(kernel=AlwaysAccepted, any_kernel=True))
    posterior = opened.condition(opened.info.data.observed)
    run = posterior.anneal(
        PriorPath(),
        np.array([0.0, 1.0]),
        Kernel(np.array([0.0, 1.0]), {}),
        direction="reverse",
        initial=START[None],
        seeds=[SeedSequence(0)],
    )
    assert run.failure[0] == Failure.EXCEPTION and "reversal is not known" in run.message


def test_a_step_of_another_model_is_refused(model):
    with pytest.raises(UnsupportedKernelError, match="was not built on the model it was called with"):
        open_model(model, OpenOptions(kernel=lambda _: AlwaysAccepted(model=model), any_kernel=True))
