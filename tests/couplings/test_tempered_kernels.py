"""Kernels that hold an inverse temperature: each chain of a pair keeps its own tempered law."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats

from bread.couplings.geometric import GeometricPath, frozen_kernel, held, on_path, settled, tempered_pairs
from bread.couplings.refreshed import Refreshed

N = 5000


def first(x):
    """Student's t with 3 degrees of freedom in each coordinate: heavy tails."""
    return -2.0 * np.log1p(x**2 / 3.0).sum(axis=1), -4.0 * x / (3.0 + x**2)


def log_ratio(x):
    return -0.5 * ((x - 1.0) ** 2).sum(axis=1)


def last(x):
    value, gradient = first(x)
    return value + log_ratio(x), gradient + 1.0 - x


def draw(seeds):
    return np.array([default_rng(seed).standard_t(3, size=1) for seed in seeds])


def path():
    return GeometricPath(first, last, log_ratio)


def distribution(share):
    grid = np.linspace(-60.0, 60.0, 240_001)
    density = np.exp(-2.0 * np.log1p(grid**2 / 3.0) - 0.5 * share * (grid - 1.0) ** 2)
    total = np.cumsum(density)
    return lambda x: np.interp(x, grid, total / total[-1])


def quantiles(share, uniforms):
    grid = np.linspace(-60.0, 60.0, 240_001)
    return np.interp(uniforms, distribution(share)(grid), grid)


def p_values(kernel, share, seed=1):
    """Return p-values of both chains against the exact law after three coupled moves from exact draws."""
    rng = default_rng(seed)
    normal = rng.standard_normal((2, N))
    uniforms = stats.norm.cdf([normal[0], 0.9 * normal[0] + np.sqrt(1 - 0.81) * normal[1]])
    x, y = (kernel.at(held(quantiles(share, u)[:, None], share)) for u in uniforms)
    rngs = [default_rng(one) for one in SeedSequence(seed).spawn(N)]
    n_met = 0
    for _ in range(3):
        x, y, is_one = kernel.move_pairs(x, y, rngs)
        assert (x.states[is_one] == y.states[is_one]).all()
        n_met = max(n_met, int(is_one.sum()))
    assert n_met > 0.2 * N
    assert (x.states[:, 1] == share).all() and (y.states[:, 1] == share).all()
    return [stats.kstest(points.states[:, 0], distribution(share)).pvalue for points in (x, y)]


class Careless(Refreshed):
    """Broken: proposals are always accepted."""

    def _accepts(self, points, ratio, level):
        return np.ones(len(points), dtype=bool)


def kernels():
    along = path()
    local = frozen_kernel(along, 0.3, draw(SeedSequence(2).spawn(8)), 100, SeedSequence(3))
    return local, Refreshed(local, draw, log_ratio), Careless(local, draw, log_ratio)


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_both_chains_keep_the_tempered_law(share):
    local, refreshed, careless = kernels()
    assert min(p_values(local, share)) > 1e-3  # 4 tests each
    assert min(p_values(refreshed, share)) > 1e-3
    assert min(p_values(careless, share)) < 1e-9  # negative control


def test_fresh_proposals_make_pairs_meet_near_the_base_where_local_moves_do_not():
    local, refreshed, _ = kernels()
    start = tuple(draw(SeedSequence(seed).spawn(60)) * 30.0 for seed in (4, 5))  # far out
    options = {"lag": 1, "horizon": 60}
    seeds = SeedSequence(6).spawn(60)
    met = [tempered_pairs(k, path(), start, np.full(60, 1e-6), seeds, **options) for k in (local, refreshed)]
    assert np.isfinite(met[1].meeting_times).all() and met[1].meeting_times.max() < 4
    assert np.isinf(met[0].meeting_times).any()


def test_settings_move_to_another_path_and_chains_settle():
    local = kernels()[0]
    other = path()
    moved = on_path(local, other)
    assert moved.kernels[0].step_size == local.kernels[0].step_size
    end = settled(moved, draw(SeedSequence(7).spawn(200)) * 5.0, 1.0, 30, SeedSequence(8))
    assert other.n_gradients > 0 and end.shape == (200, 1)
    assert stats.kstest(end[:, 0], distribution(1.0)).pvalue > 1e-3
