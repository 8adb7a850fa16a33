"""Does the likelihood fit the simulated outcomes? Derivatives of the log likelihood along flows of the outcomes.

For continuous outcomes y and a smooth field v, v_j differentiated by y_j, given theta:
``E[d/de log p(y + e v(y) | theta) + sum_j dv_j/dy_j] = 0`` (Stein's identity summed over outcomes). One number a draw
and field, from two evaluations of the log likelihood and no derivative by data: any backend can. Three fields a
variable: all outcomes are shifted; all are spread from their centres; each is shifted as the others lie, which sees
whether they depend on each other as the density says. All are zero beyond three standard deviations, so neither tails
nor overflow count. Times any function of theta, the mean is still zero. Fields may depend on theta too: where a
regression on theta predicts an outcome, the centre is the prediction and the scale that of its residuals, or the spread
of theta would drown that of the outcomes.

The identity needs a density that is continuous within the window; outcomes with bounds are mapped to the line first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.damping import N_OTHERS, location_and_scale, log_damping_of, within_box
from bread.statistics.exactness.means import mean_zero_test
from bread.statistics.exactness.score import FEWEST_DRAWS, PLAIN_SIZE, WINDOW

PREDICTED = 0.9  # a prediction of outcomes is used where residuals are smaller than this share of their spread
MOST_PRODUCTS = 20_000_000  # numbers in a prediction: beyond, marginal centres do
CLIP = 4.0  # standard deviations of theta, beyond which a prediction does not grow
STEP = 1e-5  # of the central difference, in standard deviations
FIELDS = ("shift", "spread", "together")


class Flow(NamedTuple):
    """Fields at simulated outcomes; n draws, d outcomes, fields as `FIELDS`.

    Attributes
    ----------
    field : ndarray, shape (n, d, 3)
        In units of the coordinates. Zero for an outcome that is constant in the first draws.
    divergence : ndarray, shape (n, 3)
        Sum of dv_j/dy_j.
    centre : ndarray, shape (n, d)
    scale : ndarray, shape (d,)
        Fields are zero further than `WINDOW` scales from the centre.
    """

    field: FloatArray
    divergence: FloatArray
    centre: FloatArray
    scale: FloatArray


class Line(NamedTuple):
    """How outcomes are mapped to the whole real line: "none", "log" (all positive) or "logit" (between 0 and 1).

    With ``has_density`` the density to be tested is of the coordinates, not of the outcomes: no Jacobian is needed.
    """

    name: str
    has_density: bool = False

    def to_line(self, outcomes: FloatArray) -> FloatArray:
        """Return the coordinates of outcomes."""
        if self.name == "log":
            return np.log(outcomes)
        return np.log(outcomes) - np.log1p(-outcomes) if self.name == "logit" else outcomes

    def from_line(self, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return outcomes, and the log Jacobian summed over all axes but the first, shape (n,)."""
        log_slope = np.zeros_like(coordinates)
        outcomes = coordinates
        if self.name == "log":
            outcomes, log_slope = np.exp(coordinates), coordinates
        if self.name == "logit":
            outcomes = 1.0 / (1.0 + np.exp(-coordinates))
            log_slope = -(np.logaddexp(0.0, coordinates) + np.logaddexp(0.0, -coordinates))
        axes = tuple(range(1, coordinates.ndim))
        return outcomes, np.zeros(len(coordinates)) if self.has_density else log_slope.sum(axis=axes)


def line_of(outcomes: FloatArray, function: str = "") -> Line | None:
    """Return the map for a variable's outcomes: by their range, or the ``function`` of them that has the density.

    It need not be the tightest: Stein's identity holds for any density that is continuous between the bounds, here a
    law on the whole line of which no draw was negative too. None where no map has the density.
    """
    is_positive, is_share = bool((outcomes > 0.0).all()), bool((outcomes < 1.0).all())
    if function:
        is_whole = is_positive and (is_share or function == "log")
        return Line(function, has_density=True) if function in ("log", "logit") and is_whole else None
    return Line("none") if not is_positive else Line("logit") if is_share else Line("log")


class FlowTest(NamedTuple):
    """Result of `conditional_mean_test`.

    Attributes
    ----------
    p_values, effect : ndarray, shape (k, F)
        As in `bread.statistics.exactness.score.ScoreTest`; one row a column of values.
    functions : tuple of str, length F
        "1", then "tanh(other 1)", ...: functions of theta that the values are multiplied by.
    """

    p_values: FloatArray
    effect: FloatArray
    functions: tuple[str, ...]


