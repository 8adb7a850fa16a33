"""Where pilot chains begin, and which of them got lost."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.backends.support.base_draws import prior_batch
from bread.errors import BreadError, DensityError
from bread.fitting.gaussian.families import SMALLEST_SCALE
from bread.fitting.search.work import FitWork, Part
from bread.paths.kinds import PriorPath
from bread.paths.mixture import Reference

INITIAL_CANDIDATES = 20  # prior draws, of which the chains of a fit begin at the best
PRIOR_DRAWS = 400  # to see which coordinates drive the widths of others
PRIOR_BATCH = 1000  # the same, where they are drawn at once
MOST_BATCHES = 20  # of so many prior draws, where the density is zero at nearly all of them


def initial_states(work: FitWork, plain: Reference, n_chains: int) -> FloatArray:
    """Return prior draws of high posterior density that are far from each other: the chains should see every mode.

    Raises
    ------
    DensityError
        No prior draw has a finite density.
    """
    candidates, joint = _candidates(work, plain, n_chains)
    good = candidates[np.argsort(-joint)[: max(n_chains, len(joint) // 2)]]
    scale = np.maximum(candidates.std(axis=0), SMALLEST_SCALE)
    chosen = [0]
    distance = np.full(len(good), np.inf)
    while len(chosen) < min(n_chains, len(good)):
        distance = np.minimum(distance, (((good - good[chosen[-1]]) / scale) ** 2).sum(axis=1))
        chosen.append(int(np.argmax(distance)))
    return np.asarray(good[np.resize(chosen, n_chains)])


def _candidates(work: FitWork, plain: Reference, n_chains: int) -> tuple[FloatArray, FloatArray]:
    """Return states of finite posterior density, and its log: prior draws; where these are rare, draws near 0 too."""
    found: list[tuple[FloatArray, FloatArray]] = []
    n_tried = 0
    for batch in range(MOST_BATCHES + 1):
        if batch < MOST_BATCHES:
            numbers = range(batch * INITIAL_CANDIDATES, (batch + 1) * INITIAL_CANDIDATES)
            seeds = work.seeds(Part.INITIAL, numbers)
            drawn = work.posterior.draw_base(PriorPath(), seeds)
        else:
            drawn = plain.sample(MOST_BATCHES * INITIAL_CANDIDATES, work.rng(Part.NEAR_ZERO))
        with np.errstate(invalid="ignore"):  # where both are infinite, which is left out
            joint = work.log_ratio(plain, drawn) + plain.log_density(drawn)
        n_tried += len(drawn)
        finite = np.isfinite(joint)
        found.append((drawn[finite], joint[finite]))
        if sum(len(one) for _, one in found) >= n_chains:
            break
    candidates, log_density = (np.concatenate(part) for part in zip(*found, strict=True))
    if not len(candidates):
        raise DensityError(
            f"None of {n_tried} states, drawn from the prior and near 0 in unconstrained coordinates, has a finite "
            "posterior density, so that no pilot chain can start. Widen the prior, or give the likelihood a tail."
        )
    return candidates, log_density


def many_prior_draws(work: FitWork) -> FloatArray:
    """Return draws from the prior that are finite, shape (n, dim).

    Up to `PRIOR_BATCH` where a posterior draws many at once, else up to `PRIOR_DRAWS`.
    """
    draws = prior_batch(work.posterior, PRIOR_BATCH, work.seed(Part.PRIOR))
    if draws is None:
        draws = work.posterior.draw_base(PriorPath(), work.seeds(Part.PRIOR, range(PRIOR_DRAWS)))
    return np.asarray(draws[np.isfinite(draws).all(axis=1)])


def weighted_prior_draws(work: FitWork, n: int, part: Part) -> tuple[FloatArray, FloatArray] | None:
    """Return prior draws, up to n of shape (dim,), and their log likelihoods (nats, up to a constant).

    None where a posterior does not draw many at once, or has no prior path.
    """
    drawn = prior_batch(work.posterior, n, work.seed(part))
    if drawn is None:
        return None
    try:
        log_likelihood = work.posterior.log_ratio(PriorPath(), drawn)
    except BreadError:  # no prior path
        return None
    work.n_evaluations += n
    usable = np.isfinite(drawn).all(axis=1) & ~np.isnan(log_likelihood)
    return drawn[usable], log_likelihood[usable]


def without_lost_chains(work: FitWork, plain: Reference, chains: list[FloatArray]) -> list[FloatArray]:
    """Leave out chains that got stuck far below the others: their typical density is lower by more than any mode's."""
    if len(chains) < 2:
        return chains
    levels = []
    for states in chains:
        last = states[len(states) // 2 :]
        levels.append(np.median(work.log_ratio(plain, last) + plain.log_density(last)))
    allowed = 10.0 + 3.0 * np.sqrt(work.dim)
    kept = [states for states, level in zip(chains, levels, strict=True) if level > max(levels) - allowed]
    return kept if kept else chains
