"""A kernel as the tests see it: something that starts at a state, steps, and says where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Step = Callable[[FloatArray, Generator], FloatArray]


@runtime_checkable
class Stepper(Protocol):
    """A kernel that may carry more than its position: a cached log density, a momentum, an adapted step size.

    One object moves many chains, one after another. Everything that a chain remembers should be in what it carries.
    An optional method ``log_density(carry)`` returns the log density that the kernel holds for its position, which is
    then compared with a fresh one.
    """

    def start(self, position: FloatArray, rng: Generator) -> Any:
        """Return what a chain at ``position``, shape (d,), carries."""
        ...

    def step(self, carry: Any, rng: Generator) -> Any:
        """Return what the chain carries after one transition."""
        ...

    def position(self, carry: Any) -> FloatArray:
        """Return where the chain is, shape (d,)."""
        ...


@runtime_checkable
class ManyChains(Stepper, Protocol):
    """A `Stepper` that runs many chains at once, as compiled kernels do many times faster.

    It is then not run chain by chain.
    """

    def run_chains(
        self, starts: FloatArray, keep: Sequence[int], seeds: Sequence[SeedSequence]
    ) -> tuple[FloatArray, FloatArray]:
        """Run one chain from each start, shape (n, d), under its own seed; keep states after so many steps.

        Return positions, shape (n, len(keep), d), and the log densities that the kernel holds for them, shape
        (n, len(keep)), in nats, NaN where it holds none. A chain may depend on its start and its seed alone.
        """
        ...


class FunctionStepper:
    """A function ``step(x, rng) -> x`` as a `Stepper`."""

    def __init__(self, function: Step) -> None:
        self._function = function

    def start(self, position: FloatArray, rng: Generator) -> FloatArray:
        """Return the position: it is all that a function can remember."""
        return np.array(position, dtype=np.float64)

    def step(self, carry: FloatArray, rng: Generator) -> FloatArray:
        """Return the position after one transition."""
        return np.asarray(self._function(carry.copy(), rng), dtype=np.float64)

    def position(self, carry: FloatArray) -> FloatArray:
        """Return the position."""
        return carry


def as_stepper(kernel: Stepper | Step) -> Stepper:
    """Return a kernel as a `Stepper`."""
    return kernel if isinstance(kernel, Stepper) else FunctionStepper(kernel)
