"""The coupled HMC and random walk: each chain of a pair moves as it would alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats

from bread.couplings.adapting import adapted_kernel
from bread.couplings.hmc import MixedKernel
from bread.couplings.proposals import reflection_maximal

SHAPE = 2.0  # of the target, the logarithm of a gamma variable: skewed


def density_gradient(x):
    return SHAPE * x.sum(axis=1) - np.exp(x).sum(axis=1), SHAPE - np.exp(x)


def exact_pairs(n, rng, likeness=0.95):
    """Return two sets of exact draws, by default near each other so that proposals are often one point."""
    first = rng.standard_normal((n, 2))
    second = likeness * first + np.sqrt(1 - likeness**2) * rng.standard_normal((n, 2))
    return tuple(np.log(stats.gamma(SHAPE).ppf(stats.norm.cdf(z))) for z in (first, second))


def mixed():
    return MixedKernel(density_gradient, 0.5, 3, np.array([0.8, 0.6]), 0.3)


class Dragged(MixedKernel):
    """Broken: the second chain jumps to the first wherever that is further right."""

    def move_pairs(self, x, y, rngs):
        moved_x, moved_y, is_one = super().move_pairs(x, y, rngs)
        higher = moved_x.states[:, 0] > moved_y.states[:, 0]
        return moved_x, moved_y.where(higher, moved_x), is_one | higher


def p_values(kernel, n=8000, seed=3, likeness=0.95):
    """Return p-values of both chains' coordinates against their exact law, after two coupled moves."""
    rng = default_rng(seed)
    x, y = (kernel.at(states) for states in exact_pairs(n, rng, likeness))
    rngs = [default_rng(one) for one in SeedSequence(seed).spawn(n)]
    n_met = 0
    for _ in range(2):
        x, y, is_one = kernel.move_pairs(x, y, rngs)
        n_met += int(is_one.sum())
    assert n_met > 0.05 * n
    law = stats.loggamma(SHAPE)
    return [stats.kstest(points.states[:, i], law.cdf).pvalue for points in (x, y) for i in range(2)]


@pytest.mark.statistical
def test_both_chains_keep_the_target():
    assert min(p_values(mixed())) > 1e-3  # 4 tests


@pytest.mark.statistical
def test_a_dragged_chain_is_found_out():
    """Negative control."""
    assert min(p_values(Dragged(density_gradient, 0.5, 3, np.array([0.8, 0.6]), 0.3), likeness=0.0)) < 1e-9


def test_the_first_chain_moves_as_it_would_alone():
    kernel, (x, y) = mixed(), exact_pairs(50, default_rng(0))
    alone = kernel.move(kernel.at(x), [default_rng(one) for one in SeedSequence(1).spawn(50)])
    pair = kernel.move_pairs(kernel.at(x), kernel.at(y), [default_rng(one) for one in SeedSequence(1).spawn(50)])
    assert np.allclose(alone.states, pair[0].states, rtol=1e-12)
    assert (pair[0].states[pair[2]] == pair[1].states[pair[2]]).all() and pair[2].any()


@pytest.mark.statistical
@pytest.mark.parametrize("distance", [0.3, 2.0])
def test_reflection_is_maximal_and_keeps_the_law(distance):
    """The probability of one point is 1 - TV = 2 Phi(-distance / 2); both noises are standard normal."""
    n, rng = 40_000, default_rng(5)
    difference = np.tile(distance * np.array([0.6, 0.8]), (n, 1))
    noise = rng.standard_normal((n, 2))
    other, is_one = reflection_maximal(difference, noise, rng.random(n))
    exact = 2 * stats.norm.cdf(-distance / 2)
    assert abs(is_one.mean() - exact) < 4.5 * np.sqrt(exact * (1 - exact) / n)
    assert np.allclose((difference + noise)[is_one], other[is_one])
    assert min(stats.kstest(other @ way, "norm").pvalue for way in ([0.6, 0.8], [-0.8, 0.6])) > 1e-4
    broken = np.where(is_one[:, None], other, noise)  # negative control: not reflected where they part
    assert stats.kstest(broken @ [0.6, 0.8], "norm").pvalue < 1e-9


def test_adaptation_finds_scales_and_is_repeatable():
    scales = np.array([0.05, 1.0, 20.0])

    def normal(x):
        return -0.5 * np.sum((x / scales) ** 2, axis=1), -x / scales**2

    start = default_rng(0).standard_normal((8, 3))
    first, second = (adapted_kernel(normal, start, 400, SeedSequence(2)) for _ in range(2))
    assert first.step_size == second.step_size and (first.scales == second.scales).all()
    assert (np.abs(np.log(first.scales / scales)) < np.log(2.5)).all()
    assert 0.2 < first.step_size < 2.0
