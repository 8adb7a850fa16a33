"""What the tests of exact draws found, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bread.backends.base import FloatArray


@dataclass(frozen=True)
class DirectTest:
    """One test: prior, likelihood, outcomes, or the kernel at one end of the path.

    Attributes
    ----------
    name : str
        "prior score", "likelihood score", "joint score", "outcome score", "kernel at beta = 0", "kernel at beta = 1".
    variables : tuple of str, length v
        Rows: coordinates, outcomes, or "all of <variable>".
    functions : tuple of str, length f
    p_values, effect : ndarray, shape (v, f)
        Two-sided, not adjusted; NaN where not tested.
    n_draws, n_steps : int
        Exact draws, and kernel steps from each (0 for a score).
    """

    name: str
    variables: tuple[str, ...]
    functions: tuple[str, ...]
    p_values: FloatArray
    effect: FloatArray
    n_draws: int
    n_steps: int = 0

    @property
    def n_tested(self) -> int:
        """Number of p-values."""
        return int(np.isfinite(self.p_values).sum())


@dataclass(frozen=True)
class DirectTests:
    """All of them.

    Attributes
    ----------
    tests : tuple of DirectTest
    left_out : dict of str to str
        Reasons, by the test's name or the variable's.
    n_gradients : int
        Evaluations of gradient or density.
    """

    tests: tuple[DirectTest, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    n_gradients: int = 0
