"""A look for a reference by optimisation alone, before any chain runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from bread.backends.base import Posterior
from bread.errors import DensityError
from bread.fitting.conditional.one_driver import middle_and_spread, rank_drivers
from bread.fitting.search import searches
from bread.fitting.search.found_references import Found, GivenReference, family_of
from bread.fitting.search.initial import initial_states, many_prior_draws
from bread.fitting.search.reference_fit import FitRequest
from bread.fitting.search.searches import CHECKED, ENOUGH
from bread.fitting.search.work import FitWork, plain
from bread.fitting.symmetries.find_rotations import invariant_under
from bread.fitting.symmetries.reference import rotated_anywhere
from bread.paths.centred import CentredReference
from bread.paths.mixture import MixtureReference


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
        start = initial_states(work, plain(request.dim), 1)[0]
    except DensityError:
        return Look(False, work.n_gradients)
    prior = many_prior_draws(work)
    drivers = rank_drivers(prior, request.transformed)

    exact = partial(searches.by_precision, work, prior, limit=CHECKED)
    centred = partial(searches.centred, work, prior)
    modes = partial(searches.modes, work)
    nested = partial(searches.nested, work, drivers, start, middle_and_spread(prior)[1], limit=CHECKED)
    conditional = partial(searches.conditional, work, drivers, start, prior, limit=CHECKED, is_near=False)
    # the cheapest first: what a model does not have a few gradients tell
    finds: tuple[Callable[[], GivenReference | MixtureReference | None], ...]
    finds = (exact, centred, modes, nested, conditional)
    if searches.prefers_nested(posterior):
        finds = (modes, nested, exact, centred, conditional)
    far = None
    for find in finds:
        before, law = work.n_gradients, find()
        if isinstance(law, CentredReference) and work.own_divergence(law) >= ENOUGH:
            far = _looked(law, drivers, work.n_gradients - before)  # where data say little of a scale others are nearer
            continue
        if isinstance(law, MixtureReference):
            if len(law.components) > 1 or work.own_divergence(law) < CHECKED:
                return Look(len(law.components) == 1, work.n_gradients)
        elif law is not None:
            return Look(True, work.n_gradients, _looked(law, drivers, work.n_gradients - before))
    return Look(far is not None, work.n_gradients, far)


def _looked(law: GivenReference, drivers: Sequence[int], n_gradients: int) -> Found:
    return Found({family_of(law): law}, tuple(drivers), n_gradients, is_looked=True)
