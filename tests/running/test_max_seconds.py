"""`max_seconds=`: the report of what there was time for.

The clock is moved by the models themselves, so that no test depends on how fast the machine is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import bread
from bread.errors import InvalidArgumentError
from bread.jobs import interrupts
from bread.report.compat import read_attributes, read_group
from bread.running.check.annealing import Annealing
from tests.models.reference import AutoregressiveKernel, HMCKernel, NormalMean

Y = np.array([0.4, 1.9, 1.1])
QUICK = {"random_seed": 5, "cores": 1, "progressbar": False, "tune": 20}
FOREVER = 1e6  # seconds


@dataclass
class Clock:
    """The clock of signals, which goes on when it is told."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return MONOTONIC() + self.ahead


MONOTONIC = time.monotonic


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(interrupts.time, "monotonic", moved)
    return moved


def slow_fit(clock: Clock, **changes: Any) -> NormalMean:
    """A model whose fit on the real data takes longer than any limit."""

    class SlowFit(NormalMean):
        def fit(self, **options: Any) -> Any:
            clock.ahead += 2 * FOREVER
            return super().fit(**options)

    return SlowFit(Y, prior_mean=0.5, prior_sd=1.5, **{"kernel": AutoregressiveKernel(rho=0.3)} | changes)


def goes_on(monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: float, when: Callable[[str, int], bool]) -> None:
    """Let the clock go on while chains are annealed, ``when(phase, number of what is done)``."""
    anneal = Annealing.both

    def late(self: Any, indices: Any, n_temperatures: int, phase: str) -> Any:
        for number, _ in enumerate(anneal(self, indices, n_temperatures, phase)):
            clock.ahead += seconds * when(phase, number)
            yield

    monkeypatch.setattr(Annealing, "both", late)


def test_a_fit_that_takes_all_of_the_time_leaves_no_bound(clock: Clock) -> None:
    with pytest.warns(UserWarning, match=r"Stopped after max_seconds=1e\+06: the report holds what was finished"):
        report = bread.check(slow_fit(clock), **QUICK, max_seconds=FOREVER)
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive" and "nothing can be said" in verdict.details
    attributes = read_attributes(report)
    assert attributes["simulate_from"] == "fitted" and attributes["is_interrupted"] == 1


def test_what_was_finished_before_the_time_was_over_is_kept(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on(monkeypatch, clock, 2 * FOREVER, lambda phase, number: phase == "confirm" and number == 20)
    with pytest.warns(UserWarning, match="Stopped after"):
        report = bread.check(slow_fit(Clock()), **QUICK, max_seconds=FOREVER, max_error=0.3)
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive" and verdict.n_simulations == 10 and 0.0 < verdict.error < 1.0
    assert read_attributes(report)["simulate_from"] == "fitted"


@pytest.mark.parametrize("is_short", [True, False])
def test_there_are_as_many_draws_on_the_real_data_as_there_is_time_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    """Confirmation has taken nine tenths of the time: the check finishes with the fewest draws, and says so."""
    measured = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: measured() + clock.ahead)
    goes_on(monkeypatch, clock, 0.9 * FOREVER, lambda phase, number: is_short and phase == "confirm" and number == 3)
    model = NormalMean(Y, prior_mean=0.5, prior_sd=1.5, kernel=AutoregressiveKernel(rho=0.3))
    report = bread.check(model, **QUICK, max_seconds=FOREVER, max_error=0.3)
    assert ("left time for 100 certified draws" in read_attributes(report)["warnings"]) == is_short
    assert read_attributes(report)["is_interrupted"] == 0
    n_draws = read_group(report, "posterior").sizes["draw"] * read_group(report, "posterior").sizes["chain"]
    assert (n_draws == 100) == is_short and bread.verdict(report).status == "converged"


@pytest.mark.parametrize(
    "kernel",
    [AutoregressiveKernel(rho=0.3), pytest.param(HMCKernel(5), marks=pytest.mark.slow)],
    ids=["prior", "both paths"],
)
def test_a_check_that_finishes_in_time_is_the_same(kernel: Any) -> None:
    model = NormalMean(Y, prior_mean=0.5, prior_sd=1.5, kernel=kernel)
    settings = QUICK | {"simulate_from": "prior", "n_temperatures": 4, "simulations": 3, "draws": 0}
    limited, usual = bread.check(model, **settings, max_seconds=FOREVER), bread.check(model, **settings)
    for report in (limited, usual):
        report.attrs["settings"] = ""
    for group in ("forward", "reverse", "bounds", "certificate", "truth"):
        one, other = (read_group(report, group) for report in (limited, usual))
        assert one.drop_vars("seconds", errors="ignore").identical(other.drop_vars("seconds", errors="ignore")), group


@pytest.mark.parametrize("value", [0, -1.0, "90 s", True, float("nan")])
def test_limits_that_are_none_are_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_seconds must be None or a positive number"):
        bread.check(NormalMean(Y), **QUICK, max_seconds=value)


def test_other_threads_are_refused() -> None:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            bread.check(NormalMean(Y), **QUICK, max_seconds=1.0)
        except InvalidArgumentError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(caught) == 1 and "main thread" in str(caught[0])


def test_a_long_call_is_stopped_at_the_deadline() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.handled():
        interrupts.defer()
        with interrupts.limited(0.05), interrupts.interruptible():
            threading.Event().wait(60.0)  # only a signal ends it
            raise AssertionError("was not stopped")
    with interrupts.handled(), interrupts.limited(None), interrupts.interruptible():
        assert not interrupts.is_over()
