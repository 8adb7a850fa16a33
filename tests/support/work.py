"""Log weights of known laws."""

import numpy as np
from hypothesis import settings

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def gamma_work(rng, shape, tilt=1.0, size=2.0):
    """Return forward and reverse log weights of a skewed work law with Z = 1: forward ones have the longer tail."""
    constant = size * np.log1p(tilt)
    return (
        constant - tilt * rng.gamma(size, size=shape),
        constant - tilt * rng.gamma(size, 1 / (1 + tilt), size=shape),
    )
