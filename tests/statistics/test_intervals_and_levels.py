"""Honest intervals and exact levels, over hundreds of repeated small runs of reference models.

A run is a block of a large pool of independent simulations, so that the blocks are independent.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy.stats import binom, norm, skew

from bread.statistics.bounds.alarms import combined_p_value, rank_p_values, theory_alarm, weighted_ranks
from bread.statistics.bounds.intervals import mean_interval
from bread.statistics.real_data.consistency import consistency_test
from tests.models.reference import (
    AutoregressiveKernel,
    HierarchicalNormal,
    LinearRegression,
    NormalMean,
    expected_work,
)
from tests.support.conformance import PATH, anneal_pool
from tests.support.reference_models import NO_SETTINGS, X

pytestmark = pytest.mark.statistical
N_SIMULATIONS, N_CHAINS = 10_000, 4
# B is a quadratic form of a data set's distance from the prior, so that it is skewed over data sets
SKEWED = {
    "normal_mean": (NormalMean(np.zeros(3), prior_sd=3.0, kernel=AutoregressiveKernel(0.8)), 16),
    "hierarchical": (
        HierarchicalNormal(np.zeros(3), np.array([1.0, 1.5, 0.8]), prior_sd=3.0, kernel=AutoregressiveKernel(0.7)),
        16,
    ),
    "regression": (LinearRegression(np.zeros(5), X, prior_sd=2.0, kernel=AutoregressiveKernel(0.7)), 16),
}


EACH = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "normal_mean")) for name in sorted(SKEWED)],
)


@cache
def pool(name: str):
    model, n_temperatures = SKEWED[name]
    betas = np.linspace(0.0, 1.0, n_temperatures)
    return anneal_pool(model, NO_SETTINGS, betas, n_simulations=N_SIMULATIONS, n_chains=N_CHAINS, seed=81)


def true_bound(name: str) -> float:
    model, n_temperatures = SKEWED[name]
    return expected_work(model, np.linspace(0.0, 1.0, n_temperatures)).bound


def check_coverage(interval, gaps: np.ndarray, bound: float, n_simulations: int, least: float) -> None:
    """The interval of ``n_simulations`` gaps covers the true bound in at least this fraction of runs."""
    runs = gaps[: len(gaps) // n_simulations * n_simulations].reshape(-1, n_simulations)
    assert len(runs) >= 400
    limits = np.array([interval(run) for run in runs])
    coverage = ((limits[:, 0] <= bound) & (bound <= limits[:, 1])).mean()
    assert coverage >= least, f"coverage {coverage:.3f} of {len(runs)} runs of {n_simulations}, at least {least} wanted"


def check_level(p_values, level: float) -> None:
    """Rejections are no more than the 99 % quantile of the binomial count at this level."""
    p_values = np.asarray(p_values)
    assert len(p_values) >= 400
    count, limit = int((p_values <= level).sum()), int(binom.ppf(0.99, len(p_values), level))
    assert count <= limit, f"{count} of {len(p_values)} runs rejected at level {level}, at most {limit} expected"


def student_hall(gaps: np.ndarray) -> tuple[float, float]:
    interval = mean_interval(gaps, 0.95)
    return interval.lower, interval.upper


def normal(gaps: np.ndarray) -> tuple[float, float]:
    half = norm.ppf(0.975) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean() - half, gaps.mean() + half


@pytest.mark.parametrize(("n_simulations", "least"), [(5, 0.88), (10, 0.88), (20, 0.92)])
@EACH
def test_interval_covers_the_true_bound(name, n_simulations, least):
    """500 runs of 20, 1000 of 10, 2000 of 5 simulations of skewed gaps, against B in closed form."""
    gaps = pool(name).gaps
    assert skew(gaps) > 1.5
    check_coverage(student_hall, gaps, true_bound(name), n_simulations, least)


@pytest.mark.parametrize(("n_simulations", "least"), [(5, 0.88), (10, 0.88), (20, 0.92)])
def test_normal_interval_does_not_cover(n_simulations, least):
    """Negative control: the interval of a known variance is too short for skewed gaps."""
    with pytest.raises(AssertionError, match="coverage"):
        check_coverage(normal, pool("normal_mean").gaps, true_bound("normal_mean"), n_simulations, least)


def test_interval_of_single_chains_does_not_cover():
    """Negative control: pairs of chains of one simulation are no independent units."""
    run = pool("normal_mean")

    def by_chain(rows: np.ndarray) -> tuple[float, float]:
        return student_hall((run.reverse - run.forward)[rows.astype(int)].ravel())

    with pytest.raises(AssertionError, match="coverage"):
        check_coverage(by_chain, np.arange(N_SIMULATIONS, dtype=float), true_bound("normal_mean"), 20, 0.92)


def rank_runs(name: str, ranks: np.ndarray, n_simulations: int = 20) -> list[float]:
    return [combined_p_value(rank_p_values(block)) for block in ranks.reshape(-1, n_simulations, ranks.shape[-1])]


def ranks_of(name: str, *, weighted: bool = True) -> np.ndarray:
    run = pool(name)
    uniforms = np.random.default_rng(82).random((N_SIMULATIONS, run.reverse_paths.shape[-1]))
    forward, reverse = run.forward, run.reverse[:, 0]
    if not weighted:
        forward, reverse = np.zeros_like(forward), np.zeros_like(reverse)
    return weighted_ranks(forward, reverse, run.forward_paths, run.reverse_paths[:, 0], uniforms)


@EACH
def test_weighted_ranks_are_uniform(name):
    """All 10 000 ranks together (p above 1e-3), and 500 runs of 20 at level 0.01."""
    ranks = ranks_of(name)
    assert combined_p_value(rank_p_values(ranks)) > 1e-3
    check_level(rank_runs(name, ranks), 0.01)


def test_ranks_without_weights_are_not_uniform():
    """Negative control: plain ranks of forward end points."""
    ranks = ranks_of("normal_mean", weighted=False)
    assert combined_p_value(rank_p_values(ranks)) < 1e-6
    with pytest.raises(AssertionError, match="rejected"):
        check_level(rank_runs("normal_mean", ranks), 0.01)


def alarm_runs(forward: np.ndarray, reverse: np.ndarray, n_simulations: int = 20) -> list[float]:
    blocks = (values.reshape(-1, n_simulations, values.shape[-1]) for values in (forward, reverse))
    return [theory_alarm(*pair).p_value for pair in zip(*blocks, strict=True)]


@EACH
def test_theory_alarm_keeps_its_level(name):
    """500 runs of 20 simulations with 4 dependent chains each, level 0.01, gaps of several nats."""
    check_level(alarm_runs(pool(name).forward, pool(name).reverse), 0.01)


@pytest.mark.slow
def test_theory_alarm_keeps_its_level_at_small_gaps():
    """The same at B of about 1 nat, where weights of both directions overlap."""
    model = NormalMean(np.zeros(3), prior_mean=1.0, kernel=AutoregressiveKernel(0.5))
    betas = np.linspace(0.0, 1.0, 6)
    assert 0.3 < expected_work(model, betas).bound < 1.5
    run = anneal_pool(model, NO_SETTINGS, betas, n_simulations=N_SIMULATIONS, n_chains=N_CHAINS, seed=83)
    check_level(alarm_runs(run.forward, run.reverse), 0.01)
    # negative control: reverse weights that are a nat too small
    with pytest.raises(AssertionError, match="rejected"):
        check_level(alarm_runs(run.forward, run.reverse - 1.0), 0.01)


N_RUNS, N_CURVES = 400, 40


@cache
def curves(prior_sd: float) -> np.ndarray:
    """Mean forward log weights of data sets with this prior sd, annealed by the model of prior sd 2; (data, T)."""
    model = NormalMean(np.zeros(5), prior_mean=1.0, prior_sd=2.0, kernel=AutoregressiveKernel(0.7))
    source = NormalMean(np.zeros(5), prior_mean=1.0, prior_sd=prior_sd)
    simulate, *others = SeedSequence(84 + int(prior_sd)).spawn(4)
    n = N_RUNS * N_CURVES if prior_sd == 2.0 else N_RUNS
    posterior = model.condition_rows(
        {"y": np.repeat(source.simulate(n, fixed=None, seed=simulate).data["y"], 2, axis=0)}
    )
    columns = []
    for count, root in zip((3, 10, 30), others, strict=True):
        start, own = (one.spawn(2 * n) for one in root.spawn(2))
        first = posterior.draw_base(PATH, start)
        betas = np.linspace(0.0, 1.0, count)
        run = posterior.anneal(PATH, betas, NO_SETTINGS, direction="forward", initial=first, seeds=own)
        columns.append(run.log_weight.reshape(n, 2).mean(axis=1))
    return np.stack(columns, axis=1)


def consistency_runs(observed: np.ndarray) -> list[float]:
    simulated = curves(2.0).reshape(N_RUNS, N_CURVES, -1)[:, 1:]
    return [consistency_test(one, other).p_value for one, other in zip(simulated, observed, strict=True)]


@pytest.mark.slow
def test_consistency_keeps_its_level():
    """400 runs of 39 simulations, 2 chains, T = 3, 10, 30, data of the model, level 0.05."""
    observed = curves(2.0).reshape(N_RUNS, N_CURVES, -1)[:, 0]
    p_values = consistency_runs(observed)
    check_level(p_values, 0.05)
    assert np.mean(np.array(p_values) <= 0.05) > 0.01  # not a test that never rejects


def test_consistency_rejects_other_data():
    """Negative control: real data far from the prior are rejected more often than 1 in 20."""
    with pytest.raises(AssertionError, match="rejected"):
        check_level(consistency_runs(curves(8.0)), 0.05)
