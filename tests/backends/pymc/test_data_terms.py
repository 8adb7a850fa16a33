"""What a density computes of data alone: it follows the data, and no gradient computes it again."""

from __future__ import annotations

from collections.abc import Callable

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert
from pytensor.scalar.math import GammaLn
from pytensor.tensor.elemwise import Elemwise

from bread.backends.pymc.density.data_terms import of_data_alone
from bread.backends.pymc.density.density import TemperedDensity
from tests.support.pymc_layout import layout_of

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

COUNTS, OTHER_COUNTS = np.array([0, 3, 11, 2]), np.array([7, 0, 1, 4])
TIMES, OTHER_TIMES = np.array([0.4, 2.0, 1.3, 2.0]), np.array([2.0, 0.1, 2.0, 1.9])


def poisson(y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("x", 1, 2)), observed=y)
    return model


def negative_binomial(y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        pm.NegativeBinomial("y", mu=pm.math.exp(pm.Normal("x", 1, 2)), alpha=pm.Exponential("a", 1), observed=y)
    return model


def binomial(y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        pm.Binomial("y", n=pm.Data("n", [12, 11, 20, 4]), logit_p=pm.Normal("x", 0, 2), observed=y)
    return model


def censored(y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        law = pm.Weibull.dist(pm.LogNormal("shape", 0, 0.5), 1.5, shape=4)
        pm.Censored("y", law, lower=None, upper=2.0, observed=y)
    return model


def n_of(function: pytensor.compile.Function, scalar: type) -> int:
    """Return how many operations of a compiled function compute a scalar function of an array."""
    found = 0
    for node in function.maker.fgraph.toposort():
        if isinstance(node.op, Elemwise):
            inner = getattr(node.op.scalar_op, "fgraph", None)
            found += sum(isinstance(one.op, scalar) for one in inner.toposort()) if inner is not None else 0
            found += isinstance(node.op.scalar_op, scalar)
    return found


@pytest.mark.parametrize(
    ("build", "first", "second"),
    [
        (poisson, COUNTS, OTHER_COUNTS),
        (negative_binomial, COUNTS, OTHER_COUNTS),
        (binomial, np.minimum(COUNTS, 4), np.array([12, 0, 1, 4])),
        (censored, TIMES, OTHER_TIMES),
    ],
)
def test_terms_follow_data_that_are_set(
    build: Callable[[np.ndarray], pm.Model], first: np.ndarray, second: np.ndarray
) -> None:
    model = build(first)
    layout = layout_of(model)
    density = TemperedDensity(model, layout)
    terms, gradient = density.compile_terms(), density.compile_gradient(model.continuous_value_vars, {})
    state = np.linspace(0.3, 0.8, layout.dim)
    for y in (first, second, first):
        density.controls.set_data({"y": y})
        exact = build(y).compile_logp()(layout.unflatten(state))
        assert sum(terms(state)) == pytest.approx(exact, rel=1e-12)
        assert gradient(state)[0] == pytest.approx(exact, rel=1e-12)


def test_logarithms_of_factorials_are_computed_once_a_data_set() -> None:
    function = TemperedDensity(poisson(COUNTS), layout_of(poisson(COUNTS))).compile_terms()
    assert n_of(function, GammaLn) == 0
    model = negative_binomial(COUNTS)  # whose gammaln(y + alpha) and gammaln(alpha) depend on a parameter
    assert n_of(TemperedDensity(model, layout_of(model)).compile_terms(), GammaLn) == 2


def test_a_copy_in_another_process_follows_its_own_data() -> None:
    model = poisson(COUNTS)
    density = TemperedDensity(model, layout_of(model))
    terms, controls = cloudpickle.loads(cloudpickle.dumps((density.compile_terms(), density.controls)))
    controls.set_data({"y": OTHER_COUNTS})
    exact = poisson(OTHER_COUNTS).compile_logp()({"x": np.array(0.4)})
    assert sum(terms(np.array([0.4]))) == pytest.approx(exact, rel=1e-12)


def test_what_is_larger_than_the_data_or_may_fail_stays_in_the_density() -> None:
    data = pytensor.shared(np.array([1.0, 2.0, 3.0]), shape=(3,))
    x = pt.dscalar()
    pairs = x * (data[:, None] * data[None, :]).sum() + x * pt.exp(data[:, None] + data[None, :]).max()
    checked = x * Assert("positive")(pt.log(data), pt.all(data > 0.0)).sum()
    graphs, terms = of_data_alone([pairs, checked], [data])
    assert terms is not None
    function = pytensor.function([x], graphs)
    data.set_value(np.array([1.0, 2.0, 5.0]))
    terms.update()
    expected = 64.0 + np.exp(10.0), np.log(10.0)
    assert function(1.0) == pytest.approx(expected)
    data.set_value(np.array([1.0, -2.0, 5.0]))
    terms.update()  # the check fails where it always did: in the density
    with pytest.raises(AssertionError, match="positive"):
        function(1.0)


def test_a_density_without_terms_of_data_alone_is_left_as_it_is() -> None:
    data, x = pytensor.shared(np.array([1.0, 2.0])), pt.dscalar()
    graph = ((data - x) ** 2).sum()
    assert of_data_alone([graph], [data]) == ([graph], None)
