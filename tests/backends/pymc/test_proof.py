"""The density on other data than the real ones: right where constants equal the data, and proved at opening."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from bread.backends.pymc.density.compiling import interpret_function
from bread.backends.pymc.density.density import split_density
from bread.backends.pymc.model.reading import read_layout, read_observed
from bread.backends.pymc.proof import prove
from bread.backends.pymc.simulation.simulation import build_simulator
from bread.errors import UnsupportedModelError

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

THREE = np.array([1.0, 2.0, 3.0])


def two_scalars(y=0.1, z=0.1):
    x = pm.Normal("x", 0.0, 1.0)
    pm.Normal("y", x, 1.0, observed=y)
    pm.Normal("z", x, 2.0, observed=z)
    return lambda x, y, z: stats.norm.logpdf(y, x, 1.0) + stats.norm.logpdf(z, x, 2.0)


def two_arrays(y=THREE, z=THREE):
    return two_scalars(y, z)


def own_scale(y=THREE):
    x = pm.Normal("x", 0.0, 1.0)
    pm.Normal("y", x, THREE, observed=y)
    return lambda x, y: stats.norm.logpdf(y, x, THREE)


def own_covariate(y=THREE):
    x = pm.Normal("x", 0.0, 1.0)
    pm.Normal("y", x * THREE, 1.0, observed=y)
    return lambda x, y: stats.norm.logpdf(y, x * THREE, 1.0)


def own_trials(y=(5, 7)):
    x = pm.Normal("x", 0.0, 1.0)
    pm.Binomial("y", np.array([5, 7]), pm.math.sigmoid(x), observed=np.array(y))
    return lambda x, y: stats.binom.logpmf(y, [5, 7], 1.0 / (1.0 + np.exp(-x)))


def own_trial_count(y=5):
    x = pm.Normal("x", 0.0, 1.0)
    pm.Binomial("y", 5, pm.math.sigmoid(x), observed=y)
    return lambda x, y: stats.binom.logpmf(y, 5, 1.0 / (1.0 + np.exp(-x)))


def constant_of_a_custom_density(y=0.5):
    x = pm.Normal("x", 0.0, 1.0)
    half = pt.constant(0.5)
    pm.CustomDist("y", x, logp=lambda value, x: -((value - x) ** 2) * half, random=draws_around, observed=y)
    return lambda x, y: -((y - x) ** 2) * 0.5


def draws_around(x, rng=None, size=None):
    return rng.normal(x, 1.0, size=size)


def truncated(y=0.5):
    x = pm.Normal("x", 0.0, 1.0)
    pm.Truncated("y", pm.Normal.dist(x, 1.0), lower=0.5, observed=y)
    return lambda x, y: stats.norm.logpdf(y, x, 1.0) - stats.norm.logsf(0.5, x, 1.0)


def censored(y=0.5):
    x = pm.Normal("x", 0.0, 1.0)
    pm.Censored("y", pm.Normal.dist(x, 1.0), lower=0.5, upper=None, observed=y)
    return lambda x, y: stats.norm.logpdf(y, x, 1.0)


def data_as_covariate_of_another(y=THREE):
    shared = pm.Data("shared", THREE)
    x = pm.Normal("x", 0.0, 1.0)
    pm.Normal("y", x + shared, 1.0, observed=y)
    pm.Normal("z", x, 1.0, observed=shared * 2.0)
    return lambda x, y, z: stats.norm.logpdf(y, x + THREE, 1.0) + stats.norm.logpdf(z, x, 1.0)


def scale_of_the_prior(y=0.1):
    x = pm.Normal("x", 0.0, 0.1)
    pm.Normal("y", x, 1.0, observed=y)
    return lambda x, y: stats.norm.logpdf(y, x, 1.0)


CASES = [
    two_scalars, two_arrays, own_scale, own_covariate, own_trials, own_trial_count, constant_of_a_custom_density,
    truncated, censored, data_as_covariate_of_another, scale_of_the_prior,
]  # fmt: skip
OTHER = {"y": 1.7, "z": -0.4}


@pytest.mark.parametrize("build", CASES)
def test_data_are_set_and_constants_that_equal_them_are_not(build):
    with pm.Model() as model:
        exact = build()
    log_prior, log_likelihood, shared = split_density(model)
    is_whole = shared["y"].type.dtype.startswith("int")
    other = {name: one.get_value() * 0 + (2 if is_whole else OTHER[name]) for name, one in shared.items()}
    for name, one in shared.items():
        one.set_value(other[name])
    prior, likelihood = interpret_function(model.value_vars, [log_prior, log_likelihood])(np.array(0.3))
    scale = 0.1 if build is scale_of_the_prior else 1.0
    assert prior == pytest.approx(stats.norm.logpdf(0.3, 0.0, scale), abs=1e-7)  # PyMC rounds log(2 pi) to 1e-9
    assert likelihood == pytest.approx(np.sum(exact(0.3, **other)), abs=1e-7)  # PyMC rounds log(2 pi) to 1e-9


class Engine:
    """A density of the tests' own in place of a compiled one."""

    def __init__(self, terms):
        self._terms, self.controls, self.data = terms, self, {}

    def set_data(self, data):
        self.data = data

    def terms(self, state):
        return self._terms(state[0], **self.data)


def proved(build, terms):
    with pm.Model() as model:
        exact = build()
    layout = read_layout(model, model.initial_point())
    engine = Engine(lambda x, **data: terms(stats.norm.logpdf(x), np.sum(exact(x, **data)), x, data))
    prove(model, build_simulator(model, layout, read_observed(model), []), engine)
    return engine


@pytest.mark.parametrize("build", [one for one in CASES if one is not scale_of_the_prior])
def test_the_proof_takes_an_exact_density_and_sets_the_real_data_again(build):
    engine = proved(build, lambda prior, likelihood, x, data: (prior, likelihood))
    with pm.Model() as model:
        build()
    assert np.array_equal(engine.data["y"], read_observed(model)["y"])


WRONG = {
    "the scale is the data": lambda prior, _, x, data: (prior, np.sum(stats.norm.logpdf(data["y"], x, data["y"]))),
    "the data stay": lambda prior, likelihood, x, data: (prior, np.sum(stats.norm.logpdf(THREE, x, THREE))),
    "the prior has the data": lambda prior, likelihood, x, data: (prior + data["y"][0], likelihood),
    "a constant": lambda prior, likelihood, x, data: (prior, likelihood + 1e-4),
    "no density": lambda prior, likelihood, x, data: (prior, -np.inf),
    "no number": lambda prior, likelihood, x, data: (np.nan, likelihood),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_another_density_is_refused(wrong):
    with pytest.raises(UnsupportedModelError, match="not the model's: on simulated data .* Please report the model"):
        proved(own_scale, WRONG[wrong])


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_no_finite_density_proves_nothing(value):
    def build():
        x = pm.Normal("x", 0.0, 1.0)
        pm.CustomDist("y", x, logp=positive, random=negative_draws, observed=1.0)

    def positive(y, x):
        return pt.switch(y > 0, -((y - x) ** 2), value)

    def negative_draws(x, rng=None, size=None):
        return -np.abs(rng.normal(size=size))

    with pytest.raises(UnsupportedModelError, match="'y' have no finite log density in PyMC: .* correct random= or"):
        proved(lambda: build() or (lambda x, y: value), lambda prior, likelihood, x, data: (prior, value))
