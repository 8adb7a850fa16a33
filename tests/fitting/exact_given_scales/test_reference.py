"""Exact Gaussian laws given scales: read off gradients, and refused where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng

from bread.backends.base import Kernel
from bread.fitting.exact_given_scales import reference as precision
from bread.fitting.exact_given_scales.reference import find_structure, fit_precision
from bread.fitting.exact_given_scales.separable_functions import grid_sums
from bread.fitting.gaussian.families import FAMILIES
from bread.fitting.importance.product import fit_product
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.found_families import PRECISION
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.moving import move_reference
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.fitting.search.searches import by_precision
from bread.fitting.search.work import FitWork
from bread.paths.kinds import ReferencePath
from bread.paths.precision import PrecisionReference
from tests.support.two_scales import OTHER, TWO_SCALES, divergence, exact_draws

REAL = TWO_SCALES.observed_data
REQUEST = FitRequest(TWO_SCALES.dim, TWO_SCALES.transformed, 200)


def work_on(data, root=3):
    return FitWork(TWO_SCALES.condition(data), TWO_SCALES.transformed, root, 0)


def fitted(data, root=3):
    work = work_on(data, root)
    return fit_precision(work, many_prior_draws(work))


@pytest.fixture(scope="module")
def shared():
    return fit_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0)


@pytest.mark.parametrize("data", [REAL, OTHER], ids=["real", "other"])
def test_the_law_given_scales_is_the_exact_one(data):
    """Mean and covariance at scales far and near, to a millionth; the structure takes few gradients."""
    work = work_on(data)
    found = find_structure(work, many_prior_draws(work))
    assert list(found.drivers) == [0, 1]
    n, u = len(found.others), default_rng(1).uniform(-3.0, 3.0, (20, 2))
    assert work.n_gradients <= 2 * TWO_SCALES.dim + 1 + (1 + 2 * 2 + precision.CHECKS) * (n + 1) + 3 * precision.CHECKS
    lower = found.precision.at(u, n * n).reshape(-1, n, n)
    full = lower + np.tril(lower, -1).swapaxes(1, 2)
    mean, covariance, _ = TWO_SCALES.given(u, data["y"])
    np.testing.assert_allclose(np.linalg.inv(full), covariance, rtol=1e-6, atol=1e-9)
    solved = np.linalg.solve(full, found.linear.at(u, n)[..., None])[..., 0]
    np.testing.assert_allclose(solved, mean, rtol=1e-6, atol=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize("root", [1, 2])
@pytest.mark.parametrize("data", [REAL, OTHER], ids=["real", "other"])
def test_the_fit_is_near_where_no_gaussian_law_is(data, root):
    """By exact draws, 4 standard errors."""
    value, error = divergence(data, fitted(data, root))
    assert value + 4.0 * error < 0.2
    gaussian = FAMILIES["full"](exact_draws(data), TWO_SCALES.transformed)
    value, error = divergence(data, gaussian)
    assert value - 4.0 * error > 0.5, "control"


@pytest.mark.statistical
def test_tails_of_scales_are_reached_on_other_data():
    """Of 12 data sets, no exact draw of 300 is more than 3 nats above the evidence; a narrower law's is the control."""
    simulated = TWO_SCALES.simulate(12, fixed=None, seed=np.random.SeedSequence(4))
    worst, of_narrow = [], []
    for index in range(12):
        data = {name: values[index] for name, values in simulated.data.items()}
        law, draws = fitted(data), exact_draws(data)[:300]
        narrow = replace(law, marginal=replace(law.marginal, scales=0.5 * law.marginal.scales))
        for one, off in ((law, worst), (narrow, of_narrow)):
            ratio = TWO_SCALES.condition(data).log_ratio(ReferencePath(one), draws) - TWO_SCALES.log_evidence(data)
            off.append(ratio.max())
    assert max(worst) < 3.0 < max(of_narrow)


def test_a_look_and_a_fit_find_it_and_other_data_too(shared):
    look = finds_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0)
    assert look.is_found and set(look.found.references) == {PRECISION}
    assert shared.family == PRECISION and shared.criterion[PRECISION] < 0.3
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in shared.settings.items()})
    moved = move_reference(TWO_SCALES.condition(OTHER), shared, kernel, root=3, simulation=1)
    assert isinstance(moved.reference, PrecisionReference)
    value, error = divergence(OTHER, moved.reference)
    assert value + 4.0 * error < 0.2


