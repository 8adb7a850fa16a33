"""Pilots that fit a reference to one data set: what starts a reference path. They never see the exact draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Posterior, Settings
from bread.errors import DensityError
from bread.fitting.gaussian.families import FAMILIES, LARGEST_MIXED_DIM, PLAINEST, first_fit, fit_diagonal
from bread.fitting.search import found_families as families
from bread.fitting.search.found_references import Choice, FitRequest, Found
from bread.fitting.search.initial import initial_states, without_lost_chains
from bread.fitting.search.pilot_chains import PilotChain, run_chain
from bread.fitting.search.searches import BELIED, MOVE_BURN_IN, MOVE_DRAWS
from bread.fitting.search.selection import select_family, settled
from bread.fitting.search.work import FitWork, Part, plain
from bread.fitting.symmetries.find_rotations import invariant_under
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import FittedReference, MixtureReference

TEMPLATE_STEPS = 2  # of an adaptation whose metric is not used: it names the settings that a kernel has
OPTIMISATION, SEARCH = 5, 60  # what a mode costs, in transitions: from near by; looked for among several


@dataclass(frozen=True)
class ReferenceFit:
    """A reference fitted to one data set.

    Attributes
    ----------
    reference : FittedReference
        A mixture, a law given one coordinate, some, or scales, one across rotations, or independent mixtures.
    family : str
        A key of `bread.fitting.gaussian.families.FAMILIES`, "modes", "nested", "conditional", "precision", "centred",
        "variational", "rotated" or "adapted".
    criterion : dict of str to float
        For each family that was compared: an estimate (nats) of the Jeffreys divergence between reference and
        posterior, which is the bound with no temperature between them. Fitted on the first half of the pilot's chains,
        measured on the second. Where one that was found is near, it is there alone. "modes" is there where optimisation
        found a maximum, "nested" and "conditional" where it found one of the other coordinates given one of them, or
        some, "precision" where they have an exact law given scales, "centred" where effects have scales, "variational"
        where the prior is normal in some coordinates, "rotated" where rotations leave the density alone, "adapted"
        where importance sampling came nearer than all others. That of "adapted" may be infinite by a few draws.
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
        What finding a nested, conditional, rotated or adapted reference cost.
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
        if self.family not in (*FAMILIES, families.MODES):
            return float(self.n_given_gradients)
        assert isinstance(self.reference, MixtureReference)
        n_components = len(self.reference.components)
        if self.family == families.MODES and n_components == 1 and not self.reference.n_left_out:
            dim = len(self.transformed)
            hessian = 2.0 * dim if dim > LARGEST_MIXED_DIM else 0.0  # less than `OPTIMISATION` where there are few
            return OPTIMISATION * per_transition + hessian
        n_transitions = MOVE_BURN_IN + MOVE_DRAWS + (SEARCH if self.family == families.MODES else 0)
        return n_transitions * n_components * per_transition

    def without_draws(self) -> ReferenceFit:
        """Return the fit without the pilot's draws, small enough to travel with every task."""
        return replace(self, draws=self.draws[:0], end_log_ratio=self.end_log_ratio[:0])


@dataclass(frozen=True)
class BegunFit:
    """A fit of a reference whose pilot chains are run, side by side or one after another.

    Attributes
    ----------
    request : FitRequest
    initial : ndarray, shape (chain, dim)
        Where chains begin.
    places : ndarray of int or None
        Coordinates that rotations leave the density alone in.
    chains : tuple of PilotChain
        Those that have run, the first ones.
    found : Found or None
        What optimisation has found; None before the first chain that ran was looked at.
    is_half_seen : bool
        Whether half of the chains have been looked at, and were not enough.
    n_gradients, n_evaluations : int
        What was spent, but for ``chains``.
    """

    request: FitRequest
    initial: FloatArray
    places: NDArray[np.int64] | None
    chains: tuple[PilotChain, ...] = ()
    found: Found | None = None
    is_half_seen: bool = False
    n_gradients: int = 0
    n_evaluations: int = 0

    @property
    def draws(self) -> list[FloatArray]:
        """Draws of the chains that did not fail."""
        return [chain.states for chain in self.chains if chain.failure is None]

    @property
    def wanted(self) -> range:
        """The next chains to run: all are needed, whatever they find. None are left where this is empty."""
        request, n_run = self.request, len(self.chains)
        may_end_early = request.family is None and request.n_chains % 2 == 0 and not self.is_half_seen
        n_missing = request.n_chains // 2 - len(self.draws) if may_end_early else request.n_chains
        return range(n_run, min(n_run + n_missing, request.n_chains))

    def with_chains(self, chains: Iterable[PilotChain]) -> BegunFit:
        """Return the fit with the chains that it wanted."""
        return replace(self, chains=(*self.chains, *chains))


def begin_fit(posterior: Posterior, request: FitRequest, *, root: int, simulation: int) -> ReferenceFit | BegunFit:
    """Return where the pilot chains of a fit begin; the fit itself, where a look has found a law that is near.

    Raises
    ------
    DensityError
        No prior draw has a finite density.
    """
    work = FitWork(posterior, request.transformed, root, simulation)
    if request.looked is not None:
        fit = _taken(work, request, request.looked)
        if fit is not None:
            return fit
    places = invariant_under(work, request.rotatable) if request.family is None else None
    initial = initial_states(work, plain(request.dim), request.n_chains)
    return BegunFit(request, initial, places, n_gradients=work.n_gradients, n_evaluations=work.n_evaluations)


