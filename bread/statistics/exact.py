"""Annealed importance sampling on a finite state space, computed exactly by propagating its marginals.

The true Jeffreys divergence of the annealed draw and its upper bound are both matrix products here, so the
bound's tightness can be studied without any sampling (Grosse, Ancha & Roy 2016, appendix B.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ExactAnnealing:
    """Exact properties of annealed importance sampling on a finite state space, in nats.

    Attributes
    ----------
    jeffreys : float
        J = KL(q||p) + KL(p||q) of the law q of the annealed draw and the target p.
    bound : float
        B = ``expected_reverse - expected_forward``, at least J.
    kl_approx_exact, kl_exact_approx : float
        KL(q||p) and KL(p||q), whose sum is J.
    log_evidence : float
        log of the sum of f_1 over the sum of f_0; lies between the two expected log weights.
    expected_forward, expected_reverse : float
        Expected log weights of a forward and of a reverse chain.
    """

    jeffreys: float
    bound: float
    kl_approx_exact: float
    kl_exact_approx: float
    log_evidence: float
    expected_forward: float
    expected_reverse: float


def anneal_exactly(
    log_start: FloatArray,
    log_ratio: FloatArray,
    betas: FloatArray,
    transition: Callable[[FloatArray], FloatArray],
) -> ExactAnnealing:
    """Compute J, B and the expected log weights of annealed importance sampling without sampling.

    Parameters
    ----------
    log_start : ndarray, shape (n_states,)
        log f_0, finite; its normaliser is divided out of the log evidence.
    log_ratio : ndarray, shape (n_states,)
        log f_1 - log f_0, finite.
    betas : ndarray, shape (T,)
        Increasing inverse temperatures from 0 to 1, both ends counted.
    transition : callable
        Maps log f_beta, shape (n_states,), to a row-stochastic matrix of shape (n_states, n_states) that leaves
        it invariant. Reverse chains use its reversal, so that it need not be reversible.

    Returns
    -------
    ExactAnnealing
        ``bound >= jeffreys`` always; how near they are says how much of the gap between the two log weights is
        an error of the last state.

    Raises
    ------
    InvalidArgumentError
        A log density is not finite, or ``betas`` does not increase from 0 to 1.

    References
    ----------
    Grosse, Ancha & Roy (2016), equations 7 to 12 and appendix B.1.
    """
    log_start, log_ratio = np.asarray(log_start, dtype=float), np.asarray(log_ratio, dtype=float)
    betas = np.asarray(betas, dtype=float)
    if not (np.isfinite(log_start).all() and np.isfinite(log_ratio).all()):
        raise InvalidArgumentError("log_start and log_ratio must be finite at every state; leave out the others.")
    if len(betas) < 2 or betas[0] != 0 or betas[-1] != 1 or (np.diff(betas) <= 0).any():
        raise InvalidArgumentError(f"betas must increase from 0 to 1, both ends counted; received {betas!r}.")

    matrices = [transition(log_start + beta * log_ratio) for beta in betas[1:]]
    targets = [_normalise(log_start + beta * log_ratio) for beta in betas[1:]]
    steps = np.diff(betas)

    forward, expected_forward = _normalise(log_start), 0.0
    for step, matrix in zip(steps, matrices, strict=True):
        expected_forward += float(step * (forward @ log_ratio))
        forward = forward @ matrix

    target = targets[-1]
    reverse, expected_reverse = target, 0.0
    for step, matrix, invariant in zip(steps[::-1], matrices[::-1], targets[::-1], strict=True):
        reverse = invariant * (matrix @ (reverse / invariant))  # the reversal of the kernel with respect to f_t
        expected_reverse += float(step * (reverse @ log_ratio))

    log_odds = np.log(forward) - np.log(target)
    kl_approx_exact, kl_exact_approx = float(forward @ log_odds), float(-target @ log_odds)
    return ExactAnnealing(
        jeffreys=kl_approx_exact + kl_exact_approx,
        bound=expected_reverse - expected_forward,
        kl_approx_exact=kl_approx_exact,
        kl_exact_approx=kl_exact_approx,
        log_evidence=float(logsumexp(log_start + log_ratio) - logsumexp(log_start)),
        expected_forward=expected_forward,
        expected_reverse=expected_reverse,
    )


def metropolis_on_grid(log_density: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Return the Metropolis kernel that proposes one of four grid neighbours; moves off the grid are rejected.

    Parameters
    ----------
    log_density : ndarray, shape (rows * columns,)
        Log of the unnormalised target, row by row.
    shape : tuple of int
        Rows and columns of the grid.

    Returns
    -------
    ndarray, shape (rows * columns, rows * columns)
        Row-stochastic matrix, reversible with respect to the target.
    """
    rows, columns = shape
    index = np.arange(rows * columns).reshape(shape)
    origins = np.concatenate([index[:-1].ravel(), index[1:].ravel(), index[:, :-1].ravel(), index[:, 1:].ravel()])
    goals = np.concatenate([index[1:].ravel(), index[:-1].ravel(), index[:, 1:].ravel(), index[:, :-1].ravel()])
    matrix = np.zeros((rows * columns, rows * columns))
    matrix[origins, goals] = 0.25 * np.exp(np.minimum(0.0, log_density[goals] - log_density[origins]))
    np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
    return matrix


def barrier_log_density() -> FloatArray:
    """Return the log density of the BARRIER toy on its 7 x 7 grid, shape (7, 7).

    Four quadrants of 3 x 3, separated by the middle row and column at -10; the upper right quadrant at 3, the
    rest at 0 (Grosse, Ancha & Roy 2016, equation 24).
    """
    values = np.zeros((7, 7))
    values[:3, 4:] = 3.0
    values[3, :] = values[:, 3] = -10.0
    return values


def _normalise(log_density: FloatArray) -> FloatArray:
    return np.asarray(np.exp(log_density - logsumexp(log_density)), dtype=float)
