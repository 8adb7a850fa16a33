"""Laplace given two scales: fits against exact laws, the density itself, what is not found, pilots, a whole check.

Given both spreads all laws of `TwoScales` are normal, so that what `fit_conditional` approximates is known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.random import default_rng

import bread
from bread.backends.base import Kernel
from bread.fitting.conditional.conditional import LARGEST_DIM, fit_conditional, marginal_law
from bread.fitting.conditional.laplace_cloud import FIRST_STEP
from bread.fitting.gaussian.families import FAMILIES, inflation
from bread.fitting.gaussian.joint_diagonal import joint_diagonaliser
from bread.fitting.search import found_references as founds
from bread.fitting.search import searches
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.moving import move_reference
from bread.fitting.search.reference_fit import FitRequest, ReferenceFit, fit_reference
from bread.fitting.search.searches import SHORTER_STEP, conditional, conditional_near, nested, nested_near
from bread.fitting.search.work import FitWork
from bread.paths.conditional import ConditionalReference
from bread.paths.kinds import ReferencePath
from bread.report.compat import read_attributes, read_group
from tests.models.reference import HMCKernel, LinearRegression
from tests.support.conformance import check_end_gradient
from tests.support.two_scales import OTHER, TWO_SCALES, divergence, exact_draws

REAL = TWO_SCALES.observed_data
DATA = {"real": REAL, "other": OTHER}
REQUEST = FitRequest(TWO_SCALES.dim, TWO_SCALES.transformed, 200)
N_DRAWS = 20_000


@cache
def fitted(which, *, off=0.0, widen=1.0):
    """The fit from an exact draw, about the middle of the drivers or so many standard deviations off it."""
    data = DATA[which]
    draws = exact_draws(data)
    mean, covariance = draws[:, :2].mean(axis=0), np.cov(draws[:, :2].T)
    mean = mean + off * np.sqrt(np.diag(covariance))
    return fit_conditional(TWO_SCALES.condition(data), (0, 1), draws[5], mean, widen**2 * covariance)


@pytest.fixture(scope="module")
def found():
    reference, _ = fitted("real")
    assert reference is not None
    return reference


@pytest.fixture(autouse=True, scope="module")
def no_exact_law():
    """Given its scales this model has an exact law, which would be found first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "FEWEST_SCALES", 99)
        yield


@pytest.fixture(scope="module")
def shared(no_exact_law):
    return fit_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0)


# ---- the model of the tests ----------------------------------------------------------------------------------


def test_the_models_exact_answers_agree(found):
    """Gradient by differences; evidence and exact draws by importance weights, 4 standard errors."""
    posterior, path = TWO_SCALES.condition(REAL), ReferencePath(found)
    for state in exact_draws(REAL)[:4]:
        check_end_gradient(posterior, path, state)
    weights = np.exp(posterior.log_ratio(path, found.sample(N_DRAWS, default_rng(3))) - TWO_SCALES.log_evidence(REAL))
    assert weights.mean() == pytest.approx(1.0, abs=4.0 * weights.std() / np.sqrt(N_DRAWS))
    reverse = np.exp(TWO_SCALES.log_evidence(REAL) - posterior.log_ratio(path, exact_draws(REAL)))
    assert reverse.mean() == pytest.approx(1.0, abs=4.0 * reverse.std() / np.sqrt(len(reverse)))


