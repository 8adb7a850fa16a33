"""References for a Stan program of two coordinates."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from bread.paths.conditional import ConditionalReference, spline_through
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian
from bread.paths.nested import NestedReference

FULL = gaussian(np.array([2.0, 1.9]), np.array([[0.6, 0.05], [0.05, 0.12]]))


NESTED = NestedReference(
    driver=1,
    marginal=diagonal(np.array([1.8]), np.array([0.3])),
    centre=np.array([2.0]),
    matrix=np.array([[1.3]]),
    knots=np.array([1.4, 1.7, 2.3]),
    values=np.array([[[0.2], [-0.1]], [[0.1], [-0.2]], [[-0.1], [0.1]]]),
    slopes=np.array([[[-0.2], [0.1]], [[0.1], [0.2]], [[-0.1], [0.3]]]),
)


def nested(kind: type[NestedReference], dim: int, driver: int) -> NestedReference:
    rng, m, n = default_rng(30), 5, dim - 1
    parts = (
        Component(np.array([-0.7]), np.array([0.6]), matrix=np.array([[1.2]]), degrees=np.array([6.0])),
        Component(np.array([0.9]), np.array([1.1])),
    )
    return kind(
        driver=driver,
        marginal=MixtureReference(parts, np.array([0.3, 0.7])),
        centre=rng.normal(0.0, 2.0, n),
        matrix=np.eye(n) + rng.normal(0.0, 0.5 / np.sqrt(n), (n, n)),
        knots=np.array([-1.8, -1.1, 0.1, 0.5, 1.9]),
        values=rng.normal(0.0, 0.5, (m, 2, n)),
        slopes=rng.normal(0.0, 0.3, (m, 2, n)),
    )


def conditional(dim: int) -> ConditionalReference:
    """A law of coordinates 3 and 1, and of the others given them, with made-up functions."""
    rng, m, n = default_rng(34), 7, dim - 2
    knots = rng.normal(0.0, 1.5, (m, 2))
    values = 0.3 * rng.normal(size=(m, 2 * n + n * (n - 1) // 2))
    return ConditionalReference(
        drivers=(3, 1),
        marginal=gaussian(np.array([-0.4, 0.7]), np.array([[0.9, 0.3], [0.3, 0.6]])),
        centre=rng.normal(size=n),
        matrix=np.eye(n) + rng.normal(0.0, 0.5 / np.sqrt(n), (n, n)),
        origin=np.array([-0.3, 0.5]),
        spread=np.array([1.2, 0.8]),
        knots=knots,
        coefficients=spline_through(knots, values),
    )
