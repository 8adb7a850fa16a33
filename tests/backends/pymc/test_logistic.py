"""Binary outcomes by one softplus each: the same values as PyMC's, and gradients that are right far out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.pytensorf import rewrite_pregrad
from pytensor.graph.traversal import io_toposort
from pytensor.scalar.math import Sigmoid, Softplus

from bread.backends.pymc.density.density import TemperedDensity
from bread.backends.pymc.density.pytensor_fixes.logistic import with_logistic_terms
from tests.support.pymc_layout import layout_of

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

OUTCOMES = np.array([0, 1, 1, 0])
FAR = np.array([40.0, -40.0, 800.0, -800.0])


def logits(x: pt.TensorVariable) -> None:
    pm.Bernoulli("y", logit_p=x, observed=OUTCOMES)


def probabilities(x: pt.TensorVariable) -> None:
    pm.Bernoulli("y", p=pm.math.invlogit(x), observed=OUTCOMES)


def named(x: pt.TensorVariable) -> None:
    pm.Bernoulli("y", p=pm.Deterministic("p", pm.math.sigmoid(x)), observed=OUTCOMES)


def in_rows(x: pt.TensorVariable) -> None:
    pm.Bernoulli("y", logit_p=x.reshape((2, 2)), observed=OUTCOMES.reshape(2, 2))


def one_for_all(x: pt.TensorVariable) -> None:
    pm.Bernoulli("y", logit_p=x[0], observed=OUTCOMES)


Build = Callable[[pt.TensorVariable], None]
BUILDS: list[Build] = [logits, probabilities, named, in_rows, one_for_all]


def model_of(build: Build) -> pm.Model:
    with pm.Model() as model:
        build(pm.Normal("x", 0.0, 50.0, shape=4))
    return model


def truth(build: Build, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return log likelihood and gradient, in closed form."""
    one = build is one_for_all
    z = np.where(OUTCOMES == 1, -1.0, 1.0) * (np.full(4, x[0]) if one else x)
    slope = np.where(OUTCOMES == 1, 1.0, -1.0) * np.exp(-np.logaddexp(0.0, -z))
    return float(-np.logaddexp(0.0, z).sum()), np.append(slope.sum(), np.zeros(3)) if one else slope


def functions(operations: tuple[type, ...], graphs: list[pt.TensorVariable]) -> int:
    """Return how many operations there are."""
    return sum(isinstance(getattr(node.op, "scalar_op", None), operations) for node in io_toposort([], graphs))


