"""Pilots that fit a reference to one data set: what starts a reference path. They never see the exact draw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Kernel, Posterior, Settings
from bread.errors import DensityError
from bread.fitting import searches
from bread.fitting.families import FAMILIES, LARGEST_MIXED_DIM
from bread.fitting.initial import initial_states, prior_draws, without_lost_chains
from bread.fitting.nested import middle_and_spread, rank_drivers
from bread.fitting.rotated import fit_rotated, rotated_anywhere
from bread.fitting.rotations import invariant_under, plain
from bread.fitting.searches import CHECKED, ENOUGH, MOVE_BURN_IN, MOVE_DRAWS
from bread.fitting.work import FitWork, Part
from bread.paths.conditional import ConditionalReference
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import MixtureReference
from bread.paths.nested import NestedReference
from bread.paths.rotated import RotatedReference

N_CHAINS = 4  # of a thorough fit
SELECTION_DRAWS = 400  # draws from each candidate, in a thorough fit
SHORT_CHAINS, SHORT_SELECTION_DRAWS = 2, 100  # the same of a fit that one data set of many is given
# families that are found by optimisation, not fitted to draws
MODES, NESTED, CONDITIONAL, ROTATED = "modes", "nested", "conditional", "rotated"
OPTIMISATION, SEARCH = 5, 60  # what a mode costs, in transitions: from near by; looked for among several
FOUND_MARGIN = 0.5  # nats by which a fit to draws must be better: a reference that is found is found again, cheaply
SEVERAL_MARGIN = 10.0  # the same for a fit to draws of several modes, which moves with a data set but loses modes

GivenReference = NestedReference | ConditionalReference  # laws of all coordinates given some
FittedReference = MixtureReference | GivenReference | RotatedReference


@dataclass(frozen=True)
class ReferenceFit:
    """A reference fitted to one data set.

    Attributes
    ----------
    reference : MixtureReference, NestedReference, ConditionalReference or RotatedReference
    family : str
        A key of `bread.fitting.families.FAMILIES`, "modes", "nested", "conditional" or "rotated".
    criterion : dict of str to float
        For each family: an estimate (nats) of the Jeffreys divergence between reference and posterior, which is the
        bound with no temperature between them. Fitted on the first half of the pilot's chains, measured on the second.
        "modes" is there where optimisation found a maximum, "nested" and "conditional" where it found one of the other
        coordinates given one of them, or some, "rotated" where rotations leave the density alone.
    draws : ndarray, shape (n, dim)
        The pilot's draws.
    end_log_ratio : ndarray, shape (n,)
        log p(theta, y) - log q(theta) at those draws.
    settings : dict
        Kernel settings that the pilot adapted at beta = 1.
    transformed : ndarray of bool, shape (dim,)
        As of `bread.backends.base.Layout`.
    fallback : MixtureReference or None
        The best fit to draws, to be moved to data sets where none is found; None where ``reference`` is it.
    n_chains : int
        Pilot chains, each adapted for as many steps as it then ran.
    n_given_gradients : int
        What finding a nested, conditional or rotated reference cost.
    drivers : tuple of int
        Coordinates that may drive the widths of others, the likeliest first; none where no such law was looked for.
    """

    reference: FittedReference
    family: str
    criterion: dict[str, float]
    draws: FloatArray
    end_log_ratio: FloatArray
    settings: Settings
    transformed: NDArray[np.bool_]
    fallback: MixtureReference | None
    n_chains: int
    n_given_gradients: int = 0
    drivers: tuple[int, ...] = ()
    n_gradients: int = 0
    n_evaluations: int = 0

    def move_gradients(self, per_transition: float) -> float:
        """Return about how many gradient evaluations the reference of another data set costs."""
        if isinstance(self.reference, GivenReference | RotatedReference):
            return float(self.n_given_gradients)
        n_components = len(self.reference.components)
        if self.family == MODES and n_components == 1:
            dim = len(self.transformed)
            hessian = 2.0 * dim if dim > LARGEST_MIXED_DIM else 0.0  # less than `OPTIMISATION` where there are few
            return OPTIMISATION * per_transition + hessian
        n_transitions = MOVE_BURN_IN + MOVE_DRAWS + (SEARCH if self.family == MODES else 0)
        return n_transitions * n_components * per_transition

    def without_draws(self) -> ReferenceFit:
        """Return the fit without the pilot's draws, small enough to travel with every task."""
        return replace(self, draws=self.draws[:0], end_log_ratio=self.end_log_ratio[:0])


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
        A key of `bread.fitting.families.FAMILIES`; None: the best by the criterion.
    n_chains : int
    n_selection_draws : int
        Draws from each candidate on which the criterion rests.
    is_shared : bool
        Whether the reference will be moved to other data sets.
    rotatable : tuple of ndarray of int
        Sets of coordinates, each of shape (K, P), whose columns may be rotated without a change of the density.
    """

    dim: int
    transformed: NDArray[np.bool_]
    n_steps: int
    family: str | None = None
    n_chains: int = N_CHAINS
    n_selection_draws: int = SELECTION_DRAWS
    is_shared: bool = False
    rotatable: tuple[NDArray[np.int64], ...] = ()


class _Found:
    """References that optimisation finds on a data set, and what finding the nested one cost."""

    def __init__(self) -> None:
        self.references: dict[str, FittedReference] = {}
        self.drivers: tuple[int, ...] = ()
        self.n_given_gradients = 0

    def look_for_modes(self, work: FitWork, kernel: Kernel) -> None:
        """Look for Gaussians at modes."""
        modes = searches.checked_modes(work, kernel)
        if modes is not None:
            self.references[MODES] = modes

    def look_for_given(self, work: FitWork, draws: FloatArray) -> None:
        """Look for a law nested in one coordinate, from draws of chains; where none is near, in some."""
        spread = draws.std(axis=0)
        if not (spread > 0.0).all():
            return
        before = work.n_gradients
        drivers = rank_drivers(draws, work.transformed)
        self.drivers = tuple(drivers)
        middle = draws[np.argmin((((draws - np.median(draws, axis=0)) / spread) ** 2).sum(axis=1))]
        nested = searches.nested(work, drivers, middle, spread)
        if nested is not None:
            self.references[NESTED] = nested
        if nested is None or work.own_divergence(nested, 1) >= ENOUGH:
            conditional = searches.conditional(work, drivers, middle, draws)
            if conditional is not None:
                self.references[CONDITIONAL] = conditional
        self.n_given_gradients += work.n_gradients - before

    def look_for_rotated(self, work: FitWork, draws: FloatArray, places: NDArray[np.int64]) -> None:
        """Look for a law of what rotations leave alone, from draws of a chain."""
        before = work.n_gradients
        rotated = fit_rotated(work, places, draws)
        if rotated is not None:
            self.references[ROTATED] = rotated
        self.n_given_gradients = work.n_gradients - before

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to look for: what is no Gaussian at a mode is there, or there are several modes."""
        return bool({NESTED, CONDITIONAL, ROTATED} & set(self.references)) or len(self.single) < len(self.references)

    @property
    def single(self) -> dict[str, FittedReference]:
        """Those that need no chains to find all their parts."""
        return {
            name: item
            for name, item in self.references.items()
            if isinstance(item, GivenReference | RotatedReference) or len(item.components) == 1
        }


