"""How well a program's numbers determine its log likelihood.

Solvers of differential equations and iterated maps answer within a tolerance only: a state that is moved by rounding
alone may have another log likelihood, and derivatives change the steps that a solver takes.
"""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from bread.backends.base import FloatArray
from bread.backends.stan.native.library import StanInstance

STEP = 16 * float(np.finfo(np.float64).eps)
_PROBES = 20  # steps of a solver flip one way or the other: a few probes may miss it
_SEED = 20160816  # the same probes on every machine


def rounding_noise(instance: StanInstance, state: FloatArray) -> float:
    """Return the largest change of the log likelihood (nats) where every coordinate is moved by rounding.

    Infinite where the program rejects a state next to this one.
    """
    step = STEP * (1.0 + np.abs(state)) * default_rng(_SEED).uniform(-1.0, 1.0, (_PROBES, len(state)))
    log_likelihood = instance.terms(np.concatenate([state[None, :], state + step]))[1]
    change = np.abs(log_likelihood[1:] - log_likelihood[0])
    return float(np.where(np.isnan(change), np.inf, change).max())


def prior_noise(instance: StanInstance, state: FloatArray) -> float:
    """Return the largest change of the log prior (nats) where a state is moved by rounding, or mapped to and fro.

    Infinite where the program rejects a state next to this one.
    """
    step = STEP * (1.0 + np.abs(state)) * default_rng(_SEED).uniform(-1.0, 1.0, (_PROBES, len(state)))
    states = [state[None, :], state + step]
    for _ in range(2):
        states.append(instance.unconstrain(instance.constrain(states[-1])))
    log_prior = instance.constrained_prior(np.concatenate(states))
    change = np.abs(log_prior[1:] - log_prior[0])
    return float(np.where(np.isnan(change), np.inf, change).max())


def derivatives_note(with_derivatives: FloatArray, without: FloatArray, tolerance: float) -> tuple[str, ...]:
    """Return a note on joint draws at which the log likelihood is another one with derivatives; empty for none.

    Chains use the former, generators the latter.
    """
    with np.errstate(invalid="ignore"):
        difference = np.where(with_derivatives == without, 0.0, np.abs(with_derivatives - without))
    difference = np.where(np.isnan(difference), np.inf, difference)
    is_far = difference > tolerance + 1e-8 * np.abs(np.where(np.isfinite(without), without, 0.0))
    if not is_far.any():
        return ()
    return (
        f"At {int(is_far.sum())} of {len(without)} joint draws the program's log likelihood changes by more than "
        f"{tolerance:g} nats (by up to {difference.max():.2g}) when derivatives are computed with it, as chains "
        "do: a solver that is not exact there. Data sets from such parameters are no exact test of chains. Tighten "
        "the solver's tolerances, or use priors that leave them out.",
    )
