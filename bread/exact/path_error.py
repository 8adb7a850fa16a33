"""Limits of V, the total variation between the laws of forward and reverse paths, where its atoms are too many.

Log weights are carried on a grid, together with the state. A weight between two cells goes to either at random. That
is a statistic of the path with a random part, so that the total variation between its two laws is at most V; and as the
rounding leaves every mean weight as it is, Jensen's inequality for the convex (1 - w / Z)_+ makes its mean at least V.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bread.errors import InvalidArgumentError
from bread.exact.annealing import anneal
from bread.exact.chain import FiniteChain
from bread.paths.schedules import explicit

FloatArray = NDArray[np.float64]

# Largest window of the log of weight over mean weight, nats. What is below is taken for zero, what is above for its
# end: both only widen the limits.
LOWEST, HIGHEST = -25.0, 10.0
DEFAULT_CELLS = 1000
ON_GRID = 1e-9  # of a cell


class ErrorLimits(NamedTuple):
    """Limits of V, in [0, 1]; equal, but for rounding, where all log weights lie on the grid."""

    lower: float
    upper: float


def path_error(chain: FiniteChain, betas: ArrayLike, *, width: float | None = None) -> ErrorLimits:
    """Return limits of V, the total variation between the laws of forward and of reverse paths.

    Parameters
    ----------
    chain : FiniteChain
        States, densities and kernels; the reversals must be right.
    betas : array_like, shape (T,)
        Inverse temperatures, strictly increasing from 0 to 1.
    width : float, optional
        Of a cell, in nats. The distance between the limits falls with it, to nothing where all increments of log
        weights are multiples of it (the step of an even schedule, for log ratios that are whole numbers). By default
        a thousandth of the window that the weights are expected in: seconds at T = 1000 on 49 states; the cost grows
        with T.

    Returns
    -------
    ErrorLimits
        No probability computed from one annealed draw is off by more than ``upper``. ``lower`` is at least the total
        variation of the last state, and ``upper`` at most what J and the divergences of paths give
        (`ExactAnnealing.error_limits`).

    Raises
    ------
    InvalidArgumentError
        ``betas`` is no schedule, or ``width`` is not positive.
    """
    if width is not None and not 0.0 < width < 10.0:
        raise InvalidArgumentError(f"width is a number of nats between 0 and 10; received {width!r}. Leave it out.")
    values = explicit(np.asarray(betas, dtype=np.float64))
    known = anneal(chain, values)
    with np.errstate(invalid="ignore"):
        raw = chain.log_base + np.where(values[:, None] == 0.0, 0.0, values[:, None] * chain.log_ratio)
    log_evidence = logsumexp(raw, axis=1)
    lowest, highest = _window(known.bound)
    grid = _Grid(width or (highest - lowest) / DEFAULT_CELLS, lowest, highest)
    mass = np.zeros((2, chain.n_states, grid.n_cells))  # forward, reverse
    mass[:, :, grid.start] = np.exp(raw[0] - log_evidence[0])
    origin = -grid.start * grid.width
    kinds = [np.flatnonzero(chain.log_ratio == one) for one in np.unique(chain.log_ratio)]
    for t, matrix in enumerate(chain.matrices(values[1:]), start=1):
        shifts = (values[t] - values[t - 1]) * chain.log_ratio
        gain = log_evidence[t] - log_evidence[t - 1]
        centre = _centre(shifts, np.exp(raw[t] - log_evidence[t]), grid.width)
        # a cell's label moves with the centre; whole cells bring it back to where the grid began
        back = round((origin + centre - gain) / grid.width) + grid.start
        origin += centre - gain - back * grid.width
        for rows in kinds:
            shift = shifts[rows[0]]
            if shift == -np.inf:
                mass[0][rows] = grid.to_zero(mass[0][rows])
                mass[1][rows] = 0.0
            else:
                mass[:, rows] = grid.moved(mass[:, rows], shift - centre, back)
                mass[1][rows] *= np.exp(shift - gain)
        mass = np.asarray(matrix.T @ mass, dtype=np.float64)
    labels = np.asarray(origin + grid.width * np.arange(grid.n_cells), dtype=np.float64)
    return _limits(mass, labels, known.error_limits)


class _Grid:
    """Cells of log weight; the first stands for weight zero and is never left."""

    def __init__(self, width: float, lowest: float, highest: float) -> None:
        self.width = width
        self.start = int(np.ceil(-lowest / width))  # where log weights begin, at 0
        self.n_cells = self.start + 1 + int(np.ceil(highest / width))

    def moved(self, mass: FloatArray, shift: float, back: int) -> FloatArray:
        """Shift log weights, and labels by ``back`` whole cells; split between two cells so that mean weights stay."""
        position = shift / self.width
        nearest = round(position)
        if abs(position - nearest) < ON_GRID:
            return self._by_cells(mass, nearest + back)
        below = int(np.floor(position))
        share = float(np.expm1(shift - below * self.width) / np.expm1(self.width))
        return (1.0 - share) * self._by_cells(mass, below + back) + share * self._by_cells(mass, below + 1 + back)

    def to_zero(self, mass: FloatArray) -> FloatArray:
        """Return all mass in the first cell."""
        result = np.zeros_like(mass)
        result[..., 0] = mass.sum(axis=-1)
        return result

    def _by_cells(self, mass: FloatArray, cells: int) -> FloatArray:
        if cells == 0:
            return mass
        result, last = np.zeros_like(mass), self.n_cells - 1
        if abs(cells) >= last - 1:
            result[..., last if cells > 0 else 0] = mass[..., 1:].sum(axis=-1)
        elif cells > 0:
            result[..., 1 + cells :] = mass[..., 1 : last + 1 - cells]
            result[..., last] += mass[..., last + 1 - cells :].sum(axis=-1)
        else:
            result[..., 1 : last + 1 + cells] = mass[..., 1 - cells :]
            result[..., 0] += mass[..., 1 : 1 - cells].sum(axis=-1)
        result[..., 0] += mass[..., 0]
        return result


def _window(bound: float) -> tuple[float, float]:
    """Return a window around the logs of weights over their mean, for log weights whose variance is about B."""
    reach = 1.0 + 8.0 * np.sqrt(bound)
    return float(max(LOWEST, -reach - bound)), float(min(HIGHEST, reach))


def _centre(shifts: FloatArray, law: FloatArray, width: float) -> float:
    """Return the shift of the median state, so that most mass is split little; 0 where all shifts lie on the grid."""
    position = shifts[shifts > -np.inf] / width
    if (np.abs(position - np.round(position)) < ON_GRID).all():
        return 0.0
    order = np.argsort(shifts)
    return float(shifts[order][np.searchsorted(np.cumsum(law[order]), 0.5)])


def _limits(mass: FloatArray, log_weight: FloatArray, from_marginals: tuple[float, float]) -> ErrorLimits:
    lower = 0.5 * float(np.abs(mass[0] - mass[1]).sum())
    missing = -np.expm1(np.minimum(log_weight, 0.0))  # (1 - w / Z)_+
    missing[0] = 1.0
    upper = min(float(mass[0].sum(axis=0) @ missing), from_marginals[1])
    lower = max(lower, from_marginals[0])
    return ErrorLimits(min(lower, 1.0), min(max(upper, lower), 1.0))
