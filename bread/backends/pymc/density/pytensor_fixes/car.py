"""Draws of conditional autoregressions with the covariance of their density.

PyMC 5.28.5 and 6.4.0 solve with the precision Q itself in place of its Cholesky factor, so that the covariance of their
draws is Q^-2, and they leave out diagonals of Q beyond one that is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pymc.distributions.multivariate import CARRV
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from scipy import sparse
from scipy.linalg import cholesky_banded, solve_banded

POSITION = -0.5  # any: nothing else rewrites it


class CARDraw(CARRV):
    """Draws of N(mu, Q^-1), Q = tau (D - alpha W), by a factor of Q in bands."""

    @classmethod
    def rng_fn(cls, rng: Any, mu: Any, W: Any, alpha: Any, tau: Any, W_is_valid: Any, size: Any) -> Any:
        """Draw; arguments as PyMC has them."""
        if not np.all(W_is_valid):
            raise ValueError("W must be a valid adjacency matrix")
        if np.any(np.abs(alpha) >= 1):
            raise ValueError("the domain of alpha is: -1 < alpha < 1")
        weights = sparse.csr_array(W.reshape(W.shape[-2:]))
        precision = sparse.csr_array(tau.item() * (sparse.diags(weights.sum(axis=0)) - alpha.item() * weights))
        order = sparse.csgraph.reverse_cuthill_mckee(precision, symmetric_mode=True)
        upper = sparse.coo_array(sparse.triu(precision[order][:, order]))
        row, column = upper.coords
        width = int((column - row).max())
        bands = np.zeros((width + 1, len(order)))
        bands[width + row - column, column] = upper.data
        shape = (*size, len(order)) if size else mu.shape
        noise = rng.normal(size=shape).reshape(-1, len(order))
        draws = np.empty_like(noise)
        draws[:, order] = solve_banded((0, width), cholesky_banded(bands), noise.T).T
        return mu + draws.reshape(shape)


def by_own_factor(_: Any, node: Any) -> list[Any] | None:
    """Return the same node with draws of the right covariance; None where it has them."""
    return None if isinstance(node.op, CARDraw) else list(CARDraw().make_node(*node.inputs).outputs)


CONDITIONAL = (in2out(node_rewriter([CARRV])(by_own_factor), name="car_by_its_factor"), POSITION)
