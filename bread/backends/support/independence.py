"""Independence proposals: before a transition a draw from the path's base is proposed, and accepted by Metropolis.

The proposal density is f_0 whatever the state is, so that at inverse temperature beta the ratio of Metropolis and
Hastings is exp(beta (log_ratio' - log_ratio)): one evaluation of the density, and a reversible kernel. A forward chain
proposes before the kernel moves, a reverse chain after it. Where the kernel is dear it may move at some temperatures
only, the same ones in both directions: which they are is known before the chain begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.backends.values import FloatArray
from bread.seeds import Children

PREFIX = "independence"
_AT, _AFTER = " at one temperature in ", " after independence proposals"  # of a name
_KEY = 1_000_003  # of the random numbers of proposals, which no kernel's own streams are near


class Proposals(NamedTuple):
    """Proposals of one chain, in the order in which it meets them.

    Attributes
    ----------
    states : ndarray, shape (n_steps, dim)
        Draws from the path's base.
    log_ratio : ndarray, shape (n_steps,)
        There, in nats.
    log_uniform : ndarray, shape (n_steps,)
        Logs of uniform random numbers, which decide.
    """

    states: FloatArray
    log_ratio: FloatArray
    log_uniform: FloatArray

    def accepts(self, step: int, beta: float, log_ratio: float) -> bool:
        """Return whether the proposal of a step takes the place of a state with this log ratio.

        A state whose log ratio is not finite is left where it is: what that means for a chain is decided elsewhere.
        """
        proposed = float(self.log_ratio[step])
        if not (math.isfinite(proposed) and math.isfinite(log_ratio)):
            return False
        return float(self.log_uniform[step]) < beta * (proposed - log_ratio)


def is_moved(index: int, last: int, every: int) -> bool:
    """Return whether the kernel moves a chain that proposes, at a temperature: the last and each so many before it.

    Parameters
    ----------
    index, last : int
        Of the temperature, and of the one at inverse temperature 1.
    every : int
        See `bread.backends.base.Kernel`.
    """
    return (last - index) % every == 0


def draw_proposals(
    draw_base: Callable[[Sequence[SeedSequence]], FloatArray],
    log_ratio: Callable[[FloatArray], FloatArray],
    n_steps: int,
    seed: SeedSequence,
) -> Proposals:
    """Return the proposals of a chain, from random numbers that depend on its seed alone.

    Parameters
    ----------
    draw_base : callable
        Draws from the path's base, as many as seeds.
    log_ratio : callable
        Of states (n, dim), in nats.
    n_steps : int
        Transitions of the chain.
    seed : SeedSequence
        Of the chain; it is not changed.
    """
    own = SeedSequence(entropy=seed.entropy, spawn_key=(*seed.spawn_key, _KEY), pool_size=seed.pool_size)
    states = np.ascontiguousarray(draw_base(Children(own, range(n_steps))), dtype=np.float64)
    ratios = np.ascontiguousarray(log_ratio(states), dtype=np.float64) if n_steps else np.empty(0)
    with np.errstate(divide="ignore"):
        return Proposals(states, ratios, np.log(default_rng(own).random(n_steps)))


def split_name(kernel: Any) -> tuple[Any, bool]:
    """Return a kernel's own name, and whether independence proposals go before it.

    "independence" stands for proposals before the backend's default kernel, "independence+hmc" for proposals before
    "hmc". Whatever is no such text is returned as it is.
    """
    if not isinstance(kernel, str):
        return kernel, False
    first, plus, rest = (part.strip() for part in kernel.partition("+"))
    if first.lower() != PREFIX:
        return kernel, False
    return (rest if plus else None), True


def name_with(kernel: str, every: int = 1) -> str:
    """Return the name of a kernel with independence proposals before it, for the report."""
    return f"{kernel}{'' if every == 1 else f'{_AT}{every},'}{_AFTER}"


def moves_of(name: str) -> tuple[str, int]:
    """Return the kernel of a name that `name_with` has made, and at how many temperatures it moves once."""
    kernel, at, rest = name.removesuffix(_AFTER).partition(_AT)
    return kernel, int(rest.removesuffix(",")) if at else 1
