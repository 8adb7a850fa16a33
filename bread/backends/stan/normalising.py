"""The program's prior against the simulator's, exactly, draw by draw; and what the prior integrates to.

A simulator adds up the log densities of what it draws, as the program states them, and what each of these densities
integrates to (`bread.backends.stan.simulator.cuts`). The program's log prior, at the simulator's draws, may differ
from the normalised one by one constant alone: the log of the integral of the prior. Gradients cannot see a constant
in one branch of the program; this comparison does.

Where draws are rejected as a whole (bounds that cut off a share which depends on parameters, ``reject()``), that share
belongs to the integral, too. It is estimated from the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import SeedSequence
from scipy.special import expit

from bread.backends.base import FloatArray
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.native.path_arguments import ONE_BOUND, TWO_BOUNDS
from bread.backends.stan.rounding import prior_noise
from bread.backends.stan.simulation import JointDraws
from bread.backends.stan.state_draws import StateDraws
from bread.errors import BreadError, DensityError, UnsupportedModelError

PRIOR_DRAWS = 500  # a number of evaluations, never of seconds
SHARE_DRAWS = 5000  # where draws are rejected as a whole: the standard error of the log of a half is 0.01
TOLERANCE = 1e-8  # of the size of the log densities (and 1); rounding leaves about 1e-13
NOISE_TIMES = 10.0  # beyond the tolerance: times the noise that rounding of the state makes there
MOST_NOISE = 1e-3  # nats: a draw at which rounding makes more is no comparison
_NAMED = 1e-9  # nats: a smaller part of the constant is rounding
_SHARES = (1.0, 1 / 8, 1 / 64, -1 / 64)  # of the way to the other side of 0, until there are values
_ROOT = 20160818  # of the random numbers: a program is accepted or refused, whoever asks


@dataclass(frozen=True)
class Normalisation:
    """What the prior that a program states integrates to.

    Attributes
    ----------
    log_integral : float
        In nats: 0 for a prior that is normalised.
    error : float
        Standard error of it; 0 where it is exact.
    notes : tuple of str
        For the report.
    """

    log_integral: float
    error: float
    notes: tuple[str, ...]


UNKNOWN = Normalisation(
    0.0,
    0.0,
    (
        "What the prior integrates to is not known, because the simulator does not state the density of its draws: "
        "log evidences count the prior as the program states it.",
    ),
)


def compare_priors(draws: StateDraws, names: Sequence[str]) -> Normalisation:
    """Compare the log prior of the program with the simulator's own, and return what it integrates to.

    Parameters
    ----------
    draws : StateDraws
    names : sequence of str
        What the columns of the simulator's ``cut`` belong to.

    Raises
    ------
    UnsupportedModelError
        They differ by more than one constant and rounding: the simulator does not draw from the program's prior.
    """
    states, joint = draws.draw_parameters(PRIOR_DRAWS, SeedSequence(_ROOT))
    if joint.acceptance < 1.0:
        states, joint = draws.draw_parameters(SHARE_DRAWS, SeedSequence(_ROOT))
    taken_out = _taken_out(draws.instance, states)
    rows = np.flatnonzero(np.isfinite(taken_out))
    if not len(rows):
        return UNKNOWN
    states, joint = states[rows], replace(joint.rows(rows), acceptance=joint.acceptance)
    stated = draws.instance.constrained_prior(states) + taken_out[rows]
    return compare(states, joint, joint.log_prior, stated, lambda row: draws.instance, names)


def compare(
    states: FloatArray,
    joint: JointDraws,
    own: FloatArray | None,
    stated: FloatArray,
    instance_of: Callable[[int], StanInstance],
    names: Sequence[str],
) -> Normalisation:
    """Compare log densities at a simulator's draws; see `compare_priors`.

    Parameters
    ----------
    states : ndarray, shape (n, dim)
    joint : JointDraws
    own, stated : ndarray, shape (n,)
        By the simulator (None: unknown), and by the program.
    instance_of : callable
        Returns the program of one row.
    names : sequence of str
    """
    if own is None or joint.cut is None:
        return UNKNOWN
    parts = joint.cut
    size = 1.0 + np.abs(np.where(np.isfinite(stated), stated, own)) + np.abs(own)
    with np.errstate(invalid="ignore"):
        difference = stated - own + parts.sum(axis=1)
    excess, n_compared, spread = _constant(instance_of, states, difference, size)
    cut = np.median(parts, axis=0)
    rejected = float(np.log(joint.acceptance)) if joint.acceptance < 1.0 else 0.0
    error = float(np.sqrt((1.0 - joint.acceptance) / len(states))) if joint.acceptance < 1.0 else 0.0
    total = excess + rejected
    left = len(states) - n_compared
    notes = [
        f"The log density of the program is that of the simulator and one constant at each of {n_compared} draws "
        f"(largest deviation {spread:.1e} nats)." + (f" At {left} more rounding hides it." if left else "")
    ]
    if abs(total) > _NAMED:
        named = [f"{name} {value:+.4g}" for name, value in zip(names, cut, strict=True) if abs(value) > _NAMED]
        rest = excess - float(cut.sum())
        named += [f"constant terms {rest:+.4g}"] if abs(rest) > 1e3 * _NAMED else []
        named += [f"draws rejected as a whole {rejected:+.4g} (standard error {error:.2g})"] if rejected else []
        notes.append(
            f"The prior that the program states integrates to exp({total:.4g}), not to 1. In nats: {', '.join(named)} "
            "(bounds that cut a density, an order, flat densities). It is counted as normalised, on every path."
        )
    return Normalisation(total, error, tuple(notes))


def _taken_out(instance: StanInstance, states: FloatArray) -> FloatArray:
    """Return the log of the factors that localising takes out of the program: scales of the transforms of a law.

    NaN where they are not known.
    """
    total = np.zeros(len(states))
    if instance.law is None:
        return total
    for place, kind in zip(instance.law.positions.tolist(), instance.law.jacobians.tolist(), strict=True):
        if kind == ONE_BOUND:
            continue
        total += np.log(_scale(instance, states, place, expit if kind == TWO_BOUNDS else np.asarray))
    return total


def _scale(
    instance: StanInstance, states: FloatArray, place: int, transform: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return the factor of a transform at each state: the gap between two bounds, or a multiplier.

    From a move of the coordinate, to the other side of 0 where the program has values there: bounds of other
    parameters may depend on this one, and leave them no room. NaN where no move has values.
    """
    owner, start = instance.coordinates[place].split(".", maxsplit=1)[0], states[:, place]
    before, scale = _constrained(instance, states, owner), np.full(len(states), np.nan)
    for share in _SHARES:
        rows = np.flatnonzero(np.isnan(scale))
        if not len(rows):
            break
        moved = states[rows]
        moved[:, place] += share * (-np.copysign(1.0, start[rows]) - start[rows])
        change = np.abs(_constrained(instance, moved, owner) - before[rows]).max(axis=1)  # one element, or all later
        with np.errstate(divide="ignore", invalid="ignore"):
            scale[rows] = change / np.abs(transform(moved[:, place]) - transform(start[rows]))
    return scale


