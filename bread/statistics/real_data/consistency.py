"""Do the real data anneal like simulated data? A rank test of forward curves.

The protocol is that of Grosse, Ancha & Roy (2016), section 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray


class Consistency(NamedTuple):
    """Result of `consistency_test`; R simulations, T numbers of temperatures.

    Attributes
    ----------
    p_value : float
        Two-sided, exact: small if the real data are harder or merely different.
    p_value_by_temperature : ndarray, shape (T,)
        Two-sided rank p-value of each column, for plots; NaN at the last. Its minimum has no level.
    effect : ndarray, shape (T,)
        Median simulated curve minus the real one, in nats; positive = real data harder; 0 at the last column.
    p_value_harder, p_value_different : float
        Of the two statistics by themselves.
    simulated_curves : ndarray, shape (R, T)
    observed_curve : ndarray, shape (T,)
        The curves shifted by their value in the last column, in nats.
    """

    p_value: float
    p_value_by_temperature: FloatArray
    effect: FloatArray
    p_value_harder: float
    p_value_different: float
    simulated_curves: FloatArray
    observed_curve: FloatArray


def consistency_test(simulated: ArrayLike, observed: ArrayLike) -> Consistency:
    """Test whether the real data's forward curve is exchangeable with those of R simulated data sets.

    The real data are one more simulation. Two statistics rank the R + 1 curves: the mean of the curve (one-sided,
    low = "harder") and the largest leave-one-out ``|z|`` over temperatures. Each curve gets the smaller of its two
    rank p-values, and the reported one is the rank of that minimum, p = (1 + #) / (R + 1). The same rule is applied
    to all curves, so the level is exact, and the p-value never exceeds Bonferroni's (twice the smaller).
    Rejecting when any temperature is extreme would have no level.

    Any summary of a data set's chains has this level. The median has the power: one chain in a heavy tail, where the
    mean need not exist, moves a mean by any amount.

    Parameters
    ----------
    simulated : array_like, shape (R, T)
        Median (or mean) forward log weight over chains, in nats, columns in increasing number of temperatures. -inf is
        allowed and counts as one range of the column below its lowest finite value; a curve whose last value is
        -inf counts as -inf before.
    observed : array_like, shape (T,)
        The same of the real data, run with the same chains, schedules and rule for tuning.

    Returns
    -------
    Consistency
        The smallest p-value is about 2 / (R + 1): R >= 39 is needed to reach 0.05. With T = 1 or R = 1 nothing can be
        tested: p-values are NaN (effect too with T = 1). Exact when simulations come from the prior; with fitted
        hyperparameters conservative, and blind to defects that the fit absorbs.

    Raises
    ------
    InvalidArgumentError
        Shapes that do not match, NaN or +inf.
    """
    sim = np.asarray(simulated, dtype=np.float64)
    obs = np.asarray(observed, dtype=np.float64)
    if sim.ndim != 2 or sim.size == 0 or obs.shape != sim.shape[1:]:
        raise InvalidArgumentError(
            "simulated must have shape (simulation, n_temperatures) and observed (n_temperatures,), "
            f"but got {sim.shape} and {obs.shape}."
        )
    for name, values in (("simulated", sim), ("observed", obs)):
        if np.isnan(values).any() or np.isposinf(values).any():
            raise InvalidArgumentError(
                f"{name} mean log weights must be finite or -inf, but {int((np.isnan(values)).sum())} are NaN and "
                f"{int(np.isposinf(values).sum())} +inf. Leave out simulations that did not finish."
            )
    curves = shifted_curves(np.vstack([sim, obs]))
    n_columns = curves.shape[1] - 1
    by_temperature = np.full(n_columns + 1, np.nan)
    effect = np.full(n_columns + 1, np.nan)
    p_value = p_harder = p_different = float("nan")
    if n_columns > 0:
        finite = finite_curves(curves)
        effect = np.median(finite[:-1], axis=0) - finite[-1]
        if len(sim) > 1:
            low = rank_p_values_of_all(-finite)
            high = rank_p_values_of_all(finite)
            by_temperature[:-1] = np.minimum(1.0, 2.0 * np.minimum(low, high)[-1])[:-1]
            harder, different = (rank_p_values_of_all(statistic) for statistic in curve_statistics(finite))
            p_harder, p_different = float(harder[-1]), float(different[-1])
            p_value = float(rank_p_values_of_all(-np.minimum(harder, different))[-1])
    return Consistency(p_value, by_temperature, effect, p_harder, p_different, curves[:-1], curves[-1])


def rank_p_values_of_all(statistic: FloatArray) -> FloatArray:
    """Return for every row the fraction of rows (itself included) with a statistic at least as large.

    For exchangeable rows each entry is a valid p-value, (1 + number of other rows as large) / number of rows;
    ties make it larger.
    """
    return np.asarray((statistic[None] >= statistic[:, None]).mean(axis=1), dtype=np.float64)


def shifted_curves(raw: FloatArray) -> FloatArray:
    """Subtract the last column; a curve that ends at -inf is -inf before its last value."""
    last = raw[:, -1:]
    is_lost = np.isneginf(last)
    shifted = np.where(is_lost, -np.inf, raw - np.where(is_lost, 0.0, last))
    shifted[:, -1] = 0.0
    return np.asarray(shifted, dtype=np.float64)


def finite_curves(curves: FloatArray) -> FloatArray:
    """Replace -inf by one range of the column (at least 1 nat) below its lowest finite value.

    The rule is symmetric in the curves, so it keeps them exchangeable.
    """
    is_finite: NDArray[np.bool_] = np.isfinite(curves)
    lowest = np.where(is_finite, curves, np.inf).min(axis=0)
    highest = np.where(is_finite, curves, -np.inf).max(axis=0)
    has_finite = is_finite.any(axis=0)
    lowest, highest = np.where(has_finite, lowest, 0.0), np.where(has_finite, highest, 0.0)
    return np.where(is_finite, curves, lowest - np.maximum(highest - lowest, 1.0))


def curve_statistics(curves: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the statistics "harder" and "different" of each of the curves, large where a curve is extreme.

    Parameters
    ----------
    curves : ndarray, shape (n, T)
        From `shifted_curves` and `finite_curves`; the last column, 0 in all, says nothing.
    """
    before = curves[:, :-1]
    return -before.mean(axis=1), _largest_deviation(before)


def _largest_deviation(curves: FloatArray) -> FloatArray:
    """Return the largest |z| over columns of each curve, against mean and deviation of all the others."""
    n = len(curves)
    curves = np.ldexp(curves, -np.frexp(np.abs(curves).max(axis=0))[1])  # exact, and squares do not overflow
    others = ~np.eye(n, dtype=bool)[:, :, None]
    mean = np.where(others, curves, 0.0).sum(axis=1) / (n - 1)
    variance = np.where(others, (curves - mean[:, None]) ** 2, 0.0).sum(axis=1) / (n - 2)
    gap = np.abs(curves - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(gap > 0.0, gap / np.sqrt(variance), 0.0)
    return np.asarray(z.max(axis=1), dtype=np.float64)
