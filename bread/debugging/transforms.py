"""Whether the maps between a model's own coordinates and unconstrained ones fit together, Jacobians included."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bread.backends.base import FloatArray, Model
from bread.backends.nodes import Node
from bread.errors import BreadError, UnsupportedModelError

N_STATES = 12  # at which they are compared
STEP = 6e-6  # of central differences, times 1 + |coordinate|: the cube root of the rounding error
LARGEST_LOOP = 1e-6  # |constrain(unconstrain(x)) - x|, relative to 1 + |x|
LARGEST_DETERMINANT = 1e-3  # nats: rounding of the differences, at 12 states
MOST_COORDINATES = 50  # of a node, whose determinant is computed


class TransformCheck(NamedTuple):
    """What was compared, variable by variable.

    Attributes
    ----------
    loop : dict of str to float
        Largest difference between a variable and itself after ``unconstrain`` and ``constrain``, relative to 1 + |x|.
    determinant : dict of str to float
        Largest difference, in nats, between the log determinant that the density has and a numerical one, up to one
        constant; by variable.
    left_out : dict of str to str
        Variables whose determinant was not compared, and why.
    """

    loop: dict[str, float]
    determinant: dict[str, float]
    left_out: dict[str, str]

    @property
    def failed(self) -> list[str]:
        """Names of what differs by more than rounding."""
        loops = [f"constrain(unconstrain({name}))" for name, value in self.loop.items() if not value < LARGEST_LOOP]
        wrong = [name for name, value in self.determinant.items() if not value < LARGEST_DETERMINANT]
        return [*loops, *(f"Jacobian of {name}" for name in wrong)]


def check_transforms(model: Model, states: FloatArray) -> TransformCheck:
    """Compare maps, and Jacobians with numerical determinants, at exact draws (n, dim) of the model.

    Log density in unconstrained coordinates minus that in the model's own must be the log determinant of the map, up to
    a constant. Variables whose own coordinates are more than their unconstrained ones (a simplex) are compared by the
    loop alone.
    """
    states = states[:N_STATES]
    values = model.constrain(states)
    names = model.info.layout.positions
    again = model.constrain(model.unconstrain({name: values[name] for name in names}))
    loop = {}
    for name in names:
        x, y = np.asarray(values[name], dtype=np.float64), np.asarray(again[name], dtype=np.float64)
        loop[name] = float(np.max(np.abs(x - y) / (1.0 + np.abs(x)), initial=0.0))
    determinant, left_out = {}, {}
    for node in model.nodes():
        if node.kind not in ("latent", "parameter"):
            continue
        try:
            determinant[node.name] = _determinant(model, node, states)
        except BreadError as error:
            left_out[node.name] = str(error)
    return TransformCheck(loop, determinant, left_out)


def _determinant(model: Model, node: Node, states: FloatArray) -> float:
    layout = model.info.layout
    columns = np.concatenate([np.asarray(layout.positions[name], dtype=np.int64).ravel() for name in node.shapes])
    if len(columns) != node.size or np.asarray(layout.discrete, dtype=bool)[columns].any():
        raise UnsupportedModelError(f"{node.name} has no square Jacobian: its coordinates are fewer, or discrete.")
    if len(columns) > MOST_COORDINATES:
        raise UnsupportedModelError(f"{node.name} has more than {MOST_COORDINATES} coordinates.")
    own = model.node_log_prior(node.name, states, jacobian=False).sum(axis=1)
    gaps = model.node_log_prior(node.name, states).sum(axis=1) - own
    gaps -= [_log_determinant(model, node, state, columns) for state in states]
    return float(np.ptp(gaps)) if np.isfinite(gaps).all() else float("inf")


def _log_determinant(model: Model, node: Node, state: FloatArray, columns: FloatArray) -> float:
    steps = STEP * (1.0 + np.abs(state[columns]))
    moved = np.repeat(state[None], 2 * len(columns), axis=0)
    rows = np.arange(len(columns))
    moved[rows, columns] += steps
    moved[rows + len(columns), columns] -= steps
    values = model.constrain(moved)
    arrays = [np.asarray(values[name], dtype=np.float64).reshape(len(moved), -1) for name in node.shapes]
    flat = np.concatenate(arrays, axis=1)
    jacobian = (flat[: len(columns)] - flat[len(columns) :]) / (2.0 * steps[:, None])
    return float(np.linalg.slogdet(jacobian)[1])
