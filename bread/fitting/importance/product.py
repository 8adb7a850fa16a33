"""Fit of a `bread.paths.product.ProductReference` to draws, by expectation maximisation.

Each coordinate is regressed on those before it, and what is left is a mixture of normal laws (Attias 1999, with a
triangular matrix): laws and slopes are improved in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.gaussian.families import ROUNDING
from bread.fitting.gaussian.gaussian_mixtures import one_thread
from bread.paths.product import ProductReference

LAWS, DRAWS_A_LAW = (2, 3), 500  # of each coordinate; so many draws are needed for one law more
FEWEST = 100  # draws
INFLATION = 1.06  # of the variances: less than for a fit to chains, whose few draws miss tails
ITERATIONS, FEWER_ITERATIONS = 40, 5  # from nothing; from the fit of the round before
STARTING = 6  # iterations from each of two starts, of which the better goes on
SLOPES_EVERY = 3  # iterations after which slopes are improved
RIDGE = 10.0  # draws that a slope of zero is worth
SMALLEST_VARIANCE, SMALLEST_WEIGHT = 1e-4, 5e-3  # of a law, of standardised coordinates
PRIOR_DRAWS = 2.0  # that the variance of all draws is worth in each law's
CONCENTRIC = (0.25, 1.1, 2.2)  # standard deviations of laws with one middle
AT_ONCE = 256  # rows, which stay in the processor's cache
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


def fit_product(
    draws: FloatArray, like: ProductReference | None = None, counts: FloatArray | None = None
) -> ProductReference | None:
    """Return independent mixtures like draws, slightly wider; None where some coordinate does not move.

    Parameters
    ----------
    draws : ndarray, shape (n, dim)
        Draws from (about) the posterior, unconstrained.
    like : ProductReference, optional
        A fit to other draws of about the same law, from which this one begins.
    counts : ndarray, shape (n,), optional
        How often each occurs; by default once.
    """
    counts = np.ones(len(draws)) if counts is None else np.asarray(counts, dtype=np.float64)
    n, dim = counts.sum(), draws.shape[1]
    if n < FEWEST:
        return None
    centre = counts @ draws / n
    spread = np.sqrt(counts @ (draws - centre) ** 2 / n)
    if not (spread > ROUNDING * np.abs(centre)).all():
        return None
    x = (draws - centre) / spread
    with one_thread():
        state = _fitted(x, counts, None if like is None else _standardised(like, centre, spread))
    if not all(np.isfinite(part).all() for part in (state.slopes, state.means, state.variances)):
        return None
    label = f"independent mixtures of {state.weights.shape[1]} Gaussian laws, adapted by importance sampling"
    matrix = (np.eye(dim) - state.slopes) / spread
    return ProductReference(centre, matrix, state.weights, state.means, np.sqrt(state.variances * INFLATION), label)


@dataclass(frozen=True)
class _State:
    """Slopes, shape (dim, dim), strictly lower triangular, and the laws of what is left, shape (dim, K)."""

    slopes: FloatArray
    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    def shares(self, residual: FloatArray) -> FloatArray:
        """Return to which law each row belongs, shape (K, n, dim): sums over a last axis are slow."""
        terms, largest = self._log_terms(residual)
        share = np.exp(terms - largest)
        share /= share.sum(axis=0)
        return share

    def log_density(self, residual: FloatArray) -> FloatArray:
        """Return the log density of each coordinate, shape (n, dim)."""
        terms, largest = self._log_terms(residual)
        return np.asarray(np.log(np.exp(terms - largest).sum(axis=0)) + largest)

    def _log_terms(self, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities of the laws, weights included, shape (K, n, dim), and the largest of each element."""
        away = residual - self.means.T[:, None]
        factors = np.log(self.weights) - 0.5 * np.log(self.variances) - _HALF_LOG_TWO_PI
        terms = factors.T[:, None] - away * away * (0.5 / self.variances).T[:, None]
        return terms, terms.max(axis=0)


