"""Numbers as the sentences write them."""

from __future__ import annotations

import math

LONGEST = 1e6  # nats from here on are written as powers of ten


def nats(value: float) -> str:
    """Return a number of nats: with two significant digits, whole from 10 up, as a power of ten where it is long."""
    if math.isnan(value) or math.isinf(value):
        return "an unknown number of" if math.isnan(value) else "infinitely many"
    return f"{value:.0f}" if 10 <= abs(value) < LONGEST else f"{value:.2g}"
