"""How long a chain takes to forget where it was."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def relaxation_time(values: FloatArray) -> float:
    """Return 1 + 2 times the sum of the autocorrelations of a chain's values, up to the first that is not positive.

    A slow kernel trails behind the tempered densities: with autocorrelations rho^k every step of the path loses
    (1 + rho) / (1 - rho) times what independent draws would lose.
    """
    centred = values - values.mean()
    variance = float(centred @ centred)
    if variance == 0.0 or not np.isfinite(variance):
        return 1.0
    total = 1.0
    for lag in range(1, len(values) // 2):
        correlation = float(centred[lag:] @ centred[:-lag]) / variance
        if correlation <= 0.0:
            break
        total += 2.0 * correlation
    return total


def thinned(values: FloatArray) -> FloatArray:
    """Return every k-th of a chain's values, k its relaxation time rounded up: about independent ones."""
    return values[:: int(np.ceil(relaxation_time(values)))]
