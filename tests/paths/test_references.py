"""Reference densities: values against SciPy, gradients against differences, draws against densities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from bread.errors import InvalidArgumentError
from bread.paths.mixture import Component, MixtureReference, Reference, diagonal, gaussian
from bread.paths.precision import PrecisionReference
from bread.paths.product import ProductReference
from bread.paths.sums import Functions, Sums, exponentials
from bread.paths.user import UserReference, as_reference

DIM = 3
MEAN = np.array([0.5, -1.0, 2.0])
SCALE = np.array([0.7, 1.5, 0.4])
COVARIANCE = np.array([[1.0, 0.3, -0.2], [0.3, 2.0, 0.5], [-0.2, 0.5, 0.6]])
DIRECTIONS = np.linalg.qr(np.array([[1.0, 0.2], [0.5, -1.0], [-0.3, 0.4]]))[0]
STRETCH = np.array([2.5, 0.4])
DEGREES = np.array([4.0, np.inf, 7.0])


def low_rank_covariance():
    scaled = np.eye(DIM) + (DIRECTIONS * (STRETCH**2 - 1.0)) @ DIRECTIONS.T
    return SCALE[:, None] * scaled * SCALE


def single(**fields):
    return MixtureReference((Component(MEAN, SCALE, **fields),), np.ones(1))


def mixture():
    parts = (
        Component(MEAN, SCALE),
        gaussian(-MEAN, COVARIANCE).components[0],
        Component(np.zeros(DIM), SCALE, degrees=DEGREES),
    )
    return MixtureReference(parts, np.array([0.5, 0.3, 0.2]))


LAWS = ProductReference(
    MEAN[:2],
    np.array([[1.2, 0.0], [-0.5, 0.8]]),
    np.array([[0.3, 0.7], [0.6, 0.4]]),
    np.array([[-1.5, 0.4], [0.2, 1.0]]),
    np.array([[0.3, 0.8], [0.5, 1.1]]),
)


def independent_mixtures():
    third = [np.append(part, [row], axis=0) for part, row in ((LAWS.weights, [1.0, 0.0]), (LAWS.means, [0.3, 9.0]))]
    matrix = np.array([[1.2, 0.0, 0.3], [-0.5, 0.8, 0.0], [0.0, 0.4, 1.0]])
    return ProductReference(MEAN, matrix, *third, np.append(LAWS.scales, [[0.7, 1.0]], axis=0))


def given_polynomials():
    """Coordinate 1 is Gaussian; its precision 2 + 0.3 f + 0.5 T_3((u_1 - 0.1) / 2), which is held, its linear
    coefficient 0.7 f, where f is exp(u_0) T_2((u_0 - 0.2) / 1.5).
    """
    functions = Functions(
        np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.array([[2, 0], [0, 3], [0, 0]]),
        np.array([0.2, 0.1]), np.array([1.5, 2.0]), np.array([False, True]),
    )  # fmt: skip
    precision = Sums(np.zeros(3, int), np.array([0.3, 0.5, 2.0]), np.arange(3), functions)
    linear = Sums(np.zeros(1, int), np.array([0.7]), np.zeros(1, int), functions)
    return PrecisionReference((0, 2), replace(LAWS, centre=np.array([0.0, -0.5])), precision, linear, 1)


def given_precision():
    """Coordinate 1 is Gaussian, its precision 0.5 + 2 exp(2 u_0 - u_1), its linear coefficient -exp(u_1)."""
    precision = exponentials(np.zeros(2, int), np.array([2.0, 0.5]), np.array([[2.0, -1.0], [0.0, 0.0]]))
    linear = exponentials(np.zeros(1, int), np.array([-1.0]), np.array([[0.0, 1.0]]))
    return PrecisionReference((0, 2), replace(LAWS, centre=np.array([0.0, -0.5])), precision, linear, 1)


REFERENCES = {
    "independent mixtures": independent_mixtures(),
    "by precision": given_precision(),
    "by polynomials": given_polynomials(),
    "diagonal": diagonal(MEAN, SCALE),
    "full": gaussian(MEAN, COVARIANCE),
    "low_rank": single(directions=DIRECTIONS, stretch=STRETCH),
    "t": single(degrees=DEGREES),
    "full_t": single(matrix=gaussian(MEAN, COVARIANCE).components[0].matrix, degrees=np.full(DIM, 9.0)),
    "mixture": mixture(),
}


def independent_t(states):
    z = (states - MEAN) / SCALE
    parts = [stats.t.logpdf(z[..., 0], 4.0), stats.norm.logpdf(z[..., 1]), stats.t.logpdf(z[..., 2], 7.0)]
    return sum(parts) - np.log(SCALE).sum()


def of_mixture(states):
    centred_t = independent_t(states + MEAN)
    parts = [
        0.5 * stats.multivariate_normal(MEAN, np.diag(SCALE**2)).pdf(states),
        0.3 * stats.multivariate_normal(-MEAN, COVARIANCE).pdf(states),
        0.2 * np.exp(centred_t),
    ]
    return np.log(sum(parts))


def of_independent_mixtures(states):
    law = REFERENCES["independent mixtures"]
    z = (states - law.centre) @ law.matrix.T
    parts = [
        law.weights[:, k] * stats.norm.pdf(z, law.means[:, k], law.scales[:, k]) for k in range(law.weights.shape[1])
    ]
    return np.log(sum(parts)).sum(axis=-1) + np.log(abs(np.linalg.det(law.matrix)))


def of_given_polynomials(states):
    law = REFERENCES["by polynomials"].marginal
    u, y = states[..., [0, 2]], states[..., 1]
    first = np.exp(u[..., 0]) * (2.0 * ((u[..., 0] - 0.2) / 1.5) ** 2 - 1.0)
    precision = 2.0 + 0.3 * first + 0.5 * np.cos(3.0 * np.arccos(np.clip((u[..., 1] - 0.1) / 2.0, -1.0, 1.0)))
    return law.log_density(u) + stats.norm.logpdf(y, 0.7 * first / precision, precision**-0.5)


def of_given_precision(states):
    law = REFERENCES["by precision"].marginal
    u, y = states[..., [0, 2]], states[..., 1]
    precision = 0.5 + 2.0 * np.exp(2.0 * u[..., 0] - u[..., 1])
    own = stats.norm.logpdf(y, -np.exp(u[..., 1]) / precision, precision**-0.5)
    return law.log_density(u) + own


EXACT = {
    "independent mixtures": of_independent_mixtures,
    "by precision": of_given_precision,
    "by polynomials": of_given_polynomials,
    "diagonal": stats.multivariate_normal(MEAN, np.diag(SCALE**2)).logpdf,
    "full": stats.multivariate_normal(MEAN, COVARIANCE).logpdf,
    "low_rank": stats.multivariate_normal(MEAN, low_rank_covariance()).logpdf,
    "t": independent_t,
    "mixture": of_mixture,
}


def points(n=50):
    return 2.0 * default_rng(1).standard_normal((n, DIM))


@pytest.mark.parametrize("name", sorted(EXACT))
def test_density_is_that_of_scipy(name):
    np.testing.assert_allclose(REFERENCES[name].log_density(points()), EXACT[name](points()), rtol=1e-10)


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_gradient_is_that_of_the_density(name):
    states, step = points(), 1e-6
    differences = np.empty(states.shape)
    for index in range(DIM):
        shift = step * np.eye(DIM)[index]
        up, down = REFERENCES[name].log_density(states + shift), REFERENCES[name].log_density(states - shift)
        differences[:, index] = (up - down) / (2.0 * step)
    np.testing.assert_allclose(REFERENCES[name].gradient(states), differences, rtol=1e-5, atol=1e-6)


WIDE = stats.t(3.0, scale=2.0)


def check_normalised(log_density):
    """Importance sampling from a wide t in each coordinate, 4 standard errors of 100 000 draws."""
    draws = WIDE.rvs(size=(100_000, DIM), random_state=default_rng(2))
    ratios = np.exp(log_density(draws) - WIDE.logpdf(draws).sum(axis=1))
    error = ratios.std() / np.sqrt(len(ratios))
    assert error < 0.02
    assert abs(ratios.mean() - 1.0) < 4.0 * error, f"the density integrates to {ratios.mean():.3f}"


def check_draws(draws, log_density):
    """Means of bounded functions, from draws and from weighted draws of a wide t: 4.5 standard errors of both."""
    others = WIDE.rvs(size=(200_000, DIM), random_state=default_rng(3))
    weights = np.exp(log_density(others) - WIDE.logpdf(others).sum(axis=1))
    for scale in (0.3, 1.0, 3.0):
        for function in (np.tanh, np.cos):
            values, weighted = function(draws / scale), function(others / scale)
            pairs = [(values[:, i], weighted[:, i]) for i in range(DIM)]
            pairs += [(values[:, 0] * values[:, 1], weighted[:, 0] * weighted[:, 1])]
            for own, other in pairs:
                error = np.hypot(own.std() / np.sqrt(len(own)), (other * weights).std() / np.sqrt(len(other)))
                difference = own.mean() - (other * weights).mean()
                assert abs(difference) < 4.5 * error, f"draws do not follow the density: {difference:.3f}"


@pytest.mark.statistical
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_density_integrates_to_one(name):
    check_normalised(REFERENCES[name].log_density)


@pytest.mark.statistical
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_draws_follow_the_density(name):
    check_draws(REFERENCES[name].sample(40_000, default_rng(4)), REFERENCES[name].log_density)


@pytest.mark.statistical
def test_checks_see_a_wrong_normaliser_and_wrong_draws():
    full = REFERENCES["full"]
    with pytest.raises(AssertionError, match="integrates to"):
        check_normalised(lambda states: full.log_density(states) + 0.1)
    with pytest.raises(AssertionError, match="do not follow"):
        check_draws(gaussian(MEAN, 1.1 * COVARIANCE).sample(40_000, default_rng(4)), full.log_density)


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_rows_are_bit_equal_for_any_number_of_rows(name):
    reference, states = REFERENCES[name], points(7)
    whole, gradient = reference.log_density(states), reference.gradient(states)
    for row, state in enumerate(states):
        for one in (state, state[None], state[None, None]):
            assert (reference.log_density(one) == whole[row]).all()
            assert (reference.gradient(one) == gradient[row]).all()
            assert reference.gradient(one).shape == one.shape and reference.log_density(one).shape == one.shape[:-1]
    assert isinstance(reference, Reference)


def test_many_coordinates_are_multiplied_row_by_row():
    dim, rng = 40, default_rng(4)
    factor = rng.standard_normal((dim, dim)) / np.sqrt(dim) + np.eye(dim)
    reference = gaussian(np.zeros(dim), factor @ factor.T)
    states = rng.standard_normal((5, dim))
    exact = stats.multivariate_normal(np.zeros(dim), factor @ factor.T)
    np.testing.assert_allclose(reference.log_density(states), exact.logpdf(states), rtol=1e-8)
    np.testing.assert_allclose(
        reference.gradient(states), -np.linalg.solve(factor @ factor.T, states.T).T, rtol=1e-6, atol=1e-8
    )
    assert (reference.log_density(states[2:3]) == reference.log_density(states)[2]).all()


def test_density_is_zero_and_not_nan_far_away():
    for name in ("diagonal", "t", "mixture"):
        value = REFERENCES[name].log_density(np.full((1, DIM), 1e200))
        assert value[0] < -100.0 and not np.isnan(value).any(), name


# ---- references of the user's ----------------------------------------------------------------------------------


@dataclass
class Laplace:
    """Independent Laplace laws."""

    dim: int = 2

    def sample(self, n, rng):
        return rng.laplace(size=(n, self.dim))

    def log_density(self, states):
        return -np.abs(states).sum(axis=-1) - self.dim * np.log(2.0)


class LaplaceWithGradient(Laplace):
    def gradient(self, states):
        return -np.sign(states)


@pytest.mark.parametrize("kind", [Laplace, LaplaceWithGradient])
def test_reference_of_the_user(kind):
    reference = as_reference(kind())
    states = default_rng(5).standard_normal((3, 4, 2))
    np.testing.assert_allclose(reference.gradient(states), -np.sign(states), atol=1e-8)
    np.testing.assert_allclose(reference.log_density(states), stats.laplace.logpdf(states).sum(axis=-1))
    assert reference.gradient(states[0, 0]).shape == (2,) and reference.log_density(states[0, 0]).shape == ()
    assert reference.sample(6, default_rng(6)).shape == (6, 2)
    assert as_reference(reference) is reference and isinstance(reference, UserReference)
    assert as_reference(REFERENCES["t"]) is REFERENCES["t"]


def test_errors_of_a_reference_of_the_user():
    with pytest.raises(InvalidArgumentError, match="SimpleNamespace given has no log_density"):
        as_reference(SimpleNamespace(sample=Laplace().sample))
    with pytest.raises(InvalidArgumentError, match="float given has no sample"):
        as_reference(1.0)
    scalar = UserReference(Laplace())
    scalar.source.log_density = lambda states: 0.0
    with pytest.raises(InvalidArgumentError, match=r"one number per row, shape \(4,\), but returned \(\)"):
        scalar.log_density(np.zeros((4, 2)))
    for bad in (np.zeros(3), np.zeros((2, 2)), np.full((3, 2), np.nan)):
        scalar.source.sample = lambda n, rng, bad=bad: bad
        with pytest.raises(InvalidArgumentError, match=r"finite draws of shape \(3, dim\)"):
            scalar.sample(3, default_rng(1))


def test_errors_of_a_component():
    for mean, scale in ((np.nan, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, np.inf)):
        with pytest.raises(InvalidArgumentError, match="finite means and finite positive scales"):
            Component(np.array([mean]), np.array([scale]))
    with pytest.raises(InvalidArgumentError, match="not both"):
        Component(MEAN, SCALE, matrix=np.eye(DIM), directions=DIRECTIONS, stretch=STRETCH)
    one = Component(MEAN, SCALE)
    for weights in (np.ones(2), np.array([0.5])):
        with pytest.raises(InvalidArgumentError, match="as many weights of sum 1"):
            MixtureReference((one,), weights)
