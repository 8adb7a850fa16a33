"""Data annealing of PyMC models: the first observations alone, exact evidence of every prefix, refusals."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath
from bread.report.compat import require_group
from bread.seeds import Purpose, seed_sequence
from tests.support.prefix_evidence import check_prefixes
from tests.support.pymc_conjugate import X, normal_mean, regression

Y = np.array([1.0, -0.3, 2.0, 0.7, 0.1])
EXACT = [stats.multivariate_normal(np.zeros(n), X[:n] @ X[:n].T + 2.25 * np.eye(n)).logpdf(Y[:n]) for n in range(1, 6)]


def opened(model):
    return open_model(model, OpenOptions())


def test_first_observations_alone():
    model = opened(regression())
    assert model.n_observations() == 5
    states = np.array([[0.3, -1.0], [2.0, 0.5]])
    for n in (1, 3, 5):
        posterior = model.condition_first({"y": Y}, n)
        wanted = [stats.norm.logpdf(Y[:n], X[:n] @ state, 1.5).sum() for state in states]
        assert posterior.log_ratio(PriorPath(), states) == pytest.approx(np.array(wanted), abs=1e-6)
        value, gradient = posterior.density_gradient(1.0, states)
        residual = [Y[:n] - X[:n] @ state for state in states]
        wanted_gradient = [X[:n].T @ r / 2.25 - state for r, state in zip(residual, states, strict=True)]
        assert gradient == pytest.approx(np.array(wanted_gradient), abs=1e-6)
        assert value == pytest.approx(wanted + stats.norm.logpdf(states).sum(axis=1), abs=1e-6)


def test_all_observations_but_one():
    model = opened(regression())
    state = np.array([[0.3, -1.0]])
    terms = stats.norm.logpdf(Y, X @ state[0], 1.5)
    whole = model.condition({"y": Y}).log_ratio(PriorPath(), state)
    for index in (0, 2, 4):
        posterior = model.condition_without({"y": Y}, index)
        assert whole - posterior.log_ratio(PriorPath(), state) == pytest.approx(terms[index], abs=1e-6)
        _, gradient = posterior.density_gradient(1.0, state)
        rest = np.delete(np.arange(5), index)
        wanted = X[rest].T @ (Y[rest] - X[rest] @ state[0]) / 2.25 - state[0]
        assert gradient[0] == pytest.approx(wanted, abs=1e-6)
    with pytest.raises(InvalidArgumentError, match="received 5"):
        model.condition_without({"y": Y}, 5)


@pytest.mark.slow
def test_evidence_of_every_prefix():
    """Both estimators within 0.4 nats of the exact evidence, on every prefix: 5 standard deviations or more."""
    check_prefixes(opened(regression()), X, Y, EXACT, np.random.default_rng(5))
    # Control: one observation more is another evidence by far.
    assert abs(EXACT[4] - EXACT[3]) > 1.0


@pytest.mark.slow
def test_the_verb():
    report = bread.lab.data_annealing(
        normal_mean(), simulations=5, runs=3, particles=24, level=0.999, random_seed=2, progressbar=False
    )
    found = require_group(report, "data_annealing")
    model = opened(normal_mean())
    data = model.simulate(5, fixed=None, seed=seed_sequence(2, Purpose.DATA_ANNEALING, 0, 0, 0)).data["y"]
    law = stats.multivariate_normal(np.full(3, 0.5), 2.25 * np.ones((3, 3)) + 1.44 * np.eye(3))
    exact = law.logpdf(data)
    assert (found["lower"].values < exact).all() and (exact < found["upper"].values).all()
    assert np.abs(found["log_evidence"].values - exact).max() < 0.8
    assert found.attrs["n_failed"] == 0 and (found["forward_gradients"] > 0).all()


def several():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1, observed=np.zeros(3))
        pm.Normal("z", mu, 1, observed=np.zeros(3))
    return model


def multivariate():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.MvNormal("y", mu * np.ones(2), np.eye(2), observed=np.zeros((3, 2)))
    return model


def autoregressive():
    with pm.Model() as model:
        rho = pm.Uniform("rho", -0.9, 0.9)
        pm.AR("y", rho, sigma=1.0, init_dist=pm.Normal.dist(0, 1), observed=np.array([0.1, 0.4, -0.2, 0.3]))
    return model


def walk():
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma")
        pm.GaussianRandomWalk("y", sigma=sigma, init_dist=pm.Normal.dist(0, 1), observed=np.array([0.1, 0.4, -0.2]))
    return model


def entangled():
    """A density with a term for each element, each of which sees the element before."""

    def logp(value, mu):
        before = pt.concatenate([pt.zeros(1), value[:-1]])
        return -0.5 * (value - mu - 0.5 * before) ** 2 - 0.5 * np.log(2 * np.pi)

    def random(mu, rng=None, size=None):
        steps, values = rng.normal(size=size), []
        for step in np.ravel(steps):
            values.append(mu + step + (0.5 * values[-1] if values else 0.0))
        return np.reshape(values, np.shape(steps))

    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.CustomDist("y", mu, logp=logp, random=random, observed=np.array([0.3, -0.4, 0.9, 0.2]))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("make", [several, multivariate, autoregressive, walk], ids=lambda make: make.__name__)
def test_dependence_is_refused(make):
    with pytest.raises(UnsupportedModelError, match="do not split.*(one observed variable|dimensions)"):
        opened(make()).n_observations()


def entangled_out_of_reach():
    """The same of data that no prior draw makes possible: all terms are -inf there, and show nothing."""

    def logp(value, mu):
        before = pt.concatenate([pt.zeros(1), value[:-1]])
        return pt.switch(pt.abs(value - mu) < 4, -pt.log(8.0) + 0.01 * (before - before.mean()), -np.inf)

    with pm.Model() as model:
        mu = pm.Normal("mu", initval=30.0)
        pm.CustomDist(
            "y", mu, logp=logp, random=lambda mu, rng=None, size=None: rng.uniform(mu - 4, mu + 4, size),
            observed=np.array([30.3, 29.6, 30.9, 30.2]),
        )  # fmt: skip
    return model


@pytest.mark.parametrize("make", [entangled, entangled_out_of_reach])
def test_terms_that_see_other_elements_are_refused(make):
    with pytest.raises(UnsupportedModelError, match="changes with the value of others"):
        opened(make()).n_observations()
