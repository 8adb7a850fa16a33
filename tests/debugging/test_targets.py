"""Default targets: densities integrate to one, gradients are derivatives, draws follow the density; JAX's way works."""

from itertools import pairwise

import numpy as np
import pytest

from bread.debugging.targets import copies, default_targets
from bread.errors import InvalidArgumentError
from tests.support.target_grids import grid_of

TARGETS = {target.name: target for target in default_targets()}
N_DRAWS = 20_000
LIMIT = 4.5  # standard errors; 13 targets of at most 14 functions: a false alarm in 1 of 800 seeds


def functions_of(target):
    """Bounded functions of the standardised state: each coordinate, its size, products of neighbours."""
    draws = target.simulate(1000, np.random.default_rng(0))
    centre, scale = np.median(draws, axis=0), np.diff(np.quantile(draws, [0.2, 0.8], axis=0), axis=0)[0] + 0.5
    own = [lambda x, i=i: np.tanh((x[..., i] - centre[i]) / scale[i]) for i in range(target.dim)]
    size = [lambda x, f=f: f(x) ** 2 for f in own]
    pairs = [lambda x, f=f, g=g: f(x) * g(x) for f, g in pairwise(own)]
    return own + size + pairs


def largest_score(target, draws, grid, functions):
    """Largest distance, in standard errors, of means over draws from integrals of the density."""
    values = np.array([f(draws) for f in functions])
    truth = grid.mean(target.log_density, *functions)[1:]
    return np.max(np.abs(values.mean(axis=1) - truth) / (values.std(axis=1) / np.sqrt(len(draws))))


@pytest.mark.statistical
@pytest.mark.parametrize("name", TARGETS)
def test_density_is_normalised_and_is_that_of_the_draws(name):
    target, grid = TARGETS[name], grid_of(name)
    functions = functions_of(target)
    np.testing.assert_allclose(grid.mean(target.log_density), 1.0, rtol=2e-6)
    draws = target.simulate(N_DRAWS, np.random.default_rng(1))
    assert draws.shape == (N_DRAWS, target.dim)
    assert np.isfinite(target.log_density(draws)).all()
    assert largest_score(target, draws, grid, functions) < LIMIT
    # Negative control: the first coordinate comes from another draw; the last is the median in one of 7.
    wrong = draws.copy()
    wrong[:, -1] = np.where(np.arange(N_DRAWS) % 7 == 0, np.median(draws[:, -1]), draws[:, -1])
    wrong[:, 0] = np.roll(draws[:, 0], 1)
    assert largest_score(target, wrong, grid, functions) > 2.0 * LIMIT


@pytest.mark.parametrize("target", default_targets("continuous"), ids=lambda target: target.name)
def test_gradient_is_the_derivative(target):
    draws = target.simulate(200, np.random.default_rng(2))
    if target.lower:  # away from the walls, where a step of the difference would cross
        low, high = np.array(target.lower), np.array(target.upper)
        inside = ((draws - low > 1e-3) & (high - draws > 1e-3)).all(axis=1)
        draws = draws[inside & np.isfinite(target.log_density(draws + 1e-3))]
    step = 1e-6
    shifts = step * np.eye(target.dim)
    ends = [target.log_density(draws + shift) - target.log_density(draws - shift) for shift in shifts]
    slope = np.stack(ends, axis=1) / (2.0 * step)
    gradient = target.gradient(draws)
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(gradient[0], target.gradient(draws[0]))
    assert np.abs(gradient - gradient[:, ::-1]).max() > 0.1  # it could not be that of another coordinate


@pytest.mark.parametrize("target", default_targets(), ids=lambda target: target.name)
def test_states_may_come_one_by_one_and_outside_of_the_support(target):
    draws = target.simulate(20, np.random.default_rng(3))
    one_by_one = [float(target.log_density(draw)) for draw in draws]
    np.testing.assert_allclose(one_by_one, target.log_density(draws), rtol=1e-12)
    if target.lower:
        for end, beyond in ((target.lower, -0.5), (target.upper, 0.5)):
            for i in np.flatnonzero(np.isfinite(end)):
                outside = draws[0].copy()
                outside[i] = end[i] + beyond
                assert target.log_density(outside) == -np.inf
                assert target.log_density(outside[None])[0] == -np.inf


class Recorder:
    """NumPy under another name: what a formula takes from the module it is given."""

    def __init__(self):
        self.used = set()

    def __getattr__(self, name):
        self.used.add(name)
        return getattr(np, name)


@pytest.mark.parametrize("target", default_targets(), ids=lambda target: target.name)
def test_formulae_run_with_another_array_module(target):
    module = Recorder()
    draws = target.simulate(20, np.random.default_rng(4))
    values = [target.log_density(draw, module) for draw in draws]
    np.testing.assert_allclose(np.array(values), target.log_density(draws), rtol=1e-12)
    assert target.name == "correlated normal" or module.used


def test_every_kind_of_target_is_there_and_none_is_symmetric_or_small():
    assert len(default_targets("continuous")) + len(default_targets("discrete")) == len(default_targets())
    for target in default_targets():
        assert target.dim >= 3
        scale = np.diff(np.quantile(target.simulate(4000, np.random.default_rng(5)), [0.05, 0.95], axis=0), axis=0)
        assert target.name in ("funnel", "binary", "offset") or len(np.unique(scale.round(2))) > 1
    with pytest.raises(InvalidArgumentError, match=r"kind must be one of .*received 'real'"):
        default_targets("real")


@pytest.mark.parametrize("name", ["log-gamma", "offset"])
def test_copies_are_independent_draws_side_by_side(name):
    target = TARGETS[name]
    three = copies(target, 3)
    draws = three.simulate(50, np.random.default_rng(6))
    assert draws.shape == (50, 3 * target.dim) and three.is_continuous.shape == (3 * target.dim,)
    parts = draws.reshape(50, 3, target.dim)
    np.testing.assert_allclose(three.log_density(draws), target.log_density(parts).sum(axis=1))
    if target.gradient is None:
        assert three.gradient is None
    else:
        np.testing.assert_allclose(three.gradient(draws), target.gradient(parts).reshape(50, -1))
    with pytest.raises(InvalidArgumentError, match="n must be at least 1; received 0"):
        copies(target, 0)
