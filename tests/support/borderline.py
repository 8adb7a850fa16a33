"""Real data whose fit is near the level from which it is called poor: reference models."""

from __future__ import annotations

import numpy as np

from tests.models.reference import HMCKernel, NormalMean, NormalScale

_NOISE = np.random.default_rng(5).normal(size=20)
_NOISE = (_NOISE - _NOISE.mean()) / _NOISE.std()
_KERNEL = HMCKernel()


def _outlier(size):
    return np.append(_NOISE[:-1], size)


BORDERLINE = {
    "outlier at 4.7 sd": NormalMean(_outlier(4.7), kernel=_KERNEL),
    "outlier at 4.0 sd": NormalMean(_outlier(4.0), kernel=_KERNEL),
    "outlier at 6 sd, free scale": NormalScale(_outlier(6.0), kernel=_KERNEL),
    "mean three prior sd away": NormalMean(_NOISE + 3.0, kernel=_KERNEL),
    "too even": NormalMean(0.45 * _NOISE, kernel=_KERNEL),
}
