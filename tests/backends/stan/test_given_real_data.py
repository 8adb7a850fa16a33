"""Stan programs with their posterior given the real data as their prior, which need not be drawn."""

from __future__ import annotations

import functools

import cloudpickle
import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.backends.base import Fit
from bread.backends.stan.model import StanModel
from bread.errors import UnsupportedModelError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import gaussian
from bread.running.model_fit.replicated import ReplicatedModel
from tests.support.stan_conjugate import CONJUGATE, HIERARCHICAL, opened

pytestmark = pytest.mark.stan

DATA = CONJUGATE["hierarchical"].data
FLAT = HIERARCHICAL.replace("  mu ~ normal(0.3, 1);\n", "")
PRIOR = PriorPath()


@functools.cache
def flat() -> StanModel:
    return opened(FLAT, DATA, simulate_from="posterior")


@functools.cache
def replicated() -> ReplicatedModel:
    rng, model = default_rng(2), flat()
    values = model.constrain(rng.normal(size=(40, model.info.layout.dim)))
    free = {name: values[name].reshape(4, 10, *values[name].shape[1:]) for name in model.info.layout.positions}
    return ReplicatedModel(model, Fit(free, "draws"))


def test_the_density_is_that_of_both_data_sets() -> None:
    model = replicated()
    drawn = model.simulate(4, fixed=None, seed=SeedSequence(1))
    data, states = drawn.data_of(0), drawn.states
    both, real, other = model.condition(data), flat().condition(flat().info.data.observed), flat().condition(data)
    np.testing.assert_allclose(both.log_base(PRIOR, states), real.log_density(PRIOR, states), rtol=1e-12)
    np.testing.assert_allclose(both.log_ratio(PRIOR, states), other.log_ratio(PRIOR, states), rtol=1e-12)
    for beta in (0.0, 0.3, 1.0):
        value, gradient = both.density_gradient(beta, states)
        (_, prior), (_, tempered) = other.density_gradient(0.0, states), other.density_gradient(beta, states)
        np.testing.assert_allclose(gradient, real.density_gradient(1.0, states)[1] + tempered - prior, rtol=1e-9)
        np.testing.assert_allclose(
            value, both.log_base(PRIOR, states) + beta * both.log_ratio(PRIOR, states), rtol=1e-12
        )
    reference = ReferencePath(gaussian(np.zeros(states.shape[1]), np.eye(states.shape[1])))
    np.testing.assert_allclose(
        both.log_ratio(reference, states) + reference.reference.log_density(states),
        both.log_density(PRIOR, states), rtol=1e-12,
    )  # fmt: skip


def test_a_state_that_is_rejected_leaves_the_next_one_as_it_is() -> None:
    model = replicated()
    drawn = model.simulate(1, fixed=None, seed=SeedSequence(3))
    posterior = model.condition(drawn.data_of(0))
    wanted = posterior.log_density(PRIOR, drawn.states)
    assert not np.isfinite(posterior.log_density(PRIOR, drawn.states + 1e300)[0])
    np.testing.assert_array_equal(posterior.log_density(PRIOR, drawn.states), wanted)


def test_a_pickled_copy_has_the_same_density() -> None:
    model = replicated()
    drawn = model.simulate(2, fixed=None, seed=SeedSequence(4))
    copy = cloudpickle.loads(cloudpickle.dumps(model))
    np.testing.assert_array_equal(copy.simulate(2, fixed=None, seed=SeedSequence(4)).data["y"], drawn.data["y"])
    states = drawn.states
    for one in (0, 1):
        np.testing.assert_array_equal(
            *(each.condition(drawn.data_of(one)).log_density(PRIOR, states) for each in (model, copy))
        )


def test_parameters_are_those_of_the_draws() -> None:
    drawn = replicated().simulate(20, fixed=None, seed=SeedSequence(5))
    assert {row.tobytes() for row in drawn.states} <= {row.tobytes() for row in replicated()._draws}  # noqa: SLF001
    assert len(np.unique(drawn.data["y"])) > 20


def test_a_likelihood_that_cannot_be_told_from_the_prior_is_refused() -> None:
    text = HIERARCHICAL.replace("  mu ~ normal(0.3, 1);\n", "  target += -0.5 * mu^2;\n")
    with pytest.raises(UnsupportedModelError, match="simulate_from='posterior' needs the likelihood apart|likelihood="):
        opened(text, DATA, simulate_from="posterior")