def fit_reference(posterior: Posterior, request: FitRequest, *, root: int, simulation: int) -> ReferenceFit:
    """Run pilot chains of the PPL's own sampler at beta = 1 from prior draws, and fit a reference to their draws.

    Parameters
    ----------
    posterior : Posterior
        Model and one data set.
    request : FitRequest
    root, simulation : int
        For the seeds: a fit has random numbers of its own.

    Returns
    -------
    ReferenceFit

    Raises
    ------
    DensityError
        No prior draw has a finite density, or every pilot chain failed.
    """
    base = plain(request.dim)
    work = FitWork(posterior, request.transformed, root, simulation)
    chains: list[FloatArray] = []
    settings: list[Settings] = []
    found = _Found()
    failure: DensityError | None = None
    places = invariant_under(work, request.rotatable) if request.family is None else None
    n_run = 0
    for index, initial in enumerate(initial_states(work, base, request.n_chains)):
        n_run += 1
        try:
            adapted = posterior.adapt(
                ReferencePath(base), 1.0, initial, work.seed(Part.ADAPT, index), request.n_steps, previous=None
            )
            work.n_gradients += adapted.n_gradients
            work.n_evaluations += adapted.n_evaluations
            frozen = _frozen(adapted.settings)
            evolved = work.evolve(
                base, frozen, adapted.state, range(1, request.n_steps + 1), work.seed(Part.EVOLVE, index)
            )
        except DensityError as error:
            failure = error
            continue
        chains.append(evolved.states)
        settings.append(adapted.settings)
        if request.family is not None:
            continue
        if len(chains) == 1:
            if places is not None:
                found.look_for_rotated(work, evolved.states, places)
            if ROTATED not in found.references:
                found.look_for_modes(work, frozen)
        if 2 * len(chains) == request.n_chains and _is_near(work, found, chains, request):
            break
    if not chains:
        raise DensityError(f"No pilot chain could run on the posterior, so that no reference can be fitted: {failure}")
    chains = without_lost_chains(work, base, chains)
    family, criterion = request.family, dict[str, float]()
    if family is None:
        if 2 * n_run > request.n_chains and not found.is_complete:
            found.look_for_given(work, np.concatenate(chains))
        family, criterion = select_family(work, request, chains, found.references)
    draws = np.concatenate(chains)
    fitted = found.references.get(family) or FAMILIES[family](draws, request.transformed)
    if fitted is None:
        family, fitted = "diagonal", FAMILIES["diagonal"](draws, request.transformed)
        assert fitted is not None
    fallback: MixtureReference | None = None
    if family in found.references:
        best = min(FAMILIES, key=lambda name: criterion.get(name, np.inf))
        fallback = FAMILIES[best](draws, request.transformed)
    end = work.log_ratio(fitted, draws)
    return ReferenceFit(
        fitted, family, criterion, draws, end, settings[0], request.transformed, fallback, n_run,
        found.n_given_gradients, found.drivers, work.n_gradients, work.n_evaluations,
    )  # fmt: skip


