"""What the battery tests: exact draws, a kernel that moves them, and what is known of their density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Draws:
    """Independent exact draws.

    Attributes
    ----------
    states : ndarray, shape (n, d)
        In the coordinates in which the kernel moves.
    data : dict of str to ndarray, each (n, ...)
        What each draw's density is conditional on: its own data set. Empty for a kernel without a model.
    """

    states: FloatArray
    data: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.states)

    def rows(self, which: slice | NDArray[np.int64] | NDArray[np.bool_]) -> Draws:
        """Return some of them."""
        return Draws(self.states[which], {name: values[which] for name, values in self.data.items()})

    def at(self, states: FloatArray) -> Draws:
        """Return other states under the same data; states of shape (n, m, d) are put in n * m rows."""
        if states.ndim == 2:
            return Draws(states, self.data)
        n, m, d = states.shape
        return Draws(
            states.reshape(n * m, d), {name: np.repeat(values, m, axis=0) for name, values in self.data.items()}
        )

    def joined(self, other: Draws) -> Draws:
        """Return both, one after the other."""
        data = {name: np.concatenate([values, other.data[name]]) for name, values in self.data.items()}
        return Draws(np.concatenate([self.states, other.states]), data)


@dataclass(frozen=True, eq=False)
class Moved:
    """Where chains are after some steps, one chain a draw.

    Attributes
    ----------
    states : ndarray, shape (n, len(keep), d)
        After each number of steps in ``keep``. NaN from where a chain failed.
    log_density : ndarray, shape (n, len(keep)), or None
        The log density that the kernel carries for these states, in nats up to a constant; None if it shows none.
    n_evaluations : int
        What was spent, in evaluations of the density, or steps where those cannot be counted.
    failures : tuple of str
        What the kernel raised, each message once.
    """

    states: FloatArray
    log_density: FloatArray | None
    n_evaluations: int
    failures: tuple[str, ...] = ()


class Subject(Protocol):
    """One kernel on one target.

    Attributes
    ----------
    name : str
        For the report.
    coordinates : tuple of str, length d
    is_continuous : ndarray of bool, shape (d,)
        False: whole numbers.
    lower, upper : ndarray, shape (d,)
        Ends of the support; infinite where there are none. Draws and chains must stay within, ends included, and a
        density that does not vanish there is no contradiction.
    missing : dict of str to str
        What this subject does not have, and why: "gradient", "renewed", "kernel" (there is none: only the simulator is
        tested), "annealing". Tests that need it are left out with that reason.
    anneals : bool
        Whether there is a path to this subject's law at all, along which chains can be annealed: it is then an
        `bread.debugging.annealed.AnnealingSubject`, and tests of annealing are run on it.
    is_between : bool
        Whether this is an inverse temperature between 0 and 1: it is then a `bread.debugging.between.SubjectBetween`.
    may_spread : frozenset of str
        Which methods may be called in other processes, for some of the draws each: not "draw" of a simulator that may
        remember, not "move" of a kernel that moves all chains at once.
    n_walkers : int
        How many points of one space, one after another, a state is: 1 but for kernels of ensembles, whose pairs of
        walkers are then looked at.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def coordinates(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def is_continuous(self) -> NDArray[np.bool_]: ...  # noqa: D102

    @property
    def lower(self) -> FloatArray: ...  # noqa: D102

    @property
    def upper(self) -> FloatArray: ...  # noqa: D102

    @property
    def missing(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def anneals(self) -> bool: ...  # noqa: D102

    @property
    def is_between(self) -> bool: ...  # noqa: D102

    @property
    def may_spread(self) -> frozenset[str]: ...  # noqa: D102

    @property
    def n_walkers(self) -> int: ...  # noqa: D102

    def draw(self, seeds: Sequence[SeedSequence]) -> Draws:
        """Return independent exact draws, one a seed."""
        ...

    def move(self, draws: Draws, keep: Sequence[int], seeds: Sequence[SeedSequence]) -> Moved:
        """Run one chain from each draw, in order, under its seed; keep states after so many steps (increasing).

        The result may depend on nothing but draw and seed: not on chains that were moved before, nor on the other
        draws. Failures of the kernel are returned, not raised.
        """
        ...

    def log_density(self, draws: Draws) -> FloatArray:
        """Return the log density that the kernel should leave invariant, shape (n,), in nats up to a constant.

        With data: the log of the joint density, or of the posterior with the same constant for all data sets. -inf
        outside of the support.
        """
        ...

    def gradient(self, draws: Draws) -> FloatArray:
        """Return the gradient of the log density by the states, shape (n, d). Not called if it is ``missing``."""
        ...

    def renewed(self) -> Subject:
        """Return this subject with a kernel that has moved nothing yet. Not called if it is ``missing``."""
        ...
