"""A small report of every verb but `bread.look`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import bread
from bread.report import container as report
from tests.models.reference import HMCKernel, NormalMean
from tests.support.fake_results import constrain, fake_result

QUICK: dict[str, Any] = {"random_seed": 3, "progressbar": False}


def model() -> NormalMean:
    return NormalMean(np.array([0.4, 1.9, 1.1]), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2, kernel=HMCKernel())


def small() -> Any:
    """A check with all groups that are read, small enough to be read hundreds of times."""
    result = fake_result(
        temperatures=(4, 8), n_search=2, n_confirm=10, n_forward=2, n_draws=100, posterior_shift=0.0, misfit=True
    )
    return report.to_container(result, constrain)


MADE: dict[str, Callable[[], Any]] = {
    "check": small,
    "debug": lambda: bread.debug(model(), only="simulator", budget=0.002, cores=1, **QUICK),
    "compare": lambda: bread.compare(
        {"a": model(), "b": model()}, n_temperatures=(4, 8), simulations=4, cores=1, tune=10, **QUICK
    ),
    "unbiased": lambda: bread.lab.unbiased(model(), pairs=40, lag=20, tune=60, **QUICK),
    "path_sampling": lambda: bread.lab.path_sampling(model(), pairs=40, tune=60, **QUICK),
    "data_annealing": lambda: bread.lab.data_annealing(model(), simulations=2, runs=2, particles=8, tune=10, **QUICK),
}
made = cache(lambda kind: MADE[kind]())
