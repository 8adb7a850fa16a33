"""What can go wrong in a Stan program: each failure is a recorded value or an error in Stan's own words."""

from __future__ import annotations

import os
import re
import signal
import threading
import time

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats

from bread.backends.base import Failure, Kernel
from bread.backends.stan.language.messages import StanDataError
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.native.watching import WatchedCall
from bread.backends.stan.posterior import StanPosterior
from bread.errors import DensityError, InvalidArgumentError
from tests.support.stan_engine_programs import EXAMPLE, FAILING, HMC, NUTS, PATH, anneal, compiled, frozen_kernel

BOTH = pytest.mark.parametrize("kernel", [NUTS, HMC], ids=["NUTS", "HMC"])
PLAIN = Kernel(np.array([0.0]), {"step_size": np.array([0.5]), "inverse_metric": np.ones((1, 1))})


def failing(mode: int, y: float = 0.5, kernel: StanKernel = NUTS) -> StanPosterior:
    return StanPosterior(compiled(FAILING).instance({"mode": mode, "y": y}), EXAMPLE, kernel)


# ---- failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "failure", "message"),
    [
        (1, Failure.ZERO_RATIO, "the model refuses theta = 1.5"),
        (2, Failure.EXCEPTION, "index out of bounds|accessing element out of range|out of range"),
        (3, Failure.NAN, "log likelihood nan|log likelihood -nan"),
        (4, Failure.ZERO_RATIO, "^$"),
        (5, Failure.ZERO_INITIAL, "^$"),
    ],
)
def test_forward_chains_that_start_badly_end_and_are_counted(mode: int, failure: Failure, message: str) -> None:
    run = anneal(failing(mode), "forward", np.array([[0.2], [1.5]]), 23, kernel=PLAIN)
    assert run.failure[1] == failure
    if mode != 2:  # where the kernel of the good chain may come upon the exception as well
        assert run.failure[0] == Failure.NONE
        assert np.isfinite(run.log_weight[0])
    assert run.log_weight[1] == -np.inf if failure == Failure.ZERO_RATIO else np.isnan(run.log_weight[1])
    assert run.n_gradients[1] <= 1
    assert np.all(np.isnan(run.log_ratio[1, 1:]))
    np.testing.assert_array_equal(run.state_at_end[1], [1.5])
    assert re.search(message, run.message), run.message
    if mode in (1, 2):
        assert "(in 'test.stan', line" in run.message
        assert "bread_m_" not in run.message


@pytest.mark.parametrize(
    ("mode", "failure"),
    [
        (1, Failure.ZERO_INITIAL),
        (2, Failure.EXCEPTION),
        (3, Failure.NAN),
        (4, Failure.ZERO_INITIAL),
        (5, Failure.ZERO_INITIAL),
    ],
)
def test_reverse_chains_from_outside_the_support_are_errors(mode: int, failure: Failure) -> None:
    run = anneal(failing(mode), "reverse", np.array([[1.5], [0.2]]), 24, kernel=PLAIN)
    assert run.failure[0] == failure
    assert np.isnan(run.log_weight[0])
    if mode != 2:
        assert run.failure[1] == Failure.NONE
        assert np.isfinite(run.log_weight[1])


@pytest.mark.statistical
@BOTH
@pytest.mark.parametrize("mode", [1, 3, 4])
def test_inside_a_kernel_rejections_nan_and_zeros_are_rejected_proposals(kernel: StanKernel, mode: int) -> None:
    # From draws of the posterior cut off at theta = 1, a transition leaves that law as it is.
    posterior = failing(mode, 0.5, kernel)
    law = stats.truncnorm(-np.inf, (1 - 0.25) * np.sqrt(2), 0.25, np.sqrt(0.5))
    start = law.rvs((5000, 1), random_state=default_rng(25))
    run = anneal(posterior, "forward", start, 26, kernel=PLAIN, betas=np.array([0.0, 1.0]))
    assert np.all(run.failure == Failure.NONE)
    assert run.state_at_end.max() < 1
    assert stats.kstest(run.state_at_end[:, 0], law.cdf).pvalue > 1e-3
    # Negative control: draws that are not cut off there, where nothing rejects, are told apart.
    free = anneal(failing(0, 0.5, kernel), "forward", start, 26, kernel=PLAIN, betas=np.array([0.0, 1.0]))
    assert stats.kstest(free.state_at_end[:, 0], law.cdf).pvalue < 1e-3


def test_an_exception_inside_a_kernel_ends_the_chain() -> None:
    start = np.full((20, 1), 0.9)
    run = anneal(failing(2, 3.0), "forward", start, 27, kernel=PLAIN)
    assert np.all((run.failure == Failure.EXCEPTION) | (run.state_at_end[:, 0] < 1))
    assert (run.failure == Failure.EXCEPTION).sum() > 5
    assert "out of range" in run.message or "out of bounds" in run.message


