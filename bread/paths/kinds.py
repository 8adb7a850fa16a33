"""The path from an easy density to the posterior: the one seam between core and backends.

A path has a start f_0 that can be drawn from, a log ratio ``l = log f_1 - log f_0`` of its ends, and tempered
densities between them::

    log f_beta(theta) = log f_0(theta) + temper(beta, l(theta)),    temper(0, l) = 0,    temper(1, l) = l

For every path but the bounded one ``temper(beta, l) = beta * l``. The log weight of a chain is the sum over
t = 2..T of ``temper(beta_t, l) - temper(beta_{t-1}, l)`` at theta_{t-1}; it estimates the log of the integral of f_1
over that of f_0. Nothing outside the backends may assume which path it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.paths.mixture import Reference

FloatArray = NDArray[np.float64]

SMALLEST_POWER = 2.0
_QUARTILES = 1.349  # distance of the quartiles of a normal law, in standard deviations


class _Path:
    """What all paths have in common; linear tempering."""

    name: ClassVar[str]
    start_name: ClassVar[str]
    ratio_name: ClassVar[str]

    def temper(self, beta: ArrayLike, log_ratio: ArrayLike) -> FloatArray:
        """Return log f_beta - log f_0 (nats) from the log ratio; 0 at beta = 0 even where the ratio is -inf."""
        beta, log_ratio = np.broadcast_arrays(np.asarray(beta, dtype=float), np.asarray(log_ratio, dtype=float))
        return np.asarray(np.multiply(beta, log_ratio, out=np.zeros(beta.shape), where=beta != 0.0))

    def slope(self, beta: float, log_ratio: ArrayLike) -> FloatArray:
        """Return the derivative of `temper` by the log ratio: the share of the ratio's gradient that acts."""
        return np.full(np.shape(log_ratio), float(beta))

    def rate(self, beta: float, log_ratio: ArrayLike) -> FloatArray:
        """Return the derivative of `temper` by beta (nats): its spread under f_beta is what a step of beta costs."""
        return np.asarray(log_ratio, dtype=float)

    def tail(self, log_ratio: ArrayLike) -> FloatArray:
        """Return a function of the log ratio at the start whose mean is finite if and only if that of log_w is."""
        return np.asarray(log_ratio, dtype=float)

    def increments(self, betas: FloatArray, log_ratio: FloatArray) -> FloatArray:
        """Return what each step adds to the log weight (nats).

        Parameters
        ----------
        betas : ndarray, shape (T,)
        log_ratio : ndarray, shape (..., T)
            In order of inverse temperature; the last is used by no weight.

        Returns
        -------
        ndarray, shape (..., T - 1)
        """
        ratio = log_ratio[..., :-1]
        with np.errstate(invalid="ignore"):
            steps = self.temper(betas[1:], ratio) - self.temper(betas[:-1], ratio)
        return np.asarray(np.where(np.isneginf(ratio), -np.inf, steps))

    def log_weight(self, betas: FloatArray, log_ratio: FloatArray) -> FloatArray:
        """Return log weights (nats), shape ``log_ratio.shape[:-1]``: the sum of `increments`."""
        return np.asarray(self.increments(betas, log_ratio).sum(axis=-1))


@dataclass(frozen=True)
class PriorPath(_Path):
    """From the prior to the posterior: ``log_ratio`` is the log likelihood (BREAD, equation 2)."""

    name: ClassVar[str] = "prior"
    start_name: ClassVar[str] = "prior"
    ratio_name: ClassVar[str] = "log likelihood"

    @property
    def reference(self) -> None:
        """None: the start is the model's prior."""
        return None

    def increments(self, betas: FloatArray, log_ratio: FloatArray) -> FloatArray:
        """Return the steps of beta times the log ratio."""
        return np.asarray(np.diff(betas) * log_ratio[..., :-1])


