"""Laws of factor models with made-up numbers."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from bread.paths.factors import Couplings, FactorReference, Powers
from bread.paths.mixture import gaussian
from bread.paths.rotated import RotatedReference, gauge_at


def couplings(k: int, m: int, n: int, r: int) -> Couplings:
    """Couplings whose coordinates are in no order, and that depend on the first and the last of the rest."""
    rng = default_rng(7)
    dim = k * (m + n) + r
    order = rng.permutation(dim)
    exponents = np.zeros((1, r)), np.zeros((2, r))
    if r:
        exponents[0][0, 0], exponents[1][0, -1], exponents[1][1, 0] = -1.0, -1.0, 0.5
    return Couplings(
        dim, order[: k * m].reshape(k, m), order[k * m : k * (m + n)].reshape(k, n),
        Powers(exponents[0], rng.uniform(0.5, 2.0, (1, m))),
        Powers(exponents[1][:1], rng.uniform(0.2, 2.0, (1, m, n))),
        Powers(exponents[1], rng.normal(0.0, 1.5, (2, m, n))),
    )  # fmt: skip


def reference(k: int, m: int, n: int, r: int) -> FactorReference:
    """Return a law with these couplings, of which the drivers' law is a Gaussian across rotations."""
    own = couplings(k, m, n, r)
    rng = default_rng(8)
    gauge = gauge_at(own.outer_in_drivers, rng.standard_normal(len(own.drivers)))
    size = gauge.n_invariant
    factor = np.eye(size) + 0.3 * rng.standard_normal((size, size)) / np.sqrt(size)
    return FactorReference(own, RotatedReference(gauge, gaussian(rng.normal(0.0, 0.3, size), 0.1 * factor @ factor.T)))
