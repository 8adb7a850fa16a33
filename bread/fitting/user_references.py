"""Test that a reference of the user's draws from its own density, and that this integrates to one.

A path from a reference weighs with its density. One that lacks a constant, or belongs to other draws, shifts every log
evidence by what it lacks, and with it the search for modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from scipy.stats import binom

from bread.errors import DensityError, InvalidArgumentError
from bread.paths.mixture import FloatArray
from bread.paths.user import UserReference
from bread.statistics.exactness.normalisation import (
    DRAWS_A_DIMENSION,
    SMALLEST_SAMPLE,
    Normalisation,
    StudentT,
    bridge,
    draws_p_value,
    effective_size,
    fit_student_t,
    shares,
)

FITTED = 5000  # draws that a proposal is fitted to; 50 a coordinate where that is more
FITTED_OF_MANY = 50
OWN = 20_000  # draws that are bridged: a constant is mostly known to 0.01 nats, one in 100 coordinates to 0.02
MOST_COORDINATES = 100  # of a proposal: a fit takes a second or two
PARTS = (1, 4, 16, 64)  # a proposal is fitted to all draws, or to this part of them, those around one draw
ENOUGH = 0.02  # nats: a standard error at which no other proposal is tried
LARGEST_ERROR = 0.1  # nats: a standard error from which on the constant is not known
ERRORS = 4.5  # standard errors beyond which a constant is missing: by chance in 7 of a million right references
SMALLEST = 0.02  # nats that no reader of a log evidence minds
LEVEL = 1e-5  # of "the draws follow the density"
MOST_REPEATED = 0.01  # of the draws: those of a law with a density are all different
# Points of weight 1 that none was seen of may be log(1 / LEVEL) = 11.5, where a normal law allows 4.3 standard
# deviations: so many are added to standard errors, or one of many modes, met once or never, would refuse a right law.
UNSEEN = 11.5 / 4.3
BLOCK = 20  # coordinates whose products are looked at together
CLIP = 10.0  # spreads of the log ratio beyond which points count alike


def examined(reference: UserReference, dim: int, seed: SeedSequence) -> UserReference:
    """Return a reference whose density is that of its draws; ``doubt`` says so where that could not be told.

    Draws of the reference are bridged with a Student t law that is fitted to others of them; functions of both are
    compared, which no constant moves (`bread.statistics.exactness.normalisation`). About 45,000 densities.

    Parameters
    ----------
    reference : UserReference
    dim : int
        Unconstrained coordinates of the model.
    seed : SeedSequence

    Raises
    ------
    InvalidArgumentError
        Draws of another dimension, or that repeat; a density that is not finite at its own draws, that they do not
        follow, or that does not integrate to one.
    """
    n_fitted = max(FITTED, FITTED_OF_MANY * min(dim, MOST_COORDINATES))
    of_own, of_fitted, of_points = (default_rng(one) for one in seed.spawn(3))
    # two generators: where they are not used, draws repeat
    own, fitted = reference.sample(OWN, of_own), reference.sample(n_fitted, of_fitted)
    if own.shape[1] != dim:
        raise InvalidArgumentError(
            f"path=: sample(n, rng) must return draws of the model's {dim} unconstrained coordinates, but returned "
            f"{own.shape[1]}. bread.check(model, path='reference') fits one that has them."
        )
    _refuse_repeats(np.concatenate([own, fitted]))
    with np.errstate(all="ignore"):
        at_own = reference.log_density(own)
    is_wrong = ~np.isfinite(at_own)
    if is_wrong.any():
        raise InvalidArgumentError(
            f"path=: log_density must be finite at the draws of sample, but is {at_own[is_wrong][0]} at "
            f"{int(is_wrong.sum())} of {OWN}. Give both the same law, in the model's unconstrained coordinates."
        )
    if dim > MOST_COORDINATES:
        return replace(reference, doubt=f"it has more than {MOST_COORDINATES} coordinates")
    best, p_value = _best(reference, own, fitted, at_own, of_points)
    if p_value < LEVEL:
        raise InvalidArgumentError(
            f"path=: draws of sample must follow log_density, but they do not (p = {p_value:.0e} from {OWN} draws). "
            "Give both the same law, in the model's unconstrained coordinates."
        )
    if best is None:
        return replace(reference, doubt="no Student t law is near enough to its draws")
    constant, error = best.log_constant, best.standard_error
    if abs(constant) > max(ERRORS * error, SMALLEST):
        raise InvalidArgumentError(
            f"path=: log_density must be normalised, but exp(log_density) integrates to exp({constant:.3g}), with a "
            f"standard error of {error:.2g} in the exponent. {'Subtract' if constant > 0 else 'Add'} what is "
            f"{'too much' if constant > 0 else 'missing'}, {abs(constant):.3g}, in log_density."
        )
    if error > LARGEST_ERROR:
        return replace(reference, doubt=f"its draws tell the constant to {ERRORS * error:.1g} nats only")
    return reference


def _refuse_repeats(draws: FloatArray) -> None:
    n_different = len(np.unique(draws, axis=0))
    if n_different < (1.0 - MOST_REPEATED) * len(draws):
        raise InvalidArgumentError(
            f"path=: sample(n, rng) must return new draws of a continuous law, but of {len(draws)} draws from two "
            f"generators only {n_different} differ. Draw with the generator that is given, and from a density."
        )


def _best(
    reference: UserReference, own: FloatArray, fitted: FloatArray, at_own: FloatArray, rng: Generator
) -> tuple[Normalisation | None, float]:
    """Return the constant that is known best, and the p-value of "the draws follow the density" by all proposals."""
    low, centre, high = np.quantile(fitted, (0.16, 0.5, 0.84), axis=0)
    scale = np.where(high > low, (high - low) / 2.0, 1.0)
    own, units = (own - centre) / scale, float(np.log(scale).sum())  # standardised draws are so much denser
    best: Normalisation | None = None
    p_values = []
    for law in _laws((fitted - centre) / scale):
        points = law.sample(len(own), rng)
        with np.errstate(all="ignore"):
            at_points = reference.log_density(centre + scale * points)
        at_points = np.where(np.isnan(at_points), -np.inf, at_points)  # what many formulas give outside the support
        ratios = at_own + units - law.log_density(own), at_points + units - law.log_density(points)
        p_values.append(_order_p_value(*ratios))
        with np.errstate(invalid="ignore", divide="ignore"):  # of laws that have nothing in common
            try:
                found = bridge(*ratios)
            except DensityError:
                continue
            if not effective_size(*ratios, found.log_constant) >= SMALLEST_SAMPLE:
                continue
        unseen = [UNSEEN / one.sum() for one in shares(*ratios, found.log_constant)]
        found = found._replace(standard_error=float(np.linalg.norm([found.standard_error, *unseen])))
        p_values.append(_p_value(law.standardised(own), law.standardised(points), *ratios, found.log_constant))
        if best is None or found.standard_error < best.standard_error:
            best = found
        if best.standard_error < ENOUGH:
            break
    return best, min(1.0, len(p_values) * min(p_values)) if p_values else 1.0


def _order_p_value(at_draws: FloatArray, at_points: FloatArray) -> float:
    """Return the p-value of "log ratios p / q are larger at draws of p than at those of q", which needs no overlap.

    Whatever p integrates to, P_p(r <= a) = u says that at most exp(a - b) / u of the draws of q have a ratio r >= b.
    """
    a, b = np.quantile(at_draws, (0.5, 0.95))
    most = min(1.0, float(np.exp(a - b)) / 0.45)  # below one half, for the errors of the quantile
    return float(binom.sf(int((at_points >= b).sum()) - 1, len(at_points), most))


def _laws(draws: FloatArray) -> Iterator[StudentT]:
    """Return Student t laws near all draws, and near those around one of them: a mode of its own, where there are."""
    around = np.argsort(((draws - draws[0]) ** 2).sum(axis=1))
    for part in PARTS:
        n = len(draws) // part
        if n < DRAWS_A_DIMENSION * draws.shape[1]:
            return
        try:
            yield fit_student_t(draws[around[:n]])
        except InvalidArgumentError:  # they span no volume
            continue


def _p_value(
    draws: FloatArray, points: FloatArray, at_draws: FloatArray, at_points: FloatArray, constant: float
) -> float:
    """Return the p-value of "the draws follow the density" by coordinates, in blocks, and the log ratio."""
    middle, spread = np.median(at_draws), at_draws.std() + np.finfo(float).tiny
    sides = [
        np.column_stack([one, np.clip((ratio - middle) / spread, -CLIP, CLIP)])
        for one, ratio in ((draws, at_draws), (points, at_points))
    ]
    starts = range(0, draws.shape[1], BLOCK)
    columns = [[*range(start, min(start + BLOCK, draws.shape[1])), -1] for start in starts]
    found = [
        draws_p_value(sides[0][:, block], sides[1][:, block], at_draws, at_points, constant, unseen=UNSEEN)
        for block in columns
    ]
    return min(1.0, len(found) * min(found))