@dataclass(frozen=True)
class BoundedPath(_Path):
    """From the prior to the posterior, along likelihoods whose fall is bounded: B is finite on ordinary models.

    ``temper(beta, l) = beta * l`` for l >= c, and ``beta * (c - m log(1 + (c - l) / m))`` below, with
    m = power / (1 - beta) (once differentiable at c). The densities f_beta then fall as a power of the log likelihood
    where it falls without bound, and log ratios of neighbours only as its logarithm, whose prior mean exists where
    that of the log likelihood (of 1 / sigma^2 under a half-normal scale) does not. Only the last step weighs the log
    likelihood itself; its mean is finite where the exponent beta * m of the last but one density is above 1, which
    holds for every schedule whose last step begins at 1 / 2 or later.

    Parameters
    ----------
    offset : float
        c (nats), near the largest log likelihood that posterior draws reach. A function of the data alone.
    power : float, at least 2
        Larger follows the usual path further down before it bends. `bounded_path_from` gives both from a pilot.

    Raises
    ------
    InvalidArgumentError
        ``offset`` is not finite or ``power`` below 2.
    """

    offset: float
    power: float = SMALLEST_POWER
    name: ClassVar[str] = "bounded"
    start_name: ClassVar[str] = "prior"
    ratio_name: ClassVar[str] = "log likelihood"

    def __post_init__(self) -> None:
        if not np.isfinite(self.offset):
            raise InvalidArgumentError(f"offset must be a finite log likelihood in nats; received {self.offset!r}.")
        if not (np.isfinite(self.power) and self.power >= SMALLEST_POWER):
            raise InvalidArgumentError(f"power must be finite and at least 2; received {self.power!r}.")

    @property
    def reference(self) -> None:
        """None: the start is the model's prior."""
        return None

    def _gap(self, log_ratio: ArrayLike) -> FloatArray:
        return np.asarray(np.maximum(self.offset - np.asarray(log_ratio, dtype=float), 0.0))

    def temper(self, beta: ArrayLike, log_ratio: ArrayLike) -> FloatArray:
        """Return log f_beta - log f_0 (nats) from the log likelihood."""
        beta, log_ratio = np.broadcast_arrays(np.asarray(beta, dtype=float), np.asarray(log_ratio, dtype=float))
        gap = self._gap(log_ratio)
        with np.errstate(all="ignore"):
            m = self.power / (1.0 - beta)
            fall = np.where(beta < 1.0, m * np.log1p(gap / m), gap)
            tempered = beta * (np.maximum(log_ratio, self.offset) - fall)
        return np.asarray(np.where(beta == 0.0, 0.0, tempered))

    def slope(self, beta: float, log_ratio: ArrayLike) -> FloatArray:
        """Return the derivative of `temper` by the log likelihood."""
        return np.asarray(beta / (1.0 + (1.0 - beta) / self.power * self._gap(log_ratio)))

    def rate(self, beta: float, log_ratio: ArrayLike) -> FloatArray:
        """Return the derivative of `temper` by beta (nats)."""
        gap = self._gap(log_ratio)
        above = np.maximum(np.asarray(log_ratio, dtype=float), self.offset)
        with np.errstate(all="ignore"):
            if beta < 1.0:
                m = self.power / (1.0 - beta)
                x = gap / m
                bend = np.where(x < 1e-4, x * x * (0.5 - 2.0 * x / 3.0), np.log1p(x) - x / (1.0 + x))
                rate = above - m * np.log1p(x) - beta * m**2 / self.power * bend
            else:
                rate = above - gap - 0.5 * gap**2 / self.power
        return np.asarray(np.where(np.isfinite(gap), rate, -np.inf))

    def tail(self, log_ratio: ArrayLike) -> FloatArray:
        """Return the logarithm of the fall below the offset: what the first step weighs."""
        return np.asarray(-np.log1p(self._gap(log_ratio)))


def bounded_path_from(log_likelihood: ArrayLike) -> BoundedPath:
    """Return the bounded path that suits a posterior, from the log likelihood at draws from it.

    The distance of the mean from the peak is half the number of parameters that the data determine, and so is the
    variance where the posterior is near a Gaussian. So it is estimated by the larger of the distance from the largest
    value and the variance (from the quartiles). The offset is the mean plus the distance, near the peak: then a
    density that has one mode at both ends keeps one between them (as long as the peak is not further above the
    offset than the power). The power is the distance, at least 2. By quadrature with perfect mixing, halving or
    doubling the power changes the squared thermodynamic length by about a tenth.

    Parameters
    ----------
    log_likelihood : array_like
        In nats, at draws of a pilot at beta = 1 that knows the data and never the exact draw. Values that are not
        finite are left out.

    Returns
    -------
    BoundedPath

    Raises
    ------
    InvalidArgumentError
        No value is finite.
    """
    values = np.asarray(log_likelihood, dtype=float).ravel()
    values = values[np.isfinite(values)]
    if len(values) == 0:
        raise InvalidArgumentError(
            "a bounded path needs at least one finite log likelihood at draws near the posterior; received none. "
            "Use path='prior', or repair the pilot."
        )
    mean = float(values.mean())
    lower, upper = np.quantile(values, [0.25, 0.75])
    distance = max(float(values.max()) - mean, float((upper - lower) / _QUARTILES) ** 2)
    return BoundedPath(mean + distance, max(SMALLEST_POWER, distance))


@dataclass(frozen=True)
class ReferencePath(_Path):
    """From a normalised density q, fitted to the data alone, to the posterior.

    ``log f_beta = (1 - beta) log q + beta log p(theta, y)``: log f_0 is log q, the log ratio is
    ``log p(theta, y) - log q(theta)``, and the log weight estimates the log evidence whatever q is. Every inequality,
    interval, rank and alarm of the prior path holds, because q depends on y and never on the exact draw.

    Parameters
    ----------
    reference : Reference
        Normalised density on the unconstrained coordinates.
    """

    reference: Reference
    name: ClassVar[str] = "reference"
    start_name: ClassVar[str] = "reference"
    ratio_name: ClassVar[str] = "log joint over reference"


Path = PriorPath | BoundedPath | ReferencePath
