"""One matrix that makes many covariance matrices as diagonal as it can."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray

MOST_STEPS = 50
CONVERGED = 1e-6  # mean squared step
HALVINGS = 10  # of a step that makes things worse
LEAST_CURVATURE = 1e-2  # of a pair's part of the loss, below which it is held away from 0


def joint_diagonaliser(covariances: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """Return W for which all ``W C W'`` are nearly diagonal.

    It minimises Pham's (2001) measure, the mean over the matrices of ``log det diag(W C W') - log det(W C W')``, which
    is twice the divergence of a Gaussian law from the product of its marginal ones, by the quasi-Newton steps of Ablin,
    Cardoso & Gramfort (2019).

    Parameters
    ----------
    covariances : ndarray, shape (m, n, n)
        Positive definite.
    start : ndarray, shape (n, n), optional
        The inverse square root of their mean by default.
    """
    n = covariances.shape[1]
    if start is None:
        values, vectors = np.linalg.eigh(covariances.mean(axis=0))
        start = (vectors / np.sqrt(np.maximum(values, 1e-300))).T
    matrix = start
    now = matrix @ covariances @ matrix.T
    loss = _loss(now, matrix)
    for _ in range(MOST_STEPS):
        diagonal = np.einsum("kii->ki", now)
        slope = (now / diagonal[:, :, None]).mean(axis=0) - np.eye(n)
        ratio = (1.0 / diagonal).T @ diagonal / len(now)
        curvature = np.maximum(ratio * ratio.T - 1.0, LEAST_CURVATURE)
        step = -(ratio.T * slope - slope.T) / curvature
        np.fill_diagonal(step, 0.0)
        if float((step**2).mean()) < CONVERGED**2:
            break
        for _ in range(HALVINGS):
            tried = matrix + step @ matrix
            then = tried @ covariances @ tried.T
            loss_then = _loss(then, tried)
            if loss_then < loss:
                break
            step = 0.5 * step
        else:
            break
        gain, matrix, now, loss = loss - loss_then, tried, then, loss_then
        if gain < CONVERGED:
            break
    return np.asarray(matrix)


def _loss(diagonalised: FloatArray, matrix: FloatArray) -> float:
    """Return the measure, but for a constant."""
    sign, log_determinant = np.linalg.slogdet(matrix)
    if sign == 0.0:
        return float("inf")
    return float(np.log(np.einsum("kii->ki", diagonalised)).sum(axis=1).mean() - 2.0 * log_determinant)
