"""Adaptation of a law to a posterior by importance sampling, round by round, whatever family the law is of.

Draws of the law are weighted to the posterior, and a law is fitted to them again (population Monte Carlo;
Cappe, Douc, Guillin, Marin and Robert 2008). Weights of all rounds are those of draws from the mixture of all
proposals, and tempered where few draws would have all of the weight. It takes densities, no gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from bread.backends.base import FloatArray
from bread.fitting.gaussian.gaussian_mixtures import resampled
from bread.fitting.search.work import FitWork, Part
from bread.paths.mixture import Reference
from bread.statistics.bounds.bounds import log_mean_exp

ROUNDS = 8  # at most
NEAR = 0.15  # nats of divergence shown by its own draws, from which on a law is near enough
FEWEST_EFFECTIVE = 200.0  # draws by weight, of all rounds
PATIENCE = 2  # rounds in turn that show nothing nearer
MOST = 10.0  # nats off the middle, beyond which one log ratio tells no more than another

Law = TypeVar("Law", bound=Reference)


class Target(Protocol):
    """The density to which a law is adapted, and random numbers for it."""

    def joint(self, states: FloatArray) -> FloatArray:
        """Return the log density (nats), up to a constant, at states."""
        ...

    def rng(self, part: Part, index: int = 0) -> Generator:
        """Return random numbers."""
        ...


@dataclass(frozen=True)
class Family(Generic[Law]):
    """How laws of a family are fitted to weighted draws.

    Attributes
    ----------
    n_draws : int
        Of a law in each round.
    fitted : callable
        (states, weights, the law of the round before or of other data) -> law, or None where it fails.
    completed : callable
        (law, log evidence in nats, index of random numbers) -> the law from which draws are taken.
    n_rounds : int
        At most.
    n_kept : int
        Rounds whose draws count, the last ones: what far proposals drew has no weight once others are near.
    """

    n_draws: int
    fitted: Callable[[FloatArray, FloatArray, Law | None], Law | None]
    completed: Callable[[Law, float, int], Law] = lambda law, log_evidence, index: law
    n_rounds: int = ROUNDS
    n_kept: int = ROUNDS


def adapt(target: Target, family: Family[Law], first: Law, dim: int, like: Law | None = None) -> Law | None:
    """Return the law whose own draws show the least divergence; None without one.

    Parameters
    ----------
    target : Target
    family : Family
    first : law
        The first proposal. It need not be near, but should reach all of the target.
    dim : int
        Number of coordinates.
    like : law, optional
        One adapted to other data, from which the first fit begins.
    """
    proposals, states, log_target = [first], np.empty((0, dim)), np.empty(0)
    by_proposal = np.empty((0, 0))  # log densities of the proposals at the states
    best: Law | None = None
    least, found_at = np.inf, 0
    for number in range(family.n_rounds):
        proposal = proposals[-1]
        drawn = proposal.sample(family.n_draws, target.rng(Part.ADAPTED, number))
        log_joint, here = target.joint(drawn), np.array([one.log_density(drawn) for one in proposals])
        shown = truncated(log_joint - here[-1])
        if number > 0 and shown < least:
            best, least, found_at = proposal, shown, number
        if least < NEAR or (best is not None and number >= found_at + PATIENCE):
            break
        by_proposal = np.concatenate([np.concatenate([by_proposal, [proposal.log_density(states)]]), here], axis=1)
        states, log_target = np.concatenate([states, drawn]), np.concatenate([log_target, log_joint])
        log_weights = log_target - logsumexp(by_proposal, axis=0) + np.log(len(proposals))
        weights = tempered(log_weights, FEWEST_EFFECTIVE)
        like = None if weights is None else family.fitted(states, weights, like)
        if like is None:
            break
        log_evidence = float(log_mean_exp(log_weights))
        proposals.append(family.completed(like, log_evidence, ROUNDS + 1 + number))
        if len(proposals) > family.n_kept:
            proposals, by_proposal = proposals[1:], by_proposal[1:, family.n_draws :]
            states, log_target = states[family.n_draws :], log_target[family.n_draws :]
    return best


def nearer(
    work: FitWork, found: Law | None, best: Reference, chains: list[FloatArray], n_draws: int, gain: float
) -> Law | None:
    """Return what was adapted if it is nearer to the posterior than ``best``; None where it is not.

    By draws of chains, and by its own draws, weighted to the posterior: the larger divergence of the two counts. What
    was fitted to chains looks near to where they have been.

    Parameters
    ----------
    work : FitWork
    found : law or None
    best : Reference
        The nearest by the criterion of `bread.fitting.search.work.FitWork.criterion`.
    chains : list of ndarray, shape (n, dim)
    n_draws : int
        Of each of the two.
    gain : float
        Nats by which it must be nearer.
    """
    if found is None:
        return None
    pair: tuple[Reference, Reference] = (found, best)
    drawn = [one.sample(n_draws, work.rng(Part.ADAPTED, ROUNDS)) for one in pair]
    starts = [work.log_ratio(one, states) for one, states in zip(pair, drawn, strict=True)]
    if not np.isfinite(starts[0]).any() or np.isnan(starts[0]).any():
        return None
    weighted = resampled(drawn[0], np.exp(starts[0] - starts[0].max()), n_draws)
    ends = (np.concatenate([states[len(states) // 2 :] for states in chains]), weighted)
    shown = [
        max(truncated(start, work.log_ratio(one, end)) for end in ends) for one, start in zip(pair, starts, strict=True)
    ]
    return found if shown[0] + gain < shown[1] else None


def truncated(start: FloatArray, end: FloatArray | None = None) -> float:
    """Return a Jeffreys divergence (nats) of log ratios that are held within `MOST` nats of the log of their mean.

    A thousandth of the draws that lies a thousand nats off costs an annealed chain a thousandth of its draws: it must
    not decide between laws whose other draws overlap more or less.

    Parameters
    ----------
    start : ndarray, shape (n,)
        At draws of a law.
    end : ndarray, shape (m,), optional
        At draws of the posterior; without them those of the law are weighted.
    """
    if not (np.isfinite(start).any() and not np.isnan(start).any()):
        return float("inf")
    middle = log_mean_exp(start)
    held = np.clip(start - middle, -MOST, MOST)
    if end is None:
        weights = np.exp(start - start.max())
        return float(weights @ held / weights.sum() - held.mean())
    return float(np.clip(end - middle, -MOST, MOST).mean() - held.mean())


def tempered(log_weights: FloatArray, fewest: float) -> FloatArray | None:
    """Return normalised weights of the largest power, at most 1, that leaves so many effective draws; None without any.

    Parameters
    ----------
    log_weights : ndarray, shape (n,)
        Minus infinity where the density is zero.
    fewest : float
    """
    if np.isfinite(log_weights).sum() <= fewest:
        return None
    level = log_weights - log_weights.max()

    def weights(power: float) -> FloatArray:
        raised = np.exp(power * np.where(np.isfinite(level), level, 0.0)) * np.isfinite(level)
        return np.asarray(raised / raised.sum())

    low, high = 0.0, 1.0
    if 1.0 / (weights(1.0) ** 2).sum() < fewest:
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if 1.0 / (weights(middle) ** 2).sum() >= fewest else (low, middle)
        high = low
    return weights(high)
