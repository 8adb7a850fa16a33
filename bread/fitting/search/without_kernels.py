"""A posterior as a density of other coordinates, in which no chain runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from numpy.random import SeedSequence

from bread.backends.base import Adaptation, AnnealRun, Direction, Evolution, FloatArray, Kernel, Posterior, Settings
from bread.errors import UnsupportedModelError
from bread.paths.kinds import Path


class WithoutKernels(Posterior):
    """A posterior that refuses what needs a kernel.

    Attributes
    ----------
    reason : str
        Why there are no kernels, a sentence.
    """

    reason: ClassVar[str]

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Refuse: kernels are adapted and chains run in the posterior's own coordinates."""
        raise UnsupportedModelError(f"{self.reason} Adapt on the posterior itself.")

    def anneal(
        self, path: Path, betas: FloatArray, kernel: Kernel, *,
        direction: Direction, initial: FloatArray, seeds: Sequence[SeedSequence],
    ) -> AnnealRun:  # fmt: skip
        """Refuse, as `adapt` does."""
        raise UnsupportedModelError(f"{self.reason} Anneal the posterior itself.")

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Refuse, as `adapt` does."""
        raise UnsupportedModelError(f"{self.reason} Move the posterior itself.")
