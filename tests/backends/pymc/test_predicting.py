"""Data drawn anew from the prior, many at once: exchangeable with the data whatever else is random in the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

pm = pytest.importorskip("pymc")

from pymc.distributions.shape_utils import change_dist_size  # noqa: E402
from pytensor.graph.replace import vectorize_graph  # noqa: E402
from pytensor.graph.traversal import ancestors  # noqa: E402

from bread.backends.pymc.simulation import predicting  # noqa: E402
from bread.errors import UnsupportedModelError  # noqa: E402
from tests.support.replicating import PyMCNodes, ranks  # noqa: E402

pytestmark = pytest.mark.pymc
LEVEL = 1e-4  # of each test of ranks, at fixed seeds


def centred_hierarchy() -> Any:
    """Widths are random, means are not."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        x = pm.Normal("x", 0.0, scale, shape=6)
        pm.Normal("y", x, 0.5, observed=np.zeros(6))
    return model


def censored_at_a_random_bound() -> Any:
    """What is censored has no parameter that is random: it is a draw of its own without a name."""
    with pm.Model() as model:
        bound = pm.HalfNormal("bound", 2.0)
        pm.Censored("y", pm.Normal.dist(0.0, 1.0), lower=None, upper=bound, observed=np.zeros(6))
    return model


def truncated_at_a_random_bound() -> Any:
    with pm.Model() as model:
        bound = pm.HalfNormal("bound", 2.0)
        pm.Truncated("y", pm.Normal.dist(0.0, 1.0), lower=None, upper=bound + 0.5, observed=np.zeros(6))
    return model


def walk_with_drift() -> Any:
    """The first value has a law of its own without a random parameter."""
    with pm.Model() as model:
        drift = pm.Normal("drift", 0.0, 0.5)
        level = pm.GaussianRandomWalk("level", mu=drift, sigma=0.3, init_dist=pm.Normal.dist(1.0, 1.0), shape=6)
        pm.Normal("y", level, 0.5, observed=np.zeros(6))
    return model


MODELS = [centred_hierarchy, censored_at_a_random_bound, truncated_at_a_random_bound, walk_with_drift]
FUNCTIONS = [
    lambda y, _: y[:, 0],
    lambda y, _: y.mean(axis=1),
    lambda y, _: y.var(axis=1),
    lambda y, _: (y[:, 1:] * y[:, :-1]).sum(axis=1),
]


def from_the_prior(model: Any) -> tuple[PyMCNodes, str]:
    nodes = PyMCNodes(model)
    return nodes, next(one.name for one in nodes.nodes() if one.name == "y from the prior")


@pytest.mark.parametrize("build", MODELS)
def test_the_data_are_exchangeable_with_data_drawn_anew(build: Any) -> None:
    """Ranks of functions of the data among 30 replicates are uniform over 300 joint draws."""
    model, node = from_the_prior(build())
    found = ranks(model, node, n_sets=300, n_replicates=30, functions=FUNCTIONS)
    assert min(kstest(one, "uniform").pvalue for one in found.T) > LEVEL


@pytest.mark.parametrize("build", MODELS)
def test_replicates_are_draws_of_their_own(build: Any) -> None:
    """No two share a coordinate, and none follows from the one before (5 standard errors)."""
    model, node = from_the_prior(build())
    state = model.simulate(1, fixed=None, seed=np.random.SeedSequence(3)).states[0]
    rows = model.replicate(state, node, 1000, seed=np.random.SeedSequence(4)).values[1:]
    assert min(len(np.unique(column)) for column in rows.T) > 900
    assert max(abs(np.corrcoef(one[1:], one[:-1])[0, 1]) for one in rows.T) < 5.0 / np.sqrt(1000)


def test_a_law_of_the_users_own_is_drawn_given_its_parameters() -> None:
    """PyMC keeps the parameters that such a law was made with: they must be those of the state all the same."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        x = pm.CustomDist("x", mu, dist=lambda mu, size: mu + pm.math.exp(pm.Normal.dist(0.0, 0.5, size=size)), shape=3)
        pm.Normal("y", x, 1.0, observed=np.zeros(3))
    found = ranks(PyMCNodes(model), "y given mu", n_sets=300, n_replicates=30, functions=FUNCTIONS)
    assert min(kstest(one, "uniform").pvalue for one in found.T) > LEVEL


def pytensors_own_walk(variable: Any, number: Any, many: dict[Any, Any], given: Any = ()) -> Any:
    above = {one: many[one] for one in ancestors([variable]) if one in many}
    return vectorize_graph(variable, replace=above) if above else change_dist_size(variable, (number,), expand=True)


def test_what_all_replicates_would_share_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: PyTensor's own walk gives all rows one draw of what is censored, and is not believed."""
    monkeypatch.setattr(predicting, "with_number", pytensors_own_walk)
    model, node = from_the_prior(censored_at_a_random_bound())
    state = model.simulate(1, fixed=None, seed=np.random.SeedSequence(3)).states[0]
    with pytest.raises(UnsupportedModelError, match="all draws would share"):
        model.replicate(state, node, 50, seed=np.random.SeedSequence(4))
    monkeypatch.setattr(predicting, "require_own_draws", lambda outputs, number: None)
    model, node = from_the_prior(censored_at_a_random_bound())
    found = ranks(model, node, n_sets=300, n_replicates=30, functions=FUNCTIONS)
    assert min(kstest(one, "uniform").pvalue for one in found.T) < LEVEL
