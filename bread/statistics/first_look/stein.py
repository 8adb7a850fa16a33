"""Draws and gradients along coordinates and other directions, and the functions that Stein's identity is taken of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bread.statistics.agreement.draws import MINIMUM_EFFECTIVE
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.damping import location_and_scale

FUNCTIONS = ("1", "tanh", "upper tail", "lower tail")
TAIL, STEEPNESS = 1.5, 4.0  # where the steps in the tails are, in standard deviations, and how steep
ALL_PAIRS, PAIRS = 30, 3  # dimension up to which all pairs are looked at; beyond, the most correlated of each
DIRECTIONS = 30  # principal axes of the gradient: half of them the widest, half the narrowest


class Along:
    """Draws and gradients along some directions, in units of the draws' own location and scale there.

    Attributes
    ----------
    x : ndarray, shape (chain, draw, d)
    steps : ndarray, shape (m, d)
        One unit along each direction.
    z, slope : ndarray, shape (chain, last draws, m)
        Standardised draws, and the gradient by them; 0 where a direction is not tested. Of the last draws of each
        chain, where the first ones chose the directions.
    is_tested : ndarray of bool, shape (m,)
    """

    def __init__(self, x: FloatArray, steps: FloatArray, z: FloatArray, slope: FloatArray) -> None:
        self.x, self.steps, self.z, self.slope = x, steps, z, slope
        self.is_tested = np.ones(z.shape[2], dtype=bool)

    @property
    def scale(self) -> FloatArray:
        """Length of a unit of each coordinate, where the directions are these."""
        return np.diagonal(self.steps)

    def leave_out(self, which: Sequence[int] | NDArray[np.int64]) -> None:
        """Let nothing (more) be concluded from the gradient along some directions."""
        self.is_tested[list(which)] = False
        self.slope[..., list(which)] = self.z[..., list(which)] = 0.0

    def terms(self, kind: str, own: Sequence[int], other: Sequence[int]) -> FloatArray:
        """Return the left sides of identities of one kind, shape (chain, draw, len(own))."""
        h, derivative = function_of(kind, self.z[..., other])
        is_own = np.equal(own, other) & self.is_tested[own]
        return self.slope[..., own] * h + np.where(is_own, derivative, 0.0)


def along_coordinates(x: FloatArray, gradient: FloatArray) -> Along:
    """Return draws (chain, draw, d) and gradients along their own coordinates."""
    location, scale = location_and_scale(x.reshape(-1, x.shape[2]))
    unit = np.where(scale > 0.0, scale, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = gradient * unit
    along = Along(x, np.diag(scale), (x - location) / unit, slope)
    along.leave_out(np.flatnonzero((scale <= 0.0) | ~np.isfinite(slope).all(axis=(0, 1))))
    return along


def along_directions(along: Along, n_effective: FloatArray) -> Along:
    """Return the principal axes of the gradient in the first half of each chain, with the draws of the second half.

    They see what no single coordinate does: a law without its correlations.
    """
    half = along.x.shape[1] // 2
    used = np.flatnonzero(along.is_tested & (n_effective >= MINIMUM_EFFECTIVE))
    axes = np.zeros((0, len(along.steps)))
    if len(used) > 1:
        first = along.slope[:, :half, used].reshape(-1, len(used))
        vectors = np.linalg.eigh(np.cov(first, rowvar=False))[1].T
        ends = np.unique(np.r_[np.arange(len(vectors))[: DIRECTIONS // 2], np.arange(len(vectors))[-DIRECTIONS // 2 :]])
        axes = np.zeros((len(ends), len(along.steps)))
        axes[:, used] = vectors[ends]
    z = along.z[:, half:] @ axes.T
    location, unit = location_and_scale(z.reshape(z.shape[0] * z.shape[1], len(axes)))
    unit = np.where(unit > 0.0, unit, 1.0)
    steps = unit[:, None] * axes * along.scale
    return Along(along.x, steps, (z - location) / unit, unit * (along.slope[:, half:] @ axes.T))


def function_of(kind: str, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return h and its derivative at standardised values."""
    if kind == "1":
        return np.ones_like(z), np.zeros_like(z)
    if kind == "tanh":
        tanh = np.tanh(z)
        return tanh, 1.0 - tanh**2
    sign = 1.0 if kind == "upper tail" else -1.0
    step = expit(STEEPNESS * (sign * z - TAIL))
    return step, sign * STEEPNESS * step * (1.0 - step)


def pairs(along: Along) -> list[tuple[str, int, int]]:
    """Return the functions of other coordinates: kind, own coordinate, other one."""
    d = along.z.shape[2]
    if d <= ALL_PAIRS:
        return [("tanh", i, j) for i in range(d) for j in range(d) if i != j]
    flat = np.tanh(along.z.reshape(-1, d))
    centred = flat - flat.mean(axis=0)
    deviation = np.sqrt((centred**2).sum(axis=0))
    correlation = np.abs(centred.T @ centred) / np.where(deviation > 0.0, np.outer(deviation, deviation), np.inf)
    np.fill_diagonal(correlation, -1.0)
    nearest = np.argsort(-correlation, axis=1, kind="stable")[:, :PAIRS]
    return [("tanh", i, int(j)) for i in range(d) for j in nearest[i]]
