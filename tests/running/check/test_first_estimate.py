"""`max_seconds=`: the report of what there was time for, a rough look where there was time for nothing else.

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
from bread.errors import BreadError, InvalidArgumentError
from bread.jobs import interrupts
from bread.jobs.executors import open_executor
from bread.report.compat import read_attributes, read_group
from bread.running.check import first_estimate
from bread.running.pilots import tasks
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
    anneal = first_estimate.Annealing.both

    def late(self: Any, indices: Any, n_temperatures: int, phase: str) -> Any:
        for number, _ in enumerate(anneal(self, indices, n_temperatures, phase)):
            clock.ahead += seconds * when(phase, number)
            yield

    monkeypatch.setattr(first_estimate.Annealing, "both", late)


def test_a_fit_that_takes_all_of_the_time_leaves_the_rough_look(clock: Clock) -> None:
    with pytest.warns(UserWarning, match=r"Stopped after max_seconds=1e\+06: the report holds what was finished"):
        report = bread.check(slow_fit(clock), **QUICK, max_seconds=FOREVER)
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive" and verdict.n_simulations == first_estimate.SIMULATIONS
    assert verdict.n_temperatures == first_estimate.TEMPERATURES and 0.0 < verdict.error < 1.0
    attributes = read_attributes(report)
    assert attributes["simulate_from"] == "prior" and attributes["is_interrupted"] == 1
    assert "asked for was simulate_from='fitted'" in attributes["warnings"]
    assert "confirms nothing" in verdict.details and "Held at" not in verdict.details
    assert first_estimate.PHASE in read_group(report, "cost")["phase"].values


def test_without_the_rough_look_there_is_nothing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the look made the difference."""

    def fails(*arguments: Any, **options: Any) -> None:
        raise BreadError("no path")

    monkeypatch.setattr(first_estimate.Preparation, "choose_path", fails)
    with pytest.warns(UserWarning, match="Stopped after"):
        report = bread.check(slow_fit(clock), **QUICK, max_seconds=FOREVER)
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive" and "nothing can be said" in verdict.details
    assert read_attributes(report)["simulate_from"] == "fitted"


def test_what_the_check_itself_finished_goes_before_the_rough_look(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on(monkeypatch, clock, 2 * FOREVER, lambda phase, number: phase == "confirm" and number == 20)
    with pytest.warns(UserWarning, match="Stopped after"):
        report = bread.check(slow_fit(Clock()), **QUICK, max_seconds=FOREVER, max_error=0.3)
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive" and verdict.n_simulations > first_estimate.SIMULATIONS
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


def test_the_look_ends_with_what_it_has_after_a_tenth_of_the_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its share of the time is over when a second data set is done; without that all five are."""
    goes_on(monkeypatch, clock, 2 * first_estimate.SHARE * FOREVER, lambda _, number: number == 3)
    with pytest.warns(UserWarning, match="Stopped after"):
        report = bread.check(slow_fit(clock), **QUICK, max_seconds=FOREVER)
    assert bread.verdict(report).n_simulations == 2 < first_estimate.SIMULATIONS
    assert read_attributes(report)["simulate_from"] == "prior"


@pytest.mark.parametrize("is_slow", [False, True])
def test_the_prior_path_is_looked_at_where_the_reference_takes_too_long(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    began = tasks.FitTask.run

    def late(self: Any, model: Any) -> Any:
        clock.ahead += is_slow * 1.1 * first_estimate.SHARES[0] * FOREVER
        return began(self, model)

    monkeypatch.setattr(tasks.FitTask, "run", late)
    with pytest.warns(UserWarning, match="Stopped after"):
        report = bread.check(slow_fit(clock, kernel=HMCKernel(5)), **QUICK, max_seconds=FOREVER)
    attributes, verdict = read_attributes(report), bread.verdict(report)
    assert attributes["path"] == ("prior" if is_slow else "reference")
    assert verdict.n_simulations == (first_estimate.FEWEST if is_slow else first_estimate.SIMULATIONS)
    assert f"at {verdict.n_simulations} data sets simulated from the prior" in attributes["warnings"]


def test_a_part_of_a_check_ends_once_and_only_inside(clock: Clock) -> None:
    with interrupts.handled():
        with interrupts.ends_after(10.0, LookupError("late")):
            interrupts.raise_pending()
            clock.ahead = 11.0
            with pytest.raises(LookupError, match="late"):
                interrupts.raise_pending()
            interrupts.raise_pending()
        with interrupts.ends_after(10.0, LookupError("late")):
            pass
        clock.ahead = 22.0
        interrupts.raise_pending()


@pytest.mark.slow
def test_what_workers_are_at_is_left_where_its_time_is_over() -> None:
    """Two workers would sleep for a minute; the next executor has others."""
    model = NormalMean(Y, prior_mean=0.5, prior_sd=1.5)
    with interrupts.handled():
        began = time.monotonic()
        with pytest.raises(LookupError), interrupts.ends_after(0.5, LookupError()), open_executor(model, 2) as executor:
            list(executor.run([Sleep(60.0), Sleep(60.0)]))
        with open_executor(model, 2) as executor:
            assert sorted(executor.run([Sleep(0.0), Sleep(0.0)])) == [(0, 0.0), (1, 0.0)]
        assert time.monotonic() - began < 40.0


@dataclass(frozen=True)
class Sleep:
    """A task that takes its time."""

    seconds: float
    n_chains: int = 1

    def run(self, model: Any) -> float:
        time.sleep(self.seconds)
        return self.seconds


@pytest.mark.parametrize(
    "kernel",
    [AutoregressiveKernel(rho=0.3), pytest.param(HMCKernel(5), marks=pytest.mark.slow)],
    ids=["prior", "both paths"],
)
def test_a_check_that_finishes_in_time_is_the_same_but_for_its_cost(kernel: Any) -> None:
    model = NormalMean(Y, prior_mean=0.5, prior_sd=1.5, kernel=kernel)
    settings = QUICK | {"simulate_from": "prior", "n_temperatures": 4, "simulations": 3, "draws": 0}
    limited, usual = bread.check(model, **settings, max_seconds=FOREVER), bread.check(model, **settings)
    assert first_estimate.PHASE in read_group(limited, "cost")["phase"].values
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
