"""Joint draws of a simulator, each with what the program says of it: log densities and gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.rounding import rounding_noise
from bread.backends.stan.simulation import JointDraws
from bread.backends.stan.state_draws import StateDraws
from bread.errors import BreadError, DensityError, UnsupportedModelError

# Joint draws whose gradients are compared. Their number depends on the program alone, never on the load of a machine:
# fewer where their data, written as JSON for each, would be longer than this in all (100 kB allow 200 draws).
GRADIENT_DRAWS, FEWEST_GRADIENT_DRAWS, MOST_CHARACTERS = 200, 20, 20_000_000
LEFT_OUT, OUTCOME_DRAWS = 20, 5  # parameters at which generators fail, outcomes that are tried there
NEXT_TO_IMPOSSIBLE = 30.0  # nats
LIKELIHOOD_TOLERANCE = 1e-6  # nats, and 1e-8 of the log likelihood: rounding leaves about 1e-13 of it
NOISE_TIMES = 10.0  # beyond the tolerance: times the noise that rounding of the state makes there
SOLVER_TOLERANCE = 1e-2  # nats, where solvers answer within tolerances of their own

Condition = Callable[[Mapping[str, NDArray[Any]]], StanInstance]


@dataclass(frozen=True)
class Scores:
    """Gradients at joint draws.

    Attributes
    ----------
    gradients : ndarray, shape (n, 2 * dim)
        Of the log prior, then of the log likelihood; (n, dim) of the log joint density of a program without a split.
    log_likelihood : ndarray, shape (n,)
        By the tempered program.
    excess : ndarray, shape (n,)
        The same, less the simulator's own; NaN where that is unknown.
    with_derivatives : ndarray, shape (n,)
        The log likelihood as chains see it; of no meaning without a split.
    states : ndarray, shape (n, dim)
    data : sequence of mapping
        Outcomes by name, one mapping a draw.
    whole : ndarray, shape (n,)
        Log joint density of parameters (without the Jacobian) and outcomes; of a program without a split alone.
    joint : JointDraws
    """

    gradients: FloatArray
    log_likelihood: FloatArray
    excess: FloatArray
    with_derivatives: FloatArray
    states: FloatArray
    data: Sequence[Mapping[str, NDArray[Any]]]
    whole: FloatArray
    joint: JointDraws

    @property
    def redrawn(self) -> str:
        """How many joint draws were made again and why; "" for none."""
        return self.joint.redrawn_note(len(self.states))


def n_gradient_draws(draws: StateDraws) -> int:
    """Return at how many joint draws gradients are compared: fewer for large data, whatever a gradient costs."""
    return int(np.clip(MOST_CHARACTERS // draws.instance.data_size, FEWEST_GRADIENT_DRAWS, GRADIENT_DRAWS))


def draw_scores(
    draws: StateDraws, condition: Condition, original: Condition | None, seed: SeedSequence, n: int, is_split: bool
) -> Scores:
    """Return gradients at ``n`` joint draws."""
    try:
        states, joint = draws.simulate(n, None, seed)
    except DensityError as error:
        raise UnsupportedModelError(f"The program cannot be simulated: {error}") from error
    gradients, log_likelihood, with_derivatives, outcomes, joint_density = [], [], [], [], []
    left_out = draws.left_out(joint, LEFT_OUT)
    for row, state in enumerate(states):
        data = {name: values[row] for name, values in joint.data.items()}
        try:
            instance = condition(data)
            _, log_ratio, whole = instance.gradient(state, 1.0)
            prior = instance.gradient(state, 0.0)[2] if is_split else whole
            log_likelihood.append(float(instance.terms(state[None, :])[1][0]))
        except BreadError as error:
            reason = _own_words(original, data, state) or str(error)
            raise UnsupportedModelError(f"The program refuses a draw of the simulator: {reason}") from error
        if np.isneginf(log_likelihood[-1]):
            raise UnsupportedModelError(
                "The program gives density zero to outcomes that its simulator draws: they have different laws. Pass "
                "simulator=, and please report the program."
            )
        joint_density.append(np.nan if is_split else float(instance.constrained_prior(state[None, :])[0]))
        outcomes.append(data)
        with_derivatives.append(log_ratio)
        with np.errstate(invalid="ignore"):  # they may overflow, which is looked for below
            gradients.append(np.concatenate([prior, whole - prior]) if is_split else whole)
        if is_split and row < OUTCOME_DRAWS and len(left_out):
            _check_left_out(instance.terms(left_out)[1], log_likelihood[-1], joint.reason)
    values = np.array(log_likelihood)
    own = np.full(len(values), np.nan)
    if is_split and joint.log_likelihood is not None:
        own = joint.log_likelihood
    return Scores(
        np.array(gradients), values, values - own, np.array(with_derivatives), states, outcomes,
        np.array(joint_density), joint,
    )  # fmt: skip


def check_excess(scores: Scores, condition: Condition, *, solves: bool = False) -> tuple[str, ...]:
    """Compare the log likelihood with the simulator's own; return a note where they differ by a constant.

    Parameters
    ----------
    scores : Scores
    condition : callable
        Returns the program with other outcomes.
    solves : bool
        Whether the program calls a solver, which answers within tolerances of its own.

    Raises
    ------
    UnsupportedModelError
        They differ by more than one constant and rounding.
    """
    known = np.isfinite(scores.excess)
    if not known.any():
        return ()
    # By draw: a single huge log likelihood must not hide what others differ by.
    size = np.abs(np.where(known, scores.log_likelihood, 0.0))
    tolerance = (SOLVER_TOLERANCE if solves else LIKELIHOOD_TOLERANCE) + 1e-8 * size
    constant = float(np.median(scores.excess[known]))
    with np.errstate(invalid="ignore"):
        deviation = np.where(known, np.abs(scores.excess - constant), 0.0)
    is_far = deviation > 0.5 * tolerance
    for row in map(int, np.flatnonzero(is_far)):
        noise = rounding_noise(condition(scores.data[row]), scores.states[row])
        if deviation[row] > 0.5 * tolerance[row] + NOISE_TIMES * noise:
            raise UnsupportedModelError(
                f"The simulator derived from the program draws the outcomes from another law than its likelihood: the "
                f"log densities differ by amounts that vary by {np.ptp(scores.excess[known]):.3g} nats. Pass "
                "simulator=, and please report the program."
            )
    if abs(constant) <= float(np.median(tolerance[known])) or is_far.any():
        return ()
    return (
        f"The log likelihood of the program is that of its simulator and a constant of {constant:.4g} nats, which is "
        "left in: it is a part of the log evidence.",
    )


def _check_left_out(log_likelihood: FloatArray, own: float, reason: str) -> None:
    """Refuse a program whose outcomes may come from parameters at which its generators fail.

    Such draws are left out: given the outcomes that are kept, the parameters are then exact posterior draws only if
    these outcomes are next to impossible there.
    """
    if (log_likelihood > own - NEXT_TO_IMPOSSIBLE).any():
        raise UnsupportedModelError(
            f"The outcomes cannot be drawn at some parameters ({reason}), and outcomes drawn at others are likely "
            f"there (log likelihood {np.max(log_likelihood):.4g}, at their own parameters {own:.4g}). Use a prior with "
            "less mass at such parameters, or pass simulator=."
        )


def _own_words(original: Condition | None, data: Mapping[str, NDArray[Any]], state: FloatArray) -> str:
    """Return why the program itself refuses data or state; "" if it does not."""
    if original is None:
        return ""
    try:
        return original(data).terms(state[None, :])[2]
    except BreadError as error:
        return str(error)
