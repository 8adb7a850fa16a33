"""Blocks of observations, and a frozen kernel for each posterior along them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import Data, FloatArray, Kernel, Posterior, Settings
from bread.backends.observations import Separable
from bread.errors import DensityError, InvalidArgumentError
from bread.paths.kinds import PriorPath
from bread.running.particles.particles import Targets

MOST_BLOCKS = 50  # unless more are asked for
_TRIES = 1000  # prior draws until one has a likelihood


def block_ends(n_observations: int, n_blocks: int | None) -> tuple[int, ...]:
    """Return how many observations the posterior knows after each block; sizes differ by one at most.

    Parameters
    ----------
    n_observations : int
    n_blocks : int or None
        None for as many as observations, and at most 50.

    Returns
    -------
    tuple of int
        The last is ``n_observations``.

    Raises
    ------
    InvalidArgumentError
        There are more blocks than observations, or no observations.
    """
    if n_observations < 1:
        raise InvalidArgumentError(f"The model must have at least one observation to add; got {n_observations}.")
    n = min(n_observations, MOST_BLOCKS) if n_blocks is None else n_blocks
    if n > n_observations:
        raise InvalidArgumentError(f"blocks must be at most the number of observations, {n_observations}; got {n}.")
    return tuple(int(end) for end in (np.arange(1, n + 1) * n_observations) // n)


def tuned_targets(model: Separable, data: Data, ends: Sequence[int], n_steps: int, seed: SeedSequence) -> Targets:
    """Return the posteriors of one data set with kernels adapted to it, block after block.

    One chain walks through the targets. It knows the data alone, and its draws are not used again.

    Parameters
    ----------
    model : Separable
    data : mapping of str to ndarray
    ends : sequence of int
        See `block_ends`.
    n_steps : int
        Steps of adaptation on each target.
    seed : SeedSequence

    Returns
    -------
    Targets
        Of as many blocks as ``ends``.

    Raises
    ------
    DensityError
        No prior draw has a likelihood, or a kernel cannot be adapted.
    """
    fresh = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    starts, *seeds = fresh.spawn(1 + len(ends))
    posteriors = [model.condition_first(data, end) for end in ends]
    state: FloatArray | None = None
    previous: Settings | None = None
    kernels = []
    for posterior, own in zip(posteriors, seeds, strict=True):
        state = _with_likelihood(posterior, state, starts)
        found = posterior.adapt(PriorPath(), 1.0, state, own, n_steps, previous)
        state, previous = found.state, found.settings or None
        settings = {name: np.asarray(value)[None] for name, value in found.settings.items()}
        kernels.append(Kernel(np.array([1.0]), settings, n_gradients=found.n_gradients))
    return Targets(posteriors, kernels)


def _with_likelihood(posterior: Posterior, state: FloatArray | None, seed: SeedSequence) -> FloatArray:
    if state is not None and np.isfinite(posterior.log_ratio(PriorPath(), state[None])[0]):
        return state
    fresh = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    for one in fresh.spawn(_TRIES):
        drawn = posterior.draw_base(PriorPath(), [one])
        if np.isfinite(posterior.log_ratio(PriorPath(), drawn)[0]):
            return np.asarray(drawn[0], dtype=np.float64)
    raise DensityError(
        f"None of {_TRIES} draws from the prior has a finite likelihood on the data that the kernel is adapted to. "
        "Check the model, or pass fewer blocks."
    )
