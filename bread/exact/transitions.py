"""Markov kernels on a finite state space, as stochastic matrices of many tempered densities at once.

States are 0, ..., n - 1. ``log_density`` has shape (m, n): one unnormalised log density a row, -inf where it is zero.
Matrices act on rows: ``law @ matrix`` is the law after the move. States of density zero are never reached from others;
what their own row holds does not matter to invariance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TOLERANCE = 1e-9  # of sums of probabilities that a user's matrix has


@runtime_checkable
class Transition(Protocol):
    """A family of kernels, one for each density, with the reversal of each."""

    @property
    def name(self) -> str:
        """Name for reports."""
        ...

    def matrices(self, log_density: FloatArray) -> FloatArray:
        """Return row-stochastic matrices, shape (m, n, n), that leave each row of ``log_density`` invariant."""
        ...

    def reversals(self, log_density: FloatArray) -> FloatArray:
        """Return their reversals, shape (m, n, n): entry (j, i) is p_i M_ij / p_j."""
        ...


@dataclass(frozen=True, eq=False)
class MetropolisHastings:
    """Propose from a fixed matrix, then accept or reject; reversible.

    Parameters
    ----------
    proposal : ndarray, shape (n, n)
        Probability of proposing j at i. Rows sum to at most 1; what is missing stays (as moves off a grid do). It need
        not be symmetric.
    label : str
        Name for reports.

    Raises
    ------
    InvalidArgumentError
        It is no square matrix of probabilities whose rows sum to at most 1.
    """

    proposal: FloatArray
    label: str = "Metropolis-Hastings"

    def __post_init__(self) -> None:
        proposal = np.asarray(self.proposal, dtype=np.float64)
        square = proposal.ndim == 2 and proposal.shape[0] == proposal.shape[1]
        if not square or not (proposal >= 0).all() or (proposal.sum(axis=1) > 1 + TOLERANCE).any():
            raise InvalidArgumentError(
                "proposal must be a square matrix of probabilities whose rows sum to at most 1; received an array of "
                f"shape {proposal.shape} with row sums up to {proposal.sum(axis=-1).max(initial=0.0):g}. Divide each "
                "row by its sum."
            )

    @property
    def name(self) -> str:
        """Name for reports."""
        return self.label

    @cached_property
    def _moves(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Return origins and goals of what can be accepted, its probability, and the log ratio of proposals."""
        proposal = np.array(self.proposal, dtype=np.float64)
        np.fill_diagonal(proposal, 0.0)
        origins, goals = np.nonzero((proposal > 0) & (proposal.T > 0))
        forward, back = proposal[origins, goals], proposal[goals, origins]
        return origins, goals, forward, np.log(back) - np.log(forward)

    def matrices(self, log_density: FloatArray) -> FloatArray:
        """Return the matrices, shape (m, n, n)."""
        origins, goals, probability, correction = self._moves
        m, n = log_density.shape
        here, there = log_density[:, origins], log_density[:, goals]
        change = np.zeros_like(here)  # where the density here is zero, every move is accepted
        np.subtract(there, here, out=change, where=here > -np.inf)
        result = np.zeros((m, n, n))
        result[:, origins, goals] = probability * np.exp(np.minimum(0.0, change + correction))
        diagonal = np.arange(n)
        result[:, diagonal, diagonal] = np.maximum(1.0 - result.sum(axis=2), 0.0)
        return result

    def reversals(self, log_density: FloatArray) -> FloatArray:
        """Return the same matrices: the kernel is reversible."""
        return self.matrices(log_density)


@dataclass(frozen=True, eq=False)
class HeatBath:
    """Gibbs sampling: for one partition of the states after another, draw a state of the same part.

    With one part that holds all states it is an independent exact draw. Each step is reversible; several in a fixed
    order are not, and the reversal takes them in the opposite order.

    Parameters
    ----------
    partitions : sequence of ndarray of int, each of shape (n,)
        Label of the part that each state is in.
    label : str
        Name for reports.
    """

    partitions: Sequence[IntArray]
    label: str = "Gibbs"

    @property
    def name(self) -> str:
        """Name for reports."""
        return self.label

    def matrices(self, log_density: FloatArray) -> FloatArray:
        """Return the matrices, shape (m, n, n)."""
        return self._product(log_density, self.partitions)

    def reversals(self, log_density: FloatArray) -> FloatArray:
        """Return the products in the opposite order."""
        return self._product(log_density, self.partitions[::-1])

    def _product(self, log_density: FloatArray, partitions: Sequence[IntArray]) -> FloatArray:
        steps = [_conditional(log_density, np.asarray(partition)) for partition in partitions]
        result = steps[0]
        for step in steps[1:]:
            result = result @ step
        return result


@dataclass(frozen=True, eq=False)
class Lazy:
    """Stay with probability ``stay``, and move by ``transition`` otherwise."""

    transition: Transition
    stay: float

    @property
    def name(self) -> str:
        """Name for reports."""
        return f"{self.transition.name}, idle with probability {self.stay:g}"

    def matrices(self, log_density: FloatArray) -> FloatArray:
        """Return the matrices, shape (m, n, n)."""
        return self._idle(self.transition.matrices(log_density))

    def reversals(self, log_density: FloatArray) -> FloatArray:
        """Return the reversals."""
        return self._idle(self.transition.reversals(log_density))

    def _idle(self, matrices: FloatArray) -> FloatArray:
        return np.asarray(self.stay * np.eye(matrices.shape[-1]) + (1.0 - self.stay) * matrices)


