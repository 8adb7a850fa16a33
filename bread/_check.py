"""`bread.check`: the main verb."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bread.report.container as report
from bread._arguments import (
    model_in_context,
    plain_settings,
    read_names,
    read_temperatures,
    require_choice,
    require_count,
    require_parameters,
    require_path,
)
from bread.backends import open_model
from bread.backends.base import Model, ModelInfo, OpenOptions, Simulations
from bread.errors import BreadError, InvalidArgumentError
from bread.fitting.families import fit_diagonal, fit_full, fit_low_rank, localisation
from bread.paths.kinds import BoundedPath, PriorPath, ReferencePath
from bread.paths.mixture import Reference
from bread.paths.user import as_reference
from bread.running.choice import AUTO
from bread.running.executors import available_cores, open_executor
from bread.running.plan import Plan
from bread.running.progress import Display
from bread.running.results import CheckResult
from bread.running.runner import Runner, fit_real_data, timed_phase
from bread.seeds import root_entropy

PATHS = (PriorPath.name, BoundedPath.name, ReferencePath.name, AUTO)
LOCALISATION_WIDTH = 1.5  # standard deviations of the hyperparameters' law over those of their posterior


def check(
    model: Any = None,
    *,
    data: Any = None,
    observed: str | Sequence[str] | None = None,
    simulator: Any = None,
    likelihood: int | Sequence[int] | None = None,
    simulate_from: str = "fitted",
    hyperparameters: str | Sequence[str] | None = None,
    posterior: Any = None,
    init_steps: int = 100,
    simulations: int = 20,
    chains: int = 4,
    n_temperatures: int | Sequence[int] | None = None,
    max_temperatures: int = 1024,
    target: float = 1.0,
    path: Any = "auto",
    schedule: str | ArrayLike = "adaptive",
    kernel: Any = None,
    engine: str | None = None,
    tune: int = 200,
    tune_on: str = "auto",
    draws: int = 100,
    cores: int | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Any:
    """Bound how far draws of annealed MCMC are from the posterior, on data like yours.

    Simulates data sets from the model, anneals chains forward from the prior and in reverse from the exact posterior
    draw that came with each data set, and returns upper bounds (in nats) on the Jeffreys divergence between annealed
    draws and the true posterior. Chains on the real data are compared with those on simulated data.

    Parameters
    ----------
    model : pymc.Model, cmdstanpy.CmdStanModel, path or str, optional
        A PyMC model with observed data; inside ``with model:`` it may be left out. Or a Stan program: a CmdStanModel,
        the path of a ``.stan`` file, or the program's text. It is never changed.
    data : dict or path, optional
        Stan: values of the data block, or the path of a file in CmdStan's JSON format.
    observed : str or sequence of str, optional
        Stan: data variables that are outcomes. By default inferred where the program leaves no doubt: data left of a
        ``~``, first in an ``_lpdf`` or ``_lpmf``, looked up in a simplex, or less its mean as an error that has a
        density; the report's notes say which.
    simulator : callable, path or str, optional
        Draws parameters and data jointly, for models whose own simulator cannot be derived. A function
        ``(rng, data) -> (parameters, observed)`` of a ``numpy.random.Generator`` and the data, returning two dicts of
        arrays (with a third argument ``fixed`` it also holds hyperparameters, which "fitted" needs). PyMC: for
        ``pm.Potential``, improper priors and distributions without random draws, on the reference path. Stan: also a
        Stan program whose generated quantities bear the names of the parameters and observed variables (it holds
        hyperparameters that its data declare as ``fixed_<name>``, where ``use_fixed`` is 1); a program whose
        likelihood cannot be told from its prior is then annealed on the reference path. Simulator and density are
        compared by their gradients (Stan) and by the ranks.
    likelihood : int or sequence of int, optional
        Stan: lines of the program that are the likelihood, where bread asks for them.
    simulate_from : {"fitted", "prior", "localised"}, default "fitted"
        "prior": parameters and data are simulated from the model; everything is exact, for data sets that may look
        unlike yours. "fitted": hyperparameters are held at their estimate on the real data, so that simulated data
        look like yours; B is then an estimate (Grosse, Ancha & Roy 2016, section 3.2). "localised": the prior of the
        hyperparameters is replaced by a widened Gaussian fit to their posterior on the real data, and everything is
        simulated from and annealed on *that* model: data look like yours, the hyperparameters' prior may be flat, and
        bound, alarm and ranks are exact, for the sampler on the localised model.
    hyperparameters : str or sequence of str, optional
        Free variables to hold under "fitted", or to localise; default: those that other free variables depend on, or
        all of them where there are none.
    posterior : InferenceData, DataTree, Dataset or dict, optional
        Your own draws on the real data: used as the fit, and compared with the annealed draws (report group
        ``agreement``). PyMC: also what ``pm.fit`` returns. Stan: also a CmdStanMCMC (or CmdStanPathfinder,
        CmdStanLaplace, CmdStanVB), or the paths of CSV files; without it a CmdStanModel that is compiled, or can be,
        is fitted by its own ``sample``, a program by its path or text by Stan's NUTS in the embedded engine.
    init_steps : int, default 100
        S: kernel steps from the simulated parameters to the first reverse start, under "fitted".
    simulations : int, default 20
        Simulated data sets that give the bound and its interval (R); with 1 there is no interval.
    chains : int, default 4
        Chains per data set and direction (K).
    n_temperatures : int or sequence of int, optional
        Run exactly these numbers of inverse temperatures (T). By default T grows until the upper end of the interval
        of the bound is below ``target``, and fresh simulations confirm it.
    max_temperatures : int, default 1024
        Where growing ends.
    target : float, default 1.0
        Nats.
    path : {"auto", "prior", "bounded", "reference"}, reference or posterior, default "auto"
        Where chains are annealed from. "prior": the prior, through powers of the likelihood. "bounded": the prior,
        through likelihoods that fall no faster than a power of their logarithm; the bound is then finite where the
        usual one is not (scales with a half-normal or half-Cauchy prior). "reference": a normalised density fitted to
        each data set by optimisation or a short pilot, often a hundred times cheaper where data say much and in
        hierarchies. "auto": the cheapest of them, by pilots on extra simulated data sets. A reference of your own is
        an object with ``sample(n, rng)`` and ``log_density(states)`` on unconstrained coordinates (and
        ``gradient(states)`` if it has one). To draws a reference is fitted: whatever ``posterior`` takes, as from
        ``pm.sample``, ``pm.fit`` or Pathfinder. The bound holds for all of them.
    schedule : {"adaptive", "linear", "sigmoid", "geometric"} or array of betas, default "adaptive"
        Where the inverse temperatures lie (`bread.paths.schedules`). An array fixes T to its length.
    kernel : optional
        What pm.sample would assign, by default; "nuts", "hmc", a PyMC step method class, or a callable that builds
        step methods for a model. Stan: "nuts" (default), "hmc", or a
        ``bread.backends.stan.native.kernels.StanKernel``, which also sets depth, path length and the jitter of
        the step size.
    engine : str, optional
        What runs the chains; for PyMC "pymc", for Stan "stan".
    tune : int, default 200
        Adaptation steps at every knot of the pilot; the result is frozen.
    tune_on : {"auto", "each", "shared"}, default "auto"
        Tune one kernel on every data set, or one for all on an extra simulated data set. "auto": "shared" under
        "fitted", "each" under "prior", where data sets differ more.
    draws : int, default 100
        Annealed draws on the real data at the largest T (report group ``posterior``).
    cores : int, optional
        Processes; by default all available. Results are bit-equal for any number.
    random_seed : int, optional
        Seed of everything random; None for fresh entropy.
    progressbar : bool, default True
        Show phases, chains done, the bound so far and the time left in the phase, on stderr: live in a terminal,
        otherwise a line for each phase and one now and then.

    Returns
    -------
    InferenceData or DataTree
        The report. Read it with `bread.verdict`, `bread.summary` and the plots.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed.
    UnsupportedModelError, UnsupportedKernelError
        The model or kernel cannot be treated exactly; nothing was computed. For Stan with the line of the program.
    MissingDependencyError
        A package, Stan or a C++ compiler is not installed.
    DensityError
        The density failed outside a kernel; the error's ``report`` holds what was finished.

    Warns
    -----
    UserWarning
        Interrupted: the report holds what was finished, and its attribute ``is_interrupted`` is 1. Or: no reference
        could be fitted to some data sets, which then anneal from one that was moved to them.

    References
    ----------
    Grosse, Ancha & Roy (2016), "Measuring the reliability of MCMC inference with bidirectional Monte Carlo".
    """
    settings = {name: value for name, value in locals().items() if name not in ("model", "data")}
    root = root_entropy(random_seed)
    n_cores = available_cores(cores)
    temperatures = read_temperatures(n_temperatures, schedule, max_temperatures)
    require_choice("simulate_from", simulate_from, ("fitted", "prior", "localised"))
    if isinstance(path, str):
        require_choice("path", path, PATHS)
    require_choice("tune_on", tune_on, ("auto", "each", "shared"))
    require_count("simulations", simulations, 1)
    require_count("chains", chains, 1)
    require_count("init_steps", init_steps, 0)
    require_count("tune", tune, 10)
    require_count("draws", draws, 0)
    if not (isinstance(target, (int, float)) and math.isfinite(target) and target > 0):
        raise InvalidArgumentError(f"target must be a positive number of nats, got {target!r}.")
    names = read_names("hyperparameters", hyperparameters)
    with Display(is_visible=progressbar, target=target, workers=n_cores) as display:
        display.phase("compiling")
        began = time.perf_counter()
        extra = {
            "data": data,
            "observed": observed,
            "simulator": simulator,
            "likelihood": likelihood,
            "simulate_from": simulate_from,
            "path": path if isinstance(path, str) else ReferencePath.name,
        }
        options = OpenOptions(kernel, engine, names, extra)
        opened = open_model(model_in_context(model), options)
        require_parameters(names, opened.info)
        fit = None if posterior is None else opened.read_posterior(posterior)
        display.done()
        plan = Plan(
            simulate_from=simulate_from,
            hyperparameters=opened.info.hyperparameters if names is None else names,
            init_steps=init_steps,
            simulations=simulations,
            chains=chains,
            n_temperatures=temperatures,
            max_temperatures=max_temperatures,
            target=float(target),
            schedule=schedule,
            path=path if isinstance(path, str) else ReferencePath.name,
            reference=None if isinstance(path, str) else _reference(path, opened),
            tune=tune,
            tune_each=tune_on == "each" or (tune_on == "auto" and simulate_from == "prior"),
            draws=draws,
            root=root,
        )
        require_path(plan.path, opened.info)
        settings |= {"hyperparameters": list(plan.hyperparameters), "tune_on": "each" if plan.tune_each else "shared"}
        result = CheckResult(
            info=opened.info,
            path=PriorPath(),
            settings=plain_settings(settings),
            target=plan.target,
            simulations=_no_simulations(opened.info),
            n_chains=chains,
            seed=root,
            fit=fit,
        )
        result.seconds["compile"] = time.perf_counter() - began
        if simulate_from == "localised":
            opened = _localise(opened, plan, result, n_cores, display)
        _run(opened, plan, result, n_cores, display)
    return report.to_container(result, opened.constrain)


def _localise(model: Model, plan: Plan, result: CheckResult, cores: int, display: Display) -> Model:
    """Return the model whose hyperparameters have a widened fit to their posterior on the real data as their law."""
    if result.fit is None:
        with timed_phase(result, display, "fitting", "fit"):
            result.fit = fit_real_data(model, plan.root, cores)
    with timed_phase(result, display, "localising", "compile"):
        chosen = np.sort(np.concatenate([model.info.positions[name] for name in plan.hyperparameters]))
        draws = model.unconstrain({name: _flat(values) for name, values in result.fit.draws.items()})
        result.localisation = localisation(draws[:, chosen], LOCALISATION_WIDTH)
        localised = model.localise(plan.hyperparameters, result.localisation)
        result.info = localised.info
    return localised


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    """Join chains and draws."""
    return values.reshape((-1, *values.shape[2:]))


def _reference(path: Any, model: Model) -> Reference:
    """Return the user's reference, or one fitted to the user's draws."""
    if callable(getattr(path, "log_density", None)):
        return as_reference(path)
    try:
        read = model.read_posterior(path).draws
    except InvalidArgumentError as error:
        raise InvalidArgumentError(str(error).replace("posterior=", "path=")) from error
    draws = model.unconstrain({name: _flat(values) for name, values in read.items()})
    transformed = np.ones(model.info.dim, dtype=bool) if model.info.transformed is None else model.info.transformed
    fitted = next(item for item in (fit(draws, transformed) for fit in (fit_full, fit_low_rank, fit_diagonal)) if item)
    return replace(fitted, label=f"{fitted.label}, fitted to the draws given as path=")


def _run(model: Model, plan: Plan, result: CheckResult, cores: int, display: Display) -> None:
    """Run the plan; an interruption keeps what is finished, an error carries it."""
    try:
        with open_executor(model, cores) as executor:
            Runner(model, plan, result, executor, display).run(cores)
    except KeyboardInterrupt:
        result.is_interrupted = True
        message = "Interrupted: the report holds what was finished; its verdict is at best inconclusive."
        result.warnings.append(message)
        warnings.warn(message, UserWarning, stacklevel=3)
    except Exception as error:
        result.is_interrupted = True
        result.warnings.append(str(error))
        stopped = error if isinstance(error, BreadError) else _stopped_by(error)
        stopped.report = report.to_container(result, model.constrain)
        raise stopped from (None if stopped is error else error)
    unfitted = result.unfitted_message()
    if unfitted:
        warnings.warn(unfitted, UserWarning, stacklevel=3)


def _stopped_by(error: Exception) -> BreadError:
    return BreadError(
        f"The check was stopped by {type(error).__name__}: {error}. What was finished is in the `report` attribute "
        "of this error."
    )


def _no_simulations(info: ModelInfo) -> Simulations:
    return Simulations(np.empty((0, info.dim)), {}, {})
