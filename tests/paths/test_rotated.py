"""Laws of what rotations leave alone, with a uniform rotation: exact densities of matrices of normal numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from scipy import stats

from bread.paths.mixture import FloatArray, diagonal, gaussian
from bread.paths.rotated import Gauge, RotatedReference, gauge_at

# rows, columns of the matrix, other coordinates; fewer columns than rows too
SHAPES = [(2, 1, 0), (3, 2, 2), (3, 3, 1), (2, 4, 1), (4, 7, 3)]


def gauge_of(k: int, p: int, n_others: int) -> Gauge:
    """A gauge of coordinates in no order, whose frame is no identity."""
    dim = k * p + n_others
    order = default_rng(1).permutation(dim)
    return gauge_at(order[: k * p].reshape(k, p), default_rng(2).standard_normal(dim))


@dataclass(frozen=True)
class NormalInvariants:
    """What rotations leave alone in a matrix of standard normal numbers: chi laws on the diagonal, the rest normal."""

    gauge: Gauge
    label: str = "exact"

    def sample(self, n: int, rng: Generator) -> FloatArray:
        draws = rng.standard_normal((n, self.gauge.n_invariant))
        draws[:, self.gauge.are_logarithms] = 0.5 * np.log(rng.chisquare(self._degrees, (n, len(self._degrees))))
        return draws

    def value_and_gradient(self, y: FloatArray) -> tuple[float, FloatArray]:
        at = self.gauge.are_logarithms
        square = np.exp(2.0 * y[at])
        value = (
            stats.norm.logpdf(y[~at]).sum() + (stats.chi2.logpdf(square, self._degrees) + np.log(2.0 * square)).sum()
        )
        gradient = -y
        gradient[at] = self._degrees - square
        return float(value), gradient

    @property
    def _degrees(self) -> FloatArray:
        k, m = len(self.gauge.places), int(self.gauge.are_logarithms.sum())
        return k - np.arange(m, dtype=float)


@pytest.mark.parametrize("shape", SHAPES)
def test_normal_matrices_have_their_exact_density(shape):
    """The density of the invariant coordinates of normal numbers is known, and with a uniform rotation theirs too."""
    gauge = gauge_of(*shape)
    reference = RotatedReference(gauge, NormalInvariants(gauge))
    states = default_rng(3).standard_normal((20, gauge.dim)) * 1.7
    np.testing.assert_allclose(reference.log_density(states), stats.norm.logpdf(states).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(reference.gradient(states), -states, rtol=1e-8, atol=1e-8)


def test_without_the_volume_it_would_be_another_density():
    """The control: one power of a length less in the volume element is seen."""

    class Wrong(Gauge):
        def log_volume_element(self, y):
            value, powers = super().log_volume_element(y)
            n = len(self.others)
            return value - y[n : n + len(powers)].sum(), powers - 1.0

    right = gauge_of(3, 3, 1)
    wrong = Wrong(right.dim, right.places, right.frame)
    states = default_rng(3).standard_normal((20, right.dim))
    found = RotatedReference(wrong, NormalInvariants(wrong)).log_density(states)
    assert np.abs(found - stats.norm.logpdf(states).sum(axis=1)).max() > 0.5


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_of_it_are_normal_and_rotated_uniformly(shape):
    """20,000 draws: means within 5 standard errors of 0, variances of 1, products of pairs of 0."""
    gauge = gauge_of(*shape)
    draws = RotatedReference(gauge, NormalInvariants(gauge)).sample(20_000, default_rng(4))
    error = 5.0 / np.sqrt(len(draws))
    assert np.abs(draws.mean(axis=0)).max() < error
    assert np.abs(np.cov(draws.T) - np.eye(gauge.dim)).max() < error * np.sqrt(2.0)
    assert stats.kstest(draws.ravel()[:20_000], "norm").pvalue > 1e-4


@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_is_that_of_the_log_density(shape):
    """Of a law that is not near a normal matrix's, by central differences; asymmetric on purpose."""
    gauge = gauge_of(*shape)
    rng = default_rng(5)
    factor = np.eye(gauge.n_invariant) + 0.2 * rng.standard_normal((gauge.n_invariant,) * 2)
    reference = RotatedReference(gauge, gaussian(rng.standard_normal(gauge.n_invariant), 0.1 * factor @ factor.T))
    for state in reference.sample(4, rng):
        value, gradient = reference.value_and_gradient(state)
        assert value == reference.log_density(state[None])[0]
        for direction in rng.standard_normal((3, gauge.dim)):
            ahead, behind = (reference.log_density(state + sign * 1e-6 * direction) for sign in (1.0, -1.0))
            assert gradient @ direction == pytest.approx((ahead - behind) / 2e-6, rel=1e-5, abs=1e-5)


def test_one_point_in_the_plane_has_a_density_in_closed_form():
    """Of a log length of mean 0.4 and sd 0.3: that over 2 pi r^2."""
    gauge = Gauge(2, np.array([[0], [1]]), np.eye(1))
    reference = RotatedReference(gauge, diagonal(np.array([0.4]), np.array([0.3])))
    states = default_rng(6).standard_normal((10, 2))
    length = np.sqrt((states**2).sum(axis=1))
    exact = stats.norm.logpdf(np.log(length), 0.4, 0.3) - np.log(2.0 * np.pi * length**2)
    np.testing.assert_allclose(reference.log_density(states), exact, rtol=1e-12)
    assert reference.log_density(np.zeros((1, 2)))[0] == -np.inf
    assert "uniform over rotations in 2 dimensions" in reference.label


def test_invariant_coordinates_are_and_lead_back():
    for shape in SHAPES:
        gauge, rng = gauge_of(*shape), default_rng(8)
        state = rng.standard_normal(gauge.dim)
        y = gauge.invariant(state)
        turned = state.copy()
        turned[gauge.places] = stats.ortho_group.rvs(shape[0], random_state=rng) @ state[gauge.places]
        assert np.abs(turned - state).max() > 0.01
        np.testing.assert_allclose(gauge.invariant(turned), y, atol=1e-12)
        np.testing.assert_allclose(gauge.invariant(gauge.state(y, gauge.rotation(rng))), y, atol=1e-12)


def test_moments_are_those_of_draws():
    gauge = gauge_of(2, 4, 1)
    reference = RotatedReference(gauge, diagonal(np.full(gauge.n_invariant, 0.5), np.full(gauge.n_invariant, 0.2)))
    mean, deviation = reference.moments()
    draws = reference.sample(20_000, default_rng(9))
    np.testing.assert_allclose(mean, draws.mean(axis=0), atol=5.0 * deviation.max() / np.sqrt(len(draws)))
    np.testing.assert_allclose(deviation, draws.std(axis=0), rtol=0.05)
    assert replace(reference, law=diagonal(np.zeros(gauge.n_invariant), np.ones(gauge.n_invariant))).dim == gauge.dim
