"""References that optimisation finds on a data set: what is looked for in turn, and whether it is near enough."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Kernel
from bread.fitting.conditional.one_driver import rank_drivers
from bread.fitting.gaussian.families import FAMILIES, first_fit
from bread.fitting.importance import adapted_product
from bread.fitting.importance.adaptation import nearer
from bread.fitting.importance.adapted import GAIN, LOSS
from bread.fitting.search import found_families as families
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import ENOUGH
from bread.fitting.search.work import FitWork, Part
from bread.paths.mixture import FittedReference

BADLY_MOVED = ("heavy", "mixture")  # families whose tails and modes a short chain on other data does not find
FAR = 1.0  # nats, beyond which a cloud of values of some coordinates is taken to miss more on other data
N_CHAINS = 4  # of a thorough fit
SELECTION_DRAWS = 400  # draws from each candidate, in a thorough fit
SHORT_CHAINS, SHORT_SELECTION_DRAWS = 2, 100  # the same of a fit that one data set of many is given

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

    def look(self, work: FitWork, family: families.FoundFamily, start: families.Start) -> FittedReference | None:
        """Look for a reference of a family; what is found is kept and returned."""
        before, found = work.n_gradients, family.look(work, start)
        if family.name != families.MODES:
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
        for family in families.in_order(families.AFTER_CHAINS, work.posterior):
            law = self.look(work, family, families.Start(draws, drivers, middle, spread))
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
        is_badly_moved = family in BADLY_MOVED or (family == families.CONDITIONAL and criterion[family] > FAR)
        if work.dim > adapted_product.LARGEST_DIM or (criterion[family] < ENOUGH and not is_badly_moved):
            return False
        draws = np.concatenate(chains)
        nearest = min(FAMILIES, key=lambda name: criterion.get(name, np.inf))
        start = first_fit(draws, work.transformed, [nearest])
        best = self.references.get(family, start)
        before, gain = work.n_evaluations, -LOSS if is_badly_moved else GAIN
        law = families.LAST.look(work, families.Start(draws, mixture=start))
        adapted = None if law is None else nearer(work, law, best, chains, n_draws, gain)
        if adapted is None:
            return False
        self.references[families.LAST.name] = adapted
        self.n_given_gradients = work.n_evaluations - before
        return True

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to look for: what is no Gaussian at a mode is there, or there are several modes."""
        return not self.is_looked and any(
            name != families.MODES or one.is_several for name, one in self.references.items()
        )

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


@dataclass(frozen=True)
class FitRequest:
    """How to fit a reference.

    Attributes
    ----------
    dim, transformed
        As of `bread.backends.base.Layout`.
    n_steps : int
        Steps for which each pilot chain adapts, and for which it then runs.
    family : str or None
        A key of `bread.fitting.gaussian.families.FAMILIES`; None: the best by the criterion.
    n_chains : int
    n_selection_draws : int
        Draws from each candidate on which the criterion rests.
    is_shared : bool
        Whether the reference will be moved to other data sets.
    rotatable : tuple of ndarray of int
        Sets of coordinates, each of shape (K, P), whose columns may be rotated without a change of the density.
    like : Kernel or None
        Tuned on another data set: adaptation of pilot chains begins with its settings.
    looked : Found or None
        What a look found on these data before any chain ran (`bread.fitting.search.before_chains`): it is not looked
        for again.
    """

    dim: int
    transformed: NDArray[np.bool_]
    n_steps: int
    family: str | None = None
    n_chains: int = N_CHAINS
    n_selection_draws: int = SELECTION_DRAWS
    is_shared: bool = False
    rotatable: tuple[NDArray[np.int64], ...] = ()
    like: Kernel | None = None
    looked: Found | None = None
