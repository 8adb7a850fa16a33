"""Paths: ends, derivatives against differences, zero densities, log weights, and what a bounded path is fitted to."""

from __future__ import annotations

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.paths.kinds import BoundedPath, PriorPath, ReferencePath, bounded_path_from
from bread.paths.mixture import diagonal

BOUNDED = BoundedPath(offset=-3.0, power=2.5)
PATHS = {
    "prior": PriorPath(),
    "bounded": BOUNDED,
    "bounded_high": BoundedPath(offset=40.0, power=60.0),
    "reference": ReferencePath(diagonal(np.zeros(2), np.ones(2))),
}
RATIOS = np.array([-1e6, -300.0, -20.0, -4.0, -3.1, -2.9, 0.0, 7.0, 100.0])
BETAS = (1e-4, 0.02, 0.3, 0.7, 0.99, 1.0)


@pytest.mark.parametrize("name", sorted(PATHS))
def test_ends(name):
    path, ratios = PATHS[name], np.append(RATIOS, -np.inf)
    assert (path.temper(0.0, ratios) == 0.0).all()
    np.testing.assert_allclose(path.temper(1.0, ratios), ratios, rtol=1e-12)
    np.testing.assert_allclose(path.slope(1.0, RATIOS), 1.0, rtol=1e-12)
    assert (path.temper(0.5, -np.inf) == -np.inf).all() and path.name == name.split("_")[0]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", sorted(PATHS))
def test_slope_and_rate_are_derivatives(name, beta):
    path = PATHS[name]
    step = 1e-6 * np.maximum(1.0, np.abs(RATIOS))
    differences = (path.temper(beta, RATIOS + step) - path.temper(beta, RATIOS - step)) / (2.0 * step)
    np.testing.assert_allclose(path.slope(beta, RATIOS), differences, rtol=1e-4)
    step = 1e-6 * min(beta, 1.0 - beta) if beta < 1.0 else 0.0
    if step:
        differences = (path.temper(beta + step, RATIOS) - path.temper(beta - step, RATIOS)) / (2.0 * step)
        np.testing.assert_allclose(path.rate(beta, RATIOS), differences, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(PATHS))
def test_rate_is_continuous_at_one(name):
    """At beta = 1 - 1e-9 the differences of logarithms are gone but for the series."""
    ratios = RATIOS[1:]
    np.testing.assert_allclose(PATHS[name].rate(1.0 - 1e-9, ratios), PATHS[name].rate(1.0, ratios), rtol=1e-5)


@pytest.mark.parametrize("beta", BETAS)
def test_bounded_path_is_once_differentiable_at_its_offset(beta):
    c, step = BOUNDED.offset, 1e-9
    assert BOUNDED.temper(beta, c - step) == pytest.approx(float(BOUNDED.temper(beta, c + step)), abs=1e-8)
    assert BOUNDED.slope(beta, c - step) == pytest.approx(float(BOUNDED.slope(beta, c + step)), abs=1e-8)
    assert BOUNDED.rate(beta, c - step) == pytest.approx(float(BOUNDED.rate(beta, c + step)), abs=1e-8)


@pytest.mark.parametrize("beta", [1e-4, 0.3, 0.9])
def test_bounded_path_falls_as_a_logarithm(beta):
    """A factor of ten costs beta * power / (1 - beta) * log 10 where the log likelihood falls without bound."""
    far = -np.array([1e8, 1e9, 1e10])
    np.testing.assert_allclose(np.diff(BOUNDED.temper(beta, far)), -beta * 2.5 / (1.0 - beta) * np.log(10.0), rtol=1e-5)
    np.testing.assert_allclose(np.diff(PriorPath().temper(beta, far)), beta * np.diff(far))
    assert np.isfinite(BOUNDED.temper(beta, -1e300)) and BOUNDED.temper(beta, -1e300) > -1e6


def test_bounded_path_of_a_large_power_is_the_usual_path():
    ratios = np.array([-500.0, -20.0, -4.0, 3.0])
    wide = BoundedPath(offset=0.0, power=1e9)
    np.testing.assert_allclose(wide.temper(0.4, ratios), PriorPath().temper(0.4, ratios), rtol=1e-6)


