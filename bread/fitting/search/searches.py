"""References found on one data set without draws of a pilot, and references moved to it by short chains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from bread.backends.base import FloatArray, Kernel
from bread.errors import DensityError
from bread.fitting.conditional.conditional import MOST_DRIVERS, fit_conditional
from bread.fitting.conditional.laplace_cloud import FIRST_STEP
from bread.fitting.conditional.one_driver import STEP, fit_nested, middle_and_spread
from bread.fitting.conditional.probing import is_hopeless
from bread.fitting.exact_given_scales.reference import find_structure, fit_precision
from bread.fitting.gaussian.centred import find_links, find_scales, fit_centred
from bread.fitting.gaussian.families import fit_mixture, move_component
from bread.fitting.gaussian.modes import MOST_STARTS, fit_modes, widened
from bread.fitting.gaussian.normal_coordinates import normal_coordinates
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.work import CHECK_DRAWS, FitWork, Part
from bread.paths.centred import CentredReference
from bread.paths.conditional import ConditionalReference
from bread.paths.kinds import PriorPath
from bread.paths.mixture import MixtureReference
from bread.paths.nested import NestedReference
from bread.paths.precision import PrecisionReference

MOVE_BURN_IN, MOVE_DRAWS = 20, 60  # of a chain that moves a reference to a data set
FEWEST_MOVE_DRAWS = 15  # of them near a component, or it stays
CHECKED, BELIED = 1.0, 3.0  # nats of divergence that a reference's own draws may show: at the only mode; elsewhere
WORSE = 3.0  # times the divergence on other data that a reference may have where it is moved to
CHEAP_DIM = 50  # coordinates, up to which a second Gaussian law takes up to 5,000 gradients: in 104 it took 25,000
LARGEST_CENTRED_DIM = 450  # coordinates, beyond which matrices of them cost more than chains
LONG_DRAWS = 200  # of a chain from each mode, where the modes say too little
DRIVERS = 3  # coordinates that are tried as the one that drives the widths of others
MARGINAL_DRAWS = 1000  # of the drivers' law, always the same, for its moments
SHORTER_STEP = 1.0  # standard deviations, of a second climb's first step
FEWEST_SCALES = 2  # of a law that is known by its precision
ENOUGH = 0.5  # nats: where a reference that is found is so near, no other is looked for

Kind = TypeVar("Kind", NestedReference, ConditionalReference)


def modes(work: FitWork, expected: int = 1, near: FloatArray | None = None) -> MixtureReference | None:
    """Return a Gaussian at each mode that optimisation finds from prior draws or ``near`` a state, unchecked.

    One of several is wider than its curvature: labels that are exchanged make laws with long tails.
    """
    seeds = work.seeds(Part.MODES, range(MOST_STARTS))
    drawn = (work.posterior.draw_base(PriorPath(), [seed])[0] for seed in seeds)
    starts = drawn if near is None else [near]
    found, n_gradients = fit_modes(work.posterior, starts, work.transformed, expected=expected)
    work.n_gradients += n_gradients
    return widened(found) if found is not None and found.is_several else found


def checked_modes(work: FitWork, kernel: Kernel) -> MixtureReference | None:
    """Return a Gaussian at each mode; None where there is none, or a single one is far from the posterior.

    The mode of a funnel is in its neck, where little of its mass is.
    """
    found = modes(work)
    if found is None or _is_near(work, found):
        return found
    return _nearer(work, found, kernel) if found.is_several else None


def modes_again(work: FitWork, kernel: Kernel, like: MixtureReference) -> MixtureReference | None:
    """Return a law at the modes of other data; None where there are none.

    The only mode of one data set is looked for near by. Where that is far from the posterior, or where it was one of
    several, the highest of these is another one on other data, and all are looked for.
    """
    n_modes = len(like.components)
    if n_modes == 1 and not like.n_left_out:
        found = modes(work, 1, like.components[0].mean)
        if found is not None and _is_near(work, found):
            return found
    found = modes(work, n_modes)
    return found if found is None or _is_near(work, found) else _nearer(work, found, kernel)


def _is_near(work: FitWork, found: MixtureReference) -> bool:
    """Return whether there is a single mode, and its Gaussian stands a check."""
    return not found.is_several and work.own_divergence(found) < CHECKED


def _nearer(work: FitWork, found: MixtureReference, kernel: Kernel) -> MixtureReference:
    """Return Gaussians at modes, moved to the means of short chains and as wide as these; where they are far, a fit.

    Labels that are exchanged make laws that are no Gaussian ones. None is made narrower.
    """
    moved = move(work, found, kernel, Part.CHECKED_MOVE)
    pairs = zip(moved.components, found.components, strict=True)
    wide = tuple(replace(new, scale=np.maximum(new.scale, old.scale)) for new, old in pairs)
    moved = replace(moved, components=wide)
    return moved if work.own_divergence(moved) < BELIED else explored(work, moved, kernel)


def explored(work: FitWork, at_modes: MixtureReference, kernel: Kernel) -> MixtureReference:
    """Return a mixture fitted to longer chains from the modes, if it is nearer to the posterior than they are.

    Where a cluster may be empty, little of the mass is near the modes.
    """
    chains = []
    for index, component in enumerate(at_modes.components):
        keep = range(MOVE_BURN_IN + 1, MOVE_BURN_IN + LONG_DRAWS + 1)
        try:
            chains.append(work.evolve(at_modes, kernel, component.mean, keep, work.seed(Part.EXPLORE, index)).states)
        except DensityError:
            continue
    draws = np.concatenate([*chains, np.empty((0, work.dim))])
    fitted = fit_mixture(draws[::2], work.transformed)
    if fitted is None:
        return at_modes
    divergences = []
    for number, candidate in enumerate((fitted, at_modes)):
        start, end = candidate.sample(CHECK_DRAWS, work.rng(Part.EXPLORED, number)), draws[1::2]
        ratio = work.log_ratio(candidate, np.concatenate([start, end]))
        divergences.append(ratio[len(start) :].mean() - ratio[: len(start)].mean())
    return fitted if divergences[0] < divergences[1] else at_modes


def move(work: FitWork, reference: MixtureReference, kernel: Kernel, part: Part = Part.MOVE) -> MixtureReference:
    """Return the reference with each component moved to where a short chain from its mean goes."""
    components = []
    for index, component in enumerate(reference.components):
        keep = range(MOVE_BURN_IN + 1, MOVE_BURN_IN + MOVE_DRAWS + 1)
        try:
            evolved = work.evolve(reference, kernel, component.mean, keep, work.seed(part, index))
        except DensityError:
            components.append(component)
            continue
        draws = _nearest(reference, index, evolved.states)
        components.append(move_component(component, draws) if len(draws) >= FEWEST_MOVE_DRAWS else component)
    return replace(reference, components=tuple(components))


def nested(
    work: FitWork, drivers: Sequence[int], start: FloatArray, spread: FloatArray, n_left_out: int = 1,
    limit: float = BELIED, like: MixtureReference | None = None,
) -> NestedReference | None:  # fmt: skip
    """Return Gaussian laws given one of the coordinates, the one that shows the smallest divergence; None without one.

    Parameters
    ----------
    work : FitWork
    drivers : sequence of int
        Coordinates to try.
    start : ndarray, shape (dim,)
        A state to look from.
    spread : ndarray, shape (dim,)
        About the standard deviation of each coordinate.
    n_left_out : int
        Of the draws that show the divergence, the worst: 0 where nothing else will check the reference.
    limit : float
        Nats of divergence that the draws may show.
    like : MixtureReference, optional
        The law of the driver on other data.
    """
    posterior = work.posterior
    fits = (fit_nested(posterior, driver, start, STEP * float(spread[driver]), like) for driver in drivers[:DRIVERS])
    return _least_divergent(work, fits, n_left_out, limit)


def nested_near(
    work: FitWork, reference: NestedReference, drivers: Sequence[int], limit: float
) -> NestedReference | ConditionalReference | None:
    """Return the same kind of reference on another data set, looked for from where ``reference`` is.

    One scale may have been enough there and not be here, where another one is small: then a law given several of
    ``drivers`` is looked for.
    """
    mean, spread = reference.moments()
    found = nested(work, [reference.driver], mean, spread, 0, limit, like=reference.marginal)
    shown = np.inf if found is None else work.own_divergence(found)
    if shown < ENOUGH or len(drivers) < 2:
        return found
    draws = reference.sample(MARGINAL_DRAWS, np.random.default_rng(0))
    several = conditional(work, drivers, mean, draws, limit, is_near=False)
    return found if several is None or work.own_divergence(several) >= shown else several


def conditional(
    work: FitWork,
    drivers: Sequence[int],
    start: FloatArray,
    draws: FloatArray,
    limit: float = BELIED,
    is_near: bool = True,
) -> ConditionalReference | None:
    """Return Gaussian laws given two, three or four coordinates, as many as need be; None where none is near.

    In three or four coordinates there is none: mixtures are adapted to those (`bread.fitting.importance.adapted`), in
    less time.

    Parameters
    ----------
    work : FitWork
    drivers : sequence of int
        Coordinates to take, the likeliest first; those that may be the logarithm of a scale go before others.
    start : ndarray, shape (dim,)
        A state to look from.
    draws : ndarray, shape (n, dim)
        They show about where the drivers are.
    limit : float
        As of `nested`.
    is_near : bool
        Whether the draws are about where the posterior is.
    """
    ranked = sorted(drivers, key=lambda driver: not work.transformed[driver])

    def fit(k: int) -> tuple[ConditionalReference | None, int]:
        chosen = tuple(ranked[:k])
        at = draws[:, list(chosen)]
        if is_hopeless(work, chosen, start, at, limit):
            return None, 0
        return fit_conditional(work.posterior, chosen, start, at.mean(axis=0), np.cov(at.T), is_near=is_near)

    most = min(len(drivers), MOST_DRIVERS, (work.dim - 1) // 2)  # fewer than the coordinates that they drive
    fits = (fit(k) for k in range(2, most + 1))
    return _least_divergent(work, fits, 1, limit, ENOUGH)


def conditional_near(work: FitWork, reference: ConditionalReference, limit: float) -> ConditionalReference | None:
    """Return the same kind of reference on another data set, looked for from where ``reference`` is.

    A second try costs little beside a fit to chains of the data set's own: where nothing is found, by another climb;
    where something is that a draw of its own belies, from there, with nothing kept of the other data set's law.
    """
    at = reference.marginal.sample(MARGINAL_DRAWS, np.random.default_rng(0))
    start, _ = reference.moments()

    def climbed(first_step: float) -> ConditionalReference | None:
        found, n_gradients = fit_conditional(
            work.posterior, reference.drivers, start, at.mean(axis=0), np.cov(at.T), reference.matrix, is_near=False,
            like=reference.marginal, first_step=first_step,
        )  # fmt: skip
        work.n_gradients += n_gradients
        return found

    found = climbed(FIRST_STEP) or climbed(SHORTER_STEP)
    if found is None or work.own_divergence(found) < limit:
        return found
    at = found.marginal.sample(MARGINAL_DRAWS, np.random.default_rng(0))
    again, n_gradients = fit_conditional(
        work.posterior, reference.drivers, found.moments()[0], at.mean(axis=0), np.cov(at.T)
    )
    work.n_gradients += n_gradients
    return again if again is not None and work.own_divergence(again) < limit else None


def by_precision(
    work: FitWork, draws: FloatArray, limit: float = BELIED, like: PrecisionReference | None = None
) -> PrecisionReference | None:
    """Return the exact Gaussian law given scales, where a posterior has one; None without one.

    Where the others are Gaussian given a single coordinate, a law nested in it is as near, and evaluated faster.

    Parameters
    ----------
    work : FitWork
    draws : ndarray, shape (n, dim)
        They show about where coordinates are, and how far apart. They should reach all of the posterior: what begins
        at the law of other data misses tails of scales.
    limit : float
        Nats of divergence that the law's own draws may show.
    like : PrecisionReference, optional
        Of other data: much of it is the same on these.
    """
    structure = find_structure(work, draws, like)
    if structure is None or len(structure.drivers) < FEWEST_SCALES:
        return None
    found = fit_precision(work, draws, structure)
    return found if found is not None and work.own_divergence(found, 1) < limit else None


def centred(work: FitWork, draws: FloatArray, limit: float = BELIED) -> CentredReference | None:
    """Return a Gaussian law of effects times their scales.

    Parameters
    ----------
    work : FitWork
    draws : ndarray, shape (n, dim)
        They show about where coordinates are.
    limit : float
        Nats of divergence that the law's own draws may show.

    Returns
    -------
    CentredReference or None
        None where no coordinate is the scale of others, or no such law is near.
    """
    if work.dim > LARGEST_CENTRED_DIM:
        return None
    prior = many_prior_draws(work)
    by = find_scales(work, prior)
    if by is None:
        return None
    kind = CentredReference(by, np.zeros(work.dim), np.eye(work.dim), find_links(work, by, prior))
    return _believed(work, _gaussian(work, kind, draws), limit)


def variational(work: FitWork, draws: FloatArray, limit: float = BELIED) -> CentredReference | None:
    """Return a Gaussian law in coordinates in which the prior is normal; None where there are none, or it is not near.

    Parameters are those of `centred`.
    """
    if work.dim > LARGEST_CENTRED_DIM:
        return None
    normal, by = normal_coordinates(many_prior_draws(work)), np.zeros((work.dim, work.dim), dtype=np.bool_)
    if normal is None:
        return None
    kind = CentredReference(by, np.zeros(work.dim), np.eye(work.dim), normal=normal)
    return _believed(work, _gaussian(work, kind, draws), limit)


def gaussian_near(work: FitWork, like: CentredReference, limit: float) -> CentredReference | None:
    """Return such a law, looked for near that of other data.

    On these, data may say little of a scale: where the law of effects times scales is not near, one of effects as they
    are is looked for too, and that of less KL(q || p) taken. Own draws of a law that is too narrow miss how far it is;
    its evidence lower bound does not.
    """
    best = fit_centred(work, like, is_guess=False)
    enough = ENOUGH if work.dim <= CHEAP_DIM else CHECKED
    if like.is_centred and (best is None or work.own_divergence(best) >= enough):
        other = variational(work, many_prior_draws(work), np.inf)
        if other is not None and (best is None or work.own_elbo(other) > work.own_elbo(best)):
            best = other
    return _believed(work, best, limit)


def _gaussian(work: FitWork, kind: CentredReference, draws: FloatArray) -> CentredReference | None:
    """Return the Gaussian law in some coordinates, looked for from draws that may be far wider."""
    middle, spread = middle_and_spread(kind.centred(draws))
    return fit_centred(work, replace(kind, mean=middle, root=np.diag(spread)), is_guess=True)


def _believed(work: FitWork, law: CentredReference | None, limit: float) -> CentredReference | None:
    return law if law is not None and work.own_divergence(law) < limit else None


def _least_divergent(
    work: FitWork, fits: Iterable[tuple[Kind | None, int]], n_left_out: int, limit: float, enough: float = -np.inf
) -> Kind | None:
    """Return the reference whose own draws show the smallest divergence, below a limit; the first that is near enough.

    Each of ``fits`` is a reference, or None, and the gradients that it took.
    """
    best, least = None, limit
    for found, n_gradients in fits:
        work.n_gradients += n_gradients
        if found is None:
            continue
        shown = work.own_divergence(found, n_left_out)
        if shown < least:
            best, least = found, shown
        if least < enough:
            break
    return best


def _nearest(reference: MixtureReference, index: int, draws: FloatArray) -> FloatArray:
    """Return the draws that belong to component ``index`` rather than to another."""
    if not reference.is_several:
        return draws
    terms = [
        np.log(weight) + part.log_density(draws)
        for weight, part in zip(reference.weights, reference.components, strict=True)
    ]
    return np.asarray(draws[np.argmax(terms, axis=0) == index])
