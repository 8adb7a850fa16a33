"""Many data sets with one state each: joint draws, as tests of simulator and kernel want them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.values import Evolution, FloatArray, Kernel
from bread.paths.kinds import Path, PriorPath


class Rows(Protocol):
    """The posteriors of n data sets. Row i of ``states``, shape (n, dim), belongs to data set i."""

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return log p(data set i | state i) in nats, shape (n,); NaN where it raises. Needs the prior path."""
        ...

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what `Posterior.density_gradient` does, for each row: shapes (n,) and (n, dim)."""
        ...

    def move(
        self, path: Path, kernel: Kernel, beta: float, states: FloatArray, n_steps: int, seeds: Sequence[SeedSequence]
    ) -> Evolution:
        """Run the frozen kernel at ``beta`` from each state; return the states (n, dim) after ``n_steps``, and cost."""
        ...


@dataclass
class RowsOneByOne:
    """Rows whose posteriors work one after another; implements `Rows`.

    Attributes
    ----------
    condition : callable
        `Model.condition`.
    data : mapping of str to ndarray, each (n, ...)
    """

    condition: Callable[[Mapping[str, NDArray[Any]]], Any]
    data: Mapping[str, NDArray[Any]]

    @cached_property
    def _posteriors(self) -> list[Any]:
        n = min(len(values) for values in self.data.values())
        return [self.condition({name: values[row] for name, values in self.data.items()}) for row in range(n)]

    def _each(self, states: FloatArray) -> Iterator[tuple[int, Any, FloatArray]]:
        for row, posterior in enumerate(self._posteriors):
            yield row, posterior, states[row]

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the log likelihood of each row."""
        values = np.empty(len(states))
        for row, posterior, state in self._each(states):
            values[row] = posterior.log_ratio(PriorPath(), state[None, :])[0]
        return values

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return density and gradient of each row."""
        values, gradients = np.empty(len(states)), np.empty(states.shape)
        for row, posterior, state in self._each(states):
            value, gradient = posterior.density_gradient(beta, state[None, :])
            values[row], gradients[row] = value[0], gradient[0]
        return values, gradients

    def move(
        self, path: Path, kernel: Kernel, beta: float, states: FloatArray, n_steps: int, seeds: Sequence[SeedSequence]
    ) -> Evolution:
        """Run one chain a row."""
        moved, n_gradients, n_evaluations = np.empty(states.shape), 0, 0
        for row, posterior, state in self._each(states):
            evolution = posterior.evolve(path, kernel, beta, state, [n_steps], seeds[row])
            moved[row] = evolution.states[0]
            n_gradients += evolution.n_gradients
            n_evaluations += evolution.n_evaluations
        return Evolution(moved, n_gradients, n_evaluations)
