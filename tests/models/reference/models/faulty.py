"""A model whose density fails, to show what a failure does to a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bread.backends.base import FloatArray
from tests.models.reference.arrays import Statistics
from tests.models.reference.models.gaussian_models import NormalMean


@dataclass(frozen=True, eq=False)
class FaultyNormalMean(NormalMean):
    """`NormalMean` whose log likelihood is NaN, or raises, where the mean is above a limit.

    A failure is a rejected proposal inside a kernel (`HMCKernel`) and a recorded failure outside one.

    Parameters
    ----------
    fault : {"nan", "raise"}
        What the log likelihood does.
    limit : float
        It does so at a mean above this.
    """

    fault: Literal["nan", "raise"] = "nan"
    limit: float = 1.0

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log likelihood, or fail."""
        is_faulty = states[..., 0] > self.limit
        if self.fault == "raise" and is_faulty.any():
            raise FloatingPointError(f"the mean is above {self.limit}")
        return np.where(is_faulty, np.nan, super().log_likelihood(states, statistics))
