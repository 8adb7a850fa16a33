"""Coupled pairs against exact laws: the bound of the total variation, and unbiased means; broken couplings fail."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.couplings.chains import run_pairs
from bread.statistics.compare.meetings import meeting_bound
from tests.support.coupled_kernels import Autoregression, FiniteKernel

START = (3.0, 0.5)
K = 4.0  # standard errors, over some 30 iterations: 0.001 by chance, and 2 more of room with these seeds

UNSEEN = 10  # pairs that may be expected to meet later than all seen: 4.5e-5 by chance


def bound_and_exact(kernel, lag, n=800, seed=1):
    rng = default_rng(seed)
    initial = tuple(START[0] + START[1] * rng.standard_normal((n, 1)) for _ in range(2))
    found = run_pairs(kernel, initial, SeedSequence(seed).spawn(n), lag=lag, horizon=400)
    bound = meeting_bound(found.meeting_times, lag, 400)
    exact = np.array([kernel.total_variation(int(t), *START) for t in bound.iterations])
    return bound, exact


@pytest.mark.statistical
@pytest.mark.parametrize("lag", [1, 10, 60])
def test_the_bound_holds_and_is_near_where_the_lag_is_large(lag):
    bound, exact = bound_and_exact(Autoregression(0.9), lag)
    assert (np.minimum(bound.bound, 1) + K * bound.standard_error + UNSEEN / 800 >= exact).all()
    assert (bound.limit >= exact).all()
    if lag == 60:
        is_seen = exact > 0.02
        assert is_seen.sum() > 10
        assert (bound.bound[is_seen] - K * bound.standard_error[is_seen] <= 1.3 * exact[is_seen] + 0.02).all()


@pytest.mark.statistical
def test_a_coupling_that_glues_chains_gives_too_small_a_bound():
    """Negative control: the same comparison fails."""
    bound, exact = bound_and_exact(Autoregression(0.9, glue=2.5), 60)
    assert (bound.bound + 2 * K * bound.standard_error + 2 * UNSEEN / 800 < exact).any()


MATRIX = np.array([[0.6, 0.3, 0.1, 0.0], [0.2, 0.5, 0.2, 0.1], [0.0, 0.4, 0.3, 0.3], [0.5, 0.0, 0.1, 0.4]])
VALUES = np.array([[1.0, 0.0], [-2.0, 0.0], [0.5, 1.0], [4.0, 1.0]])


def stationary(matrix):
    return np.linalg.matrix_power(matrix, 500)[0]


def scores(kernel, lag, window, n=3000, seed=2):
    """Return how many standard errors the mean of the estimates is from the exact expectations."""
    initial = (np.zeros((n, 1)), np.zeros((n, 1)))  # all at one state, far from stationary
    found = run_pairs(
        kernel,
        initial,
        SeedSequence(seed).spawn(n),
        lag=lag,
        horizon=300,
        functions=lambda states: VALUES[states[:, 0].astype(int)],
        window=window,
    ).estimates
    error = found.std(axis=0, ddof=1) / np.sqrt(n)
    return np.abs(found.mean(axis=0) - stationary(kernel.matrix) @ VALUES) / error


@pytest.mark.statistical
@pytest.mark.parametrize(("lag", "window"), [(1, (0, 0)), (1, (1, 4)), (2, (0, 5)), (3, (0, 1)), (5, (2, 3))])
def test_means_are_unbiased_from_a_start_that_is_far_off(lag, window):
    assert (scores(FiniteKernel(MATRIX), lag, window) < K).all()


@pytest.mark.statistical
@pytest.mark.parametrize("lag", [1, 2])
def test_a_coupling_that_does_not_keep_marginals_is_biased(lag):
    """Negative control: the second chain copies the first now and then, and so moves by another kernel."""
    assert scores(FiniteKernel(MATRIX, leak=0.4), lag, (0, 1), n=6000).max() > 2 * K


@pytest.mark.statistical
def test_finite_chains_bound_their_total_variation():
    kernel, n, lag = FiniteKernel(MATRIX), 2000, 12
    found = run_pairs(kernel, (np.zeros((n, 1)),) * 2, SeedSequence(4).spawn(n), lag=lag, horizon=200)
    bound = meeting_bound(found.meeting_times, lag, 200)
    exact = [
        0.5 * np.abs(np.linalg.matrix_power(MATRIX, int(t))[0] - stationary(MATRIX)).sum() for t in bound.iterations
    ]
    assert (bound.bound + K * bound.standard_error + UNSEEN / n >= np.array(exact)).all()
    assert bound.bound[0] < 2 * exact[0]


def test_pairs_do_not_depend_on_which_run_together():
    kernel, seeds = Autoregression(0.8), SeedSequence(7).spawn(6)
    x, y = default_rng(0).normal(size=(2, 6, 1))
    options = {"lag": 3, "horizon": 100, "functions": lambda states: states, "window": (2, 9)}
    whole = run_pairs(kernel, (x, y), seeds, **options)
    part = run_pairs(kernel, (x[2:4], y[2:4]), seeds[2:4], **options)
    assert (whole.meeting_times[2:4] == part.meeting_times).all()
    assert (whole.estimates[2:4] == part.estimates).all()


def test_pairs_that_do_not_meet_have_no_time_and_no_estimate():
    kernel = FiniteKernel(np.eye(2))
    x, y = np.zeros((3, 1)), np.ones((3, 1))
    found = run_pairs(kernel, (x, y), SeedSequence(0).spawn(3), lag=1, horizon=20, functions=lambda s: s)
    assert np.isinf(found.meeting_times).all() and np.isnan(found.estimates).all()
