"""Modes found by optimisation: all of them, their shapes, and again on another data set."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from bread.backends.base import Evolution, Kernel
from bread.errors import DensityError
from bread.fitting.gaussian.families import INFLATION
from bread.fitting.gaussian.modes import FAR, NOWHERE, descended, fit_modes
from bread.fitting.search import searches
from bread.fitting.search.moving import move_reference
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.fitting.search.selection import select_family
from bread.fitting.search.work import CHECK_DRAWS, FitWork
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import Component, MixtureReference, diagonal
from tests.models.reference import AbsoluteMean, HMCKernel, LinearRegression
from tests.support.conformance import check_end_gradient

NOT_TRANSFORMED = np.zeros(1, dtype=bool)
TWO_MODES = AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMCKernel(5))


def starts(dim, seed=0):
    rng = np.random.default_rng(seed)
    while True:
        yield rng.standard_normal(dim)


def test_both_modes_are_found_with_their_shapes():
    posterior = TWO_MODES.condition(TWO_MODES.observed_data)
    check_end_gradient(posterior, ReferencePath(diagonal(np.zeros(1), np.ones(1))), np.array([0.7]))
    found, n_gradients = fit_modes(posterior, starts(1), NOT_TRANSFORMED)
    assert len(found.components) == 2 and 0 < n_gradients < 1000
    exact = TWO_MODES.draw_posterior(TWO_MODES.observed_data, 20_000, np.random.default_rng(1))[:, 0]
    for component, weight in zip(found.components, found.weights, strict=True):
        side = exact[np.sign(exact) == np.sign(component.mean[0])]
        # 20,000 draws: a share to 0.0035 (4 standard errors 0.014), a mean to 0.01 sd; the tails across 0 are cut off.
        assert weight == pytest.approx(len(side) / len(exact), abs=0.02)
        assert component.mean[0] == pytest.approx(side.mean(), abs=0.05 * side.std())
        assert component.scale[0] == pytest.approx(side.std(), rel=0.05)


def test_a_gaussian_posterior_is_met_exactly():
    x = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.2], [1.0, -0.4]])
    model = LinearRegression(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), x, noise_sd=0.5, kernel=HMCKernel(5))
    posterior = model.condition(model.observed_data)
    found, _ = fit_modes(posterior, starts(2), np.zeros(2, dtype=bool))
    exact = model.draw_posterior(model.observed_data, 50_000, np.random.default_rng(2))
    sample = found.sample(50_000, np.random.default_rng(3))
    (component,) = found.components
    np.testing.assert_allclose(component.mean, exact.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.cov(sample.T), np.cov(exact.T), rtol=0.05)


def correlated_regression(dim):
    """As many correlated coefficients as data: variances along the axes of the posterior differ by thousands."""
    rng = np.random.default_rng(dim)
    return LinearRegression(rng.normal(size=dim), rng.normal(size=(dim, dim)), prior_sd=3.0, kernel=HMCKernel(5))


@pytest.mark.parametrize("dim", [100, pytest.param(200, marks=pytest.mark.slow)])
def test_the_gaussian_at_the_mode_of_many_coordinates(dim):
    """It is the posterior, which is Gaussian, and importance sampling from it meets the exact evidence."""
    model = correlated_regression(dim)
    posterior = model.condition(model.observed_data)
    found = searches.modes(FitWork(posterior, np.zeros(dim, dtype=bool), 0, 0))
    (component,) = found.components
    exact = model.draw_posterior(model.observed_data, 2000, np.random.default_rng(1))
    drawn = found.sample(4000, np.random.default_rng(2))

    def divergence(reference, states):
        ratio = posterior.log_ratio(ReferencePath(reference), np.concatenate([exact, states]))
        return ratio[: len(exact)].mean() - ratio[len(exact) :].mean()

    # The log ratio is constant but for the square of the distance that Newton's steps leave to the mode.
    assert divergence(found, drawn) == pytest.approx(0.0, abs=FAR)
    wide = MixtureReference((replace(component, scale=component.scale * np.sqrt(INFLATION)),), np.ones(1))
    assert divergence(wide, wide.sample(4000, np.random.default_rng(2))) > 1.0  # the control: the usual margin

    truth = marginal_log_density(model)
    ratio = posterior.log_ratio(ReferencePath(found), drawn)
    weights = np.exp(ratio - truth)
    error = weights.std() / np.sqrt(len(weights))
    assert abs(weights.mean() - 1.0) < 4.0 * error + 1e-6 and error < 0.02
    unnormalised = np.exp(0.15) * weights  # the control: a reference of mass e^-0.15
    assert abs(unnormalised.mean() - 1.0) > 6.0 * error


def marginal_log_density(model):
    """The log evidence: y is Gaussian with covariance noise_sd^2 + prior_sd^2 x x'."""
    covariance = model.noise_sd**2 * np.eye(len(model.y)) + model.prior_sd**2 * model.x @ model.x.T
    return multivariate_normal(np.zeros(len(model.y)), covariance).logpdf(model.y)


