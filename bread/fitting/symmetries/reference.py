"""Fit of a `bread.paths.rotated.RotatedReference`, or of what knows one side of factors given the other."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray, Kernel
from bread.errors import DensityError
from bread.fitting.conditional.conditional import fit_conditional
from bread.fitting.conditional.one_driver import rank_drivers
from bread.fitting.search import searches
from bread.fitting.search.initial import initial_states
from bread.fitting.search.work import FitWork, Part, plain
from bread.fitting.symmetries.factors import fit_factors
from bread.fitting.symmetries.find_rotations import Places
from bread.fitting.symmetries.gauge_modes import gaussian_at_mode, gaussian_in_gauge, mean_of, scales_outside
from bread.fitting.symmetries.invariant import invariant_work
from bread.paths.conditional import ConditionalReference
from bread.paths.factors import FactorReference
from bread.paths.mixture import MixtureReference
from bread.paths.nested import NestedReference
from bread.paths.rotated import RotatedReference

AcrossRotations = RotatedReference | FactorReference

STEPS = 200  # of a chain on another data set, which goes to where its scales are


def fit_rotated(work: FitWork, places: Places, draws: FloatArray) -> AcrossRotations | None:
    """Return a law of the invariant coordinates with a uniform rotation; None where optimisation finds none.

    Where two sides of factors are rotated, the law of one is known given the other
    (`bread.fitting.symmetries.factors`). Else a Gaussian; where draws show which coordinates drive the widths of
    others, a law given these, if its own draws show it to be nearer.

    Parameters
    ----------
    work : FitWork
    places : ndarray of int, shape (K, P)
    draws : ndarray, shape (n, dim)
        Of a chain, from the end of which optimisation starts.
    """
    factors = fit_factors(work, places, draws)
    if factors is not None:
        return factors
    found = gaussian_in_gauge(work, places, draws)
    if found is None:
        return None
    gauge, mode = found.gauge, mean_of(found)
    inner = invariant_work(work, gauge)
    invariant = gauge.all_invariant(draws)
    drivers = [driver for driver in rank_drivers(invariant, inner.transformed) if gauge.from_others[driver]]
    law: NestedReference | ConditionalReference | None = None
    if drivers:
        limit = inner.own_divergence(found.law)
        law = searches.nested(inner, drivers, mode, invariant.std(axis=0), limit=limit)
        if law is None or inner.own_divergence(law, 1) >= searches.ENOUGH:
            law = searches.conditional(inner, drivers, mode, invariant) or law
    work.add(inner)
    return found if law is None else RotatedReference(gauge, law)


def rotated_anywhere(work: FitWork, places: Places) -> AcrossRotations | None:
    """Return a law of the invariant coordinates, found without a chain; None where there are scales."""
    if scales_outside(work, places).any():
        return None
    try:
        start = initial_states(work, plain(work.dim), 1)
        return fit_factors(work, places, start) or gaussian_at_mode(work, places, start[0])
    except DensityError:
        return None


def rotated_near(work: FitWork, reference: AcrossRotations, kernel: Kernel) -> AcrossRotations | None:
    """Return the same kind of reference on another data set; None where optimisation finds none."""
    couplings = reference.couplings if isinstance(reference, FactorReference) else None
    places = reference.gauge.places if isinstance(reference, RotatedReference) else reference.couplings.places
    try:
        draws = initial_states(work, plain(work.dim), 1)
        if scales_outside(work, places).any():
            draws = work.evolve(reference, kernel, draws[0], range(1, STEPS + 1), work.seed(Part.MOVE)).states
    except DensityError:
        return None
    if couplings is not None:
        factors = fit_factors(work, places, draws, couplings) or fit_factors(work, places, draws)
        if factors is not None:
            return factors
    found = gaussian_in_gauge(work, places, draws)
    if found is None or isinstance(reference, FactorReference) or isinstance(reference.law, MixtureReference):
        return found
    inner = invariant_work(work, found.gauge)
    law = _given_from(inner, reference.law, mean_of(found))
    work.add(inner)
    return found if law is None else RotatedReference(found.gauge, law)


def _given_from(
    work: FitWork, law: NestedReference | ConditionalReference, start: FloatArray
) -> NestedReference | ConditionalReference | None:
    """Return the same kind of law, given one or several of the coordinates, looked for from a state."""
    if isinstance(law, NestedReference):
        return searches.nested(work, [law.driver], start, law.moments()[1], 0, like=law.marginal)
    at = law.marginal.sample(searches.MARGINAL_DRAWS, np.random.default_rng(0))
    found, n_gradients = fit_conditional(
        work.posterior, law.drivers, start, at.mean(axis=0), np.cov(at.T), is_near=False, like=law.marginal
    )
    work.n_gradients += n_gradients
    return found if found is not None and work.own_divergence(found) < searches.BELIED else None
