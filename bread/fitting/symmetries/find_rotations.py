"""Rotations that leave a posterior alone, found from the shapes of its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.info import Layout
from bread.fitting.search.work import FitWork, Part, plain
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import MixtureReference
from bread.paths.rotated import uniform_rotation

Places = NDArray[np.int64]  # (K, P): coordinates of a matrix whose columns are rotated

MOST_DIMENSIONS = 12  # of a rotation
MOST_CANDIDATES = 40  # sets of variables that are tried
LARGEST_DIM = 600  # invariant coordinates, of which a Gaussian is fitted
TRIALS = 3  # prior draws at which the density must not change
SAME = 1e-8  # relative difference of log densities up to which they are equal


def rotatable(layout: Layout) -> tuple[Places, ...]:
    """Return the sets of coordinates that a rotation may leave the density alone in, by the shapes of the variables.

    Every array of unconstrained parameters with an axis of K elements is such a set, and so are several with an axis of
    one length, all of them first. Whether the density is invariant is for `invariant_under` to find out.
    """
    axes: dict[int, list[list[Places]]] = {}  # by K: for each variable, its coordinates with each of such axes first
    for name, positions in layout.positions.items():
        positions = np.asarray(positions)
        if layout.may_be_scale[positions].any() or layout.discrete[positions].any():
            continue
        array = _shaped(name, positions, layout.coordinates)
        if array is None:
            continue
        for k in {length for length in array.shape if 2 <= length <= MOST_DIMENSIONS}:
            moved = [np.moveaxis(array, axis, 0).reshape(k, -1) for axis in range(array.ndim) if array.shape[axis] == k]
            axes.setdefault(k, []).append(moved)
    found = chain.from_iterable(_sets(variables) for _, variables in sorted(axes.items()))
    return tuple(places for _, places in zip(range(MOST_CANDIDATES), found, strict=False))


def invariant_under(work: FitWork, candidates: Sequence[Places]) -> Places | None:
    """Return the first of some sets of coordinates whose rotations leave the log density alone; None for none."""
    if not candidates:
        return None
    base = plain(work.dim)
    rng = work.rng(Part.ROTATIONS)
    drawn = work.posterior.draw_base(PriorPath(), work.seeds(Part.ROTATIONS, range(1, 4 * TRIALS + 1)))
    before = _log_density(work, base, drawn)
    chosen = np.flatnonzero(np.isfinite(before))[:TRIALS]
    if len(chosen) < TRIALS:
        return None
    for places in candidates:
        if not _may_be_fitted(work.dim, places):
            continue
        turned = drawn[chosen].copy()
        for row in turned:
            row[places] = uniform_rotation(len(places), len(places), rng) @ row[places]
        after = _log_density(work, base, turned)
        if (np.abs(after - before[chosen]) <= SAME * (1.0 + np.abs(before[chosen]))).all():
            return places
    return None


def _may_be_fitted(dim: int, places: Places) -> bool:
    k, rank = len(places), min(places.shape)
    return bool(dim - k * rank + rank * (rank + 1) // 2 <= LARGEST_DIM)


def _log_density(work: FitWork, base: MixtureReference, states: FloatArray) -> FloatArray:
    work.n_evaluations += len(states)
    with np.errstate(invalid="ignore"):
        return work.posterior.log_density(ReferencePath(base), states)


def _sets(variables: list[list[Places]]) -> Iterator[Places]:
    """Yield the sets of several variables, each with each of its axes, the largest sets first."""
    for size in range(len(variables), 0, -1):
        for chosen in combinations(variables, size):
            for axes in product(*chosen):
                yield np.concatenate(axes, axis=1)


def _shaped(name: str, positions: NDArray[np.int64], labels: Sequence[str]) -> Places | None:
    """Return the coordinates of a variable in its shape, from labels such as "u[2,1]"; None for a scalar."""
    indices: list[list[str]] = []
    for position in positions:
        match = re.fullmatch(r"[^\[]*\[(.*)\]", labels[position], flags=re.DOTALL)
        if match is None:
            return None
        indices.append([part.strip() for part in match[1].split(",")])
    rank = len(indices[0]) if indices else 0
    if any(len(index) != rank for index in indices):
        return None
    orders = [
        {label: number for number, label in enumerate(dict.fromkeys(axis))} for axis in zip(*indices, strict=True)
    ]
    shape = tuple(len(order) for order in orders)
    if int(np.prod(shape)) != len(positions):
        return None
    array = np.full(shape, -1, dtype=np.int64)
    for position, index in zip(positions, indices, strict=True):
        array[tuple(order[label] for order, label in zip(orders, index, strict=True))] = position
    return array if (array >= 0).all() else None