EDGE, MINIMUM = 1.3, float(np.log(3.0))


def walled(x):
    """exp(x) - 3 x, whose minimum is log 3; beyond the edge there is nothing."""
    if x[0] > EDGE:
        return NOWHERE, np.zeros(1)
    return float(np.exp(x[0]) - 3.0 * x[0]), np.exp(x) - 3.0


@pytest.mark.parametrize("start", [-1.0, -3.0, -20.0, 1.2])
def test_a_descent_goes_on_where_its_line_search_met_no_density(start):
    """SciPy 1.18.1 alone calls the search from the first three converged, with a slope of 0.3 to 2.9."""
    found = descended(walled, np.array([start]), maxfun=150)
    assert found.x[0] == pytest.approx(MINIMUM, abs=1e-4)
    if start < 0.0:
        plain = minimize(walled, [start], jac=True, method="L-BFGS-B")
        assert abs(plain.x[0] - MINIMUM) > 0.09, "SciPy goes on by itself: our guard is needless"


def test_a_descent_from_nowhere_says_so():
    assert descended(walled, np.array([EDGE + 1.0]), maxfun=150).fun >= NOWHERE


def test_one_mode_is_found_once():
    """From where steps of Newton's must go on, two optimisers that ran out of steps arrive at the same mode."""
    precision = np.diag(np.geomspace(1.0, 1e4, 60))

    class Posterior:
        def end_gradient(self, path, state):
            return -0.5 * float(state @ precision @ state), -precision @ state

    found, _ = fit_modes(Posterior(), (30.0 * one for one in starts(60)), np.zeros(60, dtype=bool))
    assert len(found.components) == 1 and not found.n_left_out


@pytest.mark.parametrize("failure", ["flat", "rising", "nan", "raising"])
def test_a_density_without_a_maximum_has_no_modes(failure):
    class Posterior:
        def end_gradient(self, path, state):
            if failure == "raising":
                raise DensityError("no density")
            value = {"flat": 0.0, "rising": float(state.sum()), "nan": np.nan}[failure]
            return value, np.full(len(state), float(failure == "rising"))

    found, n_gradients = fit_modes(Posterior(), starts(2), np.zeros(2, dtype=bool))
    assert found is None and n_gradients > 0


def test_modes_are_found_again_where_a_moved_mixture_loses_one():
    """Both components of a moved mixture may walk into one mode; then half the exact draws lie outside it."""
    request = FitRequest(1, NOT_TRANSFORMED, 200)
    shared = fit_reference(TWO_MODES.condition(TWO_MODES.observed_data), request, root=3, simulation=0)
    assert shared.family == "modes" and len(shared.reference.components) == 2
    data = {"y": np.array([4.1, 3.9, 4.2, 4.0])}
    posterior = TWO_MODES.condition(data)
    exact = TWO_MODES.draw_posterior(data, 2000, np.random.default_rng(4))
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in shared.settings.items()})

    def divergence(fit):
        path = ReferencePath(fit.reference)
        drawn = fit.reference.sample(2000, np.random.default_rng(5))
        return posterior.log_ratio(path, exact).mean() - posterior.log_ratio(path, drawn).mean()

    moved = move_reference(posterior, shared, kernel, root=0, simulation=1)
    assert divergence(moved) < 0.3 < 5.0 < divergence(shared), "unmoved it lies elsewhere"
    again = move_reference(posterior, shared, kernel, root=0, simulation=1)
    np.testing.assert_array_equal(again.reference.components[0].mean, moved.reference.components[0].mean)


