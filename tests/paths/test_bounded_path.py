"""The bounded path on normal data of unknown scale, where the usual path has no finite bound at any T.

With perfect kernels (an independent draw at every inverse temperature) the bound is a sum of differences of means,
which quadrature over the log scale gives to rounding.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy.special import logsumexp

from bread.backends.base import Kernel
from bread.backends.reference import HMCKernel, NormalMean, NormalScale
from bread.paths.kinds import BoundedPath, PriorPath, bounded_path_from
from bread.statistics.bounds import jeffreys_is_reliable

N = 20
Y = default_rng(1).normal(size=N)
Y = Y * np.sqrt(N / (Y**2).sum())  # sum of squares 20
MODEL = NormalScale(Y, kernel=HMCKernel(n_leapfrog=5))
STATISTICS = MODEL.summarise({"y": Y[None]})
LINEAR = np.linspace(0.0, 1.0, 64)


def on_a_grid(lowest=-150.0, model=MODEL, statistics=STATISTICS):
    """Return log prior mass and log likelihood on a grid of the log scale."""
    log_scale = np.concatenate([np.linspace(lowest, -15.0, 3001)[:-1], np.linspace(-15.0, 5.0, 6001)])
    states = log_scale[:, None, None]
    mass = model.log_prior(states)[:, 0] + np.log(np.gradient(log_scale))
    return mass, model.log_likelihood(states, statistics)[:, 0]


def mean_under(log_mass, values):
    """Return the mean; cells without mass do not count."""
    weight = np.exp(log_mass - logsumexp(log_mass))
    return float((weight * np.where(weight > 0.0, values, 0.0)).sum())


def ideal_bound(path, betas, log_prior, log_likelihood):
    """Return B with perfect kernels: the sum of what each step weighs, under f_t less under f_(t-1)."""
    total = 0.0
    for low, high in pairwise(betas):
        below, above = path.temper(low, log_likelihood), path.temper(high, log_likelihood)
        total += mean_under(log_prior + above, above - below) - mean_under(log_prior + below, above - below)
    return total


def bounded(power=2.0):
    return BoundedPath(float(on_a_grid()[1].max()), power)


def test_bound_is_finite_where_that_of_the_usual_path_is_not():
    """Cut at a smaller and smaller scale, the usual mean grows as the inverse of the cut, the bounded B not at all."""
    usual, ours = [], []
    for lowest in (-16.0, -30.0, -60.0, -120.0):
        log_prior, log_likelihood = on_a_grid(lowest)
        usual.append(mean_under(log_prior, log_likelihood))
        ours.append(ideal_bound(bounded(), LINEAR, log_prior, log_likelihood))
    assert np.log(usual[1] / usual[0]) == pytest.approx(14.0, abs=0.1)
    assert np.log(usual[3] / usual[2]) == pytest.approx(60.0, abs=0.1)
    np.testing.assert_allclose(ours[1:], ours[-1], rtol=1e-5)
    assert ours[-1] == pytest.approx(0.097, abs=0.001)


@pytest.mark.parametrize("n", [5, 20, 100])
def test_bound_of_poor_and_rich_data(n):
    """Below 0.06, 0.1, 0.16 nats at T = 64, and falling as 1 / T."""
    model = NormalScale(np.ones(n))
    log_prior, log_likelihood = on_a_grid(-150.0, model, model.summarise({"y": model.y[None]}))
    path = BoundedPath(float(log_likelihood.max()))
    bounds = [ideal_bound(path, np.linspace(0.0, 1.0, count), log_prior, log_likelihood) for count in (32, 64)]
    assert bounds[1] < {5: 0.06, 20: 0.1, 100: 0.16}[n]
    assert bounds[0] / bounds[1] == pytest.approx(2.0, abs=0.15)


def test_offset_and_power_from_a_pilot_are_near_the_best():
    """Of 200 draws: at most a fifth above the best power of a table."""
    log_prior, log_likelihood = on_a_grid()
    draws = MODEL.draw_posterior({"y": Y}, 200, default_rng(2))
    path = bounded_path_from(MODEL.log_likelihood(draws[:, None, :], STATISTICS)[:, 0])
    ours = ideal_bound(path, LINEAR, log_prior, log_likelihood)
    table = [ideal_bound(bounded(power), LINEAR, log_prior, log_likelihood) for power in (2.0, 3.0, 5.0, 10.0, 30.0)]
    assert ours < 1.2 * min(table)
    assert max(table) > 2.0 * min(table), "the power matters"


def kernel_along(path, posterior, knots=(0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)):
    start, adapt = SeedSequence(3).spawn(2)
    state, previous, found = posterior.draw_start(path, [start])[0], None, []
    for beta, child in zip(knots, adapt.spawn(len(knots)), strict=True):
        found.append(posterior.adapt(path, beta, state, child, 200, previous))
        state, previous = found[-1].state, found[-1].settings
    return Kernel(np.array(knots), {name: np.stack([one.settings[name] for one in found]) for name in previous})


def anneal(model, path, betas, n_chains, seed=4):
    """Return forward and reverse runs of independent chains on the real data, from exact posterior draws."""
    start, forward, reverse = SeedSequence(seed).spawn(3)
    posterior = model.condition(model.observed_data)
    kernel = kernel_along(path, posterior)
    exact = model.draw_posterior(model.observed_data, n_chains, default_rng(seed))
    first = posterior.draw_start(path, start.spawn(n_chains))
    return [
        posterior.anneal(path, betas, kernel, direction=direction, start=begin, seeds=own.spawn(n_chains))
        for direction, begin, own in (("forward", first, forward), ("reverse", exact, reverse))
    ]


@pytest.mark.statistical
def test_annealed_chains_reach_the_quadrature():
    """HMC at T = 64, 3000 chains each way: the log evidence between the means, B at most 4 times the ideal one."""
    forward, reverse = anneal(MODEL, bounded(), LINEAR, 3000)
    log_evidence = MODEL.log_evidence({"y": Y})
    errors = [run.log_weight.std() / np.sqrt(3000) for run in (forward, reverse)]
    assert forward.log_weight.mean() - 3.0 * errors[0] < log_evidence < reverse.log_weight.mean() + 3.0 * errors[1]
    gap, error = reverse.log_weight.mean() - forward.log_weight.mean(), np.hypot(*errors)
    ideal = ideal_bound(bounded(), LINEAR, *on_a_grid())
    assert error < 0.2 * ideal
    assert ideal - 4.0 * error < gap < 4.0 * ideal


@pytest.mark.statistical
def test_tail_diagnostic_tells_the_two_paths_apart():
    """20 groups of 100 chains at T = 64, centred group by group as for data sets."""
    for path, is_finite in ((PriorPath(), False), (bounded(), True)):
        forward, _ = anneal(MODEL, path, LINEAR, 2000)
        first = path.tail(forward.log_ratio[:, 0])
        assert jeffreys_is_reliable(np.split(first, 20), forward.log_weight.reshape(20, 100)) is is_finite


@pytest.mark.statistical
def test_rich_data_of_known_scale():
    """Where the usual bound is finite too (500 observations, T = 32), B of the bounded path is a fifth at most."""
    model = NormalMean(0.3 + default_rng(5).normal(size=500), kernel=HMCKernel(n_leapfrog=5))
    draws = model.draw_posterior(model.observed_data, 200, default_rng(6))
    statistics = model.summarise({"y": model.y[None]})
    gaps = {}
    for path in (PriorPath(), bounded_path_from(model.log_likelihood(draws[:, None, :], statistics)[:, 0])):
        forward, reverse = anneal(model, path, np.linspace(0.0, 1.0, 32), 1000)
        gaps[path.name] = reverse.log_weight.mean() - forward.log_weight.mean()
    assert gaps["bounded"] < 0.2 * gaps["prior"]