def finds_reference(posterior: Posterior, request: FitRequest, *, root: int, simulation: int) -> tuple[bool, int]:
    """Return whether optimisation finds a reference near the posterior, and the gradient evaluations spent on that.

    Then a reference costs little to fit and to find again on other data sets. Several modes do not count: where labels
    are exchanged, Gaussian laws at them are far off.
    """
    work = FitWork(posterior, request.transformed, root, simulation)
    places = invariant_under(work, request.rotatable)
    if places is not None:
        rotated = rotated_anywhere(work, places)
        if rotated is not None:
            return work.own_divergence(rotated) < CHECKED, work.n_gradients
    found = searches.modes(work)
    if found is not None and (len(found.components) > 1 or work.own_divergence(found) < CHECKED):
        return len(found.components) == 1, work.n_gradients
    try:
        start = initial_states(work, plain(request.dim), 1)[0]
    except DensityError:
        return False, work.n_gradients
    prior = prior_draws(work)
    drivers = rank_drivers(prior, request.transformed)
    if not drivers:
        return False, work.n_gradients
    nested = searches.nested(work, drivers, start, middle_and_spread(prior)[1], limit=CHECKED)
    if nested is not None:
        return True, work.n_gradients
    found_one = searches.conditional(work, drivers, start, prior, limit=CHECKED, is_near=False)
    return found_one is not None, work.n_gradients


def _frozen(settings: Settings) -> Kernel:
    return Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in settings.items()})


def _is_near(work: FitWork, found: _Found, chains: list[FloatArray], request: FitRequest) -> bool:
    """Return whether a reference that was found is so near, by half of the chains, that no more need to run."""

    def is_near() -> bool:
        return any(
            work.criterion(reference, chains, request.n_selection_draws, Part.SINGLE, number) < ENOUGH
            for number, reference in enumerate(found.single.values())
        )

    if is_near():
        return True
    if found.is_complete:
        return False
    found.look_for_given(work, np.concatenate(chains))
    return is_near()


def select_family(
    work: FitWork, request: FitRequest, chains: list[FloatArray], found: dict[str, FittedReference]
) -> tuple[str, dict[str, float]]:
    """Return the family of the smallest criterion, and the criterion of each."""
    train = np.concatenate([states[: len(states) // 2] for states in chains])
    fitted = {name: fit(train, request.transformed) for name, fit in FAMILIES.items()}
    criterion = {
        name: work.criterion(candidate, chains, request.n_selection_draws, Part.CRITERION, number)
        for number, (name, candidate) in enumerate((fitted | found).items())
        if candidate is not None
    }

    def margin(name: str) -> float:
        reference = found.get(name)
        if reference is None:
            return 0.0
        is_several = isinstance(reference, MixtureReference) and len(reference.components) > 1
        return SEVERAL_MARGIN if is_several and request.is_shared else FOUND_MARGIN

    family = min(criterion, key=lambda name: criterion[name] - margin(name))
    return family if np.isfinite(criterion[family]) else "diagonal", criterion