def _fitted(x: FloatArray, counts: FloatArray, like: _State | None) -> _State:
    """Return slopes and laws fitted to standardised draws."""
    n_laws = int(min(max(counts.sum() // DRAWS_A_LAW, LAWS[0]), LAWS[-1]))
    if like is not None and like.weights.shape[1] == n_laws:
        return _improved(x, counts, like, FEWER_ITERATIONS, True)
    slopes = _regressed(x, counts)
    residual = x - x @ slopes.T
    starts = [_improved(x, counts, one, STARTING, False) for one in _starts(residual, counts, slopes, n_laws)]
    return _improved(x, counts, _better(residual, counts, *starts), ITERATIONS, True)


def _starts(residual: FloatArray, counts: FloatArray, slopes: FloatArray, n_laws: int) -> tuple[_State, _State]:
    """Return laws with one middle and different widths, and laws side by side."""
    dim = residual.shape[1]
    every = np.repeat(residual, counts.astype(np.int64), axis=0)
    variance = every.var(axis=0)[:, None]
    weights = np.full((dim, n_laws), 1.0 / n_laws)
    middle = np.repeat(np.median(every, axis=0)[:, None], n_laws, axis=1)
    concentric = _State(slopes, weights, middle, variance * np.square(CONCENTRIC[:n_laws]))
    quantiles = np.quantile(every, (np.arange(n_laws) + 0.5) / n_laws, axis=0).T
    beside = _State(slopes, weights, quantiles, np.repeat(variance / n_laws, n_laws, axis=1))
    return concentric, beside


def _better(residual: FloatArray, counts: FloatArray, one: _State, other: _State) -> _State:
    """Return for each coordinate the laws of the larger likelihood; slopes are the same."""
    first = (counts @ one.log_density(residual) >= counts @ other.log_density(residual))[:, None]
    return _State(
        one.slopes,
        np.where(first, one.weights, other.weights),
        np.where(first, one.means, other.means),
        np.where(first, one.variances, other.variances),
    )


def _improved(x: FloatArray, counts: FloatArray, state: _State, n_iterations: int, with_slopes: bool) -> _State:
    """Return the state after expectation maximisation; conditional maximisation of laws and slopes."""
    n = counts.sum()
    residual = x - x @ state.slopes.T
    for iteration in range(n_iterations):
        if with_slopes and iteration % SLOPES_EVERY == SLOPES_EVERY - 1:
            state = replace(state, slopes=_new_slopes(x, counts, residual, state))
            residual = x - x @ state.slopes.T
        whole = (counts @ residual**2 / n - (counts @ residual / n) ** 2)[:, None]
        n_draws, means, squares = _sums(residual, counts, state)
        variances = (squares + PRIOR_DRAWS * SMALLEST_VARIANCE * whole) / (n_draws + PRIOR_DRAWS)
        weights = np.maximum(n_draws / n, SMALLEST_WEIGHT)
        state = _State(
            state.slopes,
            weights / weights.sum(axis=1, keepdims=True),
            means,
            np.maximum(variances, SMALLEST_VARIANCE * whole),
        )
    return state


def _sums(residual: FloatArray, counts: FloatArray, state: _State) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return for each law how many draws are its own, their mean, and squares around it, each of shape (dim, K)."""
    zeroth, first, second = np.zeros((3, *state.means.T.shape))
    for begin in range(0, len(residual), AT_ONCE):
        part = residual[begin : begin + AT_ONCE]
        share = state.shares(part) * counts[begin : begin + AT_ONCE, None]
        zeroth += share.sum(axis=1)
        share *= part
        first += share.sum(axis=1)
        share *= part
        second += share.sum(axis=1)
    n_draws = zeroth + 1e-12
    means = first / n_draws
    return n_draws.T, means.T, np.maximum(second - n_draws * means * means, 0.0).T


def _new_slopes(x: FloatArray, counts: FloatArray, residual: FloatArray, state: _State) -> FloatArray:
    """Return slopes by weighted least squares, given to which law each draw belongs."""
    dim = x.shape[1]
    precision, target = np.empty_like(x), np.empty_like(x)
    for begin in range(0, len(x), AT_ONCE):
        rows = slice(begin, begin + AT_ONCE)
        pull = state.shares(residual[rows]) / state.variances.T[:, None]
        precision[rows] = pull.sum(axis=0)
        target[rows] = x[rows] - (pull * state.means.T[:, None]).sum(axis=0) / precision[rows]
    precision *= counts[:, None]
    slopes = np.zeros((dim, dim))
    for j in range(1, dim):
        before, weight = x[:, :j], precision[:, j]
        system = (before.T * weight) @ before + RIDGE * weight.sum() / counts.sum() * np.eye(j)
        slopes[j, :j] = np.linalg.solve(system, before.T @ (weight * target[:, j]))
    return slopes


def _regressed(x: FloatArray, counts: FloatArray) -> FloatArray:
    """Return slopes by least squares."""
    dim = x.shape[1]
    products = (x.T * counts) @ x
    slopes = np.zeros((dim, dim))
    for j in range(1, dim):
        slopes[j, :j] = np.linalg.solve(products[:j, :j] + RIDGE * np.eye(j), products[:j, j])
    return slopes


def _standardised(like: ProductReference, centre: FloatArray, spread: FloatArray) -> _State:
    """Return a fit to other draws in coordinates with another centre and spread."""
    matrix = like.matrix * spread
    diagonal = np.diag(matrix)[:, None]
    moved = (like.matrix @ (like.centre - centre))[:, None]
    return _State(
        np.eye(like.dim) - matrix / diagonal, like.weights, (like.means + moved) / diagonal,
        (like.scales / diagonal) ** 2 / INFLATION,
    )  # fmt: skip
