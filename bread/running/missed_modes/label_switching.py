"""Labels that may be exchanged without a change of the posterior: those of a mixture's clusters.

Modes that are copies of each other under such an exchange are one mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Model

LARGEST = 30  # labels of one axis
TRIED = 4  # draws at which the density must not change
SLACK = 1e-6  # nats of rounding

Values = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Exchange:
    """Axes along which labels may be exchanged, all together.

    Attributes
    ----------
    n_labels : int
    axes : dict of str to tuple of int
        For each parameter its axes of that length.
    """

    n_labels: int
    axes: dict[str, tuple[int, ...]]

    @property
    def log_copies(self) -> float:
        """Log of the number of ways to label."""
        return math.lgamma(self.n_labels + 1)

    def apply(self, values: Values, order: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return values (n, ...) with the labels in another order, shape (n, n_labels), for each row."""
        result = dict(values)
        for name, axes in self.axes.items():
            array = np.asarray(result[name])
            for axis in axes:
                index = order.reshape(
                    (len(order), *(self.n_labels if at == axis else 1 for at in range(array.ndim - 1)))
                )
                array = np.take_along_axis(array, index, axis=axis + 1)
            result[name] = array
        return result

    def features(self, values: Values) -> FloatArray:
        """Return what tells the labels apart, shape (n, n_labels, n_features)."""
        parts = []
        for name, axes in self.axes.items():
            if len(axes) == 1:
                array = np.moveaxis(np.asarray(values[name], dtype=np.float64), axes[0] + 1, 1)
                parts.append(array.reshape(len(array), self.n_labels, -1))
        return np.concatenate(parts, axis=2)


def find_exchanges(
    model: Model, states: FloatArray, log_density: Callable[[FloatArray], FloatArray]
) -> tuple[Exchange, ...]:
    """Return the exchanges of labels that leave the posterior unchanged.

    Every axis of the free variables is tried whose length occurs: with all axes of that length, with those of the same
    name, and alone. The density in unconstrained coordinates is compared at some states before and after. The usual
    maps to a simplex keep it too: their Jacobians are the product of all weights.

    Parameters
    ----------
    model : Model
    states : ndarray, shape (n, dim)
        Draws; a few are used.
    log_density : callable
        Log density (nats) in unconstrained coordinates, (n, dim) -> (n,).
    """
    chosen = states[:TRIED]
    names = tuple(model.info.layout.positions)
    if not len(chosen) or not names:
        return ()
    values = _free(model, chosen, names)
    found: list[Exchange] = []
    shapes = {name: np.shape(array)[1:] for name, array in values.items()}
    for candidate in _candidates(shapes, model.info.layout.parameters):
        taken = {(name, axis) for one in found for name, axes in one.axes.items() for axis in axes}
        if any((name, axis) in taken for name, axes in candidate.axes.items() for axis in axes):
            continue
        if _is_symmetry(model, candidate, chosen, values, log_density):
            found.append(candidate)
    return tuple(found)


def aligned(model: Model, exchanges: Sequence[Exchange], states: FloatArray, target: FloatArray) -> FloatArray:
    """Return states, shape (n, dim), with the labels in the order that is nearest to those of ``target``, (dim,)."""
    from scipy.optimize import linear_sum_assignment

    if not exchanges or not len(states):
        return states
    names = tuple(model.info.layout.positions)
    values, goal = _free(model, states, names), _free(model, target[None, :], names)
    moved = np.zeros(len(states), dtype=bool)
    for exchange in exchanges:
        ours, theirs = exchange.features(values), exchange.features(goal)[0]
        spread = np.maximum(ours.std(axis=(0, 1)), 1e-300)
        order = np.empty((len(states), exchange.n_labels), dtype=np.int64)
        for row, features in enumerate(ours):
            cost = (((theirs[:, None, :] - features[None, :, :]) / spread) ** 2).sum(axis=2)
            order[row] = linear_sum_assignment(np.nan_to_num(cost, nan=1e300, posinf=1e300))[1]
        moved |= (order != np.arange(exchange.n_labels)).any(axis=1)
        values = exchange.apply(values, order)
    result = states.copy()
    if moved.any():  # the others keep their last bit
        result[moved] = model.unconstrain({name: array[moved] for name, array in values.items()})
    return result


def _free(model: Model, states: FloatArray, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    values = model.constrain(states)
    return {name: np.asarray(values[name]) for name in names}


def _candidates(shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, tuple[str, ...]]) -> list[Exchange]:
    """Return groups of axes of one length, the largest first, that have something to tell labels apart by."""
    groups: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    for name, shape in shapes.items():
        labels = dims.get(name, ())
        for axis, length in enumerate(shape):
            if 2 <= length <= LARGEST:
                label = labels[axis] if len(labels) == len(shape) else None
                for key in ((0, length, ""), (1, length, str(label)), (2, length, name)):
                    groups.setdefault(key, {}).setdefault(name, []).append(axis)
    result: list[Exchange] = []
    for (_, length, _), axes in sorted(groups.items(), key=lambda item: item[0]):
        candidate = Exchange(length, {name: tuple(found) for name, found in axes.items()})
        if candidate not in result and any(len(found) == 1 for found in candidate.axes.values()):
            result.append(candidate)
    return result


def _is_symmetry(
    model: Model,
    exchange: Exchange,
    states: FloatArray,
    values: Values,
    log_density: Callable[[FloatArray], FloatArray],
) -> bool:
    """Return whether two orders that generate all of them leave the density of the parameters unchanged."""
    swap, cycle = np.arange(exchange.n_labels), np.roll(np.arange(exchange.n_labels), 1)
    swap[:2] = 1, 0
    before = log_density(states)
    if not np.isfinite(before).all():
        return False
    for order in (swap, cycle):
        try:
            after = model.unconstrain(exchange.apply(values, np.tile(order, (len(states), 1))))
        except Exception:  # the exchanged values are outside the support: ordered ones, a user's own transform
            return False
        if not np.isfinite(after).all():
            return False
        change = log_density(after) - before
        slack = SLACK + 1e-9 * np.abs(before)
        if not (np.abs(change) <= slack).all():
            return False
    return True
