"""What the PyMC backend refuses: one row a case, and the message names the variable and the way out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
pytensor = pytest.importorskip("pytensor")

import bread  # noqa: E402
from bread.backends.pymc.model.reading import read_layout, read_observed  # noqa: E402
from bread.backends.pymc.model.refusals import refuse_unsupported  # noqa: E402
from bread.backends.pymc.simulation.simulation import build_simulator  # noqa: E402
from bread.errors import UnsupportedKernelError, UnsupportedModelError  # noqa: E402
from tests.support.pymc_models import MODELS, data  # noqa: E402

pytestmark = pytest.mark.pymc

ordered = pm.distributions.transforms.ordered
Interval = pm.distributions.transforms.Interval


def no_observed() -> None:
    pm.Normal("theta")


def no_free() -> None:
    pm.Normal("y", observed=1.0)


def potential() -> None:
    x = pm.Normal("x")
    pm.Potential("penalty", -(x**2))
    pm.Normal("y", x, observed=1.0)


def flat() -> None:
    pm.Normal("y", pm.Flat("offset"), observed=1.0)


def half_flat() -> None:
    pm.Normal("y", 0, pm.HalfFlat("width"), observed=1.0)


def nested_flat() -> None:
    w = pm.Dirichlet("w", np.ones(2))
    pm.Normal("y", pm.Mixture("blend", w, [pm.Normal.dist(0, 1), pm.Flat.dist()]), observed=1.0)


def custom_prior_without_random() -> None:
    pm.Normal("y", pm.CustomDist("prior", 0.0, logp=lambda value, mu: -((value - mu) ** 2)), observed=1.0)


def custom_likelihood_without_random() -> None:
    mu = pm.Normal("mu")
    pm.CustomDist("y", mu, logp=lambda value, mu: -((value - mu) ** 2), observed=np.ones(3))


def custom_without_density() -> None:
    mu = pm.Normal("mu")
    pm.CustomDist("y", mu, random=lambda mu, rng=None, size=None: rng.normal(mu, size=size), observed=np.ones(3))


def imputed_vectors() -> None:
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=np.array([[1.0, np.nan], [1.0, 2.0]]))


def total_size() -> None:
    pm.Normal("y", pm.Normal("mu"), observed=np.ones(3), total_size=30)


def minibatch() -> None:
    pm.Normal("y", pm.Normal("mu"), observed=pm.Minibatch(np.ones(30), batch_size=3))


def simulator() -> None:
    mu = pm.Normal("mu")
    pm.Simulator("y", lambda rng, mu, size: rng.normal(mu, size=size), mu, observed=np.ones(3))


def prior_on_observed() -> None:
    y = pm.Normal("y", pm.Normal("mu"), observed=1.0)
    pm.Normal("late", y, 1)


def data_as_covariate() -> None:
    y = pm.Data("y_data", np.arange(3.0))
    mu = pm.Normal("mu", y.mean(), 1)
    pm.Normal("y", mu, observed=y)


def data_of_two() -> None:
    shared = pm.Data("shared", np.arange(3.0))
    mu = pm.Normal("mu")
    pm.Normal("y", mu, 1.0, observed=shared)
    pm.Normal("z", mu, 2.0, observed=shared)


def whole_bounds(bound: float = 100) -> None:
    pm.Normal("y", pm.Uniform("x", -bound, bound), 1.0, observed=0.3)


def whole_scale(scale: float = 25) -> None:
    pm.Normal("y", 0.0, pm.HalfStudentT("s", 3, scale), observed=0.3)


def whole_counts(count: float = 100) -> None:
    pm.Bernoulli("y", pm.Beta("p", count, count), observed=[1, 0])


def whole_likelihood(rate: float = 20) -> None:
    pm.ExGaussian("y", pm.Normal("x"), sigma=rate, nu=rate, observed=0.3)


def whole_of_sixteen_bits(rate: float = 200) -> None:
    pm.ExGaussian("y", pm.Normal("x"), sigma=rate, nu=rate, observed=0.3)


def whole_where_a_distance_is_zero(scale: float = 25) -> None:
    def logp(value, scale):
        return -0.5 * value**2 / scale**2

    def random(scale, rng=None, size=None):
        return rng.normal(0.0, scale, size=size)

    pm.Normal("y", pm.CustomDist("x", scale, logp=logp, random=random), 1.0, observed=0.3)


def negative_scale() -> None:
    pm.Normal("y", 0.0, pm.Normal("s", -1.0, 1.0), observed=0.3)


def random_shape() -> None:
    n = pm.Poisson("n", 3)
    pm.Normal("y", pm.Normal("x", shape=n + 1).sum(), observed=1.0)


def random_data_shape() -> None:
    n = pm.Poisson("n", 3, initval=3)
    pm.Normal("y", pm.Normal("mu"), observed=np.ones(3), shape=n)


def outside_support() -> None:
    pm.Exponential("y", pm.HalfNormal("rate"), observed=np.array([1.0, -2.0]))


def bad_initial_value() -> None:
    pm.Normal("y", pm.Normal("cut", 0, 1, shape=3, transform=ordered)[0], observed=1.0)


def wrong_shapes() -> None:
    x = pm.Normal("x", shape=3)
    pm.Normal("y", x, np.ones(3), observed=np.ones(4), shape=4)


def raises_at_start() -> None:
    from pytensor.compile.ops import wrap_py
    from pytensor.tensor import dscalar

    @wrap_py(itypes=[dscalar], otypes=[dscalar])
    def height(x):
        raise RuntimeError("no such height")

    pm.Normal("y", height(pm.Normal("x")), observed=1.0)


def reserved_variable() -> None:
    pm.Normal("y", pm.Normal("chain"), observed=1.0)


def reserved_deterministic() -> None:
    pm.Deterministic("knot", pm.Normal("x"))
    pm.Normal("y", 0, 1, observed=1.0)


def reserved_dimension() -> None:
    pm.modelcontext(None).add_coord("simulation", [0, 1])
    pm.Normal("y", pm.Normal("x"), observed=np.ones(2), dims="simulation")


def shared_generator() -> None:
    rng = pytensor.shared(np.random.default_rng(1))
    model = pm.modelcontext(None)
    a, b = (model.register_rv(pm.Normal.dist(rng=rng), name) for name in "ab")
    pm.Normal("y", a + b, observed=1.0)


CASES: dict[Callable[[], None], tuple[str, ...]] = {
    no_observed: ("no observed variable", "theta", "observed="),
    no_free: ("no free variable",),
    potential: ("pm.Potential 'penalty'", "pm.Truncated"),
    flat: ("'offset'", "improper", "pm.Normal"),
    half_flat: ("'width'", "improper", "pm.HalfNormal"),
    nested_flat: ("'blend'", "improper"),
    custom_prior_without_random: ("'prior'", "without random="),
    custom_likelihood_without_random: ("'y'", "without random="),
    custom_without_density: ("'y'", "log density"),
    imputed_vectors: ("'y'", "partially observed", "Leave incomplete rows out"),
    total_size: ("'y'", "total_size"),
    minibatch: ("'y'", "pm.Minibatch"),
    simulator: ("'y'", "pm.Simulator"),
    prior_on_observed: ("'late'", "observed variable 'y'"),
    data_as_covariate: ("'y'", "'y_data'", "separate pm.Data"),
    data_of_two: ("'y' and 'z'", "'shared'", "of its own"),
    whole_bounds: ("'x' overflows", "whole numbers -100, 100", "Write -100., 100. in place"),
    whole_scale: ("'s' overflows", "Write 3., 25. in place of 3, 25"),
    whole_counts: ("'p' overflows", "Write 100. in place of 100"),
    whole_likelihood: ("'y' overflows", "Write 20. in place of 20"),
    whole_of_sixteen_bits: ("'y' overflows", "Write 200. in place of 200"),
    whole_where_a_distance_is_zero: ("'x' overflows", "Write 25. in place of 25"),
    negative_scale: ("y = -inf", "Parameters of 'y' break its rule 'sigma > 0'", "pm.HalfNormal"),
    random_shape: ("'x'", "random values", "fixed shape"),
    random_data_shape: ("'y'", "random values"),
    outside_support: ("y = -inf", "initial point", "outside the support"),
    bad_initial_value: ("cut = -inf", "initval="),
    wrong_shapes: ("'y'", "log density", "[(4,), (3,)]"),
    raises_at_start: ("initial point", "exception", "no such height"),
    reserved_variable: ("variable named 'chain'", "Rename", "'chain_'"),
    reserved_deterministic: ("variable named 'knot'",),
    reserved_dimension: ("dimension named 'simulation'", "Rename"),
    shared_generator: ("'a' and 'b'", "same random generator"),
}


def build(define: Callable[[], None]) -> pm.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyMC announces imputation
        with pm.Model() as model:
            define()
    return model


@pytest.mark.parametrize("define", CASES, ids=lambda define: define.__name__)
def test_refused_with_the_name_and_the_way_out(define: Callable[[], None]) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        refuse_unsupported(build(define), None)
    for fragment in CASES[define]:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("define", "number"),
    [
        (whole_bounds, 100.0), (whole_scale, 25.0), (whole_counts, 100.0), (whole_likelihood, 20.0),
        (whole_of_sixteen_bits, 200.0), (whole_where_a_distance_is_zero, 25.0), (whole_scale, 2), (whole_bounds, 30),
    ],
)  # fmt: skip
def test_numbers_with_a_point_and_whole_ones_that_fit_are_accepted(define: Any, number: float) -> None:
    refuse_unsupported(build(lambda: define(number)), None)


@pytest.mark.parametrize(
    ("law", "parameter"),
    [
        (lambda s: pm.Normal("y", 0.0, s, observed=0.3), "s"),
        (lambda s: pm.StudentT("y", nu=4.0, sigma=s, observed=0.3), "s"),
        (lambda s: pm.Poisson("y", s, observed=2), "s"), (lambda s: pm.Bernoulli("y", s / 2, observed=1), "s"),
    ],
)  # fmt: skip
def test_data_of_a_parameter_outside_its_domain_blame_its_prior(law: Callable[[Any], Any], parameter: str) -> None:
    model = build(lambda: law(pm.Normal(parameter, 1.0, 1.0)))
    simulator = build_simulator(model, read_layout(model, model.initial_point()), read_observed(model), [])
    with pytest.raises(UnsupportedModelError, match="outside its domain there, or NaN, which the priors allow: give"):
        simulator.simulate(40, fixed=None, seed=np.random.SeedSequence(1))


@pytest.mark.parametrize("name", MODELS)
def test_the_table_of_models_is_accepted(name: str) -> None:
    model = MODELS[name]()
    point = refuse_unsupported(model, None)
    assert set(point) == {value.name for value in model.value_vars}


@pytest.mark.parametrize("kernel", ["nuts", "hmc"])
def test_gradient_kernel_with_discrete_variable(kernel: str) -> None:
    with pytest.raises(UnsupportedKernelError, match="'label' is discrete"):
        refuse_unsupported(MODELS["mixture_with_label"](), kernel)
    refuse_unsupported(MODELS["normal_mean"](), kernel)


def test_the_shape_of_data_may_enter_the_model() -> None:
    with pm.Model() as model:
        y = pm.Data("y_data", data(4))
        pm.Normal("y", pm.Normal("mu"), observed=y, shape=y.shape)
    refuse_unsupported(model, None)


def hopeless_order() -> None:
    pm.Normal("cut", 3.0 * np.arange(4)[::-1], 0.5, transform=ordered, initval=np.arange(4.0))


def foreign_simplex() -> None:
    pm.Normal("share", 0, 1, shape=3, transform=pm.distributions.transforms.simplex, initval=np.ones(3) / 3)


def underflowing_prior() -> None:
    pm.Gamma("precision", 0.001, 0.001)


def narrowed_interval() -> None:
    pm.Uniform("u", 0, 2, transform=Interval(0, 1), default_transform=None, initval=0.5)


def intrinsic_prior() -> None:
    pm.ICAR("spatial", W=np.array([[0, 1], [1, 0]]))


def random_of_wrong_shape() -> None:
    def random(mu, rng=None, size=None):
        return rng.normal(mu, size=(5,))

    pm.CustomDist("z", 0.0, logp=lambda value, mu: -((value - mu) ** 2), random=random, observed=np.ones(3))


@pytest.mark.parametrize(
    ("define", "fragments"),
    [
        (intrinsic_prior, ("'spatial'", "NotImplementedError", "can draw")),
        (random_of_wrong_shape, ("'z'", "(5,)", "(3,)")),
        (hopeless_order, ("'cut'", "0 of 4000 draws", "same prior")),
        (foreign_simplex, ("'share'", "0 of 4000 draws")),
        (underflowing_prior, ("'precision'", "no finite unconstrained value", "can be drawn from")),
        (narrowed_interval, ("'u'", "transform restricts the support")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_drawn_is_refused(define: Callable[[], None], fragments: tuple[str, ...]) -> None:
    with pm.Model() as model:
        define()
        pm.Normal("y", pm.Normal("mu"), 1, observed=1.0)
    layout = read_layout(model, refuse_unsupported(model, None))
    with pytest.raises(UnsupportedModelError) as caught:
        build_simulator(model, layout, read_observed(model), []).pilot()
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize("at_check", ["float32", "float64"])
def test_single_precision_is_refused_when_the_model_is_built_or_checked(at_check: str) -> None:
    with pytensor.config.change_flags(floatX="float32"), pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1, observed=1.0)
    with (
        pytensor.config.change_flags(floatX=at_check),
        pytest.raises(UnsupportedModelError, match="'mu' is in single .*floatX = 'float64' before"),
    ):
        refuse_unsupported(model, None)


def test_one_narrow_variable_or_a_narrow_setting_is_refused() -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu") + pm.Normal("narrow", dtype="float32"), 1, observed=1.0)
    with pytest.raises(UnsupportedModelError, match="variable 'narrow' is in single precision"):
        refuse_unsupported(model, None)
    with pm.Model() as model:  # narrow data and covariates are read exactly
        x = pm.Data("x", np.ones(3, dtype=np.float32))
        pm.Normal("y", pm.Normal("mu") * x * np.ones(3, dtype=np.float32), 1, observed=np.ones(3, dtype=np.float32))
    refuse_unsupported(model, None)
    with (
        pytensor.config.change_flags(floatX="float32"),
        pytest.raises(UnsupportedModelError, match="floatX asks for single precision"),
    ):
        refuse_unsupported(model, None)


def test_a_check_in_single_precision_is_refused_up_front() -> None:
    with pytensor.config.change_flags(floatX="float32"):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), 1, observed=1.0)
        with pytest.raises(UnsupportedModelError, match="double precision only"):
            bread.check(model, progressbar=False)
