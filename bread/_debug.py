"""`bread.debug`: whether a sampler, a simulator or a density is correct."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.backends import model_in_context, open_model
from bread.backends.base import Model, OpenOptions
from bread.debugging.bare import BareSubject
from bread.debugging.battery import BUDGET, LEVEL, run_battery
from bread.debugging.model_subject import ModelSubject
from bread.debugging.model_tests import ModelTests, run_model_tests
from bread.debugging.results import BatteryResult, Detectable, TestResult
from bread.debugging.subject import Subject
from bread.debugging.target import Target
from bread.debugging.targets import Kind, default_targets
from bread.errors import KNOWN_DEFECT, BreadError, InvalidArgumentError
from bread.paths.kinds import PriorPath
from bread.report.compat import import_arviz
from bread.report.debug import debug_container
from bread.running import interrupts
from bread.running.progress import Display
from bread.seeds import Purpose, root_entropy, seed_sequence

MODEL_SHARE = 0.5  # of the level, for tests of a model before its kernel
_NOTHING = Detectable(math.nan, math.nan, math.nan, math.nan)


def debug(
    model: Any = None,
    *,
    kernel: Any = None,
    log_density: Callable[..., Any] | None = None,
    simulate: Callable[..., Any] | None = None,
    gradient: Callable[..., Any] | None = None,
    targets: Sequence[Target] | Kind | None = None,
    data: Any = None,
    observed: str | Sequence[str] | None = None,
    simulator: Any = None,
    likelihood: int | Sequence[int] | None = None,
    only: Literal["simulator", "kernel"] | None = None,
    reversible: bool = False,
    level: float = LEVEL,
    budget: float = 1.0,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Any:
    """Find out whether a sampler, a simulator or a density is correct.

    A battery of tests, each with a law that is known where nothing is wrong: exact draws against the density,
    gradients against differences, integrals of priors, transforms, chains from exact draws against fresh ones,
    reversibility, what a kernel remembers, shared random numbers, annealed chains, the joint test of Geweke. Together
    they ring where nothing is wrong with a probability of at most ``level``. They go on where it is unclear and stop
    where it is decided.

    Parameters
    ----------
    model : pymc.Model, cmdstanpy.CmdStanModel, path or str, optional
        What `bread.check` takes: its simulator, density and kernel are tested. Without it a bare kernel or a bare
        simulator.
    kernel : optional
        With a model: the kernel, as for `bread.check`; for PyMC *any* step method, or a callable that builds one, run
        as it is. Without a model: a function ``step(x, rng) -> x`` of a state (d,) and a ``numpy.random.Generator``,
        or a `bread.debugging.stepper.Stepper`, with ``log_density`` and ``simulate``; or, without those, a function
        ``kernel(target)`` that returns either for a `bread.debugging.target.Target`.
    log_density : callable, optional
        ``log_density(x)`` of a state (d,), in nats, up to a constant; -inf outside of the support.
    simulate : callable, optional
        ``simulate(n, rng)``: independent exact draws (n, d); of integers where coordinates are whole numbers.
    gradient : callable, optional
        ``gradient(x)`` of the log density, shape (d,).
    targets : sequence of Target or {"continuous", "discrete", "all"}, optional
        What a kernel without a law is tested on; "continuous" by default. Skewed, correlated, heavy-tailed, bounded,
        bimodal laws and a funnel, because a symmetric law in one dimension hides much.
    data, observed, simulator, likelihood : optional
        As for `bread.check`.
    only : {"simulator", "kernel"}, optional
        Half of the battery: exact draws against the density, or the kernel.
    reversible : bool, default False
        Whether a kernel that is not reversible is wrong. Many right ones are not (sweeps in a fixed order).
    level : float, default 0.01
        Rate of false alarms of all tests together.
    budget : float, default 1
        Work, times the default: some 500,000 steps and evaluations.
    random_seed : int, optional
        Seed of everything random; None for fresh entropy.
    progressbar : bool, default True
        Show phases on stderr.

    Returns
    -------
    InferenceData or DataTree
        A report with the group ``debug``. `bread.verdict` says "bug" or "no bug found" and what is likely, with what
        the budget could have seen; `bread.summary` is a table of the tests; `bread.plot_debug` draws them.

    Raises
    ------
    InvalidArgumentError
        Arguments that do not fit together, or have no such value.
    UnsupportedModelError, UnsupportedKernelError
        The model cannot be simulated, or the kernel does not fit it.

    Warns
    -----
    KnownBugWarning
        The model meets a defect of the installed version of PyMC; the text names the version that mends it.

    References
    ----------
    Geweke (2004), "Getting it right: joint distribution tests of posterior simulators", JASA 99, 799-804.
    Gandy & Scott (2020), "Unit testing for MCMC and other Monte Carlo methods".
    Grosse, Ghahramani & Adams (2015), "Sandwiching the marginal likelihood using bidirectional Monte Carlo".
    """
    _check_numbers(level, budget, only)
    began = time.perf_counter()
    root = root_entropy(random_seed)
    import_arviz()
    is_bare = log_density is not None or simulate is not None or targets is not None
    if is_bare or (model is None and _builds(kernel)):
        if model is not None:
            raise InvalidArgumentError(
                "log_density=, simulate= and targets= are for kernels without a model, and model= was given too. "
                "Leave one of them out."
            )
        _refuse({"data": data, "observed": observed, "simulator": simulator, "likelihood": likelihood})
        work = _bare(kernel, log_density, simulate, gradient, targets, only)
    else:
        _refuse({"gradient": gradient}, "is for kernels without a model")
        options = OpenOptions(
            kernel=kernel, data=data, observed=observed, simulator=simulator, likelihood=likelihood, any_kernel=True
        )
        work = _Work(model=model_in_context(model), options=options)
    with interrupts.handled(), Display(is_visible=progressbar, workers=1) as display:
        result, name = _run(work, only, reversible, level, budget, root, display)
    settings = {"level": level, "budget": budget, "only": only or "", "reversible": reversible}
    return debug_container(result, name, root, settings, time.perf_counter() - began)


class _Work(NamedTuple):
    """What is to be tested: bare subjects, or a model with what opens it."""

    subjects: tuple[Subject, ...] = ()
    model: Any = None
    options: OpenOptions | None = None


def _check_numbers(level: float, budget: float, only: str | None) -> None:
    if not 0.0 < level < 1.0:
        raise InvalidArgumentError(f"level must be a probability between 0 and 1, got {level!r}.")
    if not (isinstance(budget, int | float) and 0.0 < budget < math.inf):
        raise InvalidArgumentError(f"budget must be a positive number, times the default work, got {budget!r}.")
    if only not in (None, "simulator", "kernel"):
        raise InvalidArgumentError(f"only must be None, 'simulator' or 'kernel', got {only!r}.")


def _refuse(given: dict[str, Any], why: str = "is for models, and a kernel without one was given") -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidArgumentError(f"{name}= {why}. Leave it out.")


def _builds(kernel: Any) -> bool:
    """Return whether a kernel may be a function of a target: it is callable and no class of a PPL."""
    return callable(kernel) and not isinstance(kernel, type)


def _bare(
    kernel: Any,
    log_density: Callable[..., Any] | None,
    simulate: Callable[..., Any] | None,
    gradient: Callable[..., Any] | None,
    targets: Sequence[Target] | Kind | None,
    only: str | None,
) -> _Work:
    if targets is None and log_density is None and simulate is None:
        targets = "continuous"
    if targets is not None:
        if log_density is not None or simulate is not None:
            raise InvalidArgumentError("targets= have their own log_density and simulate. Leave those out.")
        found = default_targets(targets) if isinstance(targets, str) else tuple(targets)
        if kernel is None and only != "simulator":
            raise InvalidArgumentError(
                "targets= need kernel=, a function kernel(target) that returns a step, and there is none. Pass it."
            )
        if only == "simulator":
            return _Work(tuple(BareSubject(target, None) for target in found))
        return _Work(tuple(_on_target(kernel, target) for target in found))
    if log_density is None or simulate is None:
        raise InvalidArgumentError(
            "a kernel without a model needs both log_density= and simulate= (exact draws), or targets=; "
            f"{'simulate' if simulate is None else 'log_density'}= is missing."
        )
    target = _target(log_density, simulate, gradient)
    return _Work((BareSubject(target, None if only == "simulator" else kernel),))


def _on_target(kernel: Callable[[Target], Any], target: Target) -> BareSubject:
    return BareSubject(target, kernel(target), build=lambda: kernel(target))


def _target(
    log_density: Callable[..., Any], simulate: Callable[..., Any], gradient: Callable[..., Any] | None
) -> Target:
    first = np.asarray(simulate(2, default_rng(0)))
    if first.ndim != 2 or len(first) != 2:
        raise InvalidArgumentError(
            f"simulate(2, rng) must return two draws, shape (2, d), but returned shape {first.shape}."
        )
    is_whole = first.dtype.kind in "iub"
    return Target(
        "your target", first.shape[1], log_density, simulate, gradient, is_discrete=(is_whole,) * first.shape[1]
    )


def _run(
    work: _Work, only: str | None, reversible: bool, level: float, budget: float, root: int, display: Display
) -> tuple[BatteryResult, str]:
    seed = int(seed_sequence(root, Purpose.BATTERY).generate_state(1, np.uint64)[0])
    if work.subjects:
        display.phase("testing")
        result = run_battery(work.subjects, level=level, budget=_steps(budget), seed=seed, reversible=reversible)
        display.done()
        return result, ", ".join(subject.name for subject in work.subjects)
    assert work.options is not None
    display.phase("compiling")
    opened = open_model(work.model, work.options)
    display.done()
    reopen = _reopener(work, opened)
    subjects: tuple[ModelSubject, ...] = ()
    left_out: dict[str, str] = {}
    if only != "simulator":
        display.phase("adapting the kernel")
        subjects, left_out = _subjects(opened, reopen, root)
        display.done()
    tests = ModelTests()
    if only != "kernel":
        display.phase("testing the model")
        at_end = next((one for one in subjects if one.beta == 1.0), None)
        tests = run_model_tests(opened, at_end, level=MODEL_SHARE * level, budget=budget, root=root)
        display.done()
    share = 1.0 - MODEL_SHARE if only is None else 1.0
    battery = None
    if subjects:
        display.phase("testing the kernel")
        battery = run_battery(subjects, level=share * level, budget=_steps(budget), seed=seed, reversible=reversible)
        display.done()
    known = [note for note in opened.info.identity.notes if note.startswith(KNOWN_DEFECT)]
    result = _joined(tests, battery, left_out, level)
    return replace(result, notes=(*known, *result.notes)), opened.info.identity.name


def _steps(budget: float) -> int:
    return max(1, round(budget * BUDGET))


def _reopener(work: _Work, opened: Model) -> Callable[[], Model] | None:
    """Return what opens the model anew, where the kernel may remember what it did."""
    if not getattr(opened, "remembers", False):
        return None
    return lambda: open_model(work.model, work.options or OpenOptions())


def _subjects(
    opened: Model, reopen: Callable[[], Model] | None, root: int
) -> tuple[tuple[ModelSubject, ...], dict[str, str]]:
    """Return the kernel at both ends of the prior path, and why at one it cannot be tested."""
    found: list[ModelSubject] = []
    left_out: dict[str, str] = {}
    betas = (0.0, 1.0) if PriorPath.name in opened.info.paths else (1.0,)
    for place, beta in enumerate(betas):
        seed = SeedSequence(root, spawn_key=(int(Purpose.BATTERY), 1, place))
        try:
            found.append(ModelSubject(opened, beta, seed, reopen))
        except BreadError as error:
            left_out[f"kernel at beta = {beta:g}"] = str(error)
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
