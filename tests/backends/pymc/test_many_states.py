"""Densities of many states in one call: those of single calls, whatever the model, the data and the path."""

from __future__ import annotations

from functools import cache

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.random import SeedSequence, default_rng

from bread.backends.base import OpenOptions
from bread.backends.pymc.density import many_states
from bread.backends.pymc.density.many_states import FEWEST, LARGEST, MOST_CALLS
from bread.backends.pymc.opened import open_model
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import Component, MixtureReference
from tests.support.pymc_models import MODELS as TABLE

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore")]

PRIOR = PriorPath()
N = 3 * FEWEST
ROUNDING = 1e-10  # relative to a value, and to 1
FAR = 30.0  # times a prior draw: some states are as far out as chains never go
# Lengths of a process that are 1e-9 of its distances make its matrix out of rounding errors, singly as well.
NOT_SO_FAR = {"process": 2.0}


def beyond_bounds() -> pm.Model:
    """A standard deviation that is negative at half of the states, where the density is zero."""
    with pm.Model() as model:
        width = pm.Normal("width", 0.3, 1.0)
        pm.Normal("y", 0.0, width, observed=[0.4, -1.0, 2.0])
    return model


def process(n: int = 6) -> pm.Model:
    """A Gaussian process, whose factor is a matrix of each state."""
    x = np.linspace(0.0, 1.0, n)
    with pm.Model() as model:
        length = pm.InverseGamma("length", 5.0, 2.0)
        field = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, length)).prior("field", X=x[:, None])
        pm.Normal("y", field, 0.3, observed=np.sin(4.0 * x))
    return model


def crossed() -> pm.Model:
    """Sums of three arrays, and elements taken by group."""
    rows, columns = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    with pm.Model() as model:
        scales = pm.HalfNormal("scales", 1.0, shape=2)
        a, b = pm.Normal("a", 0.0, scales[0], shape=3), pm.Normal("b", 0.0, scales[1], shape=4)
        pm.Normal("y", 0.5 + a[rows] + b[columns], 1.0, observed=default_rng(1).normal(size=12))
    return model


def settable() -> pm.Model:
    """Covariates and outcomes that the user may set, of no fixed shape; a sum over a matrix of each state."""
    with pm.Model() as model:
        x = pm.Data("x", default_rng(2).normal(size=(7, 3)))
        y = pm.Data("y_data", default_rng(3).normal(size=7))
        slopes = pm.Normal("slopes", 0.0, 1.0, shape=3)
        pm.Normal("y", pt.exp(0.1 * x * slopes).sum(axis=1), 1.0, observed=y, shape=y.shape)
    return model


OWN = {one.__name__: one for one in (beyond_bounds, process, crossed, settable)}
USUAL = ("schools_non_centred", "lkj_cholesky", "simplex", "mixture_with_label", "mixture_likelihood")


@cache
def opened(name):
    return open_model({**TABLE, **OWN}[name](), OpenOptions())


def posteriors(name):
    """The model on its data, and on the same in another order."""
    model = opened(name)
    data = model.info.data.observed
    turned = {key: values[::-1].copy() if values.ndim else values for key, values in data.items()}
    return model.condition(data), model.condition(turned)