@pytest.mark.parametrize(("width", "is_near"), [(1.0, True), (1.1, True), (5.0, False)])
def test_a_gaussian_at_a_mode_is_checked_against_the_density(width, is_near):
    """A law as wide passes; one five times as wide, of which the mode shows a part, does not."""
    narrow, target = (diagonal(np.zeros(3), np.full(3, scale)) for scale in (1.0, width))

    class Posterior:
        def log_ratio(self, path, states):
            return target.log_density(states) - path.reference.log_density(states)

    work = FitWork(Posterior(), np.zeros(3, dtype=bool), 0, 0)
    assert (work.own_divergence(narrow) < searches.CHECKED) is is_near
    assert work.n_evaluations == CHECK_DRAWS and work.n_gradients == 0


@pytest.mark.parametrize(("n_left_out", "n_found"), [(1, 2), (0, 1)])
def test_a_mode_that_was_one_of_several_is_not_looked_for_near_by_alone(n_left_out, n_found):
    """Near one of two equal modes an optimiser finds that one, whose own draws never see the other."""
    posterior = TWO_MODES.condition(TWO_MODES.observed_data)
    both, _ = fit_modes(posterior, starts(1), NOT_TRANSFORMED)
    like = MixtureReference(both.components[:1], np.ones(1), n_left_out=n_left_out)
    kernel = Kernel(np.array([1.0]), {"step_size": np.array([0.3]), "inverse_metric": np.ones((1, 1))})
    found = searches.modes_again(FitWork(posterior, NOT_TRANSFORMED, 0, 1), kernel, like)
    assert len(found.components) == n_found


def test_modes_that_are_left_out_are_counted():
    """Of two modes one holds e^-12 of the mass."""
    parts = multivariate_normal(np.full(2, 4.0), 0.1), multivariate_normal(np.full(2, -4.0), 0.1)

    class Posterior:
        def end_gradient(self, path, state):
            terms = np.array([parts[0].logpdf(state), parts[1].logpdf(state) - 12.0])
            slopes = np.array([(4.0 - state) / 0.1, (-4.0 - state) / 0.1])
            return float(np.logaddexp(*terms)), np.exp(terms - np.logaddexp(*terms)) @ slopes

    found, _ = fit_modes(Posterior(), (5.0 * one for one in starts(2)), np.zeros(2, dtype=bool))
    assert len(found.components) == 1 and found.n_left_out == 1
    np.testing.assert_allclose(found.components[0].mean, 4.0, rtol=1e-3)


def test_where_the_mode_near_by_is_far_off_all_are_looked_for():
    """An optimiser ends near by in a broad hill; the other mode, which prior draws find, holds all of the mass."""
    narrow = multivariate_normal(np.zeros(2), 1.0)

    class Posterior:
        def end_gradient(self, path, state):
            hill = -0.05 * float(((state - 8.0) ** 4).sum()) - 14.0
            terms = np.array([narrow.logpdf(state), hill])
            slopes = np.array([-state, -0.2 * (state - 8.0) ** 3])
            return float(np.logaddexp(*terms)), np.exp(terms - np.logaddexp(*terms)) @ slopes

        def log_ratio(self, path, states):
            hill = -0.05 * ((states - 8.0) ** 4).sum(axis=1) - 14.0
            return np.logaddexp(narrow.logpdf(states), hill) - path.reference.log_density(states)

        def draw_base(self, path, seeds):
            return np.array([np.random.default_rng(seed).standard_normal(2) for seed in seeds])

    like = MixtureReference(diagonal(np.full(2, 8.3), np.ones(2)).components, np.ones(1))
    kernel = Kernel(np.array([1.0]), {"step_size": np.array([0.3]), "inverse_metric": np.ones((1, 1))})
    found = searches.modes_again(FitWork(Posterior(), np.zeros(2, dtype=bool), 0, 1), kernel, like)
    (component,) = found.components
    np.testing.assert_allclose(component.mean, 0.0, atol=1e-3)


