"""Continuous laws on which kernels are tested: each with a normalised log density, its gradient and exact draws.

None is symmetric in all coordinates, none has fewer than three of them, and none is a product of equal laws: defects
hide on symmetric, one-dimensional and exchangeable targets. A log density takes states of shape (..., d) and, as a
second argument, the array module to compute with: ``target.log_density(x, jax.numpy)`` can be differentiated by JAX.
Gradients are by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import betaln, expit, gammaln

from bread.debugging.target import Target

FloatArray = NDArray[np.float64]
LOG_2PI = float(np.log(2.0 * np.pi))

SHAPES = np.array([0.5, 1.0, 3.0])
MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.outer([1.0, 2.0, 0.5], [1.0, 2.0, 0.5]) * (0.9 + 0.1 * np.eye(3))
CONCENTRATION = np.array([1.0, 2.0, 4.0, 1.5])
DEGREES = 4.0


def log_gamma() -> Target:
    """Return the law of logarithms of Gamma draws of shapes 1/2, 1 and 3: skewed, each to another degree."""
    constant = float(gammaln(SHAPES).sum())

    def log_density(x: Any, xp: Any = np) -> Any:
        return (SHAPES * x - xp.exp(x)).sum(-1) - constant

    def gradient(x: FloatArray) -> FloatArray:
        return np.asarray(SHAPES - np.exp(x))

    def simulate(n: int, rng: Generator) -> FloatArray:
        return np.log(rng.gamma(SHAPES, size=(n, 3)))

    return Target("log-gamma", 3, log_density, simulate, gradient)


def correlated_normal() -> Target:
    """Return a normal law of three coordinates: correlations 0.9, unequal scales, a mean that is not zero."""
    factor = np.linalg.cholesky(COVARIANCE)
    precision = np.linalg.inv(COVARIANCE)
    constant = 1.5 * LOG_2PI + float(np.log(np.diag(factor)).sum())

    def log_density(x: Any, xp: Any = np) -> Any:
        gap = x - MEAN
        return -0.5 * ((gap @ precision) * gap).sum(-1) - constant

    def gradient(x: FloatArray) -> FloatArray:
        return np.asarray(-(x - MEAN) @ precision)

    def simulate(n: int, rng: Generator) -> FloatArray:
        return np.asarray(MEAN + rng.standard_normal((n, 3)) @ factor.T)

    return Target("correlated normal", 3, log_density, simulate, gradient)


def student_t() -> Target:
    """Return a multivariate t law of three coordinates, 4 degrees of freedom: heavy tails that they share."""
    factor = np.linalg.cholesky(COVARIANCE)
    precision = np.linalg.inv(COVARIANCE)
    constant = float(
        gammaln(DEGREES / 2.0) - gammaln((DEGREES + 3.0) / 2.0) + 1.5 * np.log(DEGREES * np.pi)
    ) + float(np.log(np.diag(factor)).sum())  # fmt: skip

    def log_density(x: Any, xp: Any = np) -> Any:
        gap = x - MEAN
        return -0.5 * (DEGREES + 3.0) * xp.log1p(((gap @ precision) * gap).sum(-1) / DEGREES) - constant

    def gradient(x: FloatArray) -> FloatArray:
        slope = (x - MEAN) @ precision
        size = ((x - MEAN) * slope).sum(-1, keepdims=True)
        return np.asarray(-(DEGREES + 3.0) * slope / (DEGREES + size))

    def simulate(n: int, rng: Generator) -> FloatArray:
        normal = rng.standard_normal((n, 3)) @ factor.T
        return np.asarray(MEAN + normal / np.sqrt(rng.chisquare(DEGREES, (n, 1)) / DEGREES))

    return Target("student t", 3, log_density, simulate, gradient)


def curved() -> Target:
    """Return a chain of four: N(0, 1); N(a^2 - 1, 1/2^2); a + log-exponential; N(b / 2 - c, 1), given those before."""
    constant = 1.5 * LOG_2PI + float(np.log(0.5))

    def log_density(x: Any, xp: Any = np) -> Any:
        a, b, c, e = x[..., 0], x[..., 1], x[..., 2], x[..., 3]
        bend, tilt, rest = 2.0 * (b - a**2 + 1.0), c - a, e - 0.5 * b + c
        return -0.5 * (a**2 + bend**2 + rest**2) + tilt - xp.exp(tilt) - constant

    def gradient(x: FloatArray) -> FloatArray:
        a, b, c, e = x[..., 0], x[..., 1], x[..., 2], x[..., 3]
        bend, slope, rest = 4.0 * (b - a**2 + 1.0), 1.0 - np.exp(c - a), e - 0.5 * b + c
        return np.stack([-a + 2.0 * a * bend - slope, -bend + 0.5 * rest, slope - rest, -rest], axis=-1)

    def simulate(n: int, rng: Generator) -> FloatArray:
        a = rng.standard_normal(n)
        b = a**2 - 1.0 + 0.5 * rng.standard_normal(n)
        c = a + np.log(rng.standard_exponential(n))
        return np.column_stack([a, b, c, 0.5 * b - c + rng.standard_normal(n)])

    return Target("curved", 4, log_density, simulate, gradient)


def funnel() -> Target:
    """Return Neal's funnel: v ~ N(0, 1.5^2), two coordinates ~ N(0, exp(v)) given v."""
    constant = 1.5 * LOG_2PI + float(np.log(1.5))

    def log_density(x: Any, xp: Any = np) -> Any:
        v, rest = x[..., 0], x[..., 1:]
        return -0.5 * (v / 1.5) ** 2 - 0.5 * xp.exp(-v) * (rest**2).sum(-1) - v - constant

    def gradient(x: FloatArray) -> FloatArray:
        v, rest = x[..., :1], x[..., 1:]
        precision = np.exp(-v)
        slope = -v / 1.5**2 + 0.5 * precision * (rest**2).sum(-1, keepdims=True) - 1.0
        return np.concatenate([slope, -precision * rest], axis=-1)

    def simulate(n: int, rng: Generator) -> FloatArray:
        v = 1.5 * rng.standard_normal((n, 1))
        return np.concatenate([v, np.exp(v / 2.0) * rng.standard_normal((n, 2))], axis=1)

    return Target("funnel", 3, log_density, simulate, gradient)


