"""What the tests of exact draws found, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bread.backends.base import FloatArray

NAMES = (
    "score", "prior score", "likelihood score", "outcome score", "joint score",
    "kernel", "kernel at beta = 0", "kernel at beta = 1",
)  # fmt: skip


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
    share_discarded : float
        Of the joint draws, those that numbers cannot represent.
    why_discarded : str
    """

    tests: tuple[DirectTest, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    n_gradients: int = 0
    share_discarded: float = 0.0
    why_discarded: str = ""

    @property
    def untested(self) -> dict[str, str]:
        """Whole tests that were not run, or had nothing to test, each with the reason."""
        whole = {what: why for what, why in self.left_out.items() if what in NAMES}
        empty = [test.name for test in self.tests if not test.n_tested]
        return whole | {name: self._why_empty(name) for name in empty}

    def _why_empty(self, name: str) -> str:
        reasons = (why for what, why in self.left_out.items() if what.startswith(name))
        return next(reasons, "its identities hold for no coordinate")