# ---- density -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", DATA)
def test_value_gradient_and_draws_belong_together(which):
    """With T and without; the gradient by differences also far from all knots, where splines are straight."""
    reference, _ = fitted(which)
    n = len(reference.centre)
    assert reference.coefficients.shape[1] == 2 * n + (n * (n - 1) // 2 if which == "real" else 0)
    states = reference.sample(6, default_rng(4))
    states[-1, :2] -= 9.0
    values, gradients = reference.log_density(states), reference.gradient(states)
    for state, value, gradient in zip(states, values, gradients, strict=True):
        one, its_gradient = reference.value_and_gradient(state)
        assert one == value and (its_gradient == gradient).all()
        scale = 1e-6 * np.maximum(1.0, np.abs(state))
        numeric = [
            (reference.value_and_gradient(state + step)[0] - reference.value_and_gradient(state - step)[0]) / (2 * size)
            for step, size in zip(np.diag(scale), scale, strict=True)
        ]
        np.testing.assert_allclose(gradient, numeric, rtol=2e-4, atol=2e-4 * np.abs(gradient).max())
    mean, deviation = reference.moments()
    draws = reference.sample(N_DRAWS, default_rng(6))
    error = draws.std(axis=0) * np.sqrt(1.0 / N_DRAWS + 1.0 / 2000)
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean) / error, 4.5)
    assert (deviation > 0.0).all()


def test_the_density_is_normalised_and_a_wrong_one_is_seen(found):
    """E_q[p / q] = 1 for the density p of another reference, 4 standard errors; half a scale fails."""
    other = FAMILIES["full"](found.sample(2000, default_rng(7)), TWO_SCALES.transformed)
    other = replace(other, components=tuple(replace(one, scale=0.5 * one.scale) for one in other.components))
    draws = found.sample(N_DRAWS, default_rng(8))

    def off(reference):
        ratio = np.exp(other.log_density(draws) - reference.log_density(draws))
        return abs(ratio.mean() - 1.0) / (ratio.std() / np.sqrt(len(ratio)))

    n = len(found.centre)
    broken = found.coefficients.copy()
    broken[-3, n : 2 * n] -= 0.05  # the constant of the log standard deviations
    assert off(found) < 4.0 < off(replace(found, coefficients=broken))


# ---- fits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", DATA)
def test_laws_given_the_scales_are_exact_but_for_their_width(which):
    """Between knots, where the mass is: of 60 draws' laws, in each of 10 coordinates, to the tolerances below."""
    data, (reference, n_gradients) = DATA[which], fitted(which)
    assert 500 < n_gradients < 2000
    u = exact_draws(data)[:60, :2]
    mean, covariance, _ = TWO_SCALES.given(u, np.asarray(data["y"]))
    n, colour = len(reference.centre), np.linalg.inv(reference.matrix)
    values = reference.functions(u)
    mixing = np.zeros((len(u), n, n))
    rows, columns = np.tril_indices(n, -1)
    if values.shape[1] > 2 * n:
        mixing[:, rows, columns] = values[:, 2 * n :]
    root = colour @ np.linalg.inv(mixing + np.eye(n)) * np.exp(values[:, None, n : 2 * n])
    own = root @ np.swapaxes(root, 1, 2) / inflation(n)
    deviation = np.sqrt(np.einsum("mii->mi", covariance))
    off = np.abs(reference.centre + values[:, :n] @ colour.T - mean) / deviation
    assert np.quantile(off, 0.95) < 0.08 and off.max() < 0.25
    wide = np.abs(np.log(np.sqrt(np.einsum("mii->mi", own)) / deviation))
    assert np.quantile(wide, 0.95) < 0.08 and wide.max() < 0.25
    size = deviation[:, :, None] * deviation[:, None, :]
    apart = np.abs(own - covariance) / size
    assert np.quantile(apart, 0.95) < 0.08 and apart.max() < 0.4


@pytest.mark.parametrize("which", DATA)
def test_the_fit_is_near_where_draws_give_none(which):
    """Below 0.3 nats by 4 standard errors; a Gaussian fitted to exact draws is further off by a nat or more."""
    data = DATA[which]
    value, error = divergence(data, fitted(which)[0])
    assert value + 4.0 * error < 0.3
    full = FAMILIES["full"](exact_draws(data), TWO_SCALES.transformed)
    value, error = divergence(data, full)
    assert value - 4.0 * error > 1.3