# ---- what has no such law ------------------------------------------------------------------------------------


class Density:
    """A log density of coordinates, of which the last two are scales, by its gradient."""

    def __init__(self, gradient):
        self.of = gradient

    def end_gradient(self, path, state):
        return 0.0, self.of(np.asarray(state, dtype=float))


def regression(state, *, cubic=0.0, together=0.0, rate=None, offset=0.0):
    """Four effects with one scale, five measurements with another; terms that are not Gaussian, or not exponential."""
    y, (u, v) = state[:4], state[4:]
    design = np.cos(np.arange(20.0)).reshape(5, 4)
    away = np.sin(np.arange(5.0)) + offset - design @ y
    of_effects = np.exp(-2.0 * u) if rate is None else rate(u)
    across = design.T @ away * np.exp(-2.0 * v) - of_effects * y - cubic * y**2
    across[:3] += together * np.array([y[1] * y[2], y[0] * y[2], y[0] * y[1]])
    along = np.array([y @ y * np.exp(-2.0 * u) - 4.0 - u, away @ away * np.exp(-2.0 * v) - 5.0 - v])
    return np.concatenate([across, along])


def structure_of(gradient):
    work = FitWork(Density(gradient), np.arange(6) >= 4, 1, 0)
    return find_structure(work, default_rng(1).normal(size=(400, 6)))


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_regression_with_two_scales_has_one(offset):
    found = structure_of(lambda state: regression(state, offset=offset))
    assert list(found.drivers) == [4, 5]
    assert set(np.unique(found.precision.functions.exponents)) == {-2.0, 0.0}


@pytest.mark.parametrize(
    "change",
    [
        {"cubic": 1e-3},
        {"together": 1e-3},
        {"rate": lambda u: 1.0 / (1.0 + 9.0 * u**2)},
        {"rate": lambda u: 1.0 + 1e-3 * abs(u)},
        {"rate": lambda u: np.exp(-2.0 * u) * (1.0 + 1e-3 * np.tanh(30.0 * u))},
        {"rate": lambda u: 1.5 + np.sin(40.0 * u)},
    ],
    ids=["cubic", "three together", "rational", "kink", "step", "wave"],
)
def test_what_is_not_quite_so_is_not_taken_for_it(change):
    """A thousandth of another term; three coordinates that are linear each, and not together; what is not smooth."""
    found = structure_of(lambda state: regression(state, **change))
    assert found is None or not {0, 1, 2, 3} <= set(found.others)


@pytest.mark.parametrize(
    "rate",
    [
        lambda u: np.exp(-2.0 * u) + 1e-3 * np.exp(3.0 * u),
        lambda u: np.exp(-2.0 * u) * (1.0 + 1e-3 * np.tanh(u)),
        lambda u: np.log1p(np.exp(u)),
        lambda u: 1.0 / (1.0 - 0.9 * np.tanh(u) ** 2),
    ],
    ids=["two exponentials", "nearly exponential", "softplus", "autoregression"],
)
def test_other_functions_of_a_coordinate_are_told_apart(rate):
    """To a hundred-thousandth, between the coordinate's bounds; what is taken for another is the control."""
    found = structure_of(lambda state: regression(state, rate=rate))
    assert list(found.drivers) == [4, 5]
    u = default_rng(2).uniform(-2.5, 2.5, (20, 2))
    design = np.cos(np.arange(20.0)).reshape(5, 4)
    matrix = found.precision.at(u, 16).reshape(-1, 4, 4)
    for of, (of_effects, v) in zip(matrix, u, strict=True):
        exact = np.exp(-2.0 * v) * design.T @ design + rate(of_effects) * np.eye(4)
        assert np.abs(of - np.tril(exact)).max() < 1e-4 * np.abs(exact).max()
        exact *= 1.001
        assert np.abs(of - np.tril(exact)).max() > 1e-4 * np.abs(of).max(), "control"


# ---- correlated effects, and other data ----------------------------------------------------------------------


def loadings(u):
    """Intercepts and slopes of two groups, non-centred: what five measurements of each are multiplied by."""
    x = np.array([-1.0, -0.3, 0.2, 0.9, 1.5])
    first, second = np.exp(u[0]) + u[1] * x, np.exp(u[2]) * x
    return np.kron(np.eye(2), np.column_stack([first, second]))


