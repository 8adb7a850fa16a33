"""The families of references that optimisation finds: how each is looked for, and found again on other data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bread.backends.base import FloatArray, Kernel, Posterior
from bread.fitting.importance import adapted, adapted_product
from bread.fitting.search import searches
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import BELIED, CHECKED, ENOUGH
from bread.fitting.search.work import FitWork
from bread.fitting.symmetries.find_rotations import Places
from bread.fitting.symmetries.reference import fit_rotated, rotated_near
from bread.paths.mixture import FittedReference
from bread.paths.nested import NestedReference
from bread.paths.precision import PrecisionReference

MODES, NESTED, CONDITIONAL, ROTATED, ADAPTED = "modes", "nested", "conditional", "rotated", "adapted"
PRECISION, CENTRED = "precision", "centred"


class Start(NamedTuple):
    """Where a reference is looked for.

    Attributes
    ----------
    draws : ndarray, shape (n, dim)
        Of the prior, or of chains.
    drivers : sequence of int
        Coordinates that may drive the widths of others, the likeliest first.
    state, spread : ndarray, shape (dim,)
        A state to look from, and about the standard deviation of each coordinate.
    limit : float
        Nats of divergence that a reference's own draws may show.
    is_near : bool
        Whether the draws are about where the posterior is: those of chains.
    kernel : Kernel or None
        Of a chain.
    places : ndarray of int, shape (K, P), or None
        Coordinates that rotations leave the density alone in.
    """

    draws: FloatArray
    drivers: Sequence[int] = ()
    state: FloatArray = np.empty(0)
    spread: FloatArray = np.empty(0)
    limit: float = BELIED
    is_near: bool = True
    kernel: Kernel | None = None
    places: Places | None = None


class Like(NamedTuple):
    """A reference of other data, near which one is looked for.

    Attributes
    ----------
    reference : FittedReference
        Of the family itself.
    kernel : Kernel
        Tuned on the other data.
    drivers : sequence of int
        As of `Start`.
    limit : float
        As of `Start`.
    """

    reference: Any
    kernel: Kernel
    drivers: Sequence[int]
    limit: float


@dataclass(frozen=True)
class FoundFamily:
    """A family of references that optimisation finds.

    Attributes
    ----------
    name : str
    look : callable
        (work, start) -> reference, or None where there is none.
    near : callable
        (work, like) -> the same kind of reference on other data, or None.
    enough : float
        Nats of divergence that own draws may show before any chain runs, or other families are looked at as well.
    """

    name: str
    look: Callable[[FitWork, Start], FittedReference | None]
    near: Callable[[FitWork, Like], FittedReference | None]
    enough: float = np.inf


def _look_for_precision(work: FitWork, start: Start) -> PrecisionReference | None:
    """Return the exact law given scales, which are looked for from prior draws, and from chains where that fails."""
    found = searches.by_precision(work, many_prior_draws(work), start.limit)
    if start.is_near and (found is None or work.own_divergence(found, 1) >= ENOUGH):
        found = searches.by_precision(work, start.draws, start.limit) or found
    return found


_precision = FoundFamily(
    PRECISION,
    _look_for_precision,
    lambda work, like: searches.by_precision(work, many_prior_draws(work), like.limit, like.reference),
)
_centred = FoundFamily(
    CENTRED,
    lambda work, start: searches.centred(work, start.draws),
    lambda work, like: searches.centred(work, None, like.limit, like.reference),
    ENOUGH,  # where data say little of a scale, others are nearer
)
_modes = FoundFamily(
    MODES,
    lambda work, start: searches.modes(work) if start.kernel is None else searches.checked_modes(work, start.kernel),
    lambda work, like: searches.modes_again(work, like.kernel, like.reference),
    CHECKED,
)
_nested = FoundFamily(
    NESTED,
    lambda work, start: searches.nested(work, start.drivers, start.state, start.spread, limit=start.limit),
    lambda work, like: searches.nested_near(work, like.reference, like.drivers, like.limit),
)
_conditional = FoundFamily(
    CONDITIONAL,
    lambda work, start: searches.conditional(work, start.drivers, start.state, start.draws, start.limit, start.is_near),
    lambda work, like: searches.conditional_near(work, like.reference, like.limit),
)
_rotated = FoundFamily(
    ROTATED,
    lambda work, start: None if start.places is None else fit_rotated(work, start.places, start.draws),
    lambda work, like: rotated_near(work, like.reference, like.kernel),
)


def _adapted_near(work: FitWork, like: Like) -> FittedReference | None:
    if work.dim <= adapted.LARGEST_DIM:
        return adapted.adapted_near(work, like.reference, BELIED)
    return adapted_product.product_near(work, like.reference, like.kernel, BELIED)


# the cheapest first: what a model does not have a few gradients tell
BEFORE_CHAINS = (_precision, _centred, _modes, _nested, _conditional)
AFTER_ONE_CHAIN = (_rotated, _modes)  # the first that is there
AFTER_CHAINS = (_precision, _nested, _centred, _conditional)  # until one is near
_LAST = FoundFamily(ADAPTED, lambda work, start: None, _adapted_near)  # beside the best of all others


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
    known = (*BEFORE_CHAINS, *AFTER_ONE_CHAIN, *AFTER_CHAINS, _LAST)
    return next((family for family in known if family.name == name), None)