@pytest.mark.parametrize("build", BUILDS)
def test_value_and_gradient_far_out(build):
    model = model_of(build)
    density = TemperedDensity(model, layout_of(model))
    gradient = density.compile_gradient(model.value_vars, {})
    for x in (np.array([0.3, -1.2, 2.0, 0.9]), FAR, -FAR):
        value, slope = gradient(x)
        ratio = gradient.finish(x)
        expected, expected_slope = truth(build, x)
        assert ratio == pytest.approx(expected, rel=1e-13)
        assert value - ratio == pytest.approx(-0.5 * (x @ x) / 2500 - 4 * np.log(50 * np.sqrt(2 * np.pi)), rel=1e-7)
        np.testing.assert_allclose(slope + x / 2500, expected_slope, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("build", [logits, in_rows, one_for_all])
def test_values_are_those_of_the_model_bit_by_bit(build):
    model = model_of(build)
    layout = layout_of(model)
    terms = TemperedDensity(model, layout).compile_terms()
    own = model.compile_logp(vars=model.observed_RVs)
    rng = np.random.default_rng(1)
    for scale in (1.0, 10.0, 100.0):
        state = scale * rng.normal(size=4)
        assert float(terms(state)[1]) == float(own(layout.unflatten(state)))


@pytest.mark.parametrize("build", BUILDS)
def test_one_softplus_and_no_sigmoid(build):
    model = model_of(build)
    before = rewrite_pregrad(model.logp(vars=model.observed_RVs))
    (after,) = with_logistic_terms([before])
    assert functions((Softplus,), [after]) == 1
    assert functions((Sigmoid,), [after]) <= (build is one_for_all)  # PyMC 5 checks a single number
    assert functions((Sigmoid,), [before]) == 1  # the graph that was given is as it was


def test_what_is_no_number_has_no_density():
    model = model_of(logits)
    terms = TemperedDensity(model, layout_of(model)).compile_terms()
    assert np.isfinite(terms(np.zeros(4))[1])
    assert terms(np.array([0.0, np.nan, 0.0, 0.0]))[1] == -np.inf


def test_outcomes_that_are_neither_have_no_density():
    model = model_of(logits)
    density = TemperedDensity(model, layout_of(model))
    terms = density.compile_terms()
    assert np.isfinite(terms(np.ones(4))[1])
    density.controls.set_data({"y": np.array([0, 1, 2, 0])})
    assert terms(np.ones(4))[1] == -np.inf


def test_the_logarithm_of_the_other_share_alone():
    """As in a zero-inflated law, whose share of zeros is given a logit."""
    x = pt.vector("x")
    (term,) = with_logistic_terms([rewrite_pregrad(pt.log1p(-pt.sigmoid(x)).sum())])
    at = np.array([-800.0, -1.0, 2.0, 40.0, 800.0])
    value, slope = pytensor.function([x], [term, pytensor.grad(term, x)])(at)
    assert float(value) == pytest.approx(-np.logaddexp(0.0, at).sum(), rel=1e-13)
    np.testing.assert_allclose(slope, -np.exp(-np.logaddexp(0.0, -at)), rtol=1e-12, atol=1e-300)


X, Z, LIMIT = pt.vector("x"), pt.vector("z"), pt.scalar("limit")
CONDITION = pt.lvector("c")
LEFT_ALONE = {
    "other logits": pt.switch(CONDITION, pt.log(pt.sigmoid(X)), pt.log1p(-pt.sigmoid(Z))),
    "the same twice": pt.switch(CONDITION, pt.log(pt.sigmoid(X)), pt.log(pt.sigmoid(X))),
    "the other way round": pt.switch(CONDITION, pt.log1p(-pt.sigmoid(X)), pt.log(pt.sigmoid(X))),
    "twice": pt.log1p(-2 * pt.sigmoid(X)),
    "plus": pt.log1p(pt.sigmoid(X)),
    "at least a half": pt.ge(pt.sigmoid(X), 0.5),
    "at most a half": pt.le(pt.sigmoid(X), 0.5),
    "at least 1": pt.ge(pt.sigmoid(X), 1.0),
    "at most 0": pt.le(pt.sigmoid(X), 0.0),
    "at most a limit": pt.le(pt.sigmoid(X), LIMIT),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_other_terms_keep_their_values(name):
    """Of all patterns that are nearly those of binary outcomes: a rule that took them would be wrong."""
    term = LEFT_ALONE[name]
    before = rewrite_pregrad(term)
    (after,) = with_logistic_terms([before])
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        function = pytensor.function([X, Z, LIMIT, CONDITION], [before, after], on_unused_input="ignore")
    x, z = np.array([-3.0, -0.1, 0.0, 0.2, 5.0, np.inf]), np.array([1.0, -2.0, 3.0, 0.5, -0.7, 4.0])
    with np.errstate(all="ignore"):
        one, other = function(x, z, 0.3, np.array([0, 1, 0, 1, 1, 0]))
    np.testing.assert_allclose(np.asarray(other, float), np.asarray(one, float), rtol=1e-12)
    assert np.ptp(np.nan_to_num(np.asarray(one, float), neginf=-9.0)) > 0 or name in ("at least 1", "at most 0")


def test_the_gradient_far_out_needs_it():
    """The control: without it the gradient of outcome 0 is 0 / 0, or PyMC has mended it."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 50.0, shape=4)
        pm.Bernoulli("y", logit_p=x, observed=OUTCOMES)
    (term,) = [rewrite_pregrad(model.logp(vars=model.observed_RVs))]
    value, found = model.value_vars[0], []
    for graph in (term, *with_logistic_terms([term])):
        function = pytensor.function([value], pytensor.grad(graph, value), mode="FAST_RUN")
        found.append(function(np.full(4, 40.0)))
    expected = truth(logits, np.full(4, 40.0))[1]
    np.testing.assert_allclose(found[1], expected, rtol=1e-12)
    assert np.isnan(found[0][OUTCOMES == 0]).all() or np.allclose(found[0], expected)