def states_of(posterior, n=N, far=FAR):
    """Prior draws, and some continuous ones far beyond."""
    states = posterior.draw_base(PRIOR, SeedSequence(3).spawn(n))
    if not posterior.engine.layout.discrete.any():
        states[1 : n // 4] *= far
    return states


def one_by_one(posterior, path, states):
    """Log base density and log ratio of each state by itself."""
    rows = [state[None] for state in states]
    base = np.concatenate([posterior.log_base(path, row) for row in rows])
    return base, np.concatenate([posterior.log_ratio(path, row) for row in rows])


def together(posterior, path, states):
    return posterior.log_base(path, states), posterior.log_ratio(path, states)


def is_one_call(posterior, path, states):
    """Whether states were taken in one call: but for some, to compare, they cost no gradient."""
    before = posterior.engine.counts
    posterior.log_ratio(path, states)
    gradients, evaluations = np.subtract(posterior.engine.counts, before)
    return gradients < len(states) / 4 and evaluations >= len(states)


def check(posterior, path, states):
    for found, expected in zip(together(posterior, path, states), one_by_one(posterior, path, states), strict=True):
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(found[~finite], expected[~finite])
        assert (np.abs(found - expected)[finite] <= ROUNDING * (1.0 + np.abs(expected[finite]))).all()


@pytest.mark.parametrize(
    "name", [*OWN, *USUAL, *(pytest.param(one, marks=pytest.mark.slow) for one in TABLE if one not in USUAL)]
)
def test_values_are_those_of_single_calls(name):
    """On the model's data and on others, in turn, which the same function takes."""
    for posterior in posteriors(name):
        check(posterior, PRIOR, states_of(posterior, far=NOT_SO_FAR.get(name, FAR)))


@pytest.mark.parametrize("name", [*OWN, *(one for one in USUAL if one != "mixture_with_label")])
def test_many_states_are_one_call_and_few_are_not(name):
    posterior, _ = posteriors(name)
    states = posterior.draw_base(PRIOR, SeedSequence(4).spawn(N))
    assert is_one_call(posterior, PRIOR, states)
    assert not is_one_call(posterior, PRIOR, states[: FEWEST - 1])


def test_a_reference_path_has_the_ratio_to_its_reference():
    posterior, _ = posteriors("schools_non_centred")
    dim = posterior.engine.layout.dim
    reference = MixtureReference((Component(np.full(dim, 0.2), np.linspace(0.5, 2.0, dim)),), np.ones(1))
    states = reference.sample(N, default_rng(2))
    check(posterior, ReferencePath(reference), states)
    assert is_one_call(posterior, ReferencePath(reference), states)


def test_a_density_of_zero_is_of_its_own_state_alone():
    """Vectorised, PyTensor's check of a parameter would ask all states together."""
    posterior, _ = posteriors("beyond_bounds")
    states = np.linspace(-2.0, 2.0, N)[:, None]
    states[[0, -1, N // 2]] = -1.0  # the first, the last and the middle one are out of bounds
    ratio = posterior.log_ratio(PRIOR, states)
    np.testing.assert_array_equal(np.isfinite(ratio), states[:, 0] > 0.0)
    assert is_one_call(posterior, PRIOR, states)


def test_a_wrong_function_is_not_believed(monkeypatch):
    """A vectorised graph that is off by a hundredth: states are taken singly."""
    own = many_states.vectorize_graph
    monkeypatch.setattr(many_states, "vectorize_graph", lambda *rest: [1.01 * one for one in own(*rest)])
    model = open_model(TABLE["normal_mean"](), OpenOptions())
    posterior = model.condition(model.info.data.observed)
    states = states_of(posterior)
    assert not is_one_call(posterior, PRIOR, states)
    check(posterior, PRIOR, states)


def test_what_cannot_be_vectorised_is_taken_singly():
    """A loop over time, which PyTensor would run for one state after another."""
    with pm.Model() as model:
        start = pm.Normal("start", 0.0, 1.0)
        path, _ = pytensor.scan(lambda last: 0.9 * last + 0.1, outputs_info=[start], n_steps=3)
        pm.Normal("y", path, 1.0, observed=[0.1, 0.2, 0.3])
    posterior = open_model(model, OpenOptions()).condition({"y": np.array([0.1, 0.2, 0.3])})
    states = states_of(posterior)
    assert not is_one_call(posterior, PRIOR, states)
    check(posterior, PRIOR, states)


def test_large_matrices_of_each_state_are_taken_singly():
    """Fifty of them at once, and what is computed on the way, would fill the memory of every worker."""
    n = int(LARGEST**0.5) + 1
    posterior = open_model(process(n), OpenOptions()).condition({"y": np.zeros(n)})
    assert not is_one_call(posterior, PRIOR, states_of(posterior, FEWEST))


def test_many_data_are_taken_singly():
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 1.0)
        pm.Normal("y", mean, 1.0, observed=np.zeros(LARGEST))
    posterior = open_model(model, OpenOptions()).condition({"y": np.zeros(LARGEST)})
    assert not is_one_call(posterior, PRIOR, states_of(posterior))


@pytest.mark.parametrize(("n", "at_once"), [(5, True), (MOST_CALLS + 1, False)])
def test_many_rows_of_a_multivariate_normal_are_taken_singly(n, at_once):
    """For each row of each state PyTensor would call Python, where the compiled density takes all rows in one call."""
    y = default_rng(4).normal(size=(n, 2))
    with pm.Model() as model:
        factor, *_ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0, shape=2))
        pm.MvNormal("y", np.zeros(2), chol=factor, observed=y)
    posterior = open_model(model, OpenOptions()).condition({"y": y})
    states = states_of(posterior)
    assert is_one_call(posterior, PRIOR, states) == at_once
    check(posterior, PRIOR, states)


def test_a_pickled_copy_has_the_same_bits():
    """Workers of another kind build the function themselves."""
    posterior, other = posteriors("crossed")
    states = states_of(posterior)
    copy = cloudpickle.loads(cloudpickle.dumps(posterior))
    expected = together(posterior, PRIOR, states)
    posterior.log_ratio(PRIOR, states)
    other.log_ratio(PRIOR, states)  # the engine, which both share, has other data now
    for found, own in zip(together(copy, PRIOR, states), expected, strict=True):
        np.testing.assert_array_equal(found, own)
    assert is_one_call(copy, PRIOR, states)


def test_a_check_of_bounds_that_is_off_stays_off():
    """``check_bounds=False``: the density beyond the bounds is what the formula gives, or not a number, as singly."""
    with pm.Model(check_bounds=False) as model:
        shape = pm.Normal("shape", 1.0, 1.0)
        pm.Gamma("y", pt.exp(shape), 1.0, observed=[0.3, 2.0])
    posterior = open_model(model, OpenOptions()).condition({"y": np.array([0.3, 2.0])})
    states = states_of(posterior)
    check(posterior, PRIOR, states)
    assert is_one_call(posterior, PRIOR, states)