def mixture() -> Target:
    """Return a mixture of two normal laws of unequal weights and scales, shifted by unequal amounts."""
    weights = np.array([0.3, 0.7])
    means = np.array([[-2.0, -1.0, 0.5], [1.5, 1.0, -0.5]])
    scales = np.array([0.7, 1.2])
    constants = np.log(weights) - 3.0 * np.log(scales) - 1.5 * LOG_2PI

    def log_terms(x: Any) -> Any:
        gap = x[..., None, :] - means
        return constants - 0.5 * (gap**2).sum(-1) / scales**2

    def log_density(x: Any, xp: Any = np) -> Any:
        terms = log_terms(x)
        return xp.logaddexp(terms[..., 0], terms[..., 1])

    def gradient(x: FloatArray) -> FloatArray:
        terms = log_terms(x)
        share = expit(terms[..., 1] - terms[..., 0])[..., None]
        return np.asarray((1.0 - share) * (means[0] - x) / scales[0] ** 2 + share * (means[1] - x) / scales[1] ** 2)

    def simulate(n: int, rng: Generator) -> FloatArray:
        mode = (rng.random(n) < weights[1]).astype(np.int64)
        return np.asarray(means[mode] + scales[mode, None] * rng.standard_normal((n, 3)))

    return Target("mixture", 3, log_density, simulate, gradient)