def correlated(state, y, *, off=1.0):
    """The gradient of such a density by the effects, and by differences along the others, which nobody asks for."""
    z, u = state[:4], state[4:]
    design = off * loadings(u)
    return np.concatenate([design.T @ (y - design @ z) * np.exp(-2.0 * u[3]) - z, -(u**3) - 1.0])


def correlated_work(y, off=1.0):
    return FitWork(Density(lambda state: correlated(state, y, off=off)), np.arange(8) >= 4, 1, 0)


Y = np.sin(np.arange(10.0))
DRAWS = default_rng(1).normal(size=(400, 8))


def largest_error(found, y, off=1.0):
    """Of precision matrix and linear coefficients at 20 places, relative to the largest of each."""
    worst = 0.0
    for u in default_rng(3).uniform(-2.0, 2.0, (20, 4)):
        design = off * loadings(u)
        matrix, linear = design.T @ design * np.exp(-2.0 * u[3]) + np.eye(4), design.T @ y * np.exp(-2.0 * u[3])
        off_matrix = np.abs(found.precision.at(u[None], 16).reshape(4, 4) - np.tril(matrix)).max() / matrix.max()
        off_linear = np.abs(found.linear.at(u[None], 4)[0] - linear).max() / np.abs(linear).max()
        worst = max(worst, off_matrix, off_linear)
    return worst


def test_a_factor_of_a_covariance_is_a_polynomial():
    """Exact for correlated effects: products of exponentials and of the element off the diagonal."""
    found = find_structure(correlated_work(Y), DRAWS)
    assert list(found.drivers) == [4, 5, 6, 7] and not found.precision.functions.is_held.any()
    assert largest_error(found, Y) < 1e-6
    assert largest_error(found, 1.001 * Y) > 1e-4, "control"


def test_a_grid_of_many_coordinates_is_left_before_it_is_evaluated():
    """Two functions of each of 20 coordinates that meet in one number: a million nodes."""
    asked = []

    def numbers(u):
        asked.append(u)
        return np.array([np.exp(u).sum() ** 2])

    for dim, is_found in ((3, True), (20, False)):
        asked.clear()
        bounds = -np.ones(dim), np.ones(dim)
        found = grid_sums(numbers, 0.1 * np.arange(dim) / dim, bounds, lambda rows: np.abs(rows).max(axis=0), 300)
        assert (found is not None) == is_found and len(asked) <= 300
        if found is not None:
            at = default_rng(4).normal(size=(5, dim))
            np.testing.assert_allclose(found.at(at, 1)[:, 0], np.exp(at).sum(axis=1) ** 2, rtol=1e-6)


@pytest.mark.parametrize("off", [1.0, 1.001], ids=["the same matrix", "another"])
def test_other_data_have_the_same_matrix_or_one_of_their_own(off):
    """A matrix that is off by a thousandth is not taken over."""
    first = find_structure(correlated_work(Y), DRAWS)
    marginal = fit_product(DRAWS[:, 4:])
    like = PrecisionReference((4, 5, 6, 7), marginal, first.precision, first.linear, 4)
    work, alone = correlated_work(np.cos(Y), off), correlated_work(np.cos(Y), off)
    found, anew = find_structure(work, DRAWS, like), find_structure(alone, DRAWS)
    assert largest_error(found, np.cos(Y), off) < 1e-6 and largest_error(anew, np.cos(Y), off) < 1e-6
    if off == 1.0:
        assert found.precision is first.precision and work.n_gradients < 0.5 * alone.n_gradients
    else:
        assert found.precision is not first.precision and largest_error(first, np.cos(Y), off) > 1e-4


def test_a_density_that_is_zero_or_missing_somewhere_has_none():
    assert structure_of(lambda state: np.full(6, np.nan)) is None
    assert structure_of(lambda state: regression(state) if state[5] < 1.0 else np.full(6, np.nan)) is None


def test_one_scale_is_left_to_nested_laws(monkeypatch):
    work = work_on(REAL)
    draws = many_prior_draws(work)
    assert by_precision(work, draws) is not None
    monkeypatch.setattr("bread.fitting.search.searches.FEWEST_SCALES", 3)
    assert by_precision(work, draws) is None


def test_too_many_others_or_scales_are_left_out(monkeypatch):
    work = work_on(REAL)
    draws = many_prior_draws(work)
    for name, most in (("MOST_OTHERS", TWO_SCALES.dim - 3), ("MOST_DRIVERS", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(precision, name, most)
            assert find_structure(work, draws) is None
