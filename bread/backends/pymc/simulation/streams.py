"""Random streams of the simulator: every draw has its own, derived from its own seed alone."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence


class Part(IntEnum):
    """What of a joint draw a stream is for."""

    PARAMETERS = 0
    DATA = 1
    LOCALISED = 2
    REPLICATES = 3


def child_seeds(seed: SeedSequence, n: int) -> list[SeedSequence]:
    """Return what ``seed.spawn(n)`` of a fresh copy of ``seed`` gives; ``seed`` itself stays as it is."""
    return [
        SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index), pool_size=seed.pool_size) for index in range(n)
    ]


def generators(seed: SeedSequence, part: Part, attempt: int, n: int) -> list[np.random.Generator]:
    """Return ``n`` fresh generators for one attempt at one part of a draw.

    Their keys are longer by three numbers than that of ``seed``: apart from ``seed`` itself and its children, which
    others may use.
    """
    key = (*seed.spawn_key, int(part), attempt)
    return [Generator(PCG64(SeedSequence(seed.entropy, spawn_key=(*key, index)))) for index in range(n)]
