"""Fit of a `bread.paths.product.ProductReference` to draws, by expectation maximisation.

Each coordinate is regressed on those before it, and what is left is a mixture of normal laws (Attias 1999, with a
triangular matrix): laws and slopes are improved in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.families import ROUNDING
from bread.fitting.one_thread import one_thread
from bread.paths.product import ProductReference

LAWS, DRAWS_A_LAW = (2, 3), 500  # of each coordinate; so many draws are needed for one law more
FEWEST = 100  # draws
INFLATION = 1.06  # of the variances: less than for a fit to chains, whose few draws miss tails
ITERATIONS, FEWER_ITERATIONS = 40, 10  # from nothing; from the fit of the round before
STARTING = 6  # iterations from each of two starts, of which the better goes on
SLOPES_EVERY = 3  # iterations after which slopes are improved
RIDGE = 10.0  # draws that a slope of zero is worth
SMALLEST_VARIANCE, SMALLEST_WEIGHT = 1e-4, 5e-3  # of a law, of standardised coordinates
PRIOR_DRAWS = 2.0  # that the variance of all draws is worth in each law's
CONCENTRIC = (0.25, 1.1, 2.2)  # standard deviations of laws with one middle
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


def fit_product(draws: FloatArray, like: ProductReference | None = None) -> ProductReference | None:
    """Return independent mixtures like draws, slightly wider; None where some coordinate does not move.

    Parameters
    ----------
    draws : ndarray, shape (n, dim)
        Draws from (about) the posterior, unconstrained.
    like : ProductReference, optional
        A fit to other draws of about the same law, from which this one begins.
    """
    n, dim = draws.shape
    centre, spread = draws.mean(axis=0), draws.std(axis=0)
    if n < FEWEST or not (spread > ROUNDING * np.abs(centre)).all():
        return None
    with one_thread():
        state = _fitted((draws - centre) / spread, None if like is None else _standardised(like, centre, spread))
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

    def log_terms(self, residual: FloatArray) -> FloatArray:
        """Return log densities of the laws, weights included, shape (K, n, dim): sums over a last axis are slow."""
        away = np.ascontiguousarray(residual) - self.means.T[:, None]
        factors = np.log(self.weights) - 0.5 * np.log(self.variances) - _HALF_LOG_TWO_PI
        return np.asarray(factors.T[:, None] - away * away * (0.5 / self.variances).T[:, None])


def _fitted(x: FloatArray, like: _State | None) -> _State:
    """Return slopes and laws fitted to standardised draws."""
    n_laws = min(max(len(x) // DRAWS_A_LAW, LAWS[0]), LAWS[-1])
    if like is not None and like.weights.shape[1] == n_laws:
        return _improved(x, like, FEWER_ITERATIONS, True)
    slopes = _regressed(x)
    residual = x - x @ slopes.T
    starts = [_improved(x, one, STARTING, False) for one in _starts(residual, slopes, n_laws)]
    return _improved(x, _better(residual, *starts), ITERATIONS, True)


def _starts(residual: FloatArray, slopes: FloatArray, n_laws: int) -> tuple[_State, _State]:
    """Return laws with one middle and different widths, and laws side by side."""
    dim = residual.shape[1]
    variance = residual.var(axis=0)[:, None]
    weights = np.full((dim, n_laws), 1.0 / n_laws)
    middle = np.repeat(np.median(residual, axis=0)[:, None], n_laws, axis=1)
    concentric = _State(slopes, weights, middle, variance * np.square(CONCENTRIC[:n_laws]))
    quantiles = np.quantile(residual, (np.arange(n_laws) + 0.5) / n_laws, axis=0).T
    beside = _State(slopes, weights, quantiles, np.repeat(variance / n_laws, n_laws, axis=1))
    return concentric, beside


def _better(residual: FloatArray, one: _State, other: _State) -> _State:
    """Return for each coordinate the laws of the larger likelihood; slopes are the same."""
    levels = []
    for state in (one, other):
        terms = state.log_terms(residual)
        largest = terms.max(axis=0)
        levels.append((np.log(np.exp(terms - largest).sum(axis=0)) + largest).sum(axis=0))
    first = (levels[0] >= levels[1])[:, None]
    return _State(
        one.slopes,
        np.where(first, one.weights, other.weights),
        np.where(first, one.means, other.means),
        np.where(first, one.variances, other.variances),
    )


def _improved(x: FloatArray, state: _State, n_iterations: int, with_slopes: bool) -> _State:
    """Return the state after expectation maximisation; conditional maximisation of laws and slopes."""
    slopes = state.slopes
    residual = x - x @ slopes.T
    for iteration in range(n_iterations):
        terms = state.log_terms(residual)
        share = np.exp(terms - terms.max(axis=0))
        share /= share.sum(axis=0)
        if with_slopes and iteration % SLOPES_EVERY == SLOPES_EVERY - 1:
            slopes = _new_slopes(x, share, state)
            residual = x - x @ slopes.T
        n_draws = share.sum(axis=1).T + 1e-12
        means = (share * residual).sum(axis=1).T / n_draws
        away = residual - means.T[:, None]
        whole = residual.var(axis=0)[:, None]
        squares = (share * away * away).sum(axis=1).T
        variances = (squares + PRIOR_DRAWS * SMALLEST_VARIANCE * whole) / (n_draws + PRIOR_DRAWS)
        weights = np.maximum(n_draws / len(x), SMALLEST_WEIGHT)
        state = _State(
            slopes,
            weights / weights.sum(axis=1, keepdims=True),
            means,
            np.maximum(variances, SMALLEST_VARIANCE * whole),
        )
    return state


def _new_slopes(x: FloatArray, share: FloatArray, state: _State) -> FloatArray:
    """Return slopes by weighted least squares, given to which law each draw belongs."""
    dim = x.shape[1]
    pull = share / state.variances.T[:, None]
    precision = pull.sum(axis=0)
    target = x - (pull * state.means.T[:, None]).sum(axis=0) / precision
    slopes = np.zeros((dim, dim))
    for j in range(1, dim):
        before, weight = x[:, :j], precision[:, j]
        system = (before.T * weight) @ before + RIDGE * weight.mean() * np.eye(j)
        slopes[j, :j] = np.linalg.solve(system, before.T @ (weight * target[:, j]))
    return slopes


def _regressed(x: FloatArray) -> FloatArray:
    """Return slopes by least squares."""
    dim = x.shape[1]
    products = x.T @ x
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
