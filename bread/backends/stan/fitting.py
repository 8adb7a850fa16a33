"""Draws from the posterior on the real data: by CmdStan, by Stan's adaptive NUTS in the embedded engine, or the user's.

Stan's defaults: 4 chains, 1000 steps of adaptation and 1000 draws each, from states between -2 and 2.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from bread.backends.base import Fit, FloatArray
from bread.backends.stan.native.kernels import TARGET_ACCEPTANCE, StanKernel
from bread.backends.stan.native.library import StanInstance
from bread.backends.support.draw_forms import PlainDraws
from bread.backends.support.posterior_draws import read_posterior
from bread.errors import BreadError, InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath
from bread.workers import call_on_workers

CHAINS, WARMUP, DRAWS = 4, 1000, 1000  # Stan's defaults
WINDOWS = (75, 50, 25)  # Stan's init_buffer, term_buffer and base window
START_TRIES = 100  # states at which Stan looks for a finite density
USUAL_LEAPFROGS, PROCESS_SECONDS = 15, 1.0
_WAY_OUT = (
    "Correct the model, pass posterior= with draws of your own, or use simulate_from='prior', which needs no fit."
)


def fit(instance: StanInstance, *, seed: int, cores: int) -> Fit:
    """Sample the posterior with Stan's adaptive NUTS and its defaults; equal results for any number of cores.

    Raises
    ------
    UnsupportedModelError
        No start has a finite density, or the program raises.
    """
    began = time.perf_counter()
    seeds = SeedSequence(seed).spawn(CHAINS)
    try:
        if min(cores, CHAINS) == 1 or _is_quick(instance, seeds[0]):
            chains = [run_chain(instance, one) for one in seeds]
        else:
            found = dict(call_on_workers(run_chain, [(instance, one) for one in seeds], cores))
            chains = [found[index] for index in range(CHAINS)]
        draws = instance.constrain(np.concatenate(chains))
    except BreadError as error:
        raise UnsupportedModelError(f"Stan's NUTS fails on the real data: {error} {_WAY_OUT}") from error
    shaped = {name: values.reshape((CHAINS, DRAWS, *values.shape[1:])) for name, values in draws.items()}
    return Fit(shaped, "Stan's adaptive NUTS", time.perf_counter() - began)


def _is_quick(instance: StanInstance, seed: SeedSequence) -> bool:
    """Return whether all chains take less time than other processes take to start."""
    state = _start(instance, seed)
    seconds = instance.seconds_per_gradient(state[None, :], 1.0, 20)
    return seconds * CHAINS * (WARMUP + DRAWS) * USUAL_LEAPFROGS < PROCESS_SECONDS


def run_chain(instance: StanInstance, seed: SeedSequence) -> FloatArray:
    """Return the draws (DRAWS, dim) of one chain."""
    start, adaptation, sampling = SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(3)
    kernel = StanKernel("NUTS").struct(PriorPath())
    state, metric = _start(instance, start), np.ones(instance.dim)
    adapted = instance.adapt(kernel, 1.0, 1.0, metric, state, adaptation, WARMUP, WINDOWS, TARGET_ACCEPTANCE)
    keep = range(1, DRAWS + 1)
    return instance.evolve(kernel, 1.0, adapted.step_size, adapted.inverse_metric, adapted.state, keep, sampling)[0]


def _start(instance: StanInstance, seed: SeedSequence) -> FloatArray:
    """Return a state of finite density, as Stan looks for one."""
    states = default_rng(seed).uniform(-2.0, 2.0, (START_TRIES, instance.dim))
    message = "the log density is -inf or NaN"
    for state in states:
        try:
            density, _, gradient = instance.gradient(state, 1.0)
        except BreadError as error:
            message = str(error)
            continue
        if np.isfinite(density) and np.isfinite(gradient).all():
            return np.asarray(state)
    raise UnsupportedModelError(
        f"No start among {START_TRIES} states between -2 and 2 has a finite density: {message}."
    )


def fit_by_cmdstan(model: Any, data: Mapping[str, Any], names: Sequence[str], *, seed: int, cores: int) -> Fit:
    """Sample with the user's ``CmdStanModel.sample`` and its defaults.

    Raises
    ------
    UnsupportedModelError
        CmdStan fails.
    """
    began = time.perf_counter()
    logger = logging.getLogger("cmdstanpy")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if getattr(model, "exe_file", None) is None:
                model.compile()
            result = model.sample(data=dict(data), seed=seed, parallel_chains=min(cores, CHAINS), show_progress=False)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UnsupportedModelError(f"CmdStanModel.sample fails on the real data: {reason} {_WAY_OUT}") from error
    finally:
        logger.disabled = was_disabled
    return Fit(draws_of(result, names), "CmdStanModel.sample", time.perf_counter() - began)


def read_draws(
    posterior: Any,
    shapes: Mapping[str, tuple[int | None, ...]],
    dims: Mapping[str, tuple[str, ...]],
    derived: Mapping[str, tuple[int | None, ...]] | None = None,
) -> Fit:
    """Read the user's own draws.

    Parameters
    ----------
    posterior : CmdStanMCMC, paths of files, a table, InferenceData, DataTree, Dataset or dict
        Also a CmdStanPathfinder, CmdStanLaplace or CmdStanVB; files and tables as `bread.backends.support.draw_forms`
        reads them. A dict has arrays of the shape (chain, draw, ...).
    shapes : mapping of str to tuple of int
        Parameters of the program; None is a length that is not known.
    dims : mapping of str to tuple of str
        Their dimension names.
    derived : mapping of str to tuple of int, optional
        Transformed parameters and generated quantities: read where parameters are missing.

    Raises
    ------
    InvalidArgumentError
        Names what does not fit.
    """
    if hasattr(posterior, "stan_variable"):  # of cmdstanpy
        divergences = getattr(posterior, "divergences", None)
        statistics = {} if divergences is None else {"diverging": divergences}
        posterior = PlainDraws(draws_of(posterior, (*shapes, *(derived or {}))), statistics)
    return read_posterior(posterior, shapes, dims, {}, derived)


def draws_of(result: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return (chain, draw, ...) arrays of those names that the result has.

    A CmdStanMCMC holds all draws of a chain, then those of the next; an approximation's draws are one chain.

    Raises
    ------
    InvalidArgumentError
        The result is the point that CmdStan's optimizer found.
    """
    if hasattr(result, "optimized_params_np"):
        raise InvalidArgumentError(
            f"a {type(result).__name__} is one point, not draws. Pass what CmdStanModel.sample, pathfinder, "
            "laplace_sample or variational returned."
        )
    # CmdStanVB returns means unless it is asked for draws.
    options = {"mean": False} if hasattr(result, "variational_sample") else {}
    draws = {}
    for name in names:
        try:
            values = np.asarray(result.stan_variable(name, **options))
        except ValueError:
            continue  # the reader names what is missing
        draws[name] = values.reshape((getattr(result, "chains", 1), -1, *values.shape[1:]))
    return draws