def continue_fit(posterior: Posterior, begun: BegunFit, *, root: int, simulation: int) -> ReferenceFit | BegunFit:
    """Return the reference fitted to the chains of a fit, or the fit with what it has found, where it wants more.

    Parameters
    ----------
    posterior : Posterior
    begun : BegunFit
        With the chains that it wanted.
    root, simulation : int
        As of `fit_reference`.

    Returns
    -------
    ReferenceFit or BegunFit

    Raises
    ------
    DensityError
        Every pilot chain failed.
    """
    request = begun.request
    work = FitWork(posterior, request.transformed, root, simulation)
    work.n_gradients, work.n_evaluations = begun.n_gradients, begun.n_evaluations
    found, chains = begun.found, begun.draws
    if request.family is None and chains:
        known = found or request.looked
        if known is not None:
            found = known.copy()
        else:
            found = Found()
            first = next(chain for chain in begun.chains if chain.failure is None)
            start = families.Start(first.states, kernel=first.kernel, places=begun.places)
            for family in families.AFTER_ONE_CHAIN:
                if found.look(work, family, start) is not None:
                    break
        is_half = 2 * len(chains) == request.n_chains and not begun.is_half_seen
        if is_half:
            end = _end_early(work, begun, found)
            if end is not None:
                return end
        begun = replace(begun, found=found, is_half_seen=begun.is_half_seen or is_half)
    if begun.wanted:
        return replace(begun, n_gradients=work.n_gradients, n_evaluations=work.n_evaluations)
    return _fitted(work, begun, found or Found())


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
    fit = begin_fit(posterior, request, root=root, simulation=simulation)
    while isinstance(fit, BegunFit):
        chains = [
            run_chain(
                posterior,
                fit.initial[index],
                index,
                request.n_steps,
                root=root,
                simulation=simulation,
                like=request.like,
            )
            for index in fit.wanted
        ]
        fit = continue_fit(posterior, fit.with_chains(chains), root=root, simulation=simulation)
    return fit


def _taken(work: FitWork, request: FitRequest, looked: Found) -> ReferenceFit | None:
    """Return the fit of a law that a look has found, unless draws of its own belie it: no chain need run.

    Its draws stand in for those of chains. The path's own chain shows what is at beta = 1.
    """
    ((family, law),) = looked.references.items()
    shown = work.own_divergence(law)
    if shown >= BELIED:
        return None
    draws = law.sample(request.n_steps, work.rng(Part.SINGLE))
    adapted = work.posterior.adapt(ReferencePath(law), 0.0, draws[0], work.seed(Part.ADAPT), TEMPLATE_STEPS, None)
    work.add(adapted)
    return ReferenceFit(
        law, family, {family: shown}, draws, draws[:0, 0], adapted.settings, request.transformed,
        first_fit(draws, request.transformed), 0, looked.n_given_gradients, looked.drivers,
        work.n_gradients, work.n_evaluations,
    )  # fmt: skip


def _end_early(work: FitWork, begun: BegunFit, found: Found) -> ReferenceFit | None:
    """Return the fit where half of the chains are enough: something is near, or no fit to draws will be as near.

    Where what is there is not enough, laws given some coordinates are looked for.
    """
    request, chains = begun.request, begun.draws
    for is_last in (False, True):
        choice = found.near(work, chains, request.n_selection_draws) or settled(work, request, chains, found)
        if choice is not None:
            return _fitted(work, begun, found, choice)
        if is_last or found.is_complete:
            break
        found.look_for_given(work, np.concatenate(chains))
    return None


def _fitted(work: FitWork, begun: BegunFit, found: Found, choice: Choice | None = None) -> ReferenceFit:
    """Return the best reference by the chains that have run; ``choice``: as `select_family` has found it."""
    request, base, chains = begun.request, plain(work.dim), begun.draws
    work.n_gradients += sum(chain.n_gradients for chain in begun.chains)
    work.n_evaluations += sum(chain.n_evaluations for chain in begun.chains)
    if not chains:
        failure = begun.chains[-1].failure
        raise DensityError(f"No pilot chain could run on the posterior, so that no reference can be fitted: {failure}")
    chains = without_lost_chains(work, base, chains)
    family, criterion = request.family, dict[str, float]()
    if family is None:
        if 2 * len(begun.chains) > request.n_chains and not found.is_complete:
            found.look_for_given(work, np.concatenate(chains))
        family, criterion = choice or select_family(work, request, chains, found.references)
        if found.look_for_adapted(work, chains, family, criterion, request.n_selection_draws):
            family = families.ADAPTED
            number = len(FAMILIES) + len(found.references)
            criterion[family] = work.criterion(
                found.references[family], chains, request.n_selection_draws, Part.CRITERION, number
            )
    draws = np.concatenate(chains)
    fitted = found.references.get(family) or FAMILIES[family](draws, request.transformed)
    if fitted is None:
        family, fitted = "diagonal", fit_diagonal(draws, request.transformed)
    fallback: MixtureReference | None = None
    if family in found.references:
        ranked = sorted((name for name in FAMILIES if name in criterion), key=lambda name: criterion[name])
        fallback = first_fit(draws, request.transformed, ranked or PLAINEST)
    end = work.log_ratio(fitted, draws)
    settings = next(chain.settings for chain in begun.chains if chain.failure is None)
    return ReferenceFit(
        fitted, family, criterion, draws, end, settings, request.transformed, fallback, len(begun.chains),
        found.n_given_gradients, found.drivers, work.n_gradients, work.n_evaluations,
    )  # fmt: skip
