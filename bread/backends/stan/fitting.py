"""Draws from the posterior on the real data: by CmdStan, by Stan's adaptive NUTS in the embedded engine, or the user's.

Stan's defaults: 4 chains, 1000 steps of adaptation and 1000 draws each, from states between -2 and 2.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from bread.backends.base import Fit, FloatArray
from bread.backends.stan.native.kernels import TARGET_ACCEPTANCE, StanKernel
from bread.backends.stan.native.library import StanInstance
from bread.backends.support.posterior_draws import read_posterior
from bread.errors import BreadError, InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath
from bread.workers import call_on_workers

CHAINS, WARMUP, DRAWS = 4, 1000, 1000  # Stan's defaults
WINDOWS = (75, 50, 25)  # Stan's init_buffer, term_buffer and base window
START_TRIES = 100  # states at which Stan looks for a finite density
_CHAIN = re.compile(r"\bChain (\d+)\b")  # as cmdstanpy numbers the files that it is given
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
    posterior: Any, shapes: Mapping[str, tuple[int | None, ...]], dims: Mapping[str, tuple[str, ...]]
) -> Fit:
    """Read the user's own draws.

    Parameters
    ----------
    posterior : CmdStanMCMC, paths of CSV files, InferenceData, DataTree, Dataset or dict
        Also a CmdStanPathfinder, CmdStanLaplace or CmdStanVB. A dict has arrays of the shape (chain, draw, ...).
    shapes : mapping of str to tuple of int
        Parameters of the program, all of which must be there; None is a length that is not known.
    dims : mapping of str to tuple of str
        Their dimension names.

    Raises
    ------
    InvalidArgumentError
        Names what is missing or does not fit.
    """
    if is_csv(posterior):
        posterior = read_csv(posterior)
    if is_result(posterior):
        posterior = draws_of(posterior, tuple(shapes))
    return read_posterior(posterior, shapes, dims, {})


def is_result(value: Any) -> bool:
    """Return whether a value is a result of `cmdstanpy` (CmdStanMCMC, CmdStanPathfinder, ...)."""
    return hasattr(value, "stan_variable")


def is_csv(value: Any) -> bool:
    """Return whether a value is the path of a file, or a list of them."""
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return all(isinstance(one, (str, os.PathLike)) for one in (value if is_list else (value,)))


def read_csv(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Any:
    """Read CSV files that CmdStan wrote.

    Raises
    ------
    InvalidArgumentError
        `cmdstanpy` cannot read them.
    """
    import cmdstanpy

    wanted = os.fspath(paths) if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    files = [wanted] if isinstance(wanted, str) else wanted
    named = ", ".join(map(repr, files))
    try:
        with _said_once(files):
            found = cmdstanpy.from_csv(wanted)
    except Exception as error:  # what it raises depends on what the files hold
        reason = " ".join(str(error).split())
        raise InvalidArgumentError(f"posterior= {named} cannot be read as CSV files of CmdStan: {reason}") from error
    if not is_result(found):
        raise InvalidArgumentError(f"posterior= {named}: these are not CSV files of CmdStan's sampler.")
    return found


@contextlib.contextmanager
def _said_once(files: Sequence[str]) -> Iterator[None]:
    """Turn what `cmdstanpy` logs as a warning into a UserWarning, each text once; "Chain 2" gets the file's name."""
    logger = logging.getLogger("cmdstanpy")
    said: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            said.append(" ".join(record.getMessage().split()))
        return False  # the logger itself prints nothing

    def with_file(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"{match[0]} ({files[number - 1]!r})" if number <= len(files) else match[0]

    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
    named = ", ".join(map(repr, files))
    for text in dict.fromkeys(said):
        told = _CHAIN.sub(with_file, text)
        where = "" if told != text else f" ({named})"
        warnings.warn(f"cmdstanpy says of the draws given as posterior={where}: {told}", UserWarning, stacklevel=2)


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