def flow_of(coordinates: ArrayLike, context: ArrayLike | None = None) -> Flow:
    """Return the fields at outcomes on the real line, centred and scaled by the first quarter of the draws.

    Parameters
    ----------
    coordinates : array_like, shape (n, d)
        Finite.
    context : array_like, shape (n, c), optional
        theta, which may predict outcomes; finite.

    Returns
    -------
    Flow
    """
    x = np.asarray(coordinates, dtype=np.float64)
    centre, scale = _centre_and_scale(x, np.empty((len(x), 0)) if context is None else np.asarray(context, float))
    own = (x - centre) / np.where(scale > 0.0, scale, 1.0)
    inside = np.maximum(1.0 - (own / WINDOW) ** 2, 0.0)
    window, bent = inside**2, -4.0 * own / WINDOW**2 * inside
    tanh = np.tanh(own)
    counted = np.where(scale > 0.0, tanh, 0.0)
    others = counted.sum(axis=1, keepdims=True) - counted  # none for a single outcome
    lean = np.tanh(others / np.sqrt(max(x.shape[1] - 1, 1)))
    field = np.stack([window, window * tanh, window * lean], axis=-1) * scale[None, :, None]
    slope = np.stack([bent, bent * tanh + window * (1.0 - tanh**2), bent * lean], axis=-1)
    return Flow(field, np.where(scale[None, :, None] > 0.0, slope, 0.0).sum(axis=1), centre, scale)


def _centre_and_scale(x: FloatArray, context: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return where each outcome is expected, (n, d), and how far it strays, (d,), from the first quarter of the draws.

    Each half of the quarter fits a linear prediction by theta, of which the other half tells how good it is.
    """
    n_first = len(x) // 4
    location, scale = location_and_scale(x[:n_first])
    centre = np.broadcast_to(location, x.shape)
    n_columns = context.shape[1]
    if not n_columns or len(x) * max(n_columns, x.shape[1]) > MOST_PRODUCTS or n_columns * x.shape[1] > MOST_PRODUCTS:
        return centre, scale
    around, spread = location_and_scale(context[:n_first])
    z = np.clip(np.where(spread > 0.0, (context - around) / np.where(spread > 0.0, spread, 1.0), 0.0), -CLIP, CLIP)
    halves = slice(0, n_first, 2), slice(1, n_first, 2)
    slopes = [_slopes(z[half], x[half] - location) for half in halves]
    residuals = [x[own] - location - z[own] @ other for own, other in zip(halves, slopes[::-1], strict=True)]
    shift, residual = location_and_scale(np.concatenate(residuals))
    is_better = (residual > 0.0) & (residual < PREDICTED * scale)
    predicted = location + shift + z @ (0.5 * (slopes[0] + slopes[1]))
    return np.where(is_better, predicted, centre), np.where(is_better, residual, scale)


def _slopes(z: FloatArray, x: FloatArray) -> FloatArray:
    """Return the ridge regression of columns of x on standardised z, shape (c, d)."""
    n, n_columns = z.shape
    if n_columns > n:  # the same, by a matrix of draws in place of one of columns
        return np.asarray(z.T @ np.linalg.solve(z @ z.T + np.eye(n), x))
    return np.asarray(np.linalg.solve(z.T @ z + np.eye(n_columns), z.T @ x))


def conditional_mean_test(values: ArrayLike, context: ArrayLike) -> FlowTest:
    """Test whether values have mean zero given the context, whatever it is.

    Parameters
    ----------
    values : array_like, shape (n, k)
        Independent along rows, n >= 200.
    context : array_like, shape (n, c)
        theta. Where it makes the values large they are damped, as in the score test.

    Returns
    -------
    FlowTest

    Raises
    ------
    InvalidArgumentError
        Too few draws, or shapes that do not match.
    """
    t, around = np.asarray(values, dtype=np.float64), np.asarray(context, dtype=np.float64)
    if t.ndim != 2 or around.ndim != 2 or len(t) != len(around) or len(t) < FEWEST_DRAWS:
        raise InvalidArgumentError(
            f"values and context must have shapes (n, k) and (n, c) with n >= {FEWEST_DRAWS}, but got {t.shape} and "
            f"{around.shape}."
        )
    n_first = len(t) // 4
    location, scale = location_and_scale(around[:n_first])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.clip(np.nan_to_num(np.where(scale > 0.0, (around - location) / scale, 0.0), nan=0.0), -1e3, 1e3)
    chosen = np.arange(min(z.shape[1], N_OTHERS)) * z.shape[1] // max(min(z.shape[1], N_OTHERS), 1)
    functions = ("1", *(f"tanh(other {k + 1})" for k in range(len(chosen))))
    weights = np.exp(log_damping_of(z, t, n_first, is_stein=False)) * within_box(z, n_first, 1, is_stein=False)
    factors = np.column_stack([np.ones(len(z)), np.tanh(z[:, chosen])])
    p_values, effect = np.full((t.shape[1], len(functions)), np.nan), np.full((t.shape[1], len(functions)), np.nan)
    for k in range(t.shape[1]):
        counts: NDArray[np.bool_] = weights[n_first:, k] > 0.0
        if not np.isfinite(t[n_first:, k][counts]).all():
            continue
        left = np.where(counts, weights[n_first:, k] * np.where(counts, t[n_first:, k], 0.0), 0.0)
        p_values[k], effect[k] = mean_zero_test(left[:, None] * factors[n_first:], plain_size=PLAIN_SIZE)
    return FlowTest(p_values, effect, functions)
