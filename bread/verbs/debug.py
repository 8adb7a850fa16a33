"""`bread.debug`: whether a sampler, a simulator or a density is correct."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import default_rng

from bread.argument_rules import is_number, received, require_call, require_choice, require_flag
from bread.arviz_import import require_containers
from bread.backends import model_in_context, open_model
from bread.backends.base import Model, OpenOptions
from bread.backends.info import Identity
from bread.debugging.bare import BareSubject
from bread.debugging.battery import BUDGET, LEVEL, run_battery
from bread.debugging.results import BatteryResult
from bread.debugging.stepper import Stepper
from bread.debugging.subject import Subject
from bread.debugging.target import Target
from bread.debugging.targets import Kind, default_targets
from bread.debugging.whole_model import run_on_model
from bread.debugging.worker_pool import WorkerPool
from bread.errors import InvalidArgumentError
from bread.jobs import interrupts
from bread.jobs.executors import available_cores, one_thread
from bread.jobs.progress import Display
from bread.report.debug import debug_container
from bread.report.types import Report
from bread.seeds import Purpose, root_entropy, seed_sequence


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
    cores: int | None = None,
    progressbar: bool = True,
) -> Report:
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
    cores : int, optional
        Largest number of processes; by default every core that this process may use, and one where a round of tests
        takes less than some 15 seconds. The report is the same for any number. Chains of a kernel that depend on more
        than their start and their seed run in this process, in order, and so do a user's own simulator, and kernels
        that cannot be sent to another process or run many chains at once.
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
    require_flag("reversible", reversible)
    began = time.perf_counter()
    root = root_entropy(random_seed)
    require_containers()
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
    with interrupts.handled(), one_thread(), Display(is_visible=progressbar, workers=available_cores(cores)) as display:
        result, name, identity = _run(work, only, reversible, level, budget, root, cores, display)
    settings = {"level": level, "budget": budget, "only": only or "", "reversible": reversible}
    return debug_container(result, name, root, settings, time.perf_counter() - began, identity)


class _Work(NamedTuple):
    """What is to be tested: bare subjects, or a model with what opens it."""

    subjects: tuple[Subject, ...] = ()
    model: Any = None
    options: OpenOptions | None = None


def _check_numbers(level: float, budget: float, only: str | None) -> None:
    if not (is_number(level) and 0.0 < level < 1.0):
        raise InvalidArgumentError(f"level must be a probability between 0 and 1, got {received(level)}.")
    if not (is_number(budget) and budget > 0.0):
        raise InvalidArgumentError(f"budget must be a positive number, times the default work, got {received(budget)}.")
    if only is not None:
        require_choice("only", only, ("simulator", "kernel"))


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
    given = {"log_density": (log_density, ("x",)), "simulate": (simulate, ("n", "rng")), "gradient": (gradient, ("x",))}
    for name, (function, names) in given.items():
        if function is not None:
            require_call(name, function, names)
    if targets is not None and (log_density is not None or simulate is not None):
        raise InvalidArgumentError("targets= have their own log_density and simulate. Leave those out.")
    if kernel is not None and not isinstance(kernel, Stepper):
        require_call("kernel", kernel, ("x", "rng") if targets is None else ("target",))
    if targets is not None:
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
    try:
        first = np.asarray(simulate(2, default_rng(0)))
    except Exception as error:
        raise InvalidArgumentError(
            f"simulate(2, rng) must return two draws, shape (2, d), but raised {type(error).__name__}: {error}."
        ) from error
    if first.ndim != 2 or len(first) != 2:
        raise InvalidArgumentError(
            f"simulate(2, rng) must return two draws, shape (2, d), but returned shape {first.shape}."
        )
    is_whole = first.dtype.kind in "iub"
    return Target(
        "your target", first.shape[1], log_density, simulate, gradient, is_discrete=(is_whole,) * first.shape[1]
    )


def _run(
    work: _Work,
    only: Literal["simulator", "kernel"] | None,
    reversible: bool,
    level: float,
    budget: float,
    root: int,
    cores: int | None,
    display: Display,
) -> tuple[BatteryResult, str, Identity | None]:
    seed = int(seed_sequence(root, Purpose.BATTERY).generate_state(1, np.uint64)[0])
    with WorkerPool(cores) as pool:
        if work.subjects:
            pool.load(None, work.subjects)
            display.phase("testing")
            result = run_battery(
                work.subjects, level=level, budget=_steps(budget), seed=seed, reversible=reversible, pool=pool
            )
            display.done()
            return result, ", ".join(subject.name for subject in work.subjects), None
        assert work.options is not None
        display.phase("compiling")
        opened = open_model(work.model, work.options)
        display.done()
        result = run_on_model(
            opened, _reopener(work, opened), only=only, reversible=reversible, level=level, budget=budget,
            steps=_steps(budget), root=root, seed=seed, pool=pool, display=display,
        )  # fmt: skip
        return result, opened.info.identity.name, opened.info.identity


def _steps(budget: float) -> int:
    return max(1, round(budget * BUDGET))


def _reopener(work: _Work, opened: Model) -> Callable[[], Model] | None:
    """Return what opens the model anew, where the kernel may remember what it did."""
    if not getattr(opened, "remembers", False):
        return None
    return lambda: open_model(work.model, work.options or OpenOptions())