@pytest.mark.parametrize(("off", "widen"), [(1.5, 1.0), (-2.0, 1.0), (0.0, 3.0), (0.0, 0.3)])
def test_the_fit_finds_its_way_from_elsewhere(off, widen):
    reference, n_gradients = fitted("real", off=off, widen=widen)
    value, error = divergence(REAL, reference)
    assert value + 4.0 * error < 0.4 and n_gradients > fitted("real")[1]


def test_a_climb_finds_scales_that_are_far_off():
    """From 3 standard deviations away, with a width 16 times too small; without the climb (control) it fails."""
    draws = exact_draws(REAL)
    mean, covariance = draws[:, :2].mean(axis=0), np.cov(draws[:, :2].T) / 256.0
    far = mean + 48.0 * np.sqrt(np.diag(covariance)) * np.array([1.0, -1.0])
    posterior = TWO_SCALES.condition(REAL)
    reference, _ = fit_conditional(posterior, (0, 1), draws[5], far, covariance, is_near=False)
    assert reference is not None
    value, error = divergence(REAL, reference)
    assert value + 4.0 * error < 0.4
    lost, _ = fit_conditional(posterior, (0, 1), draws[5], far, covariance, is_near=True)
    assert lost is None or divergence(REAL, lost)[0] > 1.0


def test_no_fit_where_there_is_no_maximum_or_too_many_coordinates():
    posterior = TWO_SCALES.condition(REAL)
    draws = exact_draws(REAL)
    for drivers in ((2, 3), (0, 2)):  # effects, whose scale is then free to vanish
        at = draws[:, list(drivers)]
        reference, n_gradients = fit_conditional(posterior, drivers, draws[0], at.mean(axis=0), np.cov(at.T))
        assert n_gradients > 0 and (reference is None or divergence(REAL, reference)[0] > 1.0)
    assert fit_conditional(posterior, (0,), draws[0], np.zeros(1), np.eye(1)) == (None, 0)
    many = np.zeros(LARGEST_DIM + 1)
    assert fit_conditional(posterior, (0, 1), many, np.zeros(2), np.eye(2)) == (None, 0)


# ---- joint diagonalisation -----------------------------------------------------------------------------------


def test_one_matrix_makes_all_diagonal():
    """Where there is one, it is found, and no rotation: the square root of the mean alone leaves them mixed."""
    rng = default_rng(5)
    mixing = rng.normal(size=(6, 6)) + 2.0 * np.eye(6)
    covariances = np.einsum("ij,kj,lj->kil", mixing, np.exp(rng.normal(size=(9, 6))), mixing)

    def left(matrix):
        made = matrix @ covariances @ matrix.T
        scale = np.sqrt(np.einsum("kii->ki", made))
        return float(np.abs(made / scale[:, :, None] / scale[:, None, :] - np.eye(6)).max())

    assert left(joint_diagonaliser(covariances)) < 1e-3
    values, vectors = np.linalg.eigh(covariances.mean(axis=0))
    assert left((vectors / np.sqrt(values)).T) > 0.2
    assert left(joint_diagonaliser(covariances, np.linalg.inv(mixing))) < 1e-6


# ---- pilots and checks ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pilot_takes_the_conditional_reference(shared, monkeypatch):
    assert shared.family == "conditional" and isinstance(shared.reference, ConditionalReference)
    assert shared.reference.label == "Gaussian given 2 coordinates" and shared.n_chains == 2
    assert set(shared.criterion) == {"conditional"} and shared.criterion["conditional"] < 0.5
    assert shared.fallback is not None
    monkeypatch.setattr(founds, "ENOUGH", 0.0)  # nothing is near enough by itself: all are compared
    again = fit_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0)
    np.testing.assert_array_equal(again.reference.coefficients, shared.reference.coefficients)
    assert min(again.criterion[name] for name in ("diagonal", "full", "heavy")) > 3.0
    assert again.n_evaluations > shared.n_evaluations + 3 * REQUEST.n_selection_draws