def test_where_there_is_no_mode_the_fit_to_draws_is_moved(monkeypatch):
    x = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.2], [1.0, -0.4]])
    model = LinearRegression(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), x, noise_sd=0.5, kernel=HMCKernel(5))
    posterior = model.condition(model.observed_data)
    shared = fit_reference(posterior, FitRequest(2, np.zeros(2, dtype=bool), 200), root=3, simulation=0)
    assert shared.family == "modes" and shared.fallback is not None
    assert shared.n_chains == 2, "half of the chains are enough for a Gaussian posterior"
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in shared.settings.items()})
    at_mode = move_reference(posterior, shared, kernel, root=0, simulation=1)
    monkeypatch.setattr(searches, "fit_modes", lambda *_, **__: (None, 7))
    moved = move_reference(posterior, shared, kernel, root=0, simulation=1)
    assert at_mode.reference.label == shared.reference.label != moved.reference.label == shared.fallback.label
    assert 0 < at_mode.n_gradients < 100 < moved.n_gradients


@pytest.mark.parametrize("fails", [False, True])
def test_where_modes_say_too_little_a_mixture_is_fitted_to_chains(fails):
    """Two narrow modes on the flanks of a wide third law that holds half of the mass."""
    parts = [
        Component(np.full(2, centre), np.full(2, scale)) for centre, scale in ((-4.0, 0.1), (4.0, 0.1), (0.0, 2.0))
    ]
    target = MixtureReference(tuple(parts), np.array([0.25, 0.25, 0.5]))
    modes = MixtureReference(tuple(parts[:2]), np.array([0.5, 0.5]), "modes")

    class Posterior:
        def log_ratio(self, path, states):
            return target.log_density(states) - path.reference.log_density(states)

        def evolve(self, path, kernel, beta, state, keep, seed):
            if fails:
                raise DensityError("the chain cannot run")
            return Evolution(target.sample(len(keep), np.random.default_rng(seed)), 7, 0)

    work = FitWork(Posterior(), np.zeros(2, dtype=bool), 0, 0)
    found = searches.explored(work, modes, None)
    if fails:
        assert found is modes and work.n_gradients == 0
        return
    assert work.n_gradients == 14

    def divergence(reference):
        exact, drawn = (law.sample(4000, np.random.default_rng(9)) for law in (target, reference))
        path = ReferencePath(reference)
        return Posterior().log_ratio(path, exact).mean() - Posterior().log_ratio(path, drawn).mean()

    assert divergence(found) < 2.0 < 100.0 < divergence(modes)


@pytest.mark.parametrize(("is_shared", "family"), [(True, "modes"), (False, "mixture")])
def test_a_mixture_that_will_be_moved_must_be_far_better_than_modes_found_again(monkeypatch, is_shared, family):
    nats = {"modes": 8.8, "mixture": 3.5}
    modes = MixtureReference(
        tuple(Component(np.array([side]), np.ones(1)) for side in (-1.0, 1.0)), np.array([0.4, 0.6]), "two"
    )

    def criterion(work, candidate, *rest):
        return nats["modes"] if candidate is modes else nats["mixture"] if len(candidate.components) > 1 else 50.0

    monkeypatch.setattr(FitWork, "criterion", criterion)
    rng = np.random.default_rng(1)
    chains = [np.where(rng.random((400, 1)) < 0.4, -1.0, 1.0) + 0.1 * rng.normal(size=(400, 1)) for _ in range(4)]
    request = FitRequest(1, np.zeros(1, dtype=bool), 100, is_shared=is_shared)
    work = FitWork(None, request.transformed, 0, 0)
    assert select_family(work, request, chains, {"modes": modes})[0] == family
