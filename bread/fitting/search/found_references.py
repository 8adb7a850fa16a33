"""References that optimisation finds on a data set: what is looked for in turn, and whether it is near enough."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.conditional.one_driver import rank_drivers
from bread.fitting.gaussian.families import FAMILIES, fit_diagonal
from bread.fitting.importance import adapted_product
from bread.fitting.importance.adaptation import nearer
from bread.fitting.importance.adapted import GAIN, LARGEST_DIM, LOSS, better_adapted
from bread.fitting.search.found_families import (
    ADAPTED,
    AFTER_CHAINS,
    CONDITIONAL,
    MODES,
    FoundFamily,
    Start,
    in_order,
)
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import ENOUGH
from bread.fitting.search.work import FitWork, Part
from bread.paths.mixture import FittedReference

BADLY_MOVED = ("heavy", "mixture")  # families whose tails and modes a short chain on other data does not find
FAR = 1.0  # nats, beyond which a cloud of values of some coordinates is taken to miss more on other data

Choice = tuple[str, dict[str, float]]  # the family of the smallest criterion, and the criterion of each


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

    def look(self, work: FitWork, family: FoundFamily, start: Start) -> FittedReference | None:
        """Look for a reference of a family; what is found is kept and returned."""
        before, found = work.n_gradients, family.look(work, start)
        if family.name != MODES:
            self.n_given_gradients += work.n_gradients - before
        if found is not None:
            self.references[family.name] = found
        return found

    def look_for_given(self, work: FitWork, draws: FloatArray) -> None:
        """Look for a law nested in one coordinate, from draws of chains; where none is near, in some.

        A coordinate that drives the widths of others in the prior is tried too: these data may hide what others show.
        """
        if self.is_looked:
            self.is_looked, self.n_given_gradients = False, 0
        spread = draws.std(axis=0)
        if not (spread > 0.0).all():
            return
        drivers = rank_drivers(draws, work.transformed)
        of_prior = rank_drivers(many_prior_draws(work), work.transformed)
        drivers += [driver for driver in of_prior if driver not in drivers]
        self.drivers = tuple(drivers)
        middle = draws[np.argmin((((draws - np.median(draws, axis=0)) / spread) ** 2).sum(axis=1))]
        for family in in_order(AFTER_CHAINS, work.posterior):
            law = self.look(work, family, Start(draws, drivers, middle, spread))
            if law is not None and work.own_divergence(law, 1) < ENOUGH:
                break

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
        return not self.is_looked and any(name != MODES or one.is_several for name, one in self.references.items())

    @property
    def single(self) -> dict[str, FittedReference]:
        """Those that need no chains to find all their parts."""
        return {name: one for name, one in self.references.items() if not one.is_several}

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
