"""`bread.check`: the main verb."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from numpy.typing import ArrayLike

from bread.backends import model_in_context, module_of
from bread.jobs import interrupts
from bread.jobs.executors import Workers, available_cores, one_thread, started_early
from bread.jobs.progress import Display
from bread.jobs.remote import require_executor
from bread.report.types import Report
from bread.verbs.arguments import Arguments
from bread.verbs.checkpoint import open_checkpoint

FITTING = ("sklearn.covariance", "sklearn.mixture")  # what fits of a reference import, a second of processor time


def check(
    model: Any = None,
    *,
    data: Any = None,
    observed: str | Sequence[str] | None = None,
    posterior: Any = None,
    simulate_from: str = "auto",
    max_error: float = 0.1,
    budget: str | int | None = None,
    max_seconds: float | None = None,
    cores: int | None = None,
    checkpoint: Any = None,
    random_seed: int | None = None,
    progressbar: bool = True,
    # statistical
    hyperparameters: str | Sequence[str] | None = None,
    simulations: int = 20,
    chains: int = 4,
    n_temperatures: int | Sequence[int] | None = None,
    max_temperatures: int = 1024,
    target: float | None = None,
    draws: int | None = None,
    path: Any = "auto",
    # expert
    simulator: Any = None,
    likelihood: int | Sequence[int] | None = None,
    init_steps: int = 100,
    schedule: str | ArrayLike = "adaptive",
    kernel: Any = None,
    engine: str | None = None,
    tune: int = 200,
    tune_on: str = "auto",
    executor: Any = None,
) -> Report:
    """Bound how far certified draws are from the posterior on data like yours, and compare your own draws with them.

    What decides is, in this order: exact draws of the model against its density and the kernel ("bug"); your draws
    against the gradient of the density (`bread.look`) and against certified draws on your data ("disagreement"); and V,
    the largest error of a probability computed from a certified draw, whose limit must not exceed ``max_error``
    ("converged"). V comes from simulated data sets, each with an exact posterior draw: chains are annealed forward from
    a base, and in reverse from that draw.

    Arguments stand in three groups: everyday (``model`` to ``progressbar``), statistical (``hyperparameters`` to
    ``path``) and expert (``simulator`` to ``executor``).

    Parameters
    ----------
    model : pymc.Model, bambi.Model, cmdstanpy.CmdStanModel, path or str, optional
        A PyMC model with observed data, or a Bambi model; inside ``with model:`` it may be left out. Or a Stan
        program: a CmdStanModel, the path of a ``.stan`` file, or the program's text. It is never changed. A NumPyro
        model is wrapped with its arguments: ``bread.numpyro.Model(function, (x, y))``.
    data : dict or path, optional
        Stan: values of the data block, or the path of a file in CmdStan's JSON format.
    observed : str or sequence of str, optional
        Stan: data variables that are outcomes. By default inferred where the program leaves no doubt: data left of a
        ``~``, first in an ``_lpdf`` or ``_lpmf``, looked up in a simplex, or less its mean as an error that has a
        density; the report's notes say which.
    posterior : InferenceData, DataTree, Dataset, dict, data frame or paths, optional
        Your own draws on the real data: looked at first (`bread.look`; report group ``first_look``), used as the fit,
        and compared with certified draws (report group ``agreement``), which asks for 100 effective ones of each
        parameter; draws that cannot be compared, as under "localised", leave the verdict "inconclusive". Without it the
        fit that bread makes for "fitted" is looked at and compared.
        Also a table with a column for each number (R's ``posterior``, cmdstanpy's ``draws_pd``), NumPyro's MCMC, or
        files: CSV of CmdStan, cmdstanr and rstan or of a table, Parquet; a list of paths is a chain each.
        PyMC: also what ``pm.fit`` or Bambi's ``fit`` returns. Stan: also a CmdStanMCMC (or CmdStanPathfinder,
        CmdStanLaplace, CmdStanVB); without it a CmdStanModel that is compiled, or can be, is fitted by its own
        ``sample``, a program by its path or text by Stan's NUTS in the embedded engine.
        Variables that are missing are computed where deterministics or transformed parameters among the draws
        determine them (z, from ``mu + tau * z``). Else what is there is compared, with generated quantities too.
    simulate_from : {"auto", "fitted", "prior", "posterior", "localised"}, default "auto"
        "auto": "fitted" where the prior can be drawn; else "posterior"; else "localised"; the report says which was
        taken. Where none is possible, draws on the real data (yours, or those of a fit that bread makes) are looked at
        by their density alone (as by `bread.look`, with a search for modes, the fit of the model and a log evidence by
        bridge sampling, where they can be had), and the report's attribute ``not_certified`` says why, and what would
        allow more. The others refuse what they cannot do. "prior": parameters and data are simulated from the model;
        everything is exact, for data sets that may look unlike yours. "fitted": hyperparameters are held at draws of
        the fit to the real data, so that simulated data look like yours; B is then an estimate (Grosse, Ancha & Roy
        2016, section 3.2). "posterior": every data set is simulated at a draw of the posterior (yours, or the fit's)
        and added to the real data, which makes that draw an exact one of the posterior given both, if the draws are
        right. Nothing is held, and of the prior its density is enough: it may be flat, and pm.Potential, or a prior
        without random draws, is taken as it is. Bounds are about posteriors given your data and as many again; tests of
        the chains are tests of the draws. "localised": the prior of the hyperparameters is replaced by a widened
        Gaussian fit to their posterior on the real data, and everything is simulated from and annealed on *that* model:
        data look like yours, the hyperparameters' prior may be flat, and bound, alarm and ranks are exact, for the
        sampler on the localised model.
    max_error : float, default 0.1
        Largest error of a probability to reach: the limit of V, which bounds, on average over simulated data sets, the
        error of any probability that is computed from one annealed draw. It takes the simulated data sets for typical:
        ``bread.summary(report, kind="bounds")`` has one that assumes nothing beside it.
    budget : str or int, optional
        What to spend: a time with its unit ("5 min", "90 s", "1.5 h"), or a whole number of gradient evaluations. The
        check then says after its first rounds which error it can see and what ``max_error`` would take, chooses T and
        the number of simulations (``simulations`` to five times as many) so that the limit of V is lowest, and
        stops at ``max_error``. What has begun is finished, so a little more may be spent, and what is fixed (the
        fit, the search for modes) always runs; a gradient budget leaves out the PPL's own fit of the real data. The
        limit holds as without a budget; predictions decide nothing. The same seed gives the same report with a number;
        with a time, the machine's speed decides what was run. `bread.plan` only predicts.
    max_seconds : float, optional
        Wall time from the call at which the check stops, as by Ctrl-C, with the report of what was finished: its
        verdict is inconclusive, and names the phase that took the time. Nothing begins after that, but reading and
        compiling the model is finished, so that a second call finds it compiled. Where little is left for draws on the
        real data, there are fewer, 100 at least, so that the check may end; it then says so. Otherwise a check that
        finishes in time gives the same report as without it.
    cores : int, optional
        Processes; by default all available. Results are bit-equal for any number.
    checkpoint : path, optional
        A folder that holds what is finished: made where it is missing. Every task is on disk before it counts. The
        same call goes on from there after any end, and so does `bread.resume`, with a report bit-equal to that of a
        check that was never stopped; of a check that had finished the report comes at once. Another call is refused
        and told what differs: code of yours that was edited, too. The folder holds pickles, which can run any code when
        they are read: name only what you or someone you trust has made.
    random_seed : int, optional
        Seed of everything random; None for fresh entropy, or for the seed of the checkpoint.
    progressbar : bool, default True
        Show five stages on stderr (compiling, looking at your draws, learning the posterior's shape, measuring the
        error, annealing on your data), a line with seconds for each, with the bound so far and the time left where
        these are known: live in a terminal, otherwise with a line now and then.
    hyperparameters : str or sequence of str, optional
        Free variables to hold under "fitted", or to localise. Default: those that other free variables depend on;
        where there are none, all but standardised effects (such as the z of a non-centred hierarchy, which a scale
        multiplies); all where nothing else is left.
    simulations : int, default 20
        Simulated data sets that give the bound and its interval (R); with 1 there is no interval.
    chains : int, default 4
        Chains per data set and direction (K).
    n_temperatures : int or sequence of int, optional
        Run exactly these numbers of inverse temperatures (T). By default T grows until the limit of V is at most
        ``max_error``, and fresh simulations confirm it; more are added while that is cheaper than more temperatures.
    max_temperatures : int, default 1024
        Where growing ends.
    target : float, optional
        Nats: reach this upper end of B, the bound on the Jeffreys divergence, in place of ``max_error``. Where B has no
        finite mean, V decides, at the error that B = target would bound.
    draws : int, optional
        Certified draws on the real data at the largest T (report group ``posterior``): exactly so many; 0 for none. By
        default as many as the comparison with the fit needs, about 1000 (Stan), but no more than cost what search and
        confirmation cost (PyMC); 100 where there is no fit to compare, or it has fewer than 100 effective draws.
    path : {"auto", "prior", "reference"}, reference or posterior, default "auto"
        Where chains are annealed from. "prior": the prior, through powers of the likelihood. "reference": a
        normalised density fitted to each data set by optimisation or a short pilot, often a hundred times cheaper
        where data say much and in hierarchies, and the way where the bound of the prior path may be infinite (scales
        with a half-normal or half-Cauchy prior). "auto": the cheaper of the two, by pilots on extra simulated data
        sets. A reference of your own is an object with ``sample(n, rng)`` and ``log_density(states)`` on
        unconstrained coordinates (and ``gradient(states)`` if it has one); one whose draws do not follow its density,
        or whose density does not integrate to one, is refused. To draws a reference is fitted: whatever
        ``posterior`` takes, as from ``pm.sample``, ``pm.fit`` or Pathfinder. The bound holds for all of them.
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
    init_steps : int, default 100
        S: transitions from the simulated parameters to the first reverse start, under "fitted". They are the kernel's;
        where the reference of a data set is near, four in five propose a draw from it instead, which forgets sooner.
    schedule : {"adaptive", "linear", "sigmoid", "geometric"} or array of betas, default "adaptive"
        Where the inverse temperatures lie (`bread.paths.schedules`). An array fixes T to its length.
    kernel : optional
        What pm.sample would assign, by default; "nuts", "hmc", a PyMC step method class, or a callable that builds
        step methods for a model. Stan: "nuts" (default), "hmc", or a
        `bread.StanKernel`, which also sets depth, path length and the jitter of the step size. "independence",
        "independence+nuts" and "independence+hmc" (PyMC and Stan) propose a draw from the path's start before each
        transition, which is accepted by Metropolis and Hastings: one more evaluation, and a smaller V where such draws
        are often accepted. For checks that ask whether draws can be had, not whether a kernel is good: it is no longer
        that kernel alone. By default they are proposed where a path from a fitted reference is dear and its draws are
        accepted; the report's ``kernel`` and the verdict then say so.
    engine : str, optional
        What runs the chains; for PyMC "pymc" (default) or "blackjax", for Stan "stan". "blackjax" (extra ``jax``,
        experimental): BlackJAX's NUTS or HMC on PyMC's JAX conversion of the model, 32 chains at a time; where JAX
        cannot run model or kernel, PyMC's own engine does, and the report's notes say why.
    tune : int, default 200
        Adaptation steps at every knot of the pilot; the result is frozen.
    tune_on : {"auto", "each", "shared"}, default "auto"
        Tune one kernel on every data set, or one for all on an extra simulated data set. "auto": "shared" under
        "fitted", "each" under "prior", where data sets differ more.
    executor : object, optional
        Where chains run, in place of processes of bread's own: a `concurrent.futures.Executor`, as dask, mpi4py and
        Ray give for a cluster; an object with ``submit(function, *arguments)``; or a pool with ``map``. Its workers
        need bread and the packages of the model, and run one task at a time in each process. What a lost worker ran
        is run again. It stays open. Fits of the real data run here, on ``cores``. Results are bit-equal to those
        without it on the same kind of machine.

    Returns
    -------
    InferenceData or DataTree
        The report. Read it with `bread.verdict`, `bread.summary` and `bread.plot`.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed, or the checkpoint is of another call, in use, or cannot be written.
    UnsupportedModelError, UnsupportedKernelError
        The model or kernel cannot be treated exactly; nothing was computed. For Stan with the line of the program.
    MissingDependencyError
        A package, Stan or a C++ compiler is not installed.
    DensityError
        The density failed outside a kernel; the error's ``report`` holds what was finished.

    Warns
    -----
    UserWarning
        Interrupted by Ctrl-C: the report holds what was finished, and its attribute ``is_interrupted`` is 1. (SIGTERM
        ends the process, with what was finished in the checkpoint.) Or: a worker was killed, and what it ran runs
        again. Or: no reference could be fitted to some data sets, which then anneal from one that was moved to them.
        Or, a `bread.errors.KnownBugWarning`: the model meets a defect of the installed version of PyMC. Or, a
        `bread.errors.CheckpointWarning`: the checkpoint is damaged, can no longer be written, or cannot be compared
        with a later call.

    References
    ----------
    Grosse, Ancha & Roy (2016), "Measuring the reliability of MCMC inference with bidirectional Monte Carlo".
    """
    arguments = Arguments(
        simulate_from=simulate_from, hyperparameters=hyperparameters, posterior=posterior, init_steps=init_steps,
        simulations=simulations, chains=chains, n_temperatures=n_temperatures, max_temperatures=max_temperatures,
        max_error=max_error, target=target, path=path, schedule=schedule, kernel=kernel, engine=engine, tune=tune,
        tune_on=tune_on, draws=draws, cores=cores, random_seed=random_seed, progressbar=progressbar, observed=observed,
        simulator=simulator, likelihood=likelihood, budget=budget, max_seconds=max_seconds,
    )  # fmt: skip
    began, n_cores = time.perf_counter(), available_cores(cores)
    if executor is not None:
        require_executor(executor)
    display = Display(is_visible=progressbar, workers=n_cores)
    with interrupts.handled(), open_checkpoint(checkpoint) as saved, display, ExitStack() as stack:
        stack.enter_context(one_thread())
        model = model_in_context(model)
        fits = FITTING if isinstance(arguments.path, str) and arguments.path != "prior" else ()
        stack.enter_context(started_early(module_of(model), n_cores, executor, fits))
        # What reports are made of takes a second to import, in which workers import what they need.
        from bread.verbs.checking import check_model

        return check_model(model, data, arguments, Workers(n_cores, executor), saved, display, began)
