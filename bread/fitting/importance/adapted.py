"""Mixtures adapted to a posterior of a few coordinates by importance sampling (`bread.fitting.importance.adaptation`).

They see curved laws, skewed ones and long tails that chains of some hundreds of steps do not come to. Prior draws,
weighted by the likelihood, show where to begin besides: a mixture adapted to other data may reach little of the
posterior's mass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.fitting.conditional.one_driver import middle_and_spread
from bread.fitting.gaussian.families import ROUNDING, mixture_components, with_heavy_tails
from bread.fitting.gaussian.gaussian_mixtures import mixture_near, resampled
from bread.fitting.importance.adaptation import Family, adapt, tempered, truncated
from bread.fitting.search.initial import weighted_prior_draws
from bread.fitting.search.work import CHECK_DRAWS, FitWork, Part
from bread.paths.mixture import Component, MixtureReference

LARGEST_DIM = 5  # coordinates: in more, mixtures of a few laws miss parts, and are found no faster than by chains
LARGEST_MIXTURE = 7  # components
DRAWS = 800  # of the mixture in each round
PRIOR_DRAWS, FEWEST_PRIOR = 2000, 100.0  # that show where to begin, drawn at once; so many of them by weight
PRIOR_SHARE, PRIOR_MIXTURE = 0.5, 4  # of the first proposal, that they have; components at most
RESAMPLED = 1000  # to which a mixture is fitted
EXPECTATIONS = {"tol": 0.01, "max_iter": 10}  # of a fit, which the next round improves
SUITS = 0.06  # largest distance of distribution functions at which the mixture of the round before is improved
WIDER = 1.5  # standard deviations of the first proposal, in its own
TAILS = (np.inf, 7.0, 3.0)  # degrees of freedom that are tried
FAR_TAIL, FAR_WIDER, FAR_WEIGHT = 1.0, 3.0, 0.05  # degrees of freedom of one more component, which reaches farther; how
# much wider than the rest it is; its weight
FARTHER, FAR_DRAWS, FAR_SHARE, UNREACHED = 10.0, 200, 0.05, 5.0  # so many times as far out as the rest is wide it is
# wanted: of so many draws there such a share must be so many nats short of the posterior
GAIN = 0.5  # nats by which an adapted mixture must be nearer than a reference that is found again on other data
LOSS = 1.0  # nats by which it may be farther than one that a short chain moves to other data


def adapted(work: FitWork, start: MixtureReference, like: MixtureReference | None = None) -> MixtureReference | None:
    """Return a mixture adapted to the posterior, the one whose own draws show the least divergence; None without one.

    Parameters
    ----------
    work : FitWork
    start : MixtureReference
        Of about the posterior's law; it need not be near, but should reach all of it.
    like : MixtureReference, optional
        A mixture adapted to other data, from which fits begin.
    """
    if start.dim > LARGEST_DIM:
        return None
    reaches_far = not all(_is_near(component) for component in start.components)

    def completed(law: MixtureReference, log_evidence: float, index: int) -> MixtureReference:
        return _reaching_far(work, law, None if reaches_far else log_evidence, index)

    def fitted(states: FloatArray, weights: FloatArray, like: MixtureReference | None) -> MixtureReference | None:
        return _fitted(states, weights, work.transformed, like)

    return adapt(work, Family(DRAWS, fitted, completed), _first(work, start), start.dim, like)


def adapted_near(work: FitWork, reference: MixtureReference, limit: float) -> MixtureReference | None:
    """Return a mixture adapted to another data set, from ``reference``; None above so many nats (`truncated`)."""
    found = adapted(work, reference, reference)
    if found is None:
        return None
    own = work.log_ratio(found, found.sample(CHECK_DRAWS, work.rng(Part.OWN_DRAWS)))
    return found if truncated(own) < limit else None


def _fitted(
    states: FloatArray, weights: FloatArray, transformed: NDArray[np.bool_], like: MixtureReference | None,
    most: int = LARGEST_MIXTURE,
) -> MixtureReference | None:  # fmt: skip
    """Return a mixture like weighted draws, with the tails that give them the largest density."""
    points = resampled(states, weights, RESAMPLED)
    centre, spread = points.mean(axis=0), points.std(axis=0)
    if not (spread > ROUNDING * np.abs(centre)).all():
        return None
    points = (points - centre) / spread
    moved = None if like is None else _standardised(like, centre, spread)
    try:
        model = mixture_near(points, most, moved, SUITS, **EXPECTATIONS)
        laws = [_law(model, centre, spread, transformed, degrees) for degrees in TAILS]
    except (np.linalg.LinAlgError, ValueError):  # a component of repeated draws
        return None
    is_seen = weights > 0.0
    density = [float(weights[is_seen] @ law.log_density(states[is_seen])) for law in laws]
    return laws[int(np.argmax(density))]


def _law(
    model: Any, centre: FloatArray, spread: FloatArray, transformed: NDArray[np.bool_], degrees: float
) -> MixtureReference:
    """Return the mixture, with Student t tails in coordinates that are no logarithms of scales."""
    components = mixture_components(model, centre, spread, transformed)
    if np.isfinite(degrees) and not transformed.all():
        components = tuple(with_heavy_tails(one, transformed, degrees) for one in components)
    weights = np.maximum(model.weights_, 1e-3)
    label = f"mixture of {len(components)} laws, adapted by importance sampling"
    return MixtureReference(components, weights / weights.sum(), label)


def _is_near(component: Component) -> bool:
    """Return whether a component is none that reaches far."""
    return component.degrees is None or bool(component.degrees.min() > FAR_TAIL)


def _reaching_far(work: FitWork, law: MixtureReference, log_evidence: float | None, index: int) -> MixtureReference:
    """Return the law with a little of one more component, wider than the whole, whose tails reach farther.

    Only where a coordinate may have heavy tails and, given the log evidence (nats), where the posterior has mass far
    out of which the law has much too little. ``index`` is of the random numbers that show it.
    """
    if work.transformed.all():
        return law
    middle, spread = middle_and_spread(law.sample(RESAMPLED, np.random.default_rng(0)))  # always the same
    degrees = np.where(work.transformed, np.inf, FAR_TAIL)
    far = Component(middle, FAR_WIDER * spread, matrix=np.eye(law.dim), degrees=degrees)
    if log_evidence is not None:
        drawn = replace(far, scale=FARTHER * spread).sample(FAR_DRAWS, work.rng(Part.ADAPTED, index))
        if not (work.log_ratio(law, drawn) - log_evidence > UNREACHED).mean() >= FAR_SHARE:
            return law
    weights = np.append((1.0 - FAR_WEIGHT) * law.weights, FAR_WEIGHT)
    return MixtureReference((*law.components, far), weights, law.label)


def _first(work: FitWork, start: MixtureReference) -> MixtureReference:
    """Return where to begin: the start, wider, and a mixture like prior draws weighted by the likelihood.

    The start alone where many prior draws are dear, or a model has no prior path.
    """
    start, drawn = _wider(start), weighted_prior_draws(work, PRIOR_DRAWS, Part.ADAPTED_PRIOR)
    if drawn is None:
        return start
    states, log_likelihood = drawn
    weights = tempered(log_likelihood, FEWEST_PRIOR)
    like_prior = None if weights is None else _fitted(states, weights, work.transformed, None, PRIOR_MIXTURE)
    if like_prior is None:
        return start
    components = (*start.components, *_wider(like_prior).components)
    shares = np.concatenate([(1.0 - PRIOR_SHARE) * start.weights, PRIOR_SHARE * like_prior.weights])
    return MixtureReference(components, shares, start.label)


def _standardised(law: MixtureReference, centre: FloatArray, spread: FloatArray) -> MixtureReference:
    """Return the law of standardised coordinates, its components normal, but for one that only reaches far."""
    is_near = [_is_near(part) for part in law.components]
    parts = (part for part, stays in zip(law.components, is_near, strict=True) if stays)
    components = tuple(
        replace(part, mean=(part.mean - centre) / spread, scale=part.scale / spread, degrees=None) for part in parts
    )
    weights = law.weights[is_near]
    return replace(law, components=components, weights=weights / weights.sum())


def _wider(law: MixtureReference) -> MixtureReference:
    return replace(law, components=tuple(replace(part, scale=WIDER * part.scale) for part in law.components))