def test_a_zero_likelihood_does_not_stop_the_prior() -> None:
    posterior = failing(4)
    log_ratio = posterior.log_ratio(PATH, np.array([[1.5], [0.5]]))
    assert log_ratio.tolist() == [-np.inf, pytest.approx(stats.norm.logpdf(0))]
    evolution = posterior.evolve(PATH, PLAIN, 0.0, np.array([1.5]), tuple(range(0, 2000)), SeedSequence(28))
    assert (evolution.states > 1).mean() == pytest.approx(stats.norm.sf(1), abs=0.05)
    value, ratio, gradient = posterior.instance.gradient(np.array([1.5]), 0.0)
    assert (value, ratio, gradient.tolist()) == (pytest.approx(stats.norm.logpdf(1.5)), -np.inf, [-1.5])
    adaptation = posterior.adapt(PATH, 0.0, np.array([1.5]), SeedSequence(29), 100, None)
    assert adaptation.state[0] <= 1
    assert np.isneginf(adaptation.log_ratio).any()


def test_log_ratio_takes_rejections_for_zeros_and_exceptions_for_nan() -> None:
    states = np.array([[0.5], [1.5]])
    assert failing(1).log_ratio(PATH, states)[1] == -np.inf
    assert np.isnan(failing(2).log_ratio(PATH, states)[1])
    assert np.isnan(failing(3).log_ratio(PATH, states)[1])


@pytest.mark.parametrize("mode", [1, 2, 3, 4, 5])
def test_evolve_and_adapt_refuse_a_bad_start(mode: int) -> None:
    posterior, state = failing(mode), np.array([1.5])
    with pytest.raises(DensityError, match="inverse temperature 1 failed: "):
        posterior.evolve(PATH, PLAIN, 1.0, state, (1,), SeedSequence(30))
    with pytest.raises(DensityError, match="Adapting Stan's NUTS at inverse temperature 1 failed: "):
        posterior.adapt(PATH, 1.0, state, SeedSequence(31), 50, None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"mode": 1}, "variable name=y.*line 6"),
        ({"mode": 1, "y": [1.0, 2.0]}, "variable name=y.*line 6"),
        ({"mode": 1.5, "y": 1.0}, "int variable contained non-int values.*variable name=mode.*line 5"),
        ({"mode": 9, "y": 1.0}, "mode is 9, but must be less than or equal to 5.*line 5"),
        ({"mode": 0, "y": 101.0}, "transformed data refuse y = 101 .*line 10"),
        ('{"mode": ', "JSON.*offset"),
    ],
)
def test_bad_data_are_refused_in_stans_words(data: dict | str, message: str) -> None:
    with pytest.raises(StanDataError, match=message) as caught:
        compiled(FAILING).instance(data)
    assert "bread_m_" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, "text", [[1.0], [1.0, 2.0]], object()])
def test_data_that_are_no_numbers_are_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match="data 'y' must be"):
        compiled(FAILING).instance({"mode": 1, "y": value})


# ---- interrupts ----------------------------------------------------------------------------------------------


def test_an_interrupt_stops_a_long_run_and_leaves_the_program_usable() -> None:
    posterior = EXAMPLE.posterior(NUTS)
    before = posterior.evolve(PATH, frozen_kernel(NUTS), 1.0, np.zeros(2), (5,), SeedSequence(32)).states
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    began = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        posterior.evolve(PATH, frozen_kernel(NUTS), 1.0, np.zeros(2), (50_000_000,), SeedSequence(33))
    assert time.perf_counter() - began < 30
    after = posterior.evolve(PATH, frozen_kernel(NUTS), 1.0, np.zeros(2), (5,), SeedSequence(32)).states
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("is_started", [False, True])
def test_an_interrupt_while_the_run_is_being_started_is_one(monkeypatch: pytest.MonkeyPatch, is_started: bool) -> None:
    """Between handing a call to a thread and its first instruction it can neither be waited for nor left alone."""
    posterior, starts, usual_start = EXAMPLE.posterior(NUTS), [], WatchedCall.start

    def start(call: WatchedCall) -> None:
        starts.append(call)
        if is_started:
            usual_start(call)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(WatchedCall, "start", start)
        posterior.evolve(PATH, frozen_kernel(NUTS), 1.0, np.zeros(2), (50_000_000,), SeedSequence(33))
    assert len(starts) == 1
    run = posterior.evolve(PATH, frozen_kernel(NUTS), 1.0, np.zeros(2), (5,), SeedSequence(32))
    assert np.isfinite(run.states).all()


def test_progress_is_told_and_its_exceptions_pass() -> None:
    instance, told = EXAMPLE.posterior(NUTS).instance, []

    def progress(done: float) -> None:
        told.append(done)
        if len(told) == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        instance.adapt(
            NUTS.struct(PATH), 1.0, 0.5, np.ones(2), np.zeros(2), SeedSequence(34), 50_000_000, (10, 10, 10), 0.8,
            progress,
        )  # fmt: skip
    assert len(told) == 3
    assert told[-1] > 0
    assert np.all(np.diff(told) >= 0)
