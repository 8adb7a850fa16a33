"""Draws from the base of a path, one seed a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.backends.base import FloatArray
from bread.paths.mixture import Reference


class StateSimulator(Protocol):
    """Draws states from the prior: the part of a model's simulator that a posterior needs."""

    def draw_states(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Return one exact prior draw per seed, shape (len(seeds), dim)."""
        ...


def draw_reference(reference: Reference, seeds: Sequence[SeedSequence], dim: int) -> FloatArray:
    """Return one draw of a reference per seed, shape (len(seeds), dim)."""
    return np.array([reference.sample(1, default_rng(seed))[0] for seed in seeds]).reshape(len(seeds), dim)