def test_temper_broadcasts():
    betas = np.linspace(0.0, 1.0, 4)[:, None]
    for path in PATHS.values():
        table = path.temper(betas, RATIOS)
        assert table.shape == (4, len(RATIOS))
        for row, beta in enumerate(betas[:, 0]):
            assert (table[row] == path.temper(beta, RATIOS)).all()
        assert path.temper(0.5, 1.0).shape == () and path.slope(0.5, 1.0).shape == ()


@pytest.mark.parametrize("name", sorted(PATHS))
def test_log_weight_is_the_sum_of_increments_in_order(name):
    path, rng = PATHS[name], np.random.default_rng(1)
    betas = np.array([0.0, 0.1, 0.5, 1.0])
    ratios = rng.normal(scale=8.0, size=(3, 5, 4))
    increments = path.increments(betas, ratios)
    assert increments.shape == (3, 5, 3)
    for t in range(3):
        step = path.temper(betas[t + 1], ratios[..., t]) - path.temper(betas[t], ratios[..., t])
        np.testing.assert_allclose(increments[..., t], step, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path.log_weight(betas, ratios), increments.sum(axis=-1))
    last_changed = ratios.copy()
    last_changed[..., -1] += 1.0
    assert (path.log_weight(betas, last_changed) == path.log_weight(betas, ratios)).all()


@pytest.mark.parametrize("name", sorted(PATHS))
def test_zero_density_makes_the_weight_zero_at_the_first_step_and_not_nan(name):
    betas = np.array([0.0, 0.1, 0.5, 1.0])
    weight = PATHS[name].log_weight(betas, np.array([[-np.inf, -1.0, -1.0, -1.0], [-1.0, -1.0, -1.0, -np.inf]]))
    assert weight[0] == -np.inf and np.isfinite(weight[1])


def test_rate_and_tail_at_a_zero_density():
    for beta in (0.0, 0.5, 1.0):
        assert (BOUNDED.rate(beta, np.array([-np.inf])) == -np.inf).all()
    assert (BOUNDED.tail(np.array([-np.inf])) == -np.inf).all()
    np.testing.assert_allclose(BOUNDED.tail(np.array([-3.0, 5.0, -1003.0])), [0.0, 0.0, -np.log(1001.0)])
    np.testing.assert_allclose(PriorPath().tail(RATIOS), RATIOS)


def test_errors_of_a_bounded_path():
    for offset in (np.nan, np.inf, -np.inf):
        with pytest.raises(InvalidArgumentError, match="offset must be a finite log likelihood"):
            BoundedPath(offset=offset)
    for power in (1.9, 0.0, np.inf, np.nan):
        with pytest.raises(InvalidArgumentError, match="power must be finite and at least 2"):
            BoundedPath(offset=0.0, power=power)


def test_bounded_path_from_posterior_log_likelihoods():
    path = bounded_path_from(np.array([-np.inf, -11.4, -11.0, -10.6, -11.0, np.nan]))
    assert path.offset == pytest.approx(-10.6), "the largest value"
    assert path.power == 2.0, "less than 2 nats below the largest on average"
    path = bounded_path_from(np.array([-30.0, -20.0, -20.0, -20.0, -10.0]))
    assert path.offset == -10.0 and path.power == 10.0
    for empty in ([np.nan, -np.inf], []):
        with pytest.raises(InvalidArgumentError, match="at least one finite log likelihood"):
            bounded_path_from(np.array(empty))


@pytest.mark.parametrize("dim", [1, 10, 100, 1000])
def test_bounded_path_from_draws_of_a_gaussian_posterior(dim):
    """The log likelihood is chi-square / 2 below its peak of 5: offset and power are known, 300 draws."""
    path = bounded_path_from(5.0 - 0.5 * np.random.default_rng(1).chisquare(dim, 300))
    assert path.offset == pytest.approx(5.0, abs=0.3 * dim)
    assert path.power == pytest.approx(max(2.0, dim / 2.0), rel=0.3)
    assert 5.0 - path.offset < path.power, "one mode"
