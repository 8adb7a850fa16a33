"""Correlations of a law known from its reference: what a kernel's dense metric is made of."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.conditional.one_driver import middle_and_spread
from bread.paths.mixture import FittedReference

STRONG = 4.0  # root of the condition number, about what a diagonal metric costs in gradients over a dense one
LARGEST_DIM = 300  # beyond it a product with the matrix costs more than most gradients, and DRAWS are few
DRAWS = 2000  # of a reference, always the same
REACH = 3.0  # in units of the spread: no far draw of a heavy tail decides


def correlation_of(reference: FittedReference) -> FloatArray | None:
    """Return the correlation matrix of a reference, shape (dim, dim), positive definite; None where that says little.

    It says little of several modes, whose distances are none of each one's shape, and of a coordinate that does not
    vary. The draws that it is estimated from are the same in every call.
    """
    if reference.is_several:
        return None
    draws = reference.sample(DRAWS, np.random.default_rng(0))
    if not 2 <= draws.shape[1] <= LARGEST_DIM:
        return None
    middle, spread = middle_and_spread(draws)
    if not (np.isfinite(spread).all() and (spread > 0.0).all()):
        return None
    result: FloatArray = np.corrcoef(np.clip((draws - middle) / spread, -REACH, REACH), rowvar=False)
    np.fill_diagonal(result, 1.0)  # some processors round
    return result if np.linalg.eigvalsh(result)[0] > 0.0 else None


def is_strong(correlation: FloatArray) -> bool:
    """Return whether a kernel with a diagonal metric would need several times the gradients of one with this matrix.

    A trajectory is as long as the widest direction, and its steps as short as the narrowest, in units in which every
    coordinate is as wide as the others.
    """
    values = np.linalg.eigvalsh(correlation)
    return bool(values[-1] > STRONG**2 * max(values[0], 0.0))