@dataclass(frozen=True, eq=False)
class MatrixTransition:
    """A kernel that a function gives as a matrix; it need not be reversible.

    Parameters
    ----------
    function : callable
        Maps one log density, shape (n,), to a row-stochastic matrix, shape (n, n), that leaves it invariant.
    label : str
        Name for reports.
    """

    function: Callable[[FloatArray], FloatArray]
    label: str = "matrix"

    @property
    def name(self) -> str:
        """Name for reports."""
        return self.label

    def matrices(self, log_density: FloatArray) -> FloatArray:
        """Return the matrices, shape (m, n, n).

        Raises
        ------
        InvalidArgumentError
            A matrix is not row-stochastic, or does not leave its density invariant.
        """
        result = np.array([self.function(row) for row in log_density], dtype=np.float64)
        m, n = log_density.shape
        if result.shape != (m, n, n) or not (result >= -TOLERANCE).all():
            raise InvalidArgumentError(
                f"The function must return a matrix of probabilities of shape ({n}, {n}); received {result.shape[1:]}."
            )
        off = np.abs(result.sum(axis=2) - 1.0).max()
        if off > TOLERANCE:
            raise InvalidArgumentError(
                f"Rows of a transition matrix must sum to 1; one is off by {off:.2g}. Put what is missing on the "
                "diagonal, where it stays."
            )
        law = probabilities(log_density)
        moved = np.abs((law[:, None, :] @ result)[:, 0] - law).sum(axis=1).max()
        if moved > TOLERANCE:
            raise InvalidArgumentError(
                f"A transition matrix must leave its density invariant; the law after one move differs by {moved:.2g} "
                "in total variation times two. Rows are where a move starts: is the matrix transposed?"
            )
        return result

    def reversals(self, log_density: FloatArray) -> FloatArray:
        """Return the reversals; the identity at states of density zero."""
        return reverse_matrices(self.matrices(log_density), log_density)


def reverse_matrices(matrices: FloatArray, log_density: FloatArray) -> FloatArray:
    """Return the reversals p_i M_ij / p_j of matrices (m, n, n) by their densities (m, n), computed in logs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        flow = np.log(matrices) + log_density[:, :, None]  # (m, i, j)
        result = np.exp(flow - log_density[:, None, :]).transpose(0, 2, 1)
    zero = log_density == -np.inf
    result[zero] = 0.0
    which, state = np.nonzero(zero)
    result[which, state, state] = 1.0
    return np.asarray(result)


def grid_neighbours(shape: tuple[int, ...]) -> FloatArray:
    """Return the proposal that moves one step along one axis of a grid, all 2 d moves equally probable.

    Moves off the grid are missing from their rows, so that `MetropolisHastings` rejects them.

    Parameters
    ----------
    shape : tuple of int
        Lengths of the d axes; states are numbered as NumPy flattens them.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric.
    """
    index = np.arange(int(np.prod(shape))).reshape(shape)
    result = np.zeros((index.size, index.size))
    for axis in range(len(shape)):
        along = np.moveaxis(index, axis, 0)
        for left, right in ((along[:-1].ravel(), along[1:].ravel()), (along[1:].ravel(), along[:-1].ravel())):
            result[left, right] += 0.5 / len(shape)
    return result


def gibbs_on_grid(shape: tuple[int, ...]) -> HeatBath:
    """Return Gibbs sampling that draws one axis of a grid after another given the others, in fixed order.

    Parameters
    ----------
    shape : tuple of int
        Lengths of the axes; states are numbered as NumPy flattens them.

    Returns
    -------
    HeatBath
        Not reversible with two axes or more; its reversal takes the axes in the opposite order.
    """
    index = np.arange(int(np.prod(shape))).reshape(shape)
    return HeatBath([_part_without(index, axis) for axis in range(len(shape))], "Gibbs on a grid")


def independent_draws(n_states: int) -> HeatBath:
    """Return the kernel that draws from the density, whatever the state.

    Parameters
    ----------
    n_states : int
        Number of states.

    Returns
    -------
    HeatBath
        With it J = 0, and B is what the steps between temperatures cost alone.
    """
    return HeatBath([np.zeros(n_states, dtype=np.int64)], "independent draws")


def probabilities(log_density: FloatArray) -> FloatArray:
    """Return normalised rows of unnormalised log densities, shape (..., n)."""
    values = np.exp(log_density - log_density.max(axis=-1, keepdims=True))
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def _part_without(index: IntArray, axis: int) -> IntArray:
    """Label states by all coordinates but one."""
    others = np.take(index, [0], axis=axis)
    return np.broadcast_to(others, index.shape).ravel()


def _conditional(log_density: FloatArray, partition: IntArray) -> FloatArray:
    """Return the kernel that draws from the density among states of the same part."""
    same = partition[:, None] == partition[None, :]
    masked = np.where(same, log_density[:, None, :], -np.inf)
    largest = masked.max(axis=2, keepdims=True)
    weights = np.where(largest > -np.inf, np.exp(masked - np.where(largest > -np.inf, largest, 0.0)), same)
    return np.asarray(weights / weights.sum(axis=2, keepdims=True))
