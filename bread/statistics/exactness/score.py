"""Do simulator and density agree? The score test: identities of gradients that hold at exact draws.

Three identities, of which a draw costs one gradient. With s the gradient of a log density:

* Prior. For theta ~ p(theta), in unconstrained coordinates: ``E[s_i f + d_i f] = 0`` (Stein), s_i = d_i log p(theta).
* Likelihood by parameters. For y ~ p(y | theta): ``E[s_i f(theta)] = 0``, s_i = d log p(y | theta) / d theta_i, without
  a derivative of f, because the mean over y is zero at every theta.
* Likelihood by continuous outcomes. ``E[s_j f + d_j f] = 0``, s_j = d log p(y | theta) / d y_j.

f is a bounded function. In Stein's two, its dependence on the own coordinate is a smooth window of three standard
deviations, with and without tanh of that coordinate: outside nothing counts, so neither a law whose gradient is
balanced by values too rare to be seen (an inverse gamma law with shape 0.001) nor an overflow far out can ring. On the
*other* coordinates f may depend in any way, so it is damped where they make s_i large (a small scale makes a gradient
large, and its mean need not exist) and zero outside of the box of most draws.

Locations, scales, the box and the damping are set with the first quarter of the draws and the identities tested with
the rest, so f is fixed before it is used and the level does not suffer.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.damping import location_and_scale, log_damping_of, other_columns, within_box
from bread.statistics.exactness.means import mean_zero_test

FEWEST_DRAWS = 200
WINDOW = 3.0  # in standard deviations
LARGEST_SLOPE = 1e100  # times the coordinate's spread; more is as good as infinite
# A score of one sign whose typical size, times the spread of the coordinate, is this large cannot be balanced by rare
# events: the probability of the others would have to change by more than e^0.3 across the draws, but it is near 1.
PLAIN_SIZE = 0.3


class ScoreTest(NamedTuple):
    """Result of the three score tests; d coordinates, F functions, G groups.

    Attributes
    ----------
    p_value : float
        Bonferroni over everything tested; NaN if nothing was.
    p_values : ndarray, shape (d, F)
        Two-sided, not adjusted. NaN: not tested (discrete, a gradient that is not finite, or see `mean_zero_test`).
    pooled_p_values : ndarray, shape (G, 2)
        Of the first two functions, summed over the coordinates of a group: sees a small defect that all share.
    effect : ndarray, shape (d, F)
        Mean of the identity's left side in its own standard deviations; 0 in theory.
    functions : tuple of str, length F
        "1" (for Stein's identities within the window), "tanh(own)", "tanh(other 1)", ...
    others : ndarray of int, shape (d, F - 2)
        Which column "other k" is: of the coordinates, then of the context.
    worst : tuple of str, int, str, or None
        ("coordinate" or "group", its index, the function) with the smallest p-value.
    n_not_finite : ndarray of int, shape (d,)
        Draws whose coordinate or gradient is NaN, infinite or beyond 1e100. Such a coordinate is tested only where f
        is zero at all of them, and else not at all.
    """

    p_value: float
    p_values: FloatArray
    pooled_p_values: FloatArray
    effect: FloatArray
    functions: tuple[str, ...]
    others: NDArray[np.int64]
    worst: tuple[Literal["coordinate", "group"], int, str] | None
    n_not_finite: NDArray[np.int64]


def prior_score_test(
    draws: ArrayLike,
    gradient: ArrayLike,
    *,
    is_continuous: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ScoreTest:
    """Test draws from the prior against the gradient of its log density.

    Parameters
    ----------
    draws : array_like, shape (n, d)
        Independent draws in unconstrained coordinates, n >= 200; about 1000 for power.
    gradient : array_like, shape (n, d)
        Of the log density, Jacobian included, by these coordinates. Entries of discrete coordinates are not read.
    is_continuous : array_like of bool, shape (d,), optional
        False: the coordinate is not tested, but f may depend on it. All True if not given.
    groups : array_like of int, shape (d,), optional
        Number 0, 1, ... of the variable that a coordinate belongs to. One group if not given.

    Returns
    -------
    ScoreTest
        A p_value below 0.001 means that simulator and density disagree. The density must be continuous and vanish at
        the ends of every coordinate, as it does after the usual transforms.

    Raises
    ------
    InvalidArgumentError
        Too few draws, or shapes that do not match.

    References
    ----------
    Stein (1972), "A bound for the error in the normal approximation ...", Berkeley Symp. 2, 583-602.
    """
    return _score_test(draws, gradient, None, is_continuous, groups, is_stein=True)


def likelihood_score_test(
    draws: ArrayLike,
    gradient: ArrayLike,
    *,
    is_continuous: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ScoreTest:
    """Test joint draws (theta, y) against the gradient of log p(y | theta) by the parameters.

    Parameters
    ----------
    draws : array_like, shape (n, d)
        Independent draws of theta, in any coordinates, n >= 200.
    gradient : array_like, shape (n, d)
        Of log p(y | theta) at each draw's own y, by these coordinates.
    is_continuous, groups : array_like, optional
        As in `prior_score_test`.

    Returns
    -------
    ScoreTest
        Blind to defects that leave the mean score zero, such as a wrong constant scale of normal outcomes: use
        `outcome_score_test` too. Leave out coordinates on which the *support* of y depends (Uniform(0, theta),
        truncation at a parameter): the identity does not hold for them.

    Raises
    ------
    InvalidArgumentError
        Too few draws, or shapes that do not match.
    """
    return _score_test(draws, gradient, None, is_continuous, groups, is_stein=False)


def outcome_score_test(
    outcomes: ArrayLike,
    gradient: ArrayLike,
    context: ArrayLike,
    *,
    is_continuous: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ScoreTest:
    """Test joint draws (theta, y) against the gradient of log p(y | theta) by continuous outcomes.

    Parameters
    ----------
    outcomes : array_like, shape (n, d)
        Outcomes on the whole real line, n >= 200; others through `outcome_coordinates` first.
    gradient : array_like, shape (n, d)
        Of log p(y | theta) by these outcomes.
    context : array_like, shape (n, c)
        theta, on which f may depend too. c = 0 is allowed.
    is_continuous, groups : array_like, optional
        As in `prior_score_test`; discrete outcomes are not tested.

    Returns
    -------
    ScoreTest

    Raises
    ------
    InvalidArgumentError
        Too few draws, or shapes that do not match.
    """
    return _score_test(outcomes, gradient, context, is_continuous, groups, is_stein=True)


def outcome_coordinates(
    outcomes: ArrayLike, gradient: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Map bounded outcomes to the real line, and the gradient of their log density with them (Jacobian included).

    At a bound where the density does not vanish (an exponential law at 0) Stein's identity fails; after the map it
    holds. Log for one bound, logit for two, nothing without.

    Parameters
    ----------
    outcomes, gradient : array_like, shape (n, d)
    lower, upper : array_like, broadcast to (d,)
        -inf and inf where there is none. They may not depend on parameters.

    Returns
    -------
    coordinates : ndarray, shape (n, d)
    gradient : ndarray, shape (n, d)
        Infinite or NaN where an outcome lies at its bound or beyond; `outcome_score_test` counts those.
    """
    y, s = np.asarray(outcomes, dtype=np.float64), np.asarray(gradient, dtype=np.float64)
    low, high = np.broadcast_to(lower, y.shape).astype(np.float64), np.broadcast_to(upper, y.shape).astype(np.float64)
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    with np.errstate(all="ignore"):
        above, below = y - low, high - y
        share = above / (high - low)
        kinds = [has_low & has_high, has_low, has_high]
        coordinates = np.select(kinds, [np.log(above) - np.log(below), np.log(above), -np.log(below)], y)
        mapped = np.select(kinds, [s * above * (1.0 - share) + 1.0 - 2.0 * share, s * above + 1.0, s * below - 1.0], s)
    return coordinates, mapped


def _score_test(
    coordinates: ArrayLike,
    gradient: ArrayLike,
    context: ArrayLike | None,
    is_continuous: ArrayLike | None,
    groups: ArrayLike | None,
    *,
    is_stein: bool,
) -> ScoreTest:
    x, s, pool, tested, group = _checked(coordinates, gradient, context, is_continuous, groups)
    n, d = x.shape
    n_first = n // 4
    location, scale = location_and_scale(pool[:n_first])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.clip(np.nan_to_num(np.where(scale > 0.0, (pool - location) / scale, 0.0), nan=0.0), -1e3, 1e3)
    others = other_columns(d, pool.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = s * scale[:d]  # by the standardised coordinates: no unit
        is_bad = ~(np.abs(slopes) < LARGEST_SLOPE) | ~np.isfinite(x)
    log_damping = log_damping_of(z, s, n_first, is_stein)
    in_box = within_box(z, n_first, d, is_stein)
    functions = ("1", "tanh(own)", *(f"tanh(other {k + 1})" for k in range(others.shape[1])))
    p_values, effect = np.full((d, len(functions)), np.nan), np.full((d, len(functions)), np.nan)
    pooled = np.zeros((int(group.max(initial=-1)) + 1, n - n_first, 2))
    for i in np.flatnonzero(tested & (scale[:d] > 0.0)):
        own = z[n_first:, i]
        weight = np.exp(log_damping[n_first:, i]) * in_box[n_first:, i]
        window = np.maximum(1.0 - (own / WINDOW) ** 2, 0.0) if is_stein else np.ones(n - n_first)
        weight = np.where(window > 0.0, weight, 0.0)
        counts = weight > 0.0
        if (is_bad[n_first:, i] & counts).any():
            continue
        slope = np.where(counts, slopes[n_first:, i], 0.0)
        tanh = np.tanh(own)
        # Derivative of window^2 by the standardised coordinate; without Stein, f is differentiated nowhere.
        bent = -4.0 * own / WINDOW**2 * window if is_stein else np.zeros(n - n_first)
        plain = slope * window**2 + bent
        turned = plain * tanh + (window**2 * (1.0 - tanh**2) if is_stein else 0.0)
        left = weight[:, None] * np.column_stack([plain, turned, plain[:, None] * np.tanh(z[n_first:, others[i]])])
        result = mean_zero_test(left, plain_size=PLAIN_SIZE)
        p_values[i], effect[i] = result
        pooled[group[i]] += left[:, :2]
    pooled_p = np.array([mean_zero_test(sums, plain_size=PLAIN_SIZE).p_values for sums in pooled]).reshape(-1, 2)
    combined = combined_p_value(np.concatenate([p_values.ravel(), pooled_p.ravel()]))
    worst = _worst(p_values, pooled_p, functions)
    return ScoreTest(combined, p_values, pooled_p, effect, functions, others, worst, is_bad.sum(axis=0) * tested)


def _worst(
    p_values: FloatArray, pooled: FloatArray, functions: tuple[str, ...]
) -> tuple[Literal["coordinate", "group"], int, str] | None:
    """Return what has the smallest p-value."""
    if np.isnan(p_values).all():
        return None
    i, k = np.unravel_index(np.nanargmin(p_values), p_values.shape)
    if not np.isnan(pooled).all() and np.nanmin(pooled) < p_values[i, k]:
        j, k = np.unravel_index(np.nanargmin(pooled), pooled.shape)
        return "group", int(j), functions[int(k)]
    return "coordinate", int(i), functions[int(k)]


def _checked(
    coordinates: ArrayLike,
    gradient: ArrayLike,
    context: ArrayLike | None,
    is_continuous: ArrayLike | None,
    groups: ArrayLike | None,
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_], NDArray[np.int64]]:
    """Return coordinates, gradient, coordinates and context side by side, which are tested, and groups."""
    x, s = np.asarray(coordinates, dtype=np.float64), np.asarray(gradient, dtype=np.float64)
    if x.ndim != 2 or s.shape != x.shape or len(x) < FEWEST_DRAWS:
        raise InvalidArgumentError(
            f"coordinates and gradient must have one shape (n, d) with n >= {FEWEST_DRAWS} draws, but got {x.shape} "
            f"and {s.shape}."
        )
    around = np.zeros((len(x), 0)) if context is None else np.asarray(context, dtype=np.float64)
    if around.ndim != 2 or len(around) != len(x):
        raise InvalidArgumentError(f"context must have shape ({len(x)}, c), but got {around.shape}.")
    d = x.shape[1]
    tested = np.ones(d, dtype=np.bool_) if is_continuous is None else np.asarray(is_continuous, dtype=np.bool_)
    group = np.zeros(d, dtype=np.int64) if groups is None else np.asarray(groups, dtype=np.int64)
    if tested.shape != (d,) or group.shape != (d,) or (group < 0).any():
        raise InvalidArgumentError(
            f"is_continuous and groups must have shape ({d},), groups no negative number, but got {tested.shape} and "
            f"{group.shape}."
        )
    return x, s, np.concatenate([x, around], axis=1), tested, group
