"""Normal scores: a coordinate in units that need no scale, are bounded, and move when it moves a little."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from bread.statistics.bounds.bounds import FloatArray

LARGEST_SCORE = 3.0
LARGEST_VALUE = 1e300  # in place of infinite values


def normal_scores(first: FloatArray, values: FloatArray) -> FloatArray:
    """Return normal scores of the middle ranks of values among ``first``, between -3 and 3, continuous in between.

    Between neighbours of ``first`` the rank is interpolated, so that a small move changes it; beyond the outermost,
    it goes on for one range of the sample.

    Parameters
    ----------
    first : ndarray, shape (m, d)
        Sets the scores. No NaN; infinite is allowed.
    values : ndarray, shape (n, d)

    Returns
    -------
    ndarray, shape (n, d)
        Where all of ``first`` are equal: the sign of the difference from them.
    """
    first, values = np.clip(first, -LARGEST_VALUE, LARGEST_VALUE), np.clip(values, -LARGEST_VALUE, LARGEST_VALUE)
    scores = np.empty(values.shape)
    for column, (reference, entries) in enumerate(zip(first.T, values.T, strict=True)):
        points, counts = np.unique(reference, return_counts=True)
        if points.size == 1:
            scores[:, column] = np.sign(entries - points[0])
            continue
        ranks = ndtri((np.cumsum(counts) - counts / 2.0) / len(reference))
        width = points[-1] - points[0]
        points = np.concatenate([[points[0] - width], points, [points[-1] + width]])
        ranks = np.concatenate([[-LARGEST_SCORE], np.clip(ranks, -LARGEST_SCORE, LARGEST_SCORE), [LARGEST_SCORE]])
        scores[:, column] = np.interp(entries, points, ranks)
    return scores
