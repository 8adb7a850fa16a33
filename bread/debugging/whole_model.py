"""A whole model: its simulator and density, and its kernel at inverse temperatures that it can be tested at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import Model
from bread.debugging.battery import run_battery
from bread.debugging.between import BETA
from bread.debugging.model_subject import ModelSubject
from bread.debugging.model_tests import ModelTests, run_model_tests
from bread.debugging.results import BatteryResult, Detectable, TestResult
from bread.debugging.worker_pool import WorkerPool
from bread.errors import KNOWN_DEFECT, BreadError
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath
from bread.seeds import Purpose

MODEL_SHARE = 0.5  # of the level, for tests of a model before its kernel
_NOTHING = Detectable(math.nan, math.nan, math.nan, math.nan)


def run_on_model(
    opened: Model,
    reopen: Callable[[], Model] | None,
    *,
    only: Literal["simulator", "kernel"] | None,
    reversible: bool,
    level: float,
    budget: float,
    steps: int,
    root: int,
    seed: int,
    pool: WorkerPool,
    display: Display,
) -> BatteryResult:
    """Test a model and its kernel.

    Parameters
    ----------
    opened : Model
    reopen : callable or None
        See `ModelSubject`.
    only : {"simulator", "kernel"} or None
    reversible : bool
    level, budget : float
        Of all tests; ``budget`` is in units of the default.
    steps : int
        The battery's budget.
    root, seed : int
        Roots of the random numbers of the model's tests and of the battery.
    pool : WorkerPool
    display : Display

    Returns
    -------
    BatteryResult
    """
    subjects: tuple[ModelSubject, ...] = ()
    left_out: dict[str, str] = {}
    if only != "simulator":
        display.phase("adapting the kernel")
        subjects, left_out = _subjects(opened, reopen, root)
        display.done()
    pool.load(opened, subjects)
    tests = ModelTests()
    if only != "kernel":
        display.phase("testing the model")
        at_end = next((one for one in subjects if one.beta == 1.0), None)
        pool.expect(0.0)  # workers, if they were asked for
        tests = run_model_tests(opened, at_end, level=MODEL_SHARE * level, budget=budget, root=root, run=pool.run)
        display.done()
    share = 1.0 - MODEL_SHARE if only is None else 1.0
    battery = None
    if subjects:
        display.phase("testing the kernel")
        battery = run_battery(subjects, level=share * level, budget=steps, seed=seed, reversible=reversible, pool=pool)
        display.done()
    known = [note for note in opened.info.identity.notes if note.startswith(KNOWN_DEFECT)]
    result = _joined(tests, battery, left_out, level)
    return replace(result, notes=(*known, *result.notes))


def _subjects(
    opened: Model, reopen: Callable[[], Model] | None, root: int
) -> tuple[tuple[ModelSubject, ...], dict[str, str]]:
    """Return the kernel at both ends of the prior path, between them where that can be, and why it cannot be tested."""
    found: list[ModelSubject] = []
    left_out: dict[str, str] = {}
    betas = (0.0, 1.0, BETA) if PriorPath.name in opened.info.paths else (1.0,)
    for place, beta in enumerate(betas):
        seed = SeedSequence(root, spawn_key=(int(Purpose.BATTERY), 1, place))
        try:
            found.append(ModelSubject(opened, beta, seed, reopen))
        except BreadError as error:
            left_out["kernel between beta = 0 and 1" if beta == BETA else f"kernel at beta = {beta:g}"] = str(error)
    return tuple(found), left_out


def _joined(tests: ModelTests, battery: BatteryResult | None, left_out: dict[str, str], level: float) -> BatteryResult:
    """Return both parts as one result."""
    reasons = {("model", name): why for name, why in (tests.left_out | left_out).items()}
    failed = [result for result in tests.results if result.fails]
    share = 1.0 - MODEL_SHARE if tests.results else 1.0
    said = tuple(dict.fromkeys(f"{result.test.culprits[0]} {result.finding.note}".strip() for result in failed))
    smallest = min((r.p_value / MODEL_SHARE for r in tests.results if not math.isnan(r.p_value)), default=math.nan)
    if battery is None:
        results = _shared(tests.results, MODEL_SHARE)
        return BatteryResult(
            results, reasons, level, bool(failed), True, smallest, said, (), _NOTHING, tests.spent, 0, 0.0
        )
    return replace(
        battery,
        tests=(*_shared(tests.results, MODEL_SHARE), *_shared(battery.tests, share)),
        left_out={**reasons, **battery.left_out},
        level=level,
        alarm=battery.alarm or bool(failed),
        p_value=float(np.nanmin([smallest, battery.p_value / share, 1.0])),
        diagnosis=(*said, *battery.diagnosis),
        spent=battery.spent + tests.spent,
    )


def _shared(results: Sequence[TestResult], share: float) -> tuple[TestResult, ...]:
    """Return results with p-values adjusted for having a share of the level alone: NaN stays."""
    return tuple(replace(one, p_value=float(np.minimum(1.0, one.p_value / share))) for one in results)
