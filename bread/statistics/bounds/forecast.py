"""What V and its limit will be at other numbers of temperatures and simulations, from rounds at small ones.

A forecast says where to spend; no verdict rests on one. With ideal kernels the log weights of a path of length L are
about Gaussian with variance s^2 = L^2 / T, and V is ``2 Phi(s sqrt(1 + 1/K) / 2) - 1`` with K forward chains. Real
kernels lag, so the power of T is measured, with 1 as what is expected before anything was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from bread.statistics.bounds.certificate import error_interval

FloatArray = NDArray[np.float64]

COVERAGE = 0.9  # of the intervals of forecasts
USUAL_POWER, POWER_SD = 1.0, 0.25  # s^2 ~ T^-power, before it is measured
PILOT_SD = 1.0  # of the log of s^2 that a pilot predicts
MODEL_SD = 0.1  # of log s^2 around a straight line in log T,
DRIFT = 0.15  # and what is added for each unit of log T between a round and the last: the power itself changes
SATURATED = 0.9  # above, V hardly depends on s, and the gaps say more
SMALLEST = 1e-6  # V below is taken for this
LEAST_SPREAD = 0.25  # of V over simulations, relative to V: large V are more alike than small ones


class Prediction(NamedTuple):
    """A predicted number with an interval that is meant to hold at `COVERAGE`."""

    estimate: float
    lower: float
    upper: float


class Round(NamedTuple):
    """What was measured at one number of temperatures: V_r and gaps (nats), each of shape (simulation,)."""

    n_temperatures: int
    errors: FloatArray
    gaps: FloatArray


@dataclass(frozen=True)
class Forecast:
    """The line log s^2 = intercept - power * log(T - 1), with what is not known of it.

    Attributes
    ----------
    n_chains : int
        K.
    line : ndarray, shape (2,)
        Intercept and power.
    covariance : ndarray, shape (2, 2)
    spread : float
        Standard deviation of V_r over simulations, skewness allowed for, relative to V.
    last : float
        log(T - 1) of the last round.
    """

    n_chains: int
    line: FloatArray
    covariance: FloatArray
    spread: float
    last: float

    @property
    def power(self) -> float:
        """With which s^2 falls with T."""
        return float(self.line[1])

    def error(self, n_temperatures: int) -> Prediction:
        """Return V at T."""
        at, sd = self._log_variance(n_temperatures)
        return self._errors(at, _quantile() * sd)

    def limit(self, n_temperatures: int, n_simulations: int, level: float) -> Prediction:
        """Return the limit of V, one-sided at ``level``, that so many simulations at T will have.

        Parameters
        ----------
        n_temperatures, n_simulations : int
            2 or more each.
        level : float
            One-sided, in (0.5, 1).
        """
        at, sd = self._log_variance(n_temperatures)
        drawn = self.spread / np.sqrt(n_simulations)
        widened = 1.0 + float(stdtrit(n_simulations - 1, level)) * drawn
        found = self._errors(at, _quantile() * float(np.hypot(sd, 2.0 * drawn)))
        return Prediction(*(min(1.0, value * widened) for value in found))

    def _log_variance(self, n_temperatures: int) -> tuple[float, float]:
        """Return log s^2 at T, and its standard deviation."""
        x = float(np.log(n_temperatures - 1))
        row = np.array([1.0, -x])
        variance = float(row @ self.covariance @ row) + MODEL_SD**2 + (DRIFT * (x - self.last)) ** 2
        return float(row @ self.line), float(np.sqrt(variance))

    def _errors(self, log_variance: float, half: float) -> Prediction:
        return Prediction(*(_error(log_variance + shift, self.n_chains) for shift in (0.0, -half, half)))


def forecast(rounds: Sequence[Round], n_chains: int, level: float, pilot: tuple[float, float] | None) -> Forecast:
    """Return what rounds and pilot predict.

    Parameters
    ----------
    rounds : sequence of Round
        One or more, the last run last, each of at least two simulations.
    n_chains : int
        K.
    level : float
        One-sided level at which limits are compared with V, to tell the spread over simulations.
    pilot : (float, float), optional
        A number of temperatures, and the variance of log weights (nats^2) that a pilot predicts there.
    """
    last = float(np.log(rounds[-1].n_temperatures - 1))
    rows, values, sds = [[0.0, 1.0], [1.0, 0.0]], [USUAL_POWER, 0.0], [POWER_SD, 30.0]
    if pilot is not None:
        rows.append([1.0, -float(np.log(max(pilot[0] - 1.0, 1.0)))])
        values.append(float(np.log(max(pilot[1], SMALLEST**2))))
        sds.append(PILOT_SD)
    for measured in rounds:
        x = float(np.log(measured.n_temperatures - 1))
        value, sd = _measured_log_variance(measured, n_chains)
        rows.append([1.0, -x])
        values.append(value)
        sds.append(float(np.sqrt(sd**2 + MODEL_SD**2 + (DRIFT * (x - last)) ** 2)))
    scaled = np.array(rows) / np.array(sds)[:, None]
    covariance = np.linalg.inv(scaled.T @ scaled)
    line = covariance @ scaled.T @ (np.array(values) / np.array(sds))
    return Forecast(n_chains, line, covariance, _spread(rounds[-1].errors, level), last)


def _spread(errors: FloatArray, level: float) -> float:
    """Return the relative standard deviation over simulations that would give the limit that these have."""
    n, interval = len(errors), error_interval(errors, level)
    if interval.estimate <= SMALLEST:
        return LEAST_SPREAD
    spread = (interval.upper - interval.estimate) / float(stdtrit(n - 1, level)) * np.sqrt(n)
    return max(float(spread / interval.estimate), LEAST_SPREAD)


def _measured_log_variance(measured: Round, n_chains: int) -> tuple[float, float]:
    """Return log s^2 with its standard error."""
    error = float(np.clip(measured.errors.mean(), SMALLEST, 0.999))
    n = len(measured.errors)
    if error > SATURATED and np.isfinite(measured.gaps).all():
        gap = float(measured.gaps.mean())
        sd = float(measured.gaps.std(ddof=1)) / max(gap, SMALLEST) / np.sqrt(n)
        return float(np.log(max(gap, SMALLEST))), float(np.hypot(sd, 3 * MODEL_SD))
    s = 2.0 * float(ndtri(0.5 + 0.5 * error)) / np.sqrt(1.0 + 1.0 / n_chains)
    sd = 2.0 * float(measured.errors.std(ddof=1)) / error / np.sqrt(n)
    return 2.0 * float(np.log(s)), PILOT_SD if error > SATURATED else sd


def _error(log_variance: float, n_chains: int) -> float:
    s = np.exp(0.5 * min(log_variance, 50.0))
    return float(2.0 * ndtr(0.5 * s * np.sqrt(1.0 + 1.0 / n_chains)) - 1.0)


def _quantile() -> float:
    return float(ndtri(0.5 + 0.5 * COVERAGE))
