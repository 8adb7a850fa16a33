"""Random seeds: one `SeedSequence` per purpose, data set, direction, T and chain, whatever the number of workers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import IntEnum
from typing import overload

import numpy as np
from numpy.random import SeedSequence

from bread.argument_rules import is_count, received
from bread.errors import InvalidArgumentError


class Purpose(IntEnum):
    """What random numbers are for; streams of different purposes never meet."""

    SIMULATE = 0
    BASE = 1  # draws of f_0, where forward chains begin
    FORWARD = 2
    REVERSE = 3
    EVOLVE = 4
    TUNE = 5
    FIT = 6
    RANK = 7
    DRAW_BASE = 8
    DRAW = 9
    TAIL = 10
    REFERENCE = 11
    RACE_BASE = 12
    HELD = 13
    RACE_FORWARD = 14
    RACE_REVERSE = 15
    MODES = 20
    DIRECT = 24
    DIRECT_BASE = 25
    DIRECT_MOVE = 26
    REPLICATE = 30
    PRIOR_INTEGRAL = 31
    BATTERY = 32
    EVIDENCE = 33
    COMPARE = 34
    UNBIASED = 35
    DATA_ANNEALING = 36
    REPEAT = 37  # of the real data's forward chains
    REPEAT_BASE = 38
    BRIDGE = 39  # draws of the law that the fit is bridged with
    PATH_SAMPLING = 45
    START_LOOK = 46  # at draws from a reference, before the start of reverse chains
    START_DRAWS = 47  # proposed there
    REFERENCE_TEST = 48  # of a reference of the user's, before anything else


def root_entropy(random_seed: int | None) -> int:
    """Return the root of all seeds: ``random_seed`` (0 is a seed), or fresh entropy for None.

    Raises
    ------
    InvalidArgumentError
        ``random_seed`` is neither None nor a non-negative whole number.
    """
    if random_seed is None:
        entropy = SeedSequence().entropy
        assert isinstance(entropy, int)
        return entropy
    if not is_count(random_seed, 0, most=None):
        raise InvalidArgumentError(f"random_seed must be None or a whole number >= 0, got {received(random_seed)}.")
    return int(random_seed)


def seed_sequence(
    root: int, purpose: Purpose, simulation: int = 0, n_temperatures: int = 0, chain: int = 0
) -> SeedSequence:
    """Return the seed of one chain (or of one data set).

    ``simulation`` may be -1 (the real data) or -2 and below (pilot data sets); keys must not be negative, so it is
    stored as twice its size, plus one below zero.
    """
    key = 2 * simulation if simulation >= 0 else -2 * simulation + 1
    return SeedSequence(root, spawn_key=(int(purpose), key, n_temperatures, chain))


class Children(Sequence[SeedSequence]):
    """Children of a seed, each made when it is asked for: of thousands, often only the first is.

    Parameters
    ----------
    seed : SeedSequence
        It is not changed.
    rows : range
        Which children; those of ``seed.spawn(n)`` are ``range(n)``.
    """

    def __init__(self, seed: SeedSequence, rows: range) -> None:
        self._seed, self._rows = seed, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> SeedSequence: ...

    @overload
    def __getitem__(self, index: slice) -> list[SeedSequence]: ...

    def __getitem__(self, index: int | slice) -> SeedSequence | list[SeedSequence]:
        rows = self._rows[index]
        return self._child(rows) if isinstance(rows, int) else [self._child(row) for row in rows]

    def _child(self, row: int) -> SeedSequence:
        seed = self._seed
        return SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, row), pool_size=seed.pool_size)


def chain_seeds(root: int, purpose: Purpose, simulation: int, n_temperatures: int, chains: range) -> Children:
    """Return one seed per chain, as `seed_sequence` gives it."""
    block = seed_sequence(root, purpose, simulation, n_temperatures, 0)
    return Children(SeedSequence(block.entropy, spawn_key=block.spawn_key[:-1]), chains)


def named_seed(root: int, purpose: Purpose, simulation: int, name: str) -> SeedSequence:
    """Return the seed of something that has a name, on one data set; it meets no seed of a chain."""
    words = np.frombuffer(hashlib.sha256(name.encode()).digest(), dtype="<u4")
    return SeedSequence(root, spawn_key=(int(purpose), 2 * simulation, *(int(word) for word in words)))