def _constrained(instance: StanInstance, states: FloatArray, name: str) -> FloatArray:
    """Return a parameter at states, (n, elements); NaN at those that the program has no values for."""
    try:
        return np.asarray(instance.constrain(states)[name].reshape(len(states), -1))
    except DensityError:
        if len(states) == 1:
            return np.full((1, int(np.prod(instance.shape(name), dtype=int))), np.nan)
        half = len(states) // 2
        return np.concatenate([_constrained(instance, part, name) for part in (states[:half], states[half:])])


def _constant(
    instance_of: Callable[[int], StanInstance], states: FloatArray, difference: FloatArray, size: FloatArray
) -> tuple[float, int, float]:
    """Return the constant that all differences are, how many were compared, and their largest deviation from it."""
    known = np.isfinite(difference)
    constant = float(np.median(difference[known])) if known.any() else 0.0
    tolerance = TOLERANCE * size
    with np.errstate(invalid="ignore"):
        deviation = np.where(known, np.abs(difference - constant), np.inf)
    is_compared = np.ones(len(states), dtype=bool)
    for row in map(int, np.flatnonzero(deviation > tolerance)):
        noise = _noise(instance_of(row), states[row])
        is_compared[row] = noise <= MOST_NOISE
        if is_compared[row] and deviation[row] > tolerance[row] + NOISE_TIMES * noise:
            raise UnsupportedModelError(
                "The simulator derived from the program draws the parameters from another law than its prior: at the "
                f"simulator's own draws the log densities differ by {constant:.6g} nats and, at some, by "
                f"{difference[row]:.6g}; the difference must be one constant. Pass simulator=, and please report the "
                "program."
            )
    if not is_compared.any():
        raise UnsupportedModelError(
            "The prior cannot be compared with its simulator: rounding changes the log prior at every draw. Use "
            "priors that are less vague, or pass simulator=."
        )
    return constant, int(is_compared.sum()), float(deviation[is_compared].max())


def _noise(instance: StanInstance, state: FloatArray) -> float:
    """Return what rounding does to the log prior there (nats); infinite where a value is smaller than normal numbers.

    Of such a value Stan's vectorised functions take the logarithm of the smallest normal number.
    """
    values = np.concatenate([np.ravel(value) for value in instance.constrain(state[None, :]).values()])
    if ((values != 0.0) & (np.abs(values) < np.finfo(np.float64).tiny)).any():
        return float("inf")
    try:
        return prior_noise(instance, state)
    except BreadError:  # moved by rounding, the state leaves its support
        return float("inf")
