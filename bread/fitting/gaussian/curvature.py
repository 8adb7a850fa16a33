"""Hessians of some coordinates by differences of gradients, along as few directions as their zeros allow.

Where effects of groups are independent given what is held, or each state of a walk depends on its neighbours, most
of the Hessian is zero, and coordinates that no other coordinate sees twice are moved together (Curtis, Powell and Reid
1974). The groups are a star colouring of the graph of what is not zero (Gebremedhin, Manne and Pothen 2005, algorithm
4.1), from which a symmetric Hessian is read without solving for it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.gaussian.modes import CountedDensity

ZERO = 1e-8  # of the geometric mean of its diagonal elements, below which an element is none
FULLEST = 0.8  # share of elements that are not zero, from which on grouping saves too little
PROBED = 0.01  # of a row's sum, by which a difference along all coordinates may be off


class Curvature:
    """Minus the Hessian of some coordinates, at one state after another of the same density.

    The first Hessian takes one gradient a coordinate and shows what is zero. Those after it take one a group, and one
    along a direction of all coordinates, which shows an element that is no longer zero: then it is made in full again.

    Parameters
    ----------
    target : CountedDensity
    coordinates : ndarray of int, shape (n,)
    """

    def __init__(self, target: CountedDensity, coordinates: NDArray[np.int64]) -> None:
        self._target, self._coordinates = target, coordinates
        n = len(coordinates)
        self._is_used = np.eye(n, dtype=bool)  # elements that were not zero
        self._colours: NDArray[np.int64] | None = None  # of each coordinate; None where every one has its own

    @property
    def price(self) -> int:
        """Gradients that the next one takes."""
        return (len(self._coordinates) if self._colours is None else int(self._colours.max()) + 2) + 1

    def at(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return minus the Hessian at a state, shape (n, n), and minus the gradient, shape (n,)."""
        grouped = None if self._colours is None else self._by_groups(state, self._colours)
        return self._full(state) if grouped is None else grouped

    def _full(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both by a difference along every coordinate, and note what is zero."""
        rows, gradient = self._differences(state, np.eye(len(self._coordinates)))
        precision = np.asarray(0.5 * (rows + rows.T))
        if np.isfinite(precision).all():
            scale = np.sqrt(np.abs(np.diag(precision)))
            self._is_used |= np.abs(precision) > ZERO * np.outer(scale, scale)
            self._colours = star_colours(self._is_used) if self._is_used.mean() < FULLEST else None
        return precision, gradient

    def _by_groups(self, state: FloatArray, colours: NDArray[np.int64]) -> tuple[FloatArray, FloatArray] | None:
        """Return both by a difference along every group; None where the elements known to be zero are not."""
        groups = np.eye(int(colours.max()) + 1)[colours].T
        probe = _signs(len(colours))
        differences, gradient = self._differences(state, np.concatenate([groups, probe[None]]))
        precision = from_groups(differences[:-1], colours, self._is_used)
        off = np.abs(precision @ probe - differences[-1])
        is_whole = (off <= PROBED * np.abs(precision).sum(axis=1)).all()  # not so where one is not a number
        return (precision, gradient) if is_whole else None

    def _differences(self, state: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return differences of gradients along directions of the coordinates, shape (direction, n), and a gradient."""
        away = np.zeros((len(directions), len(state)))
        away[:, self._coordinates] = directions
        differences, gradient = self._target.differences(state, away)
        return differences[:, self._coordinates], gradient[self._coordinates]


def star_colours(is_used: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return groups from which a symmetric matrix with these elements can be read; None where groups save nothing.

    Parameters
    ----------
    is_used : ndarray of bool, shape (n, n)
        Which elements of the matrix may differ from zero: symmetric.

    Returns
    -------
    ndarray of int, shape (n,) or None
        No element of two coordinates of one group is used, and no four coordinates that are joined in a row are of two
        groups only.
    """
    n = len(is_used)
    joined = is_used & ~np.eye(n, dtype=bool)
    colours = np.full(n, -1)
    near = np.zeros((n, n + 1), dtype=np.int64)  # of each coordinate, its neighbours of each colour; the last: of none
    for at in np.argsort(-joined.sum(axis=1), kind="stable"):
        around = np.flatnonzero(joined[at])
        taken = np.zeros(n + 1, dtype=bool)
        taken[colours[around]] = True
        for neighbour in around:
            beyond = np.flatnonzero(joined[neighbour])
            colour = colours[neighbour]
            taken[colours[beyond if colour < 0 else beyond[near[beyond, colour] > 1]]] = True
        colours[at] = int(np.argmin(taken[:n]))
        near[around, colours[at]] += 1
    return colours if int(colours.max()) + 2 < n else None


def from_groups(differences: FloatArray, colours: NDArray[np.int64], is_used: NDArray[np.bool_]) -> FloatArray:
    """Return a symmetric matrix from its products with groups of coordinates.

    Parameters
    ----------
    differences : ndarray, shape (group, n)
        The sum of the matrix's columns in each group.
    colours : ndarray of int, shape (n,)
        As of `star_colours`.
    is_used : ndarray of bool, shape (n, n)

    Returns
    -------
    ndarray, shape (n, n)
    """
    in_group = np.eye(len(differences), dtype=np.int64)[colours]
    alone = (is_used.astype(np.int64) @ in_group)[:, colours] == 1  # element ij: no other of j's group is used in row i
    read = differences[colours].T
    both = np.where(alone & alone.T, 0.5 * (read + read.T), np.where(alone, read, read.T))
    return np.where(is_used, both, 0.0)


@cache
def _signs(n: int) -> FloatArray:
    """Return a direction of all coordinates, always the same."""
    return np.where(np.random.default_rng(0).random(n) < 0.5, -1.0, 1.0)
