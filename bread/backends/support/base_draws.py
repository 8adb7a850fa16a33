"""Draws from the base of a path, one seed a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.backends.values import FloatArray
from bread.paths.kinds import Path
from bread.paths.mixture import Reference


class DrawsBase(Protocol):
    """The part of a posterior that `draw_many` needs."""

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Return one draw of the path's base per seed, shape (len(seeds), dim)."""
        ...


class StateSimulator(Protocol):
    """Draws states from the prior: the part of a model's simulator that a posterior needs."""

    def draw_states(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Return one exact prior draw per seed, shape (len(seeds), dim)."""
        ...


def draw_reference(reference: Reference, seeds: Sequence[SeedSequence], dim: int) -> FloatArray:
    """Return one draw of a reference per seed, shape (len(seeds), dim)."""
    return np.array([reference.sample(1, default_rng(seed))[0] for seed in seeds]).reshape(len(seeds), dim)


def draw_many(posterior: DrawsBase, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
    """Return draws of a path's base, shape (len(seeds), dim), of which none needs a seed of its own.

    Of thousands, drawing one by one may be most of what is done with them: all are drawn with the first seed from a
    reference, and from the prior where a posterior has `bread.backends.base.Posterior.draw_prior_batch`, which not
    every one inherits.
    """
    if path.reference is not None and len(seeds):
        return np.asarray(path.reference.sample(len(seeds), default_rng(seeds[0])), dtype=np.float64)
    batch = prior_batch(posterior, len(seeds), seeds[0]) if path.reference is None and len(seeds) else None
    return posterior.draw_base(path, seeds) if batch is None else batch


def prior_batch(posterior: DrawsBase, n: int, seed: SeedSequence) -> FloatArray | None:
    """Return many prior draws with one seed, shape (n, dim); None where a posterior does not draw them at once."""
    draw = getattr(posterior, "draw_prior_batch", None)
    batch = None if draw is None else draw(n, seed)
    return None if batch is None else np.asarray(batch, dtype=np.float64)


def states_at_once(simulator: StateSimulator, n: int, seed: SeedSequence) -> FloatArray | None:
    """Return many prior draws of a simulator with one seed, shape (n, dim); None where it draws one by one."""
    draw = getattr(simulator, "draw_states_at_once", None)
    return None if draw is None else draw(n, seed)