def bounded() -> Target:
    """Return Beta laws on three intervals, [0, 1], [0, 3] and [-1/2, 1/2], the first two with their mass at a wall.

    The intervals overlap: were they apart, bounds that are mistaken for another coordinate's would only stop the chain.

    The log density is -inf outside, and the gradient there is zero.
    """
    first, second = np.array([1.0, 2.0, 1.5]), np.array([3.0, 1.0, 4.0])
    lower, width = np.array([0.0, 0.0, -0.5]), np.array([1.0, 3.0, 1.0])
    constant = float(betaln(first, second).sum() + np.log(width).sum())

    def log_density(x: Any, xp: Any = np) -> Any:
        u = (x - lower) / width
        inside = ((u > 0.0) & (u < 1.0)).all(-1)
        v = xp.where((u > 0.0) & (u < 1.0), u, 0.5)
        value = ((first - 1.0) * xp.log(v) + (second - 1.0) * xp.log1p(-v)).sum(-1) - constant
        return xp.where(inside, value, -xp.inf)[()]

    def gradient(x: FloatArray) -> FloatArray:
        u = (x - lower) / width
        inside = ((u > 0.0) & (u < 1.0)).all(-1, keepdims=True)
        v = np.where(inside, u, 0.5)
        return np.where(inside, ((first - 1.0) / v - (second - 1.0) / (1.0 - v)) / width, 0.0)

    def simulate(n: int, rng: Generator) -> FloatArray:
        return np.asarray(lower + width * rng.beta(first, second, size=(n, 3)))

    ends = tuple(lower.tolist()), tuple((lower + width).tolist())
    return Target("bounded", 3, log_density, simulate, gradient, (), *ends)


def simplex() -> Target:
    """Return a Dirichlet law of four parts by three of them: with a wall where they add up to one.

    The law that `stick_breaking` has in other coordinates. -inf outside, where the gradient is zero.
    """
    constant = float(gammaln(CONCENTRATION).sum() - gammaln(CONCENTRATION.sum()))
    power = CONCENTRATION - 1.0

    def log_density(x: Any, xp: Any = np) -> Any:
        last = 1.0 - x.sum(-1)
        inside = (x > 0.0).all(-1) & (last > 0.0)
        parts = xp.where(inside[..., None], x, 0.25)
        value = (power[:-1] * xp.log(parts)).sum(-1) + power[-1] * xp.log(xp.where(inside, last, 0.25))
        return xp.where(inside, value - constant, -xp.inf)[()]

    def gradient(x: FloatArray) -> FloatArray:
        last = 1.0 - x.sum(-1, keepdims=True)
        inside = (x > 0.0).all(-1, keepdims=True) & (last > 0.0)
        return np.where(inside, power[:-1] / np.where(inside, x, 0.25) - power[-1] / np.where(inside, last, 0.25), 0.0)

    def simulate(n: int, rng: Generator) -> FloatArray:
        return rng.dirichlet(CONCENTRATION, size=n)[:, :-1]

    return Target("simplex", 3, log_density, simulate, gradient, (), (0.0,) * 3, (1.0,) * 3)


def stick_breaking() -> Target:
    """Return the Dirichlet law of `simplex` in unconstrained coordinates, Jacobian included.

    The share that part k takes of what the parts before it have left is expit(x_k - log(4 - k)), and a Beta draw.
    """
    a, b = CONCENTRATION[:-1], CONCENTRATION[::-1].cumsum()[::-1][1:]
    shift = np.log([3.0, 2.0, 1.0])
    constant = float(betaln(a, b).sum())

    def log_density(x: Any, xp: Any = np) -> Any:
        return ((a + b) * -xp.logaddexp(0.0, shift - x) - b * (x - shift)).sum(-1) - constant

    def gradient(x: FloatArray) -> FloatArray:
        return np.asarray((a + b) * expit(shift - x) - b)

    def simulate(n: int, rng: Generator) -> FloatArray:
        share = rng.beta(a, b, size=(n, 3))
        return np.asarray(shift + np.log(share) - np.log1p(-share))

    return Target("stick-breaking", 3, log_density, simulate, gradient)
