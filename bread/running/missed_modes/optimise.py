"""Where a posterior may have modes: optimisations from prior draws and from draws of a fit.

What is found are centres of regions that `bread.statistics.real_data.modes` weighs; they need not be maxima.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Posterior
from bread.backends.support.base_draws import draw_many
from bread.fitting.gaussian.modes import NOWHERE, CountedDensity, descended
from bread.fitting.search.joint_density import joint_log_density
from bread.paths.kinds import PriorPath
from bread.statistics.real_data.modes import Proposal, mode_proposal

BEST, FAR = 5, 7  # prior draws to optimise from: of the largest density; far from these and each other
FAR_AMONG = 0.05  # share of the prior draws, those of the largest density, that the far ones are taken from
FIT_BEST, FIT_FAR = 1, 3  # the same among draws of a fit
MOST_STEPS = 150  # gradients of one optimisation
SAME_MODE = 2.0  # standard deviations: nearer ends are one mode
_NARROW = 100.0  # steps of a central difference that a standard deviation must hold
_DIFFERENCE = 1e-4  # step of a central difference


def prior_scales(draws: FloatArray) -> FloatArray:
    """Return about the standard deviation of each coordinate, shape (dim,), from draws that may have heavy tails."""
    finite = draws[np.isfinite(draws).all(axis=1)]
    if not len(finite):
        return np.ones(draws.shape[1])
    low, high = np.quantile(finite, [0.25, 0.75], axis=0)
    spread = np.asarray((high - low) / 1.349)
    return np.where(spread > 0, spread, 1.0)


def starts(draws: FloatArray, log_density: FloatArray, n_best: int, n_far: int) -> FloatArray:
    """Return draws to optimise from, shape (at most n_best + n_far, dim).

    The ones of the largest density, and ones far from these and from each other among those of a large density: the
    best alone may all lie in one mode.
    """
    finite = np.flatnonzero(np.isfinite(log_density))
    order = finite[np.argsort(-log_density[finite], kind="stable")]
    chosen = list(order[:n_best])
    pool = order[: max(10 * n_far, int(FAR_AMONG * len(order)))]
    if not chosen:
        return np.empty((0, draws.shape[1]))
    scaled = draws[pool] / prior_scales(draws[pool])
    distance = np.full(len(pool), np.inf)
    for position in range(min(n_best, len(pool))):
        distance = np.minimum(distance, ((scaled - scaled[position]) ** 2).sum(axis=1))
    for _ in range(n_far):
        farthest = int(np.argmax(distance))
        if not distance[farthest] > 0.0:
            break
        chosen.append(pool[farthest])
        distance = np.minimum(distance, ((scaled - scaled[farthest]) ** 2).sum(axis=1))
    return np.asarray(draws[chosen])


@dataclass(frozen=True)
class Found:
    """The end of an optimisation.

    Attributes
    ----------
    state : ndarray, shape (dim,)
    log_density : float
        Nats; -inf where no step was possible.
    n_gradients : int
    """

    state: FloatArray
    log_density: float
    n_gradients: int


def climb(posterior: Posterior, start: FloatArray, most_steps: int, scale: FloatArray) -> Found:
    """Return where the log density is largest near ``start``, by L-BFGS in units of ``scale``."""
    target = CountedDensity(posterior, len(start))

    def scaled(z: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = target(start + scale * z)
        return value, gradient * scale

    with np.errstate(all="ignore"):
        found = descended(scaled, np.zeros(len(start)), maxfun=most_steps, maxcor=20)
    level = -float(found.fun) if found.fun < NOWHERE else -np.inf
    return Found(start + scale * found.x, level, target.n_gradients)


def proposal_at(posterior: Posterior, state: FloatArray, scale: FloatArray) -> tuple[Proposal | None, int]:
    """Return the proposal at a mode, and the gradients that its Hessian took; None where there is no Hessian."""
    target = CountedDensity(posterior, len(state))
    step = np.full(len(state), _DIFFERENCE)
    with np.errstate(all="ignore"):
        for _ in range(3):
            precision = target.central_precision(state, step)
            if not np.isfinite(precision).all():
                return None, target.n_gradients
            curvature = np.diag(precision)
            sd = np.where(curvature > 0, 1.0 / np.sqrt(np.maximum(curvature, 1e-300)), np.inf)
            if (sd >= _NARROW * step * 0.99).all():
                break
            step = np.minimum(step, sd / _NARROW)  # a mode that is narrower than the step
        try:
            return mode_proposal(state, precision, scale), target.n_gradients
        except np.linalg.LinAlgError:
            return None, target.n_gradients


def distinct(ends: list[Found], proposals: list[Proposal]) -> NDArray[np.int64]:
    """Return the positions of the modes that are not the same as one of larger density, the largest first."""
    kept: list[int] = []
    for position in sorted(range(len(ends)), key=lambda one: -ends[one].log_density):
        state = ends[position].state[None, :]
        if not any(proposals[other].distance(state)[0] < SAME_MODE for other in kept):
            kept.append(position)
    return np.array(kept, dtype=np.int64)


def draw_prior(posterior: Posterior, seeds: Sequence[np.random.SeedSequence]) -> tuple[FloatArray, FloatArray]:
    """Return prior draws, shape (n, dim), and the joint log density (nats) there."""
    states = draw_many(posterior, PriorPath(), seeds)
    return states, joint_log_density(posterior, states)