@pytest.mark.slow
def test_a_moved_reference_follows_the_data(shared):
    """Below 0.4 nats by 4 standard errors, where the unmoved one is above 2."""
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in shared.settings.items()})
    moved = move_reference(TWO_SCALES.condition(OTHER), shared, kernel, root=0, simulation=1)
    value, error = divergence(OTHER, moved.reference)
    assert value + 4.0 * error < 0.4
    value, error = divergence(OTHER, shared.reference)
    assert value - 4.0 * error > 2.0
    promised = shared.move_gradients(6.0)
    assert promised == shared.n_given_gradients and moved.n_gradients < 3.0 * promised


def test_it_is_found_before_any_chain_runs():
    is_found, n_gradients, _ = finds_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0)
    assert is_found and n_gradients < 20_000


@pytest.mark.slow
def test_a_whole_check_takes_a_law_given_both_scales_and_needs_few_temperatures():
    """Held near the real data's scales, 8 temperatures do; V along the prior path is 5 times as large or more.

    Workers may find the exact law.
    """
    settings = {"n_temperatures": 8, "simulations": 10, "random_seed": 1, "cores": 2, "progressbar": False}
    report = bread.check(TWO_SCALES, path="reference", **settings)
    group = read_group(report, "reference")
    assert group is not None and group.attrs["label"].startswith("Gaussian given 2 coordinates")
    assert read_attributes(report)["path"] == "reference"
    prior = bread.verdict(bread.check(TWO_SCALES, path="prior", **settings))
    verdict = bread.verdict(report)
    assert verdict.status not in ("bug", "mismatch") and verdict.error < 0.2 and prior.error > 5.0 * verdict.error


def test_scales_are_taken_before_what_only_seems_to_drive_others():
    work = FitWork(TWO_SCALES.condition(REAL), TWO_SCALES.transformed, 3, 0)
    draws = exact_draws(REAL)
    found = conditional(work, [7, 1, 0], draws[5], draws)
    assert found is not None and set(found.drivers) == {0, 1}


@pytest.mark.parametrize("dim", [4, 5])
def test_none_is_looked_for_given_half_of_the_coordinates(dim):
    """Drivers must be fewer than what they drive; five coordinates are the control."""
    y = np.array([1.0, -0.3, 2.0, 0.7, 0.1, 0.4])
    model = LinearRegression(y, default_rng(1).normal(size=(6, dim)), noise_sd=0.5, kernel=HMCKernel(5))
    work = FitWork(model.condition(model.observed_data), np.zeros(dim, dtype=bool), 3, 0)
    draws = model.draw_posterior(model.observed_data, 200, default_rng(2))
    law = conditional(work, [0, 1], draws[0], draws)
    assert (law is not None) == (work.n_gradients > 0) == (dim == 5)


