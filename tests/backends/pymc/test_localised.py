"""PyMC models whose hyperparameters have a fitted law in place of their prior, also of a flat one."""

from __future__ import annotations

from typing import Any

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian
from tests.support.conformance import (
    check_bit_equal_batching,
    check_contract_shapes,
    check_forward_reverse_identities,
    check_frozen,
    check_simulate_is_exact,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.pymc_conjugate import SHORT

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

Y = np.array([1.5, -0.2, 0.6])
ERROR = np.array([1.0, 1.5, 0.8])
LAW = gaussian(np.array([0.4, -0.2]), np.array([[0.3, 0.1], [0.1, 0.2]]))


def groups(mu: Any = None, tau: Any = None) -> pm.Model:
    """Groups with a normal law; mu and tau have flat priors unless others are given."""
    with pm.Model() as model:
        mu = pm.Flat("mu") if mu is None else mu()
        tau = pm.HalfFlat("tau") if tau is None else tau()
        theta = pm.Normal("theta", mu, tau, shape=3)
        pm.Normal("y", theta, ERROR, observed=Y)
    return model


def open_localised(model: pm.Model, **options: Any) -> Any:
    return open_model(model, OpenOptions(simulate_from="localised", **options))


@pytest.fixture(scope="module")
def flat() -> Any:
    return open_localised(groups()).localise(("mu", "tau"), LAW)


def log_prior(states: np.ndarray) -> np.ndarray:
    own = stats.multivariate_normal([0.4, -0.2], [[0.3, 0.1], [0.1, 0.2]]).logpdf(states[..., :2])
    return own + stats.norm.logpdf(states[..., 2:], states[..., :1], np.exp(states[..., 1:2])).sum(axis=-1)


STATES = np.array([[0.3, -0.5, 0.1, 0.9, -1.0], [1.2, 0.4, 2.0, -0.3, 0.5]])


@pytest.mark.parametrize("proper", [False, True], ids=["flat", "proper"])
def test_the_law_takes_the_place_of_prior_and_jacobian(proper: bool, flat: Any) -> None:
    if proper:  # nothing of the priors is left
        model = groups(lambda: pm.Normal("mu", 3, 0.1), lambda: pm.HalfCauchy("tau", 5))
        opened = open_localised(model).localise(["tau", "mu"], LAW)
    else:
        opened = flat
    engine = opened.condition({"y": Y}).engine
    engine.set_path(PriorPath())
    for state in STATES:
        prior, likelihood = engine.terms(state)
        assert prior == pytest.approx(float(log_prior(state)), rel=1e-8)
        assert likelihood == pytest.approx(stats.norm.logpdf(Y, state[2:], ERROR).sum(), rel=1e-8)


@pytest.mark.slow
def test_mixtures_with_heavy_tails_and_low_rank_are_compiled_as_they_are() -> None:
    heavy = Component(np.array([0.0, 0.2]), np.array([1.0, 0.5]), degrees=np.array([4.0, np.inf]))
    direction = np.array([[0.6], [0.8]])
    long = Component(np.array([1.0, 0.0]), np.array([0.5, 0.7]), directions=direction, stretch=np.array([2.0]))
    law = MixtureReference((heavy, long), np.array([0.3, 0.7]))
    model = open_localised(groups()).localise(("mu", "tau"), law)
    rest = log_prior(STATES) - LAW.log_density(STATES[:, :2])
    model.engine.set_path(PriorPath())
    for state, other in zip(STATES, rest, strict=True):
        assert model.engine.terms(state)[0] == pytest.approx(float(law.log_density(state[:2]) + other), rel=1e-8)
        value, gradient = law.value_and_gradient(state[:2])
        assert value == pytest.approx(float(law.log_density(state[:2])), rel=1e-12)
        np.testing.assert_allclose(gradient, law.gradient(state[:2]), rtol=1e-10)


def test_simulation_is_exact(flat: Any) -> None:
    """Moments of 400 draws, 4 standard errors: the law, and the rest given it."""
    check_simulate_is_exact(flat)
    draws = flat.simulate(400, fixed=None, seed=SeedSequence(3))
    eta = draws.states[:, :2]
    z = [eta[:, 0] - 0.4, (eta[:, 0] - 0.4) * (eta[:, 1] + 0.2) - 0.1, (eta[:, 1] + 0.2) ** 2 - 0.2]
    standard = (draws.states[:, 2:] - eta[:, :1]) / np.exp(eta[:, 1:])
    noise = (draws.data["y"] - draws.states[:, 2:]) / ERROR
    z += [standard.mean(axis=1), (standard**2).mean(axis=1) - 1, noise.mean(axis=1), (noise**2).mean(axis=1) - 1]
    for values in z:
        assert abs(values.mean()) < 4 * values.std(ddof=1) / 20
    np.testing.assert_allclose(draws.parameters["tau"], np.exp(eta[:, 1]), rtol=1e-12)
    np.testing.assert_array_equal(draws.states[:3], flat.condition({"y": Y}).draw_base(
        PriorPath(), SeedSequence(3).spawn(3)))  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="'mu' without 'tau'"):
        flat.simulate(1, fixed={"mu": 0.0}, seed=SeedSequence(1))


