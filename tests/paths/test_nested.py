"""The law of one coordinate and of the others given it: values against SciPy, gradients, draws, moments."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats
from scipy.interpolate import CubicHermiteSpline

from bread.paths.mixture import Component, MixtureReference, Reference
from bread.paths.nested import NestedReference

WEIGHTS, MEANS, SCALES, DEGREES = (np.array(row) for row in ([0.6, 0.4], [-0.4, 1.1], [0.8, 0.5], [np.inf, 7.0]))
MARGINAL = MixtureReference(
    tuple(
        Component(np.array([mean]), np.array([scale]), degrees=np.array([degrees]))
        for mean, scale, degrees in zip(MEANS, SCALES, DEGREES, strict=True)
    ),
    WEIGHTS,
)
KNOTS = np.array([-1.9, -0.6, 0.2, 1.3])
# Below the knots, on the first, between all of them, on an inner one and on the last, above.
DRIVERS = np.array([-4.1, -2.0, -1.9, -1.2, -0.6, -0.1, 0.2, 0.9, 1.3, 1.4, 3.7])


def nested(dim, driver, seed=0):
    rng, n = default_rng(seed), dim - 1
    return NestedReference(
        driver=driver,
        marginal=MARGINAL,
        centre=rng.normal(1.0, 2.0, n),
        matrix=np.eye(n) + rng.normal(0.0, 0.5 / np.sqrt(n), (n, n)),
        knots=KNOTS,
        values=rng.normal(0.0, 0.5, (len(KNOTS), 2, n)),
        slopes=rng.normal(0.0, 0.3, (len(KNOTS), 2, n)),
    )


REFERENCE = nested(4, 1)


def states_of(reference, n=30):
    """States near the mass, with every value of `DRIVERS`."""
    states = reference.sample(n, default_rng(1)) + default_rng(2).normal(0.0, 0.5, (n, reference.dim))
    states[: len(DRIVERS), reference.driver] = DRIVERS
    return states


def law_given(reference, u):
    """Mean and log standard deviation of z, each (n, dim - 1), from SciPy's splines."""
    spline = CubicHermiteSpline(reference.knots, reference.values, reference.slopes)
    inside = np.clip(u, reference.knots[0], reference.knots[-1])
    law = spline(inside) + spline(inside, 1) * (u - inside)[:, None, None]
    return law[:, 0], law[:, 1]


def others_of(reference, states):
    return np.delete(states, reference.driver, axis=1)


# ---- density -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", [0, 1, 3])
def test_density_is_that_of_scipy(driver):
    reference = nested(4, driver)
    states = states_of(reference)
    u = states[:, driver]
    parts = [stats.norm.pdf(u, MEANS[0], SCALES[0]), stats.t.pdf(u, DEGREES[1], MEANS[1], SCALES[1])]
    exact = np.log(WEIGHTS @ parts)
    colour = np.linalg.inv(reference.matrix)
    for row, (state, mean, log_scale) in enumerate(
        zip(others_of(reference, states), *law_given(reference, u), strict=True)
    ):
        law = stats.multivariate_normal(
            reference.centre + colour @ mean, (colour * np.exp(2 * log_scale)) @ colour.T, allow_singular=False
        )
        exact[row] += law.logpdf(state)
    np.testing.assert_allclose(reference.log_density(states), exact, rtol=1e-9)
    assert isinstance(reference, Reference)


def integral(log_density):
    """Integral over a wide rectangle by the trapezium rule, whose steps are far below the widths of the density."""
    u, other = np.linspace(-14.0, 16.0, 601), np.linspace(-60.0, 60.0, 4001)
    steps = (u[1] - u[0]) * (other[1] - other[0])
    return sum(np.exp(log_density(np.column_stack([other, np.full(4001, one)]))).sum() for one in u) * steps


def test_density_integrates_to_one():
    reference = nested(2, 1)
    assert np.exp(law_given(reference, np.linspace(-14.0, 16.0, 601))[1]).min() > 0.1
    assert integral(reference.log_density) == pytest.approx(1.0, abs=1e-4)
    assert integral(lambda states: reference.log_density(states) + 0.001) != pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("driver", [0, 1, 3])
def test_gradient_is_that_of_the_density(driver):
    """Second derivatives jump at the knots, where a central difference errs by a quarter of the step times the jump."""
    reference, step = nested(4, driver), 1e-6
    states = states_of(reference)
    differences = np.empty(states.shape)
    for index, shift in enumerate(step * np.eye(4)):
        up, down = reference.log_density(states + shift), reference.log_density(states - shift)
        differences[:, index] = (up - down) / (2.0 * step)
    np.testing.assert_allclose(reference.gradient(states), differences, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("dim", "driver"), [(2, 0), (4, 1), (4, 3), (40, 7)])
