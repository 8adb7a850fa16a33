"""Checks interrupted at random moments: a valid report or a clean KeyboardInterrupt, and nobody is left behind."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.child_checks import ChildChecks, child_checks, wait_until

MESSAGES = (
    "",  # outside the check
    "Interrupted while the model was read and compiled: nothing was computed.",
)

KINDS = ((signal.SIGINT, True), (signal.SIGINT, False))  # SIGTERM ends the process: see test_terminated


def is_caught(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler of its own for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (caught,) = re.findall(r"^SigCgt:\s*([0-9a-f]+)", status, flags=re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def interrupt(child: ChildChecks, seconds: float, number: signal.Signals, is_group: bool) -> dict[str, Any]:
    """Start a check, send a signal after this time, and return what came out."""
    child.begin()
    time.sleep(seconds)
    limit = time.monotonic() + 0.5
    while not is_caught(child.process.pid, number) and time.monotonic() < limit:
        time.sleep(0.001)
    if is_caught(child.process.pid, number):
        (os.killpg if is_group else os.kill)(child.process.pid, number)
    return child.outcome()


def run_interrupted(kind: str, cores: int, n_moments: int, seed: int) -> list[dict[str, Any]]:
    """Interrupt so many checks at random moments between beginning and end; check each outcome and the end of all."""
    rng = np.random.default_rng(seed)
    outcomes = []
    with child_checks(kind, cores) as child:
        for _ in range(2):  # the first one imports and compiles
            child.begin()
            seconds = child.outcome()["seconds"]
        for moment in range(n_moments):
            # The shell of a terminal interrupts the group; a manager of processes ends the parent alone.
            number, is_group = KINDS[moment % len(KINDS)]
            outcome = interrupt(child, rng.uniform(0, seconds), number, is_group)
            print(kind, cores, moment, number.name, is_group, outcome, flush=True)
            if outcome["outcome"] == "report":
                assert outcome["is_interrupted"] in (0, 1)
                if outcome["is_interrupted"]:
                    assert outcome["status"] == "inconclusive"
                    assert any("Interrupted" in text for text in outcome["warnings"])
            else:
                assert outcome["outcome"] == "KeyboardInterrupt"
                assert outcome["message"] in MESSAGES
            outcomes.append(outcome)
        errors = child.close()
        assert child.process.returncode == 0
        assert errors == ""  # no traceback of a worker, no complaint of a tracker
        wait_until(lambda: not child.processes())
    return outcomes


@pytest.mark.parametrize(
    ("kind", "cores"),
    [
        pytest.param("reference", 2, marks=pytest.mark.slow),
        pytest.param("stan", 1, marks=[pytest.mark.stan, pytest.mark.slow]),
    ],
)
def test_interrupted_at_three_random_moments(kind: str, cores: int) -> None:
    run_interrupted(kind, cores, 3, seed=1)


@pytest.mark.study
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    "kind", [pytest.param("stan", marks=pytest.mark.stan), pytest.param("pymc", marks=pytest.mark.pymc)]
)
def test_interrupted_at_fifty_random_moments(kind: str, cores: int) -> None:
    outcomes = run_interrupted(kind, cores, 50, seed=2)
    assert sum(one.get("is_interrupted", 0) for one in outcomes) >= 10  # the moments were during the checks
