"""Draws from the posterior on the real data, by ``pm.sample``."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bread.backends.base import Fit
from bread.backends.pymc.density.compiling import density_mode, first_line
from bread.backends.pymc.early_end import EarlyEnd, EnoughDrawsError
from bread.backends.pymc.model.reading import read_observed
from bread.backends.support.posterior_draws import count_divergences, posterior_group
from bread.errors import UnsupportedModelError

APPROXIMATION_DRAWS = 2000
LOGGERS = ("pymc", "pymc.sampling", "pytensor", "nutpie", "numba")


@contextmanager
def _silence() -> Iterator[None]:
    """Keep log messages and warnings of a fit to itself."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def fit(model: Any, names: Sequence[str], *, seed: int, cores: int, progressbar: bool) -> Fit:
    """Sample a model with ``pm.sample``, its defaults and the sampler it picks.

    Only the PyTensor mode is chosen here (see `bread.backends.pymc.density.compiling.density_mode`), and left to PyMC
    where it would pick another package's sampler; each chain has one thread of BLAS; and PyMC's own ends after fewer
    draws where they are dear and enough (see `bread.backends.pymc.early_end`).

    Raises
    ------
    UnsupportedModelError
        If ``pm.sample`` fails.
    """
    import pymc as pm

    mode = density_mode()
    flags: dict[str, Any] = {}
    chains = max(2, cores)  # as PyMC would
    n_in_turn = inspect.signature(pm.sample).parameters["draws"].default if cores == 1 else 0
    ending = EarlyEnd(names, chains, sum(np.size(values) for values in read_observed(model).values()), n_in_turn)
    if not _picks_other_sampler(pm.__version__):
        flags["callback"] = ending
        if mode is not None:
            flags["compile_kwargs"] = {"mode": mode}
    start = time.perf_counter()
    try:
        with _silence(), threadpool_limits(limits=1):  # in forked chains pm.sample leaves BLAS all cores
            result = pm.sample(
                random_seed=seed, cores=cores, chains=chains, progressbar=progressbar, quiet=not progressbar,
                model=model, compute_convergence_checks=False, **flags,  # bread looks at the draws itself
            )  # fmt: skip
    except EnoughDrawsError:
        n_draws = next(iter(ending.draws.values())).shape[1]
        source = f"pm.sample, ended after {n_draws} draws a chain"
        return Fit(ending.draws, source, time.perf_counter() - start, ending.n_divergences)
    except Exception as error:
        raise UnsupportedModelError(
            f"pm.sample fails on the real data: {first_line(error)}. Correct the model, pass posterior= "
            'with draws of your own, or use simulate_from="prior", which needs no fit.'
        ) from error
    posterior = posterior_group(result)
    draws = {name: np.asarray(posterior[name].transpose("chain", "draw", ...)) for name in names}
    return Fit(draws, "pm.sample", time.perf_counter() - start, count_divergences(result))


def _picks_other_sampler(version: str) -> bool:
    return int(version.split(".", maxsplit=1)[0]) >= 6 and importlib.util.find_spec("nutpie") is not None


def draws_of(posterior: Any) -> Any:
    """Return draws from what ``pm.fit`` returned; anything else as it is."""
    from pymc.variational.opvi import Approximation

    if not isinstance(posterior, Approximation):
        return posterior
    with _silence():
        return posterior.sample(APPROXIMATION_DRAWS, random_seed=0)
