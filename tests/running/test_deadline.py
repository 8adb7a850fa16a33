"""`max_seconds=` counts from the call, and every phase looks at the clock, which the tests move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import bread
from bread.jobs import interrupts
from bread.jobs.progress import Display
from bread.report.compat import read_attributes, read_group
from bread.running.state import ledger
from tests.models.reference import AutoregressiveKernel, NormalMean

Y = np.array([0.4, 1.9, 1.1])
LIMIT = 1e6  # seconds
MONOTONIC = time.monotonic


class Clock:
    """The clock of signals, which goes on when it is told; and the phases that began, in their order."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.phases: list[str] = []

    def __call__(self) -> float:
        return MONOTONIC() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(interrupts.time, "monotonic", moved)
    return moved


def check(**options: Any) -> Any:
    model = NormalMean(Y, prior_mean=0.5, prior_sd=1.5, kernel=AutoregressiveKernel(rho=0.3))
    small = {"simulations": 4, "chains": 2, "n_temperatures": (4, 8), "draws": 20, "path": "prior", "tune": 10}
    given = small | {"max_seconds": LIMIT} | options
    return bread.check(model, random_seed=5, cores=1, progressbar=False, **given)


def takes_all_of_the_time(monkeypatch: pytest.MonkeyPatch, clock: Clock, number: int) -> None:
    """Let the phase of this number take all of the time: it notices nothing until its end."""
    display = ledger.Display.phase

    def noted(self: Any, name: str, n_chains: int | None = None, phase: str = "") -> None:
        clock.phases.append(name)
        display(self, name, n_chains, phase)

    monkeypatch.setattr(ledger.Display, "phase", noted)
    timed = ledger.timed_phase

    @contextmanager
    def late(result: Any, display: Any, name: str, phase: str, n_chains: int | None = None) -> Iterator[None]:
        with timed(result, display, name, phase, n_chains):
            yield
            if len(clock.phases) == number:
                clock.ahead += 2 * LIMIT

    monkeypatch.setattr(ledger, "timed_phase", late)


def phases(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the phases of a check that has time."""
    with monkeypatch.context() as patch:
        clock = Clock()
        takes_all_of_the_time(patch, clock, -1)
        assert read_attributes(check())["is_interrupted"] == 0
    return clock.phases


def test_no_phase_begins_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    names = phases(monkeypatch)
    assert {"fitting", "model fit, your data"} < set(names)  # a whole check
    for number in (2, len(names) // 2, len(names) - 1):
        with monkeypatch.context() as patch:
            clock.phases.clear()
            clock.ahead = 0.0
            takes_all_of_the_time(patch, clock, number)
            with pytest.warns(UserWarning, match=r"Stopped after max_seconds=1e\+06"):
                report = check()
            assert clock.phases == names[:number], names[number - 1]
            assert bread.verdict(report).status == "inconclusive"
            assert {"error", "role"} <= set(bread.summary(report, kind="bounds").columns)


def test_what_compiling_takes_counts(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """A model that takes longer than there is leaves a report without chains, at once."""
    take = Display.done

    def slow(display: Display) -> None:
        clock.ahead += 2 * LIMIT  # "compiling" is the first phase
        take(display)

    monkeypatch.setattr(Display, "done", slow)
    with pytest.warns(UserWarning, match="Stopped after"):
        report = check()
    assert read_attributes(report)["is_interrupted"] == 1 and read_group(report, "forward") is None
    assert bread.verdict(report).status == "inconclusive" and bread.summary(report, kind="bounds").empty
    assert read_attributes(check(max_seconds=None))["is_interrupted"] == 0
