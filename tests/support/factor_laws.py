"""Laws of factor models with made-up numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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


def with_curvature(law: FactorReference, **numbers: Any) -> FactorReference:
    """Return the law with another curvature."""
    couplings = law.couplings
    return replace(law, couplings=replace(couplings, curvature=replace(couplings.curvature, **numbers)))


def alike(law: FactorReference, n_classes: int) -> FactorReference:
    """The same law, in which only so many factors have a precision matrix of their own."""
    own, curvature = law.couplings.own, law.couplings.curvature
    which = np.arange(own.values.shape[1]) % n_classes
    law = with_curvature(law, values=curvature.values[:, which])
    return replace(law, couplings=replace(law.couplings, own=replace(own, values=own.values[:, which])))


def of_two_powers(law: FactorReference) -> FactorReference:
    """The same with a curvature that is a sum of two exponentials of the rest."""
    curvature = law.couplings.curvature
    values = np.concatenate([curvature.values, 0.4 * curvature.values[:, ::-1] ** 2])
    return with_curvature(law, exponents=law.couplings.slopes.exponents, values=values)


def with_outer_units(law: FactorReference) -> FactorReference:
    """The same law of v in another unit, which depends on the rest."""
    units = default_rng(9).normal(0.0, 0.5, len(law.couplings.rest))
    return replace(law, couplings=replace(law.couplings, outer_units=units))


SHAPES = [(1, 2, 1, 1), (2, 4, 3, 2), (5, 9, 6, 3), (3, 2, 2, 0)]
LAWS = {
    "own units": with_outer_units(reference(2, 4, 3, 2)),
    **{f"{shape}": reference(*shape) for shape in SHAPES},
    "all alike": alike(reference(5, 9, 6, 3), 1),
    "two kinds": alike(reference(5, 9, 6, 3), 2),
    "two powers": of_two_powers(reference(3, 5, 4, 2)),
    "two powers, all alike": alike(of_two_powers(reference(3, 5, 4, 2)), 1),
}
INDEFINITE = ("none", "all", "some")


def indefinite_as(law: FactorReference, which: str) -> FactorReference:
    """Return the law where no matrix of these factors is positive definite: all, or every second; they are normal."""
    values = law.couplings.curvature.values
    is_changed = (which == "all") | ((which == "some") & (np.arange(values.shape[1]) % 2 == 1))
    return with_curvature(law, values=np.where(is_changed[:, None], -values, values))
