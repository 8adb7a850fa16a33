"""Do simulator and density agree, where the density jumps? Flows between exact draws and moved copies.

For x ~ p and a symmetric move to x', ``E[a (f(x') - f(x))] = 0`` with Barker's ``a = p(x') / (p(x) + p(x'))``: the flow
from x to x' balances that from x' to x. It needs no derivative, and holds across jumps and bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from bread.statistics.bounds import FloatArray
from bread.statistics.means import MeanTest, mean_zero_test

LARGEST = 2.0  # of a move, over the scale; from a tenth of it on, at all sizes alike


def moved_by(x: FloatArray, scale: FloatArray, generator: Generator) -> FloatArray:
    """Return one coordinate of draws (n,) after symmetric random moves of many sizes."""
    size = LARGEST * 10.0 ** -generator.random(len(x))
    return np.asarray(x + scale * size * np.where(generator.random(len(x)) < 0.5, 1.0, -1.0))


def moves_test(before: FloatArray, after: FloatArray, change: FloatArray) -> MeanTest:
    """Test whether flows balance: two columns, by which side of the centre, and how far from it.

    Parameters
    ----------
    before, after : ndarray, shape (n,)
        The coordinate of exact draws and of their moved copies, standardised by other draws.
    change : ndarray, shape (n,)
        Log density after the move minus before, in nats; minus infinity where there is none after it.
    """
    accepted = expit(np.where(np.isnan(change), -np.inf, change))
    flows = [accepted * (f(after) - f(before)) for f in (np.tanh, lambda x: 1.0 / (1.0 + x**2))]
    return mean_zero_test(np.column_stack(flows), is_bounded=True)
