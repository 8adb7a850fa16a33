"""Grids on which sums stand for integrals of a target's density: smooth integrands, equal steps, all of the line."""

from __future__ import annotations

import numpy as np


class Grid:
    """Nodes (n, d) with weights, such that sum(weight * f(node)) is the integral of f, or its sum over whole numbers.

    Each coordinate is a map of the line that leaves ends to fall off; equal steps then converge faster than any power.
    """

    def __init__(self, *axes, simplex=False):
        nodes = np.meshgrid(*[axis[0] for axis in axes], indexing="ij")
        weights = np.meshgrid(*[axis[1] for axis in axes], indexing="ij")
        self.nodes = np.stack([one.ravel() for one in nodes], axis=1)
        self.weights = np.prod([one.ravel() for one in weights], axis=0)
        if simplex:  # shares of what is left, as sticks are broken
            left = np.ones(len(self.nodes))
            for i in range(self.nodes.shape[1]):
                self.weights *= left
                share = self.nodes[:, i].copy()
                self.nodes[:, i] = share * left
                left = left * (1.0 - share)

    def mean(self, log_density, *functions):
        """Return the integral of the density, then those of the density times each function."""
        weighted = np.exp(log_density(self.nodes)) * self.weights
        counts = weighted > 1e-12 * weighted.max()  # time goes into the functions
        nodes, shares = self.nodes[counts], weighted[counts]
        return np.array([weighted.sum(), *[(shares * f(nodes)).sum() for f in functions]])


def plain(low, high, n):
    """Equal steps."""
    x = np.linspace(low, high, n)
    return x, np.full(n, x[1] - x[0])


def wide(centre, scale, reach, n):
    """centre + scale * sinh(u), |u| up to reach: heavy tails, and scales that differ by orders."""
    u, step = plain(-reach, reach, n)
    return centre + scale * np.sinh(u), step * scale * np.cosh(u)


def interval(low, high, n):
    """Tanh-sinh: densities that end at a wall, or are infinite there."""
    u, step = plain(-3.4, 3.4, n)
    s = np.pi / 2.0 * np.sinh(u)
    inside = 1.0 / (1.0 + np.exp(-2.0 * s))
    jacobian = np.pi * np.cosh(u) * inside / (1.0 + np.exp(2.0 * s))
    return low + (high - low) * inside, step * (high - low) * jacobian


def whole(low, high):
    """Whole numbers."""
    x = np.arange(low, high + 1.0)
    return x, np.ones(len(x))


def grid_of(name):
    """Return the grid for a default target."""
    makers = {
        "log-gamma": lambda: Grid(plain(-40, 5, 120), plain(-20, 4, 80), plain(-9, 4, 80)),
        "correlated normal": lambda: Grid(plain(-6, 8, 80), plain(-16, 12, 80), plain(-3, 4, 80)),
        "student t": lambda: Grid(wide(1, 1, 7, 80), wide(-2, 2, 7, 80), wide(0.5, 0.5, 7, 80)),
        "curved": lambda: Grid(plain(-5, 5, 41), plain(-4, 27, 75), plain(-20, 8, 40), plain(-18, 32, 40)),
        "funnel": lambda: Grid(plain(-8, 9, 40), wide(0, 0.01, 13, 130), wide(0, 0.01, 13, 130)),
        "mixture": lambda: Grid(plain(-8, 10, 60), plain(-8, 9, 60), plain(-8, 8, 60)),
        "stick-breaking": lambda: Grid(plain(-30, 9, 80), plain(-15, 15, 60), plain(-8, 25, 60)),
        "bounded": lambda: Grid(interval(0, 1, 60), interval(0, 3, 60), interval(-0.5, 0.5, 60)),
        "simplex": lambda: Grid(*[interval(0, 1, 60)] * 3, simplex=True),
        "offset": lambda: Grid(*[whole(0, 5)] * 3),
        "binary": lambda: Grid(*[whole(-1, 2)] * 4),
        "categories": lambda: Grid(*[whole(-1, 5)] * 3),
        "counts": lambda: Grid(whole(-1, 30), whole(-1, 60), whole(-1, 90)),
    }
    return makers[name]()
