"""References that optimisation finds on a data set: what is looked for in turn, and whether it is near enough."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Kernel
from bread.fitting.conditional.one_driver import rank_drivers
from bread.fitting.gaussian.families import FAMILIES, fit_diagonal
from bread.fitting.importance import adapted_product
from bread.fitting.importance.adaptation import nearer
from bread.fitting.importance.adapted import GAIN, LARGEST_DIM, LOSS, better_adapted
from bread.fitting.search import searches
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import ENOUGH
from bread.fitting.search.work import FitWork, Part
from bread.fitting.symmetries.reference import AcrossRotations, fit_rotated
from bread.paths.centred import CentredReference
from bread.paths.conditional import ConditionalReference
from bread.paths.mixture import MixtureReference
from bread.paths.nested import NestedReference
from bread.paths.precision import PrecisionReference
from bread.paths.product import ProductReference

# families that are found by optimisation, not fitted to draws
MODES, NESTED, CONDITIONAL, ROTATED, ADAPTED = "modes", "nested", "conditional", "rotated", "adapted"
PRECISION, CENTRED = "precision", "centred"

BADLY_MOVED = ("heavy", "mixture")  # families whose tails and modes a short chain on other data does not find
FAR = 1.0  # nats, beyond which a cloud of values of some coordinates is taken to miss more on other data

Choice = tuple[str, dict[str, float]]  # the family of the smallest criterion, and the criterion of each
# laws of all coordinates given some
GivenReference = NestedReference | ConditionalReference | PrecisionReference | CentredReference
FittedReference = MixtureReference | GivenReference | AcrossRotations | ProductReference


def family_of(law: GivenReference) -> str:
    """Return the family of a law of all coordinates given some."""
    if isinstance(law, PrecisionReference):
        return PRECISION
    if isinstance(law, CentredReference):
        return CENTRED
    return NESTED if isinstance(law, NestedReference) else CONDITIONAL


@dataclass
class Found:
    """References that optimisation finds on a data set, and what finding the nested one cost.

    Attributes
    ----------
    references : dict of str to reference
        By family.
    drivers : tuple of int
        Coordinates that may drive the widths of others, the likeliest first.
    n_given_gradients : int
        What the search for a nested, conditional, rotated or adapted reference cost.
    is_looked : bool
        Whether it was found before any chain ran: draws of chains may show where a nearer one is.
    """

    references: dict[str, FittedReference] = field(default_factory=dict)
    drivers: tuple[int, ...] = ()
    n_given_gradients: int = 0
    is_looked: bool = False

    def copy(self) -> Found:
        """Return what was found, to be added to."""
        return replace(self, references=dict(self.references))

    def look_for_modes(self, work: FitWork, kernel: Kernel) -> None:
        """Look for Gaussians at modes."""
        modes = searches.checked_modes(work, kernel)
        if modes is not None:
            self.references[MODES] = modes

    def look_for_given(self, work: FitWork, draws: FloatArray) -> None:
        """Look for a law nested in one coordinate, from draws of chains; where none is near, in some.

        A coordinate that drives the widths of others in the prior is tried too: these data may hide what others show.
        """
        if self.is_looked:
            self.is_looked, self.n_given_gradients = False, 0
        spread = draws.std(axis=0)
        if not (spread > 0.0).all():
            return
        before = work.n_gradients
        drivers = rank_drivers(draws, work.transformed)
        of_prior = rank_drivers(many_prior_draws(work), work.transformed)
        drivers += [driver for driver in of_prior if driver not in drivers]
        self.drivers = tuple(drivers)
        middle = draws[np.argmin((((draws - np.median(draws, axis=0)) / spread) ** 2).sum(axis=1))]
        nested_first = searches.prefers_nested(work.posterior)
        is_near = False
        for is_exact in (False, True) if nested_first else (True, False):
            if not is_near:
                law = _exact(work, draws) if is_exact else searches.nested(work, drivers, middle, spread)
                is_near = self._adds(work, law)
        if not is_near:
            is_near = self._adds(work, searches.centred(work, draws))
        if not is_near:
            self._adds(work, searches.conditional(work, drivers, middle, draws))
        self.n_given_gradients += work.n_gradients - before

    def _adds(self, work: FitWork, law: GivenReference | None) -> bool:
        """Add a law that was looked for, if there is one; return whether no other need be looked for."""
        if law is None:
            return False
        self.references[family_of(law)] = law
        return work.own_divergence(law, 1) < ENOUGH

    def look_for_rotated(self, work: FitWork, draws: FloatArray, places: NDArray[np.int64]) -> None:
        """Look for a law of what rotations leave alone, from draws of a chain."""
        before = work.n_gradients
        rotated = fit_rotated(work, places, draws)
        if rotated is not None:
            self.references[ROTATED] = rotated
        self.n_given_gradients = work.n_gradients - before

    def look_for_adapted(
        self, work: FitWork, chains: list[FloatArray], family: str, criterion: dict[str, float], n_draws: int
    ) -> bool:
        """Look for a law adapted to the posterior, where ``family``, the best one, is not near or moves badly.

        A mixture in few coordinates, in more of them independent ones.

        Returns
        -------
        bool
            Whether there is one that is to be taken in its place.
        """
        is_badly_moved = family in BADLY_MOVED or (family == CONDITIONAL and criterion[family] > FAR)
        if work.dim > adapted_product.LARGEST_DIM or (criterion[family] < ENOUGH and not is_badly_moved):
            return False
        draws = np.concatenate(chains)
        nearest = min(FAMILIES, key=lambda name: criterion.get(name, np.inf))
        start = FAMILIES[nearest](draws, work.transformed) or fit_diagonal(draws, work.transformed)
        best = self.references.get(family, start)
        before, gain = work.n_evaluations, -LOSS if is_badly_moved else GAIN
        adapted: FittedReference | None
        if work.dim <= LARGEST_DIM:
            adapted = better_adapted(work, start, best, chains, n_draws, gain)
        else:
            adapted = nearer(work, adapted_product.product_adapted(work, draws), best, chains, n_draws, gain)
        if adapted is None:
            return False
        self.references[ADAPTED] = adapted
        self.n_given_gradients = work.n_evaluations - before
        return True

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to look for: what is no Gaussian at a mode is there, or there are several modes."""
        is_enough = {NESTED, CONDITIONAL, PRECISION, CENTRED, ROTATED} & set(self.references) or len(self.single) < len(
            self.references
        )
        return bool(is_enough) and not self.is_looked

    @property
    def single(self) -> dict[str, FittedReference]:
        """Those that need no chains to find all their parts."""
        return {
            name: item
            for name, item in self.references.items()
            if not isinstance(item, MixtureReference) or len(item.components) == 1
        }

    def near(self, work: FitWork, chains: list[FloatArray], n_draws: int) -> Choice | None:
        """Return the family of the nearest one, and what each shows, where it is so near that nothing need be compared.

        By draws of half of the chains: no fit to draws can then be nearer by the margin that it would need.
        """
        criterion = {
            name: work.criterion(reference, chains, n_draws, Part.SINGLE, number)
            for number, (name, reference) in enumerate(self.single.items())
        }
        family = min(criterion, key=lambda name: criterion[name], default=None)
        return (family, criterion) if family is not None and criterion[family] < ENOUGH else None


def _exact(work: FitWork, draws: FloatArray) -> PrecisionReference | None:
    """Return the exact law given scales, which are looked for from prior draws, and from these where that fails."""
    found = searches.by_precision(work, many_prior_draws(work))
    if found is None or work.own_divergence(found, 1) >= ENOUGH:
        found = searches.by_precision(work, draws) or found
    return found
