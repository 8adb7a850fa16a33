"""Numbers as the sentences write them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SIGNIFICANT_DIGITS = 3  # of a number in a table
SMALLEST = 0.01  # nats that are written as a number
LONGEST = 1e6  # nats from here on are written as powers of ten


def nats(value: float) -> str:
    """Return a number of nats: with two significant digits, whole from 10 up, as a power of ten where it is long."""
    if math.isnan(value) or math.isinf(value):
        return "an unknown number of" if math.isnan(value) else "infinitely many"
    return f"{value:.0f}" if 10 <= abs(value) < LONGEST else f"{value:.2g}"


def error(value: float) -> str:
    """Return an error of a probability, in [0, 1]; limits are rounded up."""
    if math.isnan(value):
        return "an unknown amount"
    return "0.01" if value < 0.01 else f"{math.ceil(100 * value - 1e-9) / 100:.2f}"


def with_unit(value: float) -> str:
    """Return a bound with its unit; an estimate may be negative, what it estimates is not."""
    return "less than 0.01 nats" if value < SMALLEST else f"{nats(value)} nats"


def equals(value: float) -> str:
    """Return a bound with its unit, and how it compares."""
    return "< 0.01 nats" if value < SMALLEST else f"= {nats(value)} nats"


def percent_of(level: float) -> str:
    """Return a level as a percentage, with four significant digits."""
    return f"{100 * level:.4g}%"


def percent(fraction: float) -> str:
    """Return a share as a whole percentage."""
    return f"{100 * fraction:.0f}%"


def power_of_two(value: float) -> str:
    """Return a number of temperatures as a power of two."""
    return str(2 ** math.ceil(math.log2(value))) if value < 1e9 else f"{value:.0e}"


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to three significant digits, as tables have them; infinite and NaN values stay."""
    result = np.array(values, dtype=np.float64)
    usable = np.isfinite(result) & (result != 0)
    digits = SIGNIFICANT_DIGITS - 1 - np.floor(np.log10(np.abs(result[usable]))).astype(int)
    result[usable] = [round(float(value), int(n)) for value, n in zip(result[usable], digits, strict=True)]
    return result