def test_contract(flat: Any) -> None:
    for path in (PriorPath(), ReferencePath(diagonal(np.full(5, 0.3), np.full(5, 0.8)))):
        kernel = tuned_kernel(flat, n_steps=40, path=path)
        check_contract_shapes(flat, kernel, path=path)
        check_bit_equal_batching(flat, kernel, path=path)
    check_frozen(flat, kernel, path=path)


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(PriorPath(), id="prior"),
        pytest.param(
            ReferencePath(diagonal(np.array([0.3, 0.6]), np.array([0.6, 0.9]))), id="reference", marks=pytest.mark.slow
        ),
    ],
)
def test_evidence_of_the_new_law(path: Path) -> None:
    """A flat mean with the law N(0.4, 0.5) is conjugate: E[w_fwd] = Z, E[1 / w_rev] = 1 / Z, 4 standard errors."""
    with pm.Model() as model:
        mu = pm.Flat("mu")
        theta = pm.Normal("theta", mu, 0.7)
        pm.Normal("y", theta, 1.2, observed=Y)
    opened = open_localised(model).localise(("mu",), diagonal(np.array([0.4]), np.array([0.5])))

    def exact(data: Any) -> float:
        covariance = 0.5**2 + 0.7**2 + 1.2**2 * np.eye(3)
        return float(stats.multivariate_normal(np.full(3, 0.4), covariance).logpdf(data["y"]))

    kernel = tuned_kernel(opened, path=path)
    check_forward_reverse_identities(opened, kernel, SHORT, log_evidence=exact, n_simulations=150, path=path)
    check_weighted_ranks(opened, kernel, SHORT, n_simulations=150, path=path)
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(
            opened, kernel, SHORT, log_evidence=lambda data: exact(data) - 0.3, n_simulations=150, path=path
        )


def test_flat_priors_are_refused_otherwise() -> None:
    with pytest.raises(UnsupportedModelError, match="'mu' has or depends on an improper prior.*'localised'"):
        open_model(groups(), OpenOptions())
    with pm.Model() as model:
        theta = pm.Normal("theta", pm.Normal("mu"), 1)
        pm.Normal("y", theta, pm.HalfFlat("width"), observed=Y)
    with pytest.raises(UnsupportedModelError, match="'width' has or depends on an improper prior"):
        open_localised(model)  # the only hyperparameter by default is mu
    both = open_localised(model, hyperparameters=("mu", "width"))
    assert both.info.paths == ("prior", "reference")
    fitted = {"mu": np.array([0.2, 1.0]), "theta": np.array([0.5, 0.1]), "width": np.array([0.5, 2.0])}
    expected = np.column_stack([fitted["mu"], fitted["theta"], np.log(fitted["width"])])
    states = both.unconstrain(fitted)  # before the law exists: it is fitted to these
    assert sorted(states[0]) == pytest.approx(sorted(expected[0]), rel=1e-12)
    np.testing.assert_allclose(states[:, both.info.layout.positions["width"][0]], expected[:, 2], rtol=1e-12)
    assert both.localise(("mu", "width"), LAW).simulate(2, fixed=None, seed=SeedSequence(1)).states.shape == (2, 3)


def test_what_cannot_be_localised() -> None:
    model = groups(lambda: pm.Normal("mu", pm.Normal("centre"), 1), lambda: pm.HalfNormal("tau"))
    opened = open_model(model, OpenOptions())
    with pytest.raises(UnsupportedModelError, match="prior of 'mu', which depends on 'centre'"):
        opened.localise(("mu", "tau"), LAW)
    with pytest.raises(UnsupportedModelError, match="prior of 'mu', which depends on 'centre'"):
        open_localised(model, hyperparameters=("mu", "tau"))
    with pytest.raises(InvalidArgumentError, match="'sigma', which is no free variable"):
        opened.localise(("sigma",), LAW)
    with pytest.raises(InvalidArgumentError, match="1 unconstrained coordinates; it has 2"):
        opened.localise(("centre",), LAW)
    with pytest.raises(InvalidArgumentError, match="pickled copy"):
        cloudpickle.loads(cloudpickle.dumps(opened)).localise(("centre",), LAW)
    with pm.Model() as discrete:
        pm.Normal("y", pm.Bernoulli("label", 0.3), 1, observed=1.0)
    with pytest.raises(UnsupportedModelError, match="'label' by a density, but it is discrete"):
        open_localised(discrete)
    with pytest.raises(UnsupportedModelError, match=r"simulator= replaces"):
        open_model(groups(), OpenOptions(simulate_from="localised", simulator=lambda rng, data: ({}, {})))


@pytest.mark.slow
def test_other_kernels_and_restricting_transforms() -> None:
    """Slice sampling sees the law; a rejected draw takes its hyperparameters with it, as the joint density says."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 10)
        cut = pm.Normal("cut", [0.0, mu], 1, transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])
        pm.Normal("y", cut[1] - cut[0], 1, observed=1.0)
    opened = open_localised(model, kernel=pm.Slice).localise(("mu",), diagonal(np.zeros(1), np.ones(1)))
    draws = opened.simulate(400, fixed=None, seed=SeedSequence(2)).parameters
    # Given cut[0] < cut[1]: mu + N(0, 2) > 0, so that E[mu] = phi(0) * 2 / sqrt(3) = 0.4607. 4 standard errors.
    assert abs(draws["mu"].mean() - 2 * stats.norm.pdf(0) / np.sqrt(3)) < 4 * draws["mu"].std() / 20
    check_contract_shapes(opened, tuned_kernel(opened, n_steps=30))
    assert any("acceptance" in note for note in opened.info.identity.notes)
