"""The families of references that optimisation finds: how each is looked for, and found again on other data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bread.backends.base import FloatArray, Posterior
from bread.fitting.importance import adapted, adapted_product
from bread.fitting.search import searches
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import BELIED, CHECKED, ENOUGH
from bread.fitting.search.work import FitWork
from bread.fitting.symmetries.find_rotations import Places
from bread.fitting.symmetries.reference import fit_rotated, rotated_near
from bread.paths.mixture import FittedReference, MixtureReference
from bread.paths.nested import NestedReference
from bread.paths.precision import PrecisionReference

MODES, NESTED, CONDITIONAL, ROTATED, ADAPTED = "modes", "nested", "conditional", "rotated", "adapted"
PRECISION, CENTRED, VARIATIONAL = "precision", "centred", "variational"


class Start(NamedTuple):
    """Where a reference is looked for.

    Attributes
    ----------
    draws : ndarray, shape (n, dim)
        Of the prior, or of chains; none where there is a reference of other data.
    drivers : sequence of int
        Coordinates that may drive the widths of others, the likeliest first.
    state, spread : ndarray, shape (dim,)
        A state to look from, and about the standard deviation of each coordinate.
    limit : float
        Nats of divergence that a reference's own draws may show.
    is_near : bool
        Whether the draws are about where the posterior is: those of chains.
    kernel : Kernel or None
        Of a chain, or the one that other data have.
    places : ndarray of int, shape (K, P), or None
        Coordinates that rotations leave the density alone in.
    mixture : MixtureReference or None
        Of about the posterior's law, from which importance sampling begins.
    like : FittedReference or None
        Of the same family, on other data: another one is looked for near it.
    """

    draws: FloatArray = np.empty((0, 0))
    drivers: Sequence[int] = ()
    state: FloatArray = np.empty(0)
    spread: FloatArray = np.empty(0)
    limit: float = BELIED
    is_near: bool = True
    kernel: Any = None
    places: Places | None = None
    mixture: MixtureReference | None = None
    like: Any = None


Find = Callable[[FitWork, Start], FittedReference | None]


@dataclass(frozen=True)
class FoundFamily:
    """A family of references that optimisation finds.

    Attributes
    ----------
    name : str
    look : callable
        (work, start) -> reference, or None where there is none.
    near : callable
        The same, where a start has a reference of other data.
    enough : float
        Nats of divergence that own draws may show before any chain runs, or other families are looked at as well.
    """

    name: str
    look: Find
    near: Find
    enough: float = np.inf


def _look_for_precision(work: FitWork, at: Start) -> PrecisionReference | None:
    """Return the exact law given scales, which are looked for from prior draws, and from chains where that fails."""
    found = searches.by_precision(work, many_prior_draws(work), at.limit)
    if at.is_near and (found is None or work.own_divergence(found, 1) >= ENOUGH):
        found = searches.by_precision(work, at.draws, at.limit) or found
    return found


_precision = FoundFamily(
    PRECISION,
    _look_for_precision,
    lambda work, at: searches.by_precision(work, many_prior_draws(work), at.limit, at.like),
)
_centred = FoundFamily(
    CENTRED,
    lambda work, at: searches.centred(work, at.draws),
    lambda work, at: searches.gaussian_near(work, at.like, at.limit),
    ENOUGH,  # where data say little of a scale, others are nearer
)
# by its own draws a Gaussian of one mode of several is near: chains come first
_variational = FoundFamily(
    VARIATIONAL,
    lambda work, at: searches.variational(work, at.draws, at.limit),
    lambda work, at: searches.gaussian_near(work, at.like, at.limit),
)
_modes = FoundFamily(
    MODES,
    lambda work, at: searches.modes(work) if at.kernel is None else searches.checked_modes(work, at.kernel),
    lambda work, at: searches.modes_again(work, at.kernel, at.like),
    CHECKED,
)
_nested = FoundFamily(
    NESTED,
    lambda work, at: searches.nested(work, at.drivers, at.state, at.spread, limit=at.limit),
    lambda work, at: searches.nested_near(work, at.like, at.drivers, at.limit),
)
_conditional = FoundFamily(
    CONDITIONAL,
    lambda work, at: searches.conditional(work, at.drivers, at.state, at.draws, at.limit, at.is_near),
    lambda work, at: searches.conditional_near(work, at.like, at.limit),
)
_rotated = FoundFamily(
    ROTATED,
    lambda work, at: None if at.places is None else fit_rotated(work, at.places, at.draws),
    lambda work, at: rotated_near(work, at.like, at.kernel),
)


def _look_for_adapted(work: FitWork, at: Start) -> FittedReference | None:
    """Return a mixture in few coordinates, in more of them independent ones."""
    if work.dim <= adapted.LARGEST_DIM and at.mixture is not None:
        return adapted.adapted(work, at.mixture)
    return adapted_product.product_adapted(work, at.draws)


def _adapted_near(work: FitWork, at: Start) -> FittedReference | None:
    if work.dim <= adapted.LARGEST_DIM:
        return adapted.adapted_near(work, at.like, BELIED)
    return adapted_product.product_near(work, at.like, at.kernel, BELIED)


# the cheapest first: what a model does not have a few gradients tell
BEFORE_CHAINS = (_precision, _centred, _modes, _nested, _conditional)
AFTER_ONE_CHAIN = (_rotated, _modes)  # the first that is there
AFTER_CHAINS = (_precision, _nested, _centred, _conditional, _variational)  # until one is near
LAST = FoundFamily(ADAPTED, _look_for_adapted, _adapted_near)  # where the best of all others is not near


def in_order(families: Sequence[FoundFamily], posterior: Posterior) -> list[FoundFamily]:
    """Return families in the order in which they are looked for.

    Where a law nested in one coordinate is evaluated natively, and one that is known by its precision not, the nearer
    of the two is often the dearer one.
    """
    native = getattr(posterior, "native_references", ())
    is_nested_first = NestedReference in native and PrecisionReference not in native
    return sorted(families, key=lambda family: is_nested_first and family.name not in (MODES, NESTED))


def family_of(name: str) -> FoundFamily | None:
    """Return the family of this name; None for those that are fitted to draws."""
    known = (*BEFORE_CHAINS, *AFTER_ONE_CHAIN, *AFTER_CHAINS, LAST)
    return next((family for family in known if family.name == name), None)
