"""Many data sets in one call of the driver: bit-equal to one instance each, whatever the type of the outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.backends.base import Kernel
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.rows import StanRows
from bread.backends.support.gradients import one_by_one
from bread.backends.support.rows import RowsOneByOne
from bread.errors import DensityError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import gaussian
from tests.support.conformance import tuned_kernel
from tests.support.stan_conjugate import CONJUGATE, EIGHT_SCHOOLS, SCHOOLS, opened

pytestmark = pytest.mark.stan

# Outcomes of three types and shapes, one of which transformed data read; a state that is rejected; a scalar.
SEVERAL = """data {
  int N;
  array[2] vector[N] y;
  array[N, 2] int<lower=0> counts;
  real z;
}
transformed data {
  real spread = max(y[1]) - min(y[1]) + N;
}
parameters {
  vector[2] mu;
  real<lower=0> s;
}
model {
  mu ~ normal(0, 2);
  s ~ exponential(1);
  if (mu[1] > 8) reject("mu[1] is large");
  for (k in 1:2) {
    y[k] ~ normal(mu[k], s);
    counts[, k] ~ poisson_log(mu[k]);
  }
  z ~ normal(mu[1] - mu[2], 1);
}
"""
N = 3
DATA = {"N": N, "y": np.arange(6.0).reshape(2, N), "counts": np.ones((N, 2), dtype=int), "z": 0.3}


def both(model: Any, data: dict[str, Any]) -> tuple[StanRows, RowsOneByOne]:
    rows = model.rows(data)
    assert isinstance(rows, StanRows)
    return rows, RowsOneByOne(model.condition, data)


def assert_same(model: Any, data: dict[str, Any], states: np.ndarray) -> None:
    fast, slow = both(model, data)
    assert np.array_equal(fast.log_likelihood(states), slow.log_likelihood(states), equal_nan=True)
    for beta in (0.0, 0.4, 1.0):
        for one, other in zip(fast.density_gradient(beta, states), slow.density_gradient(beta, states), strict=True):
            assert np.array_equal(one, other, equal_nan=True), beta


def assert_same_chains(model: Any, data: dict[str, Any], states: np.ndarray, path: Path) -> None:
    fast, slow = both(model, data)
    kernel, seeds = tuned_kernel(model, path=path, n_steps=60), SeedSequence(9).spawn(len(states))
    for beta, n_steps in ((0.0, 1), (0.4, 3), (1.0, 2)):
        one, other = (rows.move(path, kernel, beta, states, n_steps, seeds) for rows in (fast, slow))
        assert np.array_equal(one.states, other.states), beta
        assert (one.n_gradients, one.n_evaluations) == (other.n_gradients, other.n_evaluations), beta
        assert not np.array_equal(one.states, states)


@pytest.mark.parametrize("name", ["beta-binomial", pytest.param("hierarchical", marks=pytest.mark.slow)])
def test_as_one_instance_each(name: str) -> None:
    model = opened(CONJUGATE[name].text, CONJUGATE[name].data)
    joint = model.simulate(20, fixed=None, seed=SeedSequence(1))
    assert_same(model, joint.data, joint.states)
    reference = gaussian(np.full(model.info.layout.dim, 0.3), np.eye(model.info.layout.dim))
    for path in (PriorPath(), ReferencePath(reference)):
        assert_same_chains(model, joint.data, joint.states, path)


@pytest.mark.parametrize("kernel", ["hmc", "independence+nuts"])
def test_chains_of_other_kernels(kernel: str) -> None:
    model = opened(CONJUGATE["beta-binomial"].text, CONJUGATE["beta-binomial"].data, kernel=kernel)
    joint = model.simulate(5, fixed=None, seed=SeedSequence(1))
    assert_same_chains(model, joint.data, joint.states, PriorPath())


def test_a_chain_that_cannot_start_is_named_as_by_an_instance() -> None:
    model = opened(CONJUGATE["beta-binomial"].text, CONJUGATE["beta-binomial"].data)
    kernel, seeds = tuned_kernel(model, n_steps=60), SeedSequence(9).spawn(2)
    states = np.array([[0.2], [np.inf]])
    texts = []
    for rows in both(model, {"y": np.array([[1, 2], [3, 1]])}):
        with pytest.raises(DensityError) as found:
            rows.move(PriorPath(), kernel, 0.5, states, 2, seeds)
        texts.append(str(found.value))
    assert texts[0] == texts[1]
    assert "NUTS at inverse temperature 0.5 failed" in texts[0]


def simulate(rng: np.random.Generator, data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    mu, s = rng.normal(0, 2, 2), rng.exponential()
    return {"mu": mu, "s": s}, {
        "y": rng.normal(mu[:, None], s, (2, N)), "counts": rng.poisson(np.exp(mu), (N, 2)),
        "z": rng.normal(mu[0] - mu[1]),
    }  # fmt: skip


def test_outcomes_of_several_shapes_and_a_state_that_is_rejected() -> None:
    model = opened(SEVERAL, DATA, observed=["y", "counts", "z"], simulator=simulate, simulate_from="prior")
    joint = model.simulate(12, fixed=None, seed=SeedSequence(2))
    states = joint.states.copy()
    states[3, 0] = 8.5  # rejected
    values = both(model, joint.data)[0].log_likelihood(states)
    assert values[3] == -np.inf and np.isfinite(np.delete(values, 3)).all()
    assert_same(model, joint.data, states)
    posterior = model.condition({name: values[0] for name, values in joint.data.items()})
    path = ReferencePath(gaussian(np.zeros(3), np.eye(3)))
    together, apart = posterior.end_gradients(path, states), one_by_one(posterior, path, states)  # of one data set
    for one, other in zip(together, apart, strict=True):
        assert np.array_equal(one, other, equal_nan=True)
    assert np.isnan(together[0]).tolist() == [row == 3 for row in range(12)]


def test_with_a_law_in_place_of_a_prior() -> None:
    model = opened(EIGHT_SCHOOLS, SCHOOLS, observed="y", simulate_from="localised", hyperparameters=("mu", "tau"))
    local = model.localise(("mu", "tau"), gaussian(np.array([4.0, 1.0]), np.array([[4.0, 0.2], [0.2, 0.5]])))
    joint = local.simulate(10, fixed=None, seed=SeedSequence(3))
    assert_same(local, joint.data, joint.states)
    assert_same_chains(local, joint.data, joint.states, PriorPath())


def test_data_that_the_program_refuses_are_named_as_by_an_instance() -> None:
    model = opened(CONJUGATE["beta-binomial"].text, CONJUGATE["beta-binomial"].data)
    data = {"y": np.array([[1, 1], [1, -1]])}
    fast, slow = both(model, data)
    states = np.zeros((2, 1))
    with pytest.raises(Exception, match="y") as expected:
        slow.log_likelihood(states)
    with pytest.raises(type(expected.value)) as found:
        fast.log_likelihood(states)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("values", [np.array([[3, 2**31], [1, 1]]), np.array([[3, -(2**40)], [1, 1]])])
def test_integers_that_stan_does_not_have_go_through_json(values: np.ndarray) -> None:
    model = opened(CONJUGATE["beta-binomial"].text, CONJUGATE["beta-binomial"].data)
    fast, slow = both(model, {"y": values})
    with pytest.raises(Exception) as expected:
        slow.density_gradient(1.0, np.zeros((2, 1)))
    with pytest.raises(type(expected.value)):
        fast.density_gradient(1.0, np.zeros((2, 1)))


def test_another_shape_is_refused_by_name() -> None:
    model = opened(CONJUGATE["beta-binomial"].text, CONJUGATE["beta-binomial"].data)
    rows = model.rows({"y": np.ones((4, 3), dtype=int)})
    with pytest.raises(ValueError, match=r"'y'.*shape"):
        rows.log_likelihood(np.zeros((4, 1)))


def test_no_instance_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rows are for: an instance for each data set costs twice a gradient of a small program."""
    model = opened(CONJUGATE["beta-binomial"].text, CONJUGATE["beta-binomial"].data)
    rows, made = model.rows({"y": default_rng(0).integers(0, 3, (30, 2))}), []
    begin = StanInstance.__init__
    monkeypatch.setattr(StanInstance, "__init__", lambda self, *a, **k: (made.append(1), begin(self, *a, **k))[1])
    rows.density_gradient(1.0, np.zeros((30, 1)))
    rows.log_likelihood(np.zeros((30, 1)))
    kernel = Kernel(np.array([0.0]), {"step_size": np.array([0.5]), "inverse_metric": np.ones((1, 1))})
    rows.move(PriorPath(), kernel, 1.0, np.zeros((30, 1)), 2, SeedSequence(1).spawn(30))
    assert not made
