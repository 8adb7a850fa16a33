"""`bread.compare`: representations and kernels on the same simulated data and exact draws."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bread.argument_rules import is_number, received, require_call
from bread.arviz_import import require_containers
from bread.backends import model_in_context, open_model
from bread.backends.base import Model, Simulations
from bread.errors import BreadError, InvalidArgumentError
from bread.jobs import interrupts
from bread.jobs.executors import available_cores, one_thread, open_executor
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath
from bread.report.compare import compare_container
from bread.report.types import Report
from bread.running.compare.compared import Entry, anneal_entry
from bread.running.compare.mapped import MappedModel
from bread.running.compare.same_posterior import Compared, require_same_data, require_same_posterior
from bread.running.state.results import CheckResult
from bread.seeds import root_entropy
from bread.verbs.arguments import Arguments, make_plan

SETTINGS = (
    "kernel", "engine", "data", "observed", "simulator", "likelihood", "path", "schedule", "tune", "tune_on",
    "n_temperatures",
)  # fmt: skip
FEWEST = 2  # names
TEMPERATURES = (16, 64, 256)


def compare(
    models: Mapping[str, Any],
    *,
    mapping: Mapping[str, Callable[[dict[str, Any]], Mapping[str, Any]]] | None = None,
    data: Any = None,
    observed: str | Sequence[str] | None = None,
    simulator: Any = None,
    likelihood: int | Sequence[int] | None = None,
    kernel: Any = None,
    engine: str | None = None,
    simulations: int = 20,
    chains: int = 4,
    n_temperatures: int | Sequence[int] = TEMPERATURES,
    path: Any = "prior",
    schedule: str | ArrayLike = "adaptive",
    tune: int = 200,
    tune_on: str = "auto",
    level: float = 0.95,
    cores: int | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Report:
    """Compare representations, kernels, paths or schedules on the same simulated data and exact posterior draws.

    The first model simulates parameters and data sets from its prior. Every other one gets the same data sets, and the
    same exact draws in its own parameters, and is annealed both ways. V and B then differ by the samplers alone, and
    the data sets' common part cancels in paired intervals.

    Parameters
    ----------
    models : dict of str to model, or to (model, settings)
        What `bread.check` takes; one model may stand under several names, with other settings: a dict with
        any of kernel, engine, data, observed, simulator, likelihood, path, schedule, tune, tune_on, n_temperatures.
        The first simulates. All must be one model, in the same or other parameters: put the one with most free
        variables first (of a collapsed pair the uncollapsed one).
    mapping : dict of str to callable, optional
        For models whose free variables the first one does not have by name:
        ``mapping[name](parameters) -> parameters``, from a dict of one draw of the first model (deterministic variables
        too) to a dict of the free variables of this one.
    data, observed, simulator, likelihood, kernel, engine : optional
        As for `bread.check`, for all models that have no setting of their own.
    simulations : int, default 20
        Simulated data sets (R), shared by all.
    chains : int, default 4
        Chains per data set and direction (K).
    n_temperatures : int or sequence of int, default (16, 64, 256)
        Numbers of inverse temperatures (T). At equal gradients and seconds bounds are interpolated between these.
    path : {"prior", "reference", "auto"}, default "prior"
        As for `bread.check`. A fitted reference hides much of what representations do to a sampler.
    schedule : str or array, default "adaptive"
        As for `bread.check`.
    tune, tune_on : int and {"auto", "each", "shared"}, optional
        As for `bread.check`: here "auto" tunes on each data set.
    level : float, default 0.95
        Level of all paired intervals together, by Bonferroni's correction.
    cores : int, optional
        Processes; by default all available. Results but for seconds are bit-equal for any number.
    random_seed : int, optional
        Seed of everything random; None for fresh entropy.
    progressbar : bool, default True
        Show phases on stderr.

    Returns
    -------
    InferenceData or DataTree
        A report with the groups ``comparison`` (V, B, costs, log weights and tests of each model), ``contrasts``
        (paired ratios and differences), ``truth``, ``simulated_data``. `bread.verdict` says which is better by how
        much, or "cannot tell"; `bread.summary` is a table; `bread.plot_compare` draws it.

    Raises
    ------
    InvalidArgumentError
        The models observe other data, are not one model, or the mapping is not right; nothing was annealed.
    UnsupportedModelError, UnsupportedKernelError
        A model or kernel cannot be treated exactly.
    DensityError
        A density failed outside a kernel.

    Warns
    -----
    UserWarning
        Interrupted: the report holds the models that were finished.

    References
    ----------
    Grosse, Ancha & Roy (2016), "Measuring the reliability of MCMC inference with bidirectional Monte Carlo", 5.2.
    """
    shared = {
        "data": data, "observed": observed, "simulator": simulator, "likelihood": likelihood, "kernel": kernel,
        "engine": engine, "path": path, "schedule": schedule, "tune": tune, "tune_on": tune_on,
    }  # fmt: skip
    if not (is_number(level) and 0.5 < level < 1.0):
        raise InvalidArgumentError(
            f"level must lie strictly between 0.5 and 1, got {received(level)}. Use 0.95 for 95%."
        )
    if n_temperatures is None:
        raise InvalidArgumentError(
            "n_temperatures must be a whole number or a sequence of them, all of which are run; received None."
        )
    root, began = root_entropy(random_seed), time.perf_counter()
    run = _Run(simulations, chains, n_temperatures, root, cores, progressbar)
    require_containers()
    if not (mapping is None or isinstance(mapping, Mapping)):
        raise InvalidArgumentError(
            f"mapping must be None or a dict of functions by the names of models, got {received(mapping)}."
        )
    jobs = _read_models(models, mapping or {}, shared)
    arguments = {job.name: run.arguments(job.settings) for job in jobs}
    entries: list[Entry] = []
    with interrupts.handled(), one_thread(), Display(is_visible=progressbar, workers=available_cores(cores)) as display:
        opened = _open(jobs, arguments, root, display)
        is_interrupted = _anneal(opened, arguments, run, entries, display)
    settings = {"level": level, "simulations": simulations, "chains": chains}
    return compare_container(
        entries, root, settings, time.perf_counter() - began, level=level, is_interrupted=is_interrupted
    )


class _Job(NamedTuple):
    """One name of the comparison."""

    name: str
    model: Any
    settings: dict[str, Any]
    mapping: Callable[[dict[str, Any]], Mapping[str, Any]] | None


class _Opened(NamedTuple):
    """A model that was read, with the draws of the first one."""

    job: _Job
    model: Model
    compared: Compared | None
    seconds: float


class _Run(NamedTuple):
    """What all share."""

    simulations: int
    chains: int
    n_temperatures: Any
    root: int
    cores: int | None
    progressbar: bool

    def arguments(self, settings: Mapping[str, Any]) -> Arguments:
        """Return the arguments of a check that is this part of the comparison."""
        given = {name: value for name, value in settings.items() if name != "data"}
        defaults = {
            "simulate_from": "prior", "hyperparameters": None, "posterior": None, "init_steps": 0,
            "simulations": self.simulations, "chains": self.chains, "n_temperatures": self.n_temperatures,
            "max_temperatures": 1024, "max_error": 0.1, "target": None, "draws": 0, "cores": self.cores,
            "random_seed": self.root, "progressbar": self.progressbar,
        }  # fmt: skip
        known = {field.name for field in fields(Arguments)}
        return Arguments(**{name: value for name, value in (defaults | given).items() if name in known})


def _read_models(models: Any, mapping: Mapping[str, Any], shared: dict[str, Any]) -> list[_Job]:
    """Return the names with their models and settings, checked."""
    if not isinstance(models, Mapping) or len(models) < FEWEST or not all(isinstance(name, str) for name in models):
        raise InvalidArgumentError(
            'models must be a dict of at least two names, such as {"centred": model, "non-centred": other}, or '
            f'{{"nuts": (model, {{"kernel": "nuts"}}), ...}}, got {received(models)}.'
        )
    first = next(iter(models))
    for name in mapping:
        if name not in models or name == first:
            raise InvalidArgumentError(
                f"mapping names {received(name)}, which is "
                f"{'the first model' if name == first else 'none of the models'}: it maps parameters of {first!r} to "
                "those of one of the others."
            )
        require_call(f"mapping[{name!r}]", mapping[name], ("parameters",))
    jobs = []
    for name, value in models.items():
        model, own = value if isinstance(value, tuple) and len(value) == FEWEST else (value, {})
        unknown = [key for key in own if key not in SETTINGS] if isinstance(own, Mapping) else [own]
        if unknown:
            raise InvalidArgumentError(
                f"models[{name!r}] has the setting {received(unknown[0])}; a model's own settings are a dict with any "
                f"of {', '.join(SETTINGS)}."
            )
        jobs.append(_Job(name, model_in_context(model), shared | dict(own), mapping.get(name)))
    return jobs


def _open(jobs: Sequence[_Job], arguments: Mapping[str, Arguments], root: int, display: Display) -> list[_Opened]:
    """Read all models, before any is annealed: what does not fit together is refused while it costs little."""
    found: list[_Opened] = []
    for job in jobs:
        display.phase(f"compiling {job.name}")
        began = time.perf_counter()
        model = open_model(job.model, arguments[job.name].open_options(job.settings["data"]))
        compared = None
        if found:
            source, source_name = found[0].model, found[0].job.name
            require_same_data(model, source, job.name, source_name)
            mapped = MappedModel(model, source, job.mapping, job.name, source_name)
            with interrupts.interruptible():
                compared = require_same_posterior(mapped, source, job.name, source_name, root)
            model = mapped
        found.append(_Opened(job, model, compared, time.perf_counter() - began))
        display.done()
    return found


def _anneal(
    opened: Sequence[_Opened], arguments: Mapping[str, Arguments], run: _Run, entries: list[Entry], display: Display
) -> bool:
    """Anneal one model after another; return whether that was interrupted."""
    try:
        interrupts.defer()
        for job, model, compared, seconds in opened:
            plan = make_plan(arguments[job.name], model)
            result = CheckResult(
                info=model.info, path=PriorPath(), settings=arguments[job.name].settings(plan), goal=plan.goal,
                simulations=Simulations(np.empty((0, model.info.layout.dim)), {}, {}), n_chains=plan.chains,
                seed=plan.root, seconds={"compile": seconds},
            )  # fmt: skip
            with open_executor(model, available_cores(run.cores)) as executor, display.together(job.name):
                try:
                    anneal_entry(model, plan, result, executor, display)
                except BreadError as error:
                    error.args = (f"{job.name!r}: {error}",)
                    raise
            entries.append(Entry(job.name, result, compared))
    except KeyboardInterrupt:
        if not entries:
            raise
        warnings.warn(
            f"Interrupted: the report holds {', '.join(repr(entry.name) for entry in entries)} alone.",
            UserWarning,
            stacklevel=3,
        )
        return True
    return False