def test_a_node_of_large_weight_is_no_law_of_its_own(monkeypatch):
    """A node 4 standard deviations out with 3% of the weight: its density is at most 4 nats above the middle's."""
    rng = default_rng(3)
    nodes = np.concatenate([rng.standard_normal((600, 3)), [[4.0, 0.0, 0.0]]])
    weights = np.append(np.full(600, 0.97 / 600), 0.03)

    def excess():
        law = marginal_law(nodes, weights)
        far, middle = law.log_density(np.array([[4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
        return float(far - middle)

    assert excess() < 4.0
    monkeypatch.setattr("bread.fitting.conditional.conditional.SPREAD", 0.0)
    assert excess() > 7.0, "control"


# ---- where one scale was enough on another data set --------------------------------------------------------------


@pytest.fixture(scope="module")
def given_one():
    """On data whose second scale is well known a law given the first is near: half a nat."""
    work, draws = FitWork(TWO_SCALES.condition(OTHER), TWO_SCALES.transformed, 3, 0), exact_draws(OTHER)
    found = nested(work, [0], draws[5], draws.std(axis=0), 0)
    value, error = divergence(OTHER, found)
    assert value + 4.0 * error < 0.7
    return found


def test_two_scales_are_taken_where_one_is_far_off(given_one):
    """The law given one is found nowhere near there: without others to try, nothing is left."""
    work = FitWork(TWO_SCALES.condition(REAL), TWO_SCALES.transformed, 3, 1)
    found = nested_near(work, given_one, (1, 0), searches.BELIED)
    value, error = divergence(REAL, found)
    assert set(found.drivers) == {0, 1} and value + 4.0 * error < 0.4
    assert nested_near(work, given_one, (), searches.BELIED) is None


def test_one_scale_stays_where_it_is_near(given_one):
    work = FitWork(TWO_SCALES.condition(OTHER), TWO_SCALES.transformed, 3, 1)
    assert nested_near(work, given_one, (1, 0), searches.BELIED).driver == 0 and work.n_gradients < 1000


def broken(monkeypatch, breaks):
    """Let the first fits of a law come to grief, and return what each fit was told of its first step."""
    told = []

    def fit(*arguments, **options):
        law, n_gradients = fit_conditional(*arguments, **options)
        told.append(options.get("first_step"))
        return breaks[len(told) - 1](law) if len(told) <= len(breaks) else law, n_gradients

    monkeypatch.setattr("bread.fitting.search.searches.fit_conditional", fit)
    return told


def nowhere(law):
    return None


def far_off(law):
    """Give it drivers whose draws are far out: above 3 nats."""
    parts = tuple(replace(part, scale=4.0 * part.scale) for part in law.marginal.components)
    return replace(law, marginal=replace(law.marginal, components=parts))


@pytest.mark.parametrize(
    ("breaks", "steps"),
    [
        ([], [FIRST_STEP]),
        ([nowhere], [FIRST_STEP, SHORTER_STEP]),
        ([far_off], [FIRST_STEP, None]),
        ([nowhere, far_off], [FIRST_STEP, SHORTER_STEP, None]),
    ],
)
def test_a_second_try_comes_before_a_fit_to_chains(found, monkeypatch, breaks, steps):
    told = broken(monkeypatch, breaks)
    work = FitWork(TWO_SCALES.condition(OTHER), TWO_SCALES.transformed, 3, 1)
    again = conditional_near(work, found, searches.BELIED)
    value, error = divergence(OTHER, again)
    assert told == steps and value + 4.0 * error < 0.4


@pytest.mark.parametrize("breaks", [[nowhere, nowhere], [far_off, far_off], [far_off, nowhere]])
def test_what_two_tries_do_not_find_is_not_there(found, monkeypatch, breaks):
    """But for a reference that was no nearer to its own data: then the first try is enough."""
    work = FitWork(TWO_SCALES.condition(OTHER), TWO_SCALES.transformed, 3, 1)
    broken(monkeypatch, breaks)
    assert conditional_near(work, found, searches.BELIED) is None
    told = broken(monkeypatch, breaks)
    lenient = conditional_near(work, found, 3000.0)
    assert (lenient is None) == (breaks[0] is nowhere) and len(told) == (2 if lenient is None else 1)


def test_where_nothing_is_found_a_reference_is_fitted_anew(given_one):
    """Moved by a short chain, the Gaussian fitted to draws of other data is above 3 nats."""
    gaussian = FAMILIES["full"](exact_draws(OTHER), TWO_SCALES.transformed)
    posterior = TWO_SCALES.condition(REAL)
    settings = posterior.adapt(
        ReferencePath(gaussian), 1.0, exact_draws(REAL)[5], np.random.SeedSequence(1), 200, previous=None
    ).settings
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in settings.items()})
    shared = ReferenceFit(
        given_one, "nested", {}, exact_draws(OTHER), np.zeros(N_DRAWS), settings, TWO_SCALES.transformed, gaussian, 2
    )
    moved = move_reference(posterior, shared, kernel, root=0, simulation=1)
    value, error = divergence(REAL, moved.reference)
    assert value + 4.0 * error < 0.4
    plain = move_reference(posterior, replace(shared, reference=gaussian, family="full"), kernel, root=0, simulation=1)
    value, error = divergence(REAL, plain.reference)
    assert value - 4.0 * error > 3.0
