"""A look for a reference by optimisation alone, before any chain runs."""

from __future__ import annotations

from typing import NamedTuple

from bread.backends.base import Posterior
from bread.errors import DensityError
from bread.fitting.conditional.one_driver import middle_and_spread, rank_drivers
from bread.fitting.search import found_families as families
from bread.fitting.search.found_references import FitRequest, Found
from bread.fitting.search.initial import initial_states, many_prior_draws
from bread.fitting.search.searches import CHECKED
from bread.fitting.search.work import FitWork, plain
from bread.fitting.symmetries.find_rotations import invariant_under
from bread.fitting.symmetries.reference import rotated_anywhere


class Look(NamedTuple):
    """What a look has come to.

    Attributes
    ----------
    is_found : bool
        Whether there is a reference near the posterior.
    n_gradients : int
        Gradient evaluations spent.
    found : Found or None
        A law given one coordinate, or some, which a fit on the same data need not look for again.
    """

    is_found: bool
    n_gradients: int
    found: Found | None = None


def finds_reference(posterior: Posterior, request: FitRequest, *, root: int, simulation: int) -> Look:
    """Return whether optimisation finds a reference near the posterior.

    Then a reference costs little to fit and to find again on other data sets. Several modes do not count: where labels
    are exchanged, Gaussian laws at them are far off.
    """
    work = FitWork(posterior, request.transformed, root, simulation)
    places = invariant_under(work, request.rotatable)
    if places is not None:
        rotated = rotated_anywhere(work, places)
        if rotated is not None:
            return Look(work.own_divergence(rotated) < CHECKED, work.n_gradients)
    try:
        state = initial_states(work, plain(request.dim), 1)[0]
    except DensityError:
        return Look(False, work.n_gradients)
    prior = many_prior_draws(work)
    drivers = rank_drivers(prior, request.transformed)

    start = families.Start(prior, drivers, state, middle_and_spread(prior)[1], CHECKED, is_near=False)
    far = None
    for family in families.in_order(families.BEFORE_CHAINS, posterior):
        found = Found(drivers=tuple(drivers), is_looked=True)
        law = found.look(work, family, start)
        if law is None:
            continue
        if law.is_several:
            return Look(False, work.n_gradients)
        if work.own_divergence(law) < family.enough:
            return Look(True, work.n_gradients, found if law.is_given else None)
        far = found if law.is_given else far
    return Look(far is not None, work.n_gradients, far)
