"""Steps of annealed chains between the ends of the path, from exact draws of the tempered law.

A backend that can draw exactly at an inverse temperature b between 0 and 1 (`Posterior.draw_tempered`) lets two things
be tested there: the kernel at b alone, as at the ends, and the kernels as an annealed chain runs them, which this is
about. A chain from an exact draw x_0 at b along the schedule (0, b, c, 1) moves by the kernel at b to x_1, and by that
at c to x_2. So x_1 has the law of x_0, and h(x_2) - h(x_1) has mean zero under the weights exp((c - b) log_ratio(x_1)),
which turn the law at b into that at c. Functions are of the log ratio, which annealed chains return at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import SeedSequence
from scipy.special import logsumexp

from bread.debugging.subject import Draws, FloatArray, Subject
from bread.statistics.exactness.functions import StateFunctions

BETA, NEXT = 0.4, 0.7  # b and c: neither is its own square, nor one less the other or itself
SCHEDULE = np.array([0.0, BETA, NEXT, 1.0])
N_STARTS = 4  # chains for each data set: from its draw, and from further exact ones
N_OTHERS = 4  # further ones still, which set the scale of its weights
N_PILOT = 200
LOG_RATIO = "log ratio"


class Steps(NamedTuple):
    """What `SubjectBetween.step_between` returns, for n draws.

    Attributes
    ----------
    log_ratio : ndarray, shape (n, N_STARTS, 3)
        At the start, after the kernel at `BETA`, and after that at `NEXT`. NaN where a chain failed.
    others : ndarray, shape (n, N_OTHERS)
        At other exact draws given the same data.
    n_evaluations : int
    """

    log_ratio: FloatArray
    others: FloatArray
    n_evaluations: int


class SubjectBetween(Subject, Protocol):
    """A subject at the inverse temperature `BETA` of a path."""

    def step_between(self, draws: Draws, seeds: Sequence[SeedSequence]) -> Steps:
        """Take two steps of annealed chains from each draw and others given its data, along `SCHEDULE`."""
        ...


class StepsBetween:
    """Steps from the draws of one subject; they grow with them.

    Parameters
    ----------
    subject : SubjectBetween
    pilot : Draws
        Draws on which nothing is tested: they set the functions.
    seeds : callable
        ``seeds(part, low, high)``: those of draws ``low`` to ``high``; part 1 is the pilot's.

    Attributes
    ----------
    functions : StateFunctions
        Of the log ratio.
    log_ratio : ndarray, shape (n, N_STARTS, 3)
    weight : ndarray, shape (n, N_STARTS)
        Of the second step; positive, and of mean about one for each data set.
    spent : float
    """

    def __init__(
        self, subject: SubjectBetween, pilot: Draws, seeds: Callable[[int, int, int], list[SeedSequence]]
    ) -> None:
        self._subject, self._seeds = subject, seeds
        first = subject.step_between(pilot.rows(slice(0, N_PILOT)), seeds(1, 0, min(N_PILOT, len(pilot))))
        known = first.log_ratio[:, 0, 0]
        self.functions = StateFunctions((LOG_RATIO,), known[~np.isnan(known)][:, None], 1)
        self.log_ratio, self.weight = np.empty((0, N_STARTS, 3)), np.empty((0, N_STARTS))
        self.spent = float(first.n_evaluations)

    def grow(self, draws: Draws) -> None:
        """Take steps from further draws."""
        done = len(self.weight)
        found = self._subject.step_between(draws, self._seeds(0, done, done + len(draws)))
        step = NEXT - BETA
        scale = logsumexp(step * found.others, axis=1) - np.log(found.others.shape[1])
        with np.errstate(invalid="ignore", over="ignore"):
            weight = np.exp(step * found.log_ratio[..., 1] - scale[:, None])
        self.log_ratio = np.concatenate([self.log_ratio, found.log_ratio])
        self.weight = np.concatenate([self.weight, weight])
        self.spent += found.n_evaluations
