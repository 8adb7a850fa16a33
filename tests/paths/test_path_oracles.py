"""Annealed chains along reference paths against exact log evidence: the oracles of the prior path.

Every data set has its own path, made from the data alone. Tolerances are standard errors over simulations with fixed
seeds; the negative controls give a reference the exact draw, or weigh wrongly.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from bread.paths.kinds import ReferencePath
from bread.statistics.bounds.alarms import theory_alarm
from bread.statistics.bounds.intervals import mean_interval
from tests.support.path_pools import (
    PATH_MODELS,
    check_path_alarm,
    check_path_identities,
    check_path_ranks,
    check_path_sandwich,
    part,
    path_pool,
    rank_p_value,
    tuned_path_kernel,
)

pytestmark = pytest.mark.statistical
SHORT = np.array([0.0, 0.05, 0.2, 0.5, 0.8, 1.0])
FEWER = {"funnel": 4}  # its references are evaluated row by row: so many times fewer simulations, or temperatures
KINDS = ("gaussian", "t", "mixture", "nested")
FUNNEL = pytest.param("funnel", marks=pytest.mark.slow)


def is_slow(name, kind):
    """Whether a case runs with the long ones; Gaussian and t references and one mixture are left."""
    return name in ("hierarchical", "funnel") or (kind == "mixture" and name != "beta_binomial")


CASES = [
    pytest.param(name, kind, marks=[pytest.mark.slow] * is_slow(name, kind))
    for name in PATH_MODELS
    for kind in KINDS
    if (kind == "nested") == (name == "funnel")
    and (name, kind) != ("normal_scale", "t")  # a heavy tail on a log scale: no finite mean
]


@functools.cache
def kernel_of(name, kind):
    return tuned_path_kernel(PATH_MODELS[name], kind)


@functools.cache
def short_pool(name, kind):
    return path_pool(
        PATH_MODELS[name], kind, kernel_of(name, kind), SHORT,
        n_simulations=1000 // FEWER.get(name, 1), n_chains=4, seed=81,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_identities(name, kind):
    """E[w_fwd] = Z, E[1 / w_rev] = 1 / Z, Crooks' relation; T = 6, 4 standard errors of 1000 simulations."""
    check_path_identities(PATH_MODELS[name], short_pool(name, kind))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_ranks_are_uniform_and_the_alarm_is_silent(name, kind):
    """T = 6; p below 1e-3 over all functions of a path, or below 0.01 for the alarm, rejects."""
    check_path_ranks(short_pool(name, kind))
    check_path_alarm(short_pool(name, kind))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_exact_evidence_inside_the_sandwich(name, kind):
    """T = 64, 200 simulations of 4 chains, 3 standard errors; nor is the mean gap below 0 by more than 4."""
    betas = np.linspace(0.0, 1.0, 64 // FEWER.get(name, 1))
    model = PATH_MODELS[name]
    pool = path_pool(model, kind, kernel_of(name, kind), betas, n_simulations=200, n_chains=4, seed=82)
    check_path_sandwich(model, pool)
    assert pool.gaps.mean() > -4.0 * pool.gaps.std() / np.sqrt(200), "a bound below zero"


@pytest.mark.parametrize(("name", "kind"), [("normal_mean", "gaussian"), ("beta_binomial", "mixture")])
def test_levels_of_ranks_and_alarm(name, kind):
    """100 tests of 40 simulations: at level 0.05 at most 12 ranks reject (5 + 3 standard errors), at 0.01 4 alarms."""
    pool = path_pool(PATH_MODELS[name], kind, kernel_of(name, kind), SHORT, n_simulations=4000, n_chains=2, seed=83)
    groups = [part(pool, slice(40 * i, 40 * i + 40)) for i in range(100)]
    assert sum(rank_p_value(group, seed) < 0.05 for seed, group in enumerate(groups)) <= 12
    assert sum(theory_alarm(group.forward, group.reverse).p_value < 0.01 for group in groups) <= 4


@pytest.mark.parametrize(("name", "kind"), [("normal_mean", "gaussian"), ("beta_binomial", "mixture")])
def test_interval_covers_the_mean(name, kind):
    """150 intervals of 20 simulations at 95 %: 89 % to 100 % hold the mean of all 3000 (3 standard errors below 95)."""
    pool = path_pool(PATH_MODELS[name], kind, kernel_of(name, kind), SHORT, n_simulations=3000, n_chains=2, seed=84)
    gaps = pool.gaps
    intervals = [mean_interval(gaps[20 * i : 20 * i + 20], 0.95) for i in range(150)]
    covered = np.mean([one.lower <= gaps.mean() <= one.upper for one in intervals])
    assert covered >= 0.89
    narrow = [mean_interval(gaps[20 * i : 20 * i + 20], 0.6) for i in range(150)]
    assert np.mean([one.lower <= gaps.mean() <= one.upper for one in narrow]) < 0.89


RATE_CASES = [
    ("normal_mean", "gaussian"),
    ("beta_binomial", "t"),
    ("normal_scale", "gaussian"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), RATE_CASES)
def test_gap_falls_as_one_over_n_temperatures(name, kind):
    """T = 16, 32, 64, 128: log-log slope -1 within 3 standard errors + 0.1 for what is left of the 1 / T^2 term."""
    counts = np.array([16, 32, 64, 128])
    means, errors = [], []
    for place, count in enumerate(counts):
        betas = np.linspace(0.0, 1.0, count)
        gaps = path_pool(
            PATH_MODELS[name], kind, kernel_of(name, kind), betas,
            n_simulations=400 * count // 16, n_chains=4, seed=90 + place,
        ).gaps  # fmt: skip
        means.append(gaps.mean())
        errors.append(gaps.std(ddof=1) / np.sqrt(len(gaps)))
    assert min(means) > 0.0
    weights = (np.array(means) / np.array(errors)) ** 2
    centred = np.log(counts) - np.average(np.log(counts), weights=weights)
    slope = (weights * centred * np.log(means)).sum() / (weights * centred**2).sum()
    error = 1.0 / np.sqrt((weights * centred**2).sum())
    assert error < 0.2 and abs(slope + 1.0) <= 3.0 * error + 0.1, f"slope {slope:.2f}, standard error {error:.2f}"


# ---- negative controls -----------------------------------------------------------------------------------------


def sticky_kernel(name):
    """Frozen steps of a fiftieth: chains stay where they start, so that the starts show in the weights."""
    kernel = tuned_path_kernel(PATH_MODELS[name], "narrow")
    return replace(kernel, settings=kernel.settings | {"step_size": 0.02 * kernel.settings["step_size"]})


def narrow_pool(name, kernel, *, is_given_truth):
    return path_pool(
        PATH_MODELS[name], "narrow", kernel, SHORT,
        n_simulations=1000 // FEWER.get(name, 1), n_chains=4, seed=81, is_given_truth=is_given_truth,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["normal_mean", "beta_binomial", "normal_scale", FUNNEL])
def test_ranks_see_a_reference_given_the_exact_draw(name):
    """It is centred at the exact draw; the same width about what the data say is sound."""
    kernel = tuned_path_kernel(PATH_MODELS[name], "narrow")
    check_path_ranks(narrow_pool(name, kernel, is_given_truth=False))
    with pytest.raises(AssertionError, match="uniform"):
        check_path_ranks(narrow_pool(name, kernel, is_given_truth=True))


@pytest.mark.parametrize("name", ["normal_mean", "beta_binomial", "normal_scale", FUNNEL])
def test_alarm_and_evidence_see_a_reference_given_the_exact_draw(name):
    """The exact draw is too typical of such a reference: reverse weights are too small, and fall below the evidence."""
    sound = narrow_pool(name, sticky_kernel(name), is_given_truth=False)
    check_path_ranks(sound)
    check_path_alarm(sound)
    check_path_sandwich(PATH_MODELS[name], sound)
    wrong = narrow_pool(name, sticky_kernel(name), is_given_truth=True)
    with pytest.raises(AssertionError, match="uniform"):
        check_path_ranks(wrong)
    with pytest.raises(AssertionError, match="alarm rings"):
        check_path_alarm(wrong)
    with pytest.raises(AssertionError, match="wrong side of the upper end"):
        check_path_sandwich(PATH_MODELS[name], wrong)
    with pytest.raises(AssertionError, match="Crooks"):
        check_path_identities(PATH_MODELS[name], wrong)


class WrongSign(ReferencePath):
    """Weighs with the steps taken the other way round."""

    def increments(self, betas, log_ratio):
        return -super().increments(betas, log_ratio)


class NextState(ReferencePath):
    """Weighs every step at the state that it leads to."""

    def increments(self, betas, log_ratio):
        return np.diff(betas) * log_ratio[..., 1:]


class NoLastStep(ReferencePath):
    """Stops weighing before the step to beta = 1."""

    def increments(self, betas, log_ratio):
        return super().increments(betas, log_ratio)[..., :-1]


@pytest.mark.parametrize("defect", [WrongSign, NextState, NoLastStep])
@pytest.mark.parametrize("name", ["normal_mean", "normal_scale"])
def test_wrong_weights_are_seen(name, defect):
    pool = path_pool(
        PATH_MODELS[name], "gaussian", kernel_of(name, "gaussian"), SHORT,
        n_simulations=1000, n_chains=4, seed=81, weighs=defect,
    )  # fmt: skip
    with pytest.raises(AssertionError, match=r"Crooks|w_fwd|w_rev"):
        check_path_identities(PATH_MODELS[name], pool)
