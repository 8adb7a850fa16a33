"""Does the likelihood fit the simulated outcomes? Derivatives of the log likelihood along flows of the outcomes.

For continuous outcomes y and a smooth field v with v_j a function of y_j alone, given theta:
``E[d/de log p(y + e v(y) | theta) + sum_j dv_j/dy_j] = 0`` (Stein's identity summed over outcomes). One number a draw
and field, from two evaluations of the log likelihood and no derivative by data: any backend can. Two fields a variable:
all outcomes are shifted, and all are spread from their centres. Both are zero beyond three standard deviations, so
neither tails nor overflow count. Times any function of theta, the mean is still zero.

The identity needs a density that is continuous within the window; outcomes with bounds are mapped to the line first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds import FloatArray
from bread.statistics.damping import N_OTHERS, location_and_scale, log_damping_of, within_box
from bread.statistics.means import mean_zero_test
from bread.statistics.score import FEWEST_DRAWS, PLAIN_SIZE, WINDOW

STEP = 1e-5  # of the central difference, in standard deviations
FIELDS = ("shift", "spread")


class Flow(NamedTuple):
    """Fields at simulated outcomes; n draws, d outcomes, fields as `FIELDS`.

    Attributes
    ----------
    field : ndarray, shape (n, d, 2)
        In units of the coordinates. Zero for an outcome that is constant in the first draws.
    divergence : ndarray, shape (n, 2)
        Sum of dv_j/dy_j.
    """

    field: FloatArray
    divergence: FloatArray


class Line(NamedTuple):
    """How outcomes are mapped to the whole real line: "none", "log" (all positive) or "logit" (between 0 and 1)."""

    name: str

    def to_line(self, outcomes: FloatArray) -> FloatArray:
        """Return the coordinates of outcomes."""
        if self.name == "log":
            return np.log(outcomes)
        return np.log(outcomes) - np.log1p(-outcomes) if self.name == "logit" else outcomes

    def from_line(self, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return outcomes, and the log Jacobian summed over all axes but the first, shape (n,)."""
        axes = tuple(range(1, coordinates.ndim))
        if self.name == "log":
            return np.exp(coordinates), coordinates.sum(axis=axes)
        if self.name == "logit":
            share = 1.0 / (1.0 + np.exp(-coordinates))
            return share, -(np.logaddexp(0.0, coordinates) + np.logaddexp(0.0, -coordinates)).sum(axis=axes)
        return coordinates, np.zeros(len(coordinates))


def line_of(outcomes: FloatArray) -> Line:
    """Return the map for a variable's outcomes, by their range alone.

    It need not be the tightest: Stein's identity holds for any density that is continuous between the bounds, here a
    law on the whole line of which no draw was negative too.
    """
    if (outcomes > 0.0).all():
        return Line("logit") if (outcomes < 1.0).all() else Line("log")
    return Line("none")


class FlowTest(NamedTuple):
    """Result of `conditional_mean_test`.

    Attributes
    ----------
    p_values, effect : ndarray, shape (k, F)
        As in `bread.statistics.score.ScoreTest`; one row a column of values.
    functions : tuple of str, length F
        "1", then "tanh(other 1)", ...: functions of theta that the values are multiplied by.
    """

    p_values: FloatArray
    effect: FloatArray
    functions: tuple[str, ...]


def flow_of(coordinates: ArrayLike) -> Flow:
    """Return the fields at outcomes on the real line, scaled by the first quarter of the draws.

    Parameters
    ----------
    coordinates : array_like, shape (n, d)
        Finite.

    Returns
    -------
    Flow
    """
    x = np.asarray(coordinates, dtype=np.float64)
    location, scale = location_and_scale(x[: len(x) // 4])
    own = (x - location) / np.where(scale > 0.0, scale, 1.0)
    inside = np.maximum(1.0 - (own / WINDOW) ** 2, 0.0)
    window, bent = inside**2, -4.0 * own / WINDOW**2 * inside
    tanh = np.tanh(own)
    field = np.stack([window, window * tanh], axis=-1) * scale[None, :, None]
    slope = np.stack([bent, bent * tanh + window * (1.0 - tanh**2)], axis=-1)
    return Flow(field, np.where(scale[None, :, None] > 0.0, slope, 0.0).sum(axis=1))


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
