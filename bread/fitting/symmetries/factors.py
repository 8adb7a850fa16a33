"""Fit of a `bread.paths.factors.FactorReference`: one side integrated out, and a Gaussian law of what is left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.gaussian.gaussian_vi import centred
from bread.fitting.search.work import FitWork
from bread.fitting.symmetries.couplings import find_couplings
from bread.fitting.symmetries.find_rotations import Places
from bread.fitting.symmetries.gauge_modes import gaussian_in_gauge
from bread.fitting.symmetries.integrated import integrated_work
from bread.fitting.symmetries.invariant import invariant_work
from bread.paths.factors import Couplings, FactorReference
from bread.paths.mixture import MixtureReference
from bread.paths.rotated import RotatedReference

TRIES = 2  # times that a law is looked for, the second time from where the first one is
FAR = 8.0  # nats of divergence beyond which there is a second time
FEW = 40  # draws, for where that is


def fit_factors(
    work: FitWork, places: Places, draws: FloatArray, like: Couplings | None = None
) -> FactorReference | None:
    """Return the exact law of one side's factors given all else, and a law of that; None where there are no two sides.

    With one side integrated out, what rotations leave alone has a Gaussian law: at its mode, then moved to where its
    mass is.

    Parameters
    ----------
    work : FitWork
        What is spent is added to it.
    places : ndarray of int, shape (K, P)
        A matrix whose columns may be rotated.
    draws : ndarray, shape (n, dim)
        Of a chain, from the end of which optimisation starts.
    like : Couplings, optional
        Of other data, on which only the linear part is looked for.
    """
    couplings = find_couplings(work, places, draws[-1], like)
    if couplings is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # far from the mass, which a search may pass
        return _fitted(work, couplings, draws)


def _fitted(work: FitWork, couplings: Couplings, draws: FloatArray) -> FactorReference | None:
    """Return the reference of these couplings whose own draws show the least divergence; None where none is finite."""
    integrated = integrated_work(work, couplings)
    at, nearest, least = couplings.in_units(draws[:, couplings.drivers]), None, np.inf
    for _ in range(TRIES):
        for marginal in _laws(integrated, couplings.outer_in_drivers, at):
            reference = FactorReference(couplings, marginal)
            shown = work.own_divergence(reference, 1)
            if shown < least:
                nearest, least = reference, shown
        if least < FAR or nearest is None or not integrated.transformed.any():
            break
        at = nearest.marginal.sample(FEW, np.random.default_rng(0))
    work.add(integrated)
    return nearest


def _laws(work: FitWork, places: Places, draws: FloatArray) -> Iterator[RotatedReference]:
    """Yield a law that is moved to where the mass is, then the one at the mode from which that began."""
    at_mode = gaussian_in_gauge(work, places, draws)
    if at_mode is None:
        return
    assert isinstance(at_mode.law, MixtureReference)  # one Gaussian
    inner = invariant_work(work, at_mode.gauge)
    law = centred(inner, at_mode.law, inner.transformed & at_mode.gauge.from_others)
    work.add(inner)
    yield RotatedReference(at_mode.gauge, law)
    yield at_mode
