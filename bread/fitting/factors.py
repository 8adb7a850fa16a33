"""Fit of a `bread.paths.factors.FactorReference`: one side integrated out, and a Gaussian law of what is left."""

from __future__ import annotations

from collections.abc import Iterator

from bread.backends.base import FloatArray
from bread.fitting.centring import centred
from bread.fitting.couplings import find_couplings
from bread.fitting.gauge_modes import gaussian_in_gauge
from bread.fitting.integrated import integrated_work
from bread.fitting.invariant import invariant_work
from bread.fitting.rotations import Places
from bread.fitting.work import FitWork
from bread.paths.factors import Couplings, FactorReference
from bread.paths.mixture import MixtureReference
from bread.paths.rotated import RotatedReference


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
    integrated = integrated_work(work, couplings)
    at_mode = gaussian_in_gauge(
        integrated, couplings.outer_in_drivers, couplings.in_units(draws[:, couplings.drivers])
    )  # fmt: skip
    work.add(integrated)
    if at_mode is None or not isinstance(at_mode.law, MixtureReference):
        return None
    inner = invariant_work(integrated, at_mode.gauge)
    law = centred(inner, at_mode.law, inner.transformed & at_mode.gauge.from_others)
    work.add(inner)
    marginals = (RotatedReference(at_mode.gauge, one) for one in (law, at_mode.law))
    return _nearest(work, (FactorReference(couplings, marginal) for marginal in marginals))


def _nearest(work: FitWork, references: Iterator[FactorReference]) -> FactorReference | None:
    """Return the reference whose own draws show the least divergence; None where those of none are finite."""
    shown = [(work.own_divergence(one, 1), one) for one in references]
    least, nearest = min(shown, key=lambda pair: pair[0])
    return nearest if least < float("inf") else None