def test_one_state_at_a_time_is_the_same(dim, driver):
    reference = nested(dim, driver)
    single = replace(
        reference, marginal=MixtureReference((replace(MARGINAL.components[0], matrix=np.array([[1.7]])),), np.ones(1))
    )
    for one in (reference, single):
        states = states_of(one)
        for state, value, gradient in zip(states, one.log_density(states), one.gradient(states), strict=True):
            own_value, own_gradient = one.value_and_gradient(state)
            assert isinstance(own_value, float) and own_value == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(own_gradient, gradient, rtol=1e-10, atol=1e-12 * np.abs(gradient).max())


@pytest.mark.parametrize(("dim", "driver"), [(2, 1), (4, 1), (12, 5), (40, 7)])
def test_rows_are_bit_equal_for_any_number_of_rows(dim, driver):
    reference = nested(dim, driver)
    states = states_of(reference)
    whole, gradient = reference.log_density(states), reference.gradient(states)
    assert (reference.log_density(np.asfortranarray(states)) == whole).all()
    assert (reference.gradient(states.reshape(5, 6, dim)) == gradient.reshape(5, 6, dim)).all()
    for row, state in enumerate(states):
        for one in (state, state[None], state[None, None]):
            assert (reference.log_density(one) == whole[row]).all()
            assert (reference.gradient(one) == gradient[row]).all()
            assert reference.gradient(one).shape == one.shape and reference.log_density(one).shape == one.shape[:-1]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_density_is_zero_and_not_nan_far_away(sign):
    state = np.full(4, sign * 1e200)
    assert REFERENCE.log_density(state[None])[0] == REFERENCE.value_and_gradient(state)[0] == -np.inf


def test_it_can_be_pickled_before_and_after_use():
    states = states_of(REFERENCE)
    whole, (value, gradient) = REFERENCE.log_density(states), REFERENCE.value_and_gradient(states[0])
    for source in (nested(4, 1), REFERENCE):
        copy = pickle.loads(pickle.dumps(source))
        own_value, own_gradient = copy.value_and_gradient(states[0])
        assert (copy.log_density(states) == whole).all()
        assert own_value == value and (own_gradient == gradient).all()


# ---- draws ---------------------------------------------------------------------------------------------------


def uniform(reference, draws):
    """Of draws of the reference: independent uniform numbers, shape (n, dim), the driver's first."""
    u = draws[:, reference.driver]
    parts = [stats.norm.cdf(u, MEANS[0], SCALES[0]), stats.t.cdf(u, DEGREES[1], MEANS[1], SCALES[1])]
    mean, log_scale = law_given(reference, u)
    z = (others_of(reference, draws) - reference.centre) @ reference.matrix.T
    return np.column_stack([WEIGHTS @ parts, stats.norm.cdf((z - mean) / np.exp(log_scale))])


def check_draws(reference, draws):
    """Kolmogorov-Smirnov tests of each number, and of each of z where the driver is in its lower and upper half."""
    numbers = uniform(reference, draws)
    low = numbers[:, 0] < 0.5
    columns = [*numbers.T, *numbers[low, 1:].T, *numbers[~low, 1:].T]
    smallest = min(stats.kstest(column, "uniform").pvalue for column in columns)
    assert smallest > 1e-3 / len(columns), f"the draws do not follow the density: p = {smallest:.1e}"


@pytest.mark.statistical
@pytest.mark.parametrize("driver", [0, 1, 3])
def test_draws_follow_the_density(driver):
    reference = nested(4, driver)
    check_draws(reference, reference.sample(20_000, default_rng(5)))


@pytest.mark.statistical
def test_the_check_sees_a_scale_or_a_mean_that_ignores_the_driver():
    for which in (0, 1):
        values, slopes = REFERENCE.values.copy(), REFERENCE.slopes.copy()
        values[:, which], slopes[:, which] = values[:, which].mean(axis=0), 0.0
        constant = replace(REFERENCE, values=values, slopes=slopes)
        with pytest.raises(AssertionError, match="do not follow"):
            check_draws(REFERENCE, constant.sample(20_000, default_rng(5)))


def moment_z(reference, draws):
    """z of the means and variances of draws; `moments` itself is a mean over 2000 draws of the driver.

    Its error is at most that of 2000 draws of the state: the variance given the driver is left out.
    """
    mean, deviation = reference.moments()
    square = (draws - draws.mean(axis=0)) ** 2
    share = np.sqrt(1.0 / len(draws) + 1.0 / 2000)
    z_mean = (draws.mean(axis=0) - mean) / (draws.std(axis=0) * share)
    return np.abs([z_mean, (square.mean(axis=0) - deviation**2) / (square.std(axis=0) * share)]).max()


@pytest.mark.statistical
@pytest.mark.parametrize("driver", [0, 1, 3])
def test_moments_are_those_of_the_draws(driver):
    """Within 4.5 standard errors; draws a third wider are not."""
    reference = nested(4, driver)
    draws = reference.sample(100_000, default_rng(6))
    assert moment_z(reference, draws) < 4.5
    assert moment_z(reference, draws.mean(axis=0) + 4 / 3 * (draws - draws.mean(axis=0))) > 4.5
