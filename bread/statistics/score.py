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
from bread.statistics.alarms import combined_p_value
from bread.statistics.bounds import FloatArray
from bread.statistics.means import mean_zero_test

FEWEST_DRAWS = 200
N_OTHERS = 10
WINDOW = 3.0  # in standard deviations
BOX = 0.98  # share of draws within the box
MAD_TO_SD = 1.4826
N_DAMPING = 3  # coordinates that may damp f
DAMPING_THRESHOLD = 4.5  # standard errors of a correlation
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
        Draws whose coordinate or gradient is NaN or infinite. Such a coordinate is tested only where f is zero at all
        of them, and else not at all.
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
    location = np.array([_median(column) for column in pool[:n_first].T])
    scale = MAD_TO_SD * np.array([_median(column) for column in np.abs(pool[:n_first] - location).T])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.clip(np.nan_to_num(np.where(scale > 0.0, (pool - location) / scale, 0.0), nan=0.0), -1e3, 1e3)
    others = _others(d, pool.shape[1])
    is_bad = ~np.isfinite(s) | ~np.isfinite(x)
    log_damping = _log_damping(z, s, n_first, is_stein)
    in_box = _within_box(z, n_first, d, is_stein)
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
        slope = np.where(counts, s[n_first:, i], 0.0) * scale[i]  # by the standardised coordinate: no unit
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


def _log_damping(z: FloatArray, s: FloatArray, n_first: int, is_stein: bool) -> FloatArray:
    """Return log of a factor of f, at most 0: minus the size of log |s_i| that the other coordinates explain.

    A regression on the few columns, and their absolute values, that are plainly correlated. f may depend on the own
    coordinate only where it is not differentiated.
    """
    d, c = s.shape[1], z.shape[1]
    features = np.concatenate([z, np.abs(z)], axis=1)
    first = features[:n_first] - features[:n_first].mean(axis=0)
    size = np.abs(s[:n_first])
    seen = np.isfinite(size) & (size > 0.0)
    u = np.log(np.where(seen, size, np.nan))
    u = u - np.array([_median(column) for column in u.T])
    u = np.clip(np.nan_to_num(u, nan=0.0), -5.0, 50.0)  # a gradient that happens to be near 0 says nothing
    u = u - u.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.abs(np.nan_to_num((u.T @ first) / np.outer(u.std(axis=0), first.std(axis=0)) / n_first))
    if is_stein:
        correlation[np.arange(d), np.arange(d)] = correlation[np.arange(d), c + np.arange(d)] = 0.0
    damping = np.zeros((len(z), d))
    for i in np.flatnonzero(seen.sum(axis=0) >= n_first // 2):
        order = np.argsort(-correlation[i], kind="stable")[:N_DAMPING]
        chosen = order[correlation[i, order] > DAMPING_THRESHOLD / np.sqrt(n_first)]
        if chosen.size:
            explained = features[:, chosen] @ np.linalg.lstsq(first[:, chosen], u[:, i], rcond=None)[0]
            damping[:, i] = -np.maximum(explained - np.median(explained[:n_first]), 0.0)
    return damping


def _within_box(z: FloatArray, n_first: int, d: int, is_stein: bool) -> NDArray[np.bool_]:
    """Return (n, d) whether the coordinates (Stein's identity: all but the own one) are as near as in most draws."""
    far = np.abs(z)
    limit = np.quantile(far[:n_first].max(axis=1, initial=0.0), BOX)
    n_out = (far > limit).sum(axis=1, keepdims=True)
    own_out = (far[:, :d] > limit) & is_stein
    return np.asarray(n_out - own_out == 0, dtype=np.bool_)


def _others(d: int, n_columns: int) -> NDArray[np.int64]:
    """Return for each coordinate at most ten other columns, evenly spread over coordinates and over the context."""
    n_context = n_columns - d
    n_own = min(d - 1, N_OTHERS - min(n_context, N_OTHERS // 2))
    n_more = min(n_context, N_OTHERS - n_own)
    steps = 1 + np.arange(n_own) * (d - 1) // max(n_own, 1)
    more = d + np.arange(n_more) * n_context // max(n_more, 1)
    own = (np.arange(d)[:, None] + steps) % d
    return np.concatenate([own, np.tile(more, (d, 1))], axis=1).astype(np.int64)


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


def _median(column: FloatArray) -> float:
    """Return the median of the finite values; 0 without any."""
    finite = column[np.isfinite(column)]
    return float(np.median(finite)) if finite.size else 0.0


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
