"""Checks of every program, on its own data, before anything is reported: the rewrite, the split, the simulator.

* The rewritten program at inverse temperature 1 has the density and gradient of the program as the user wrote it, and
  at 0 those of the prior (exact, up to rounding).
* The log likelihood that the tempered program states for simulated data differs from the simulator's own only by a
  constant (exact, up to rounding and what solvers make of it).
* At draws (theta, y) of the simulator the gradients of log prior and log likelihood have mean zero, as the score of
  any density has; the normalising constant of the prior is not needed (a z test of every coordinate).

A program that cannot be split is taken as a whole: its own density, and the gradient of the log joint density. A
simulator that errs in the spread of symmetric outcomes alone passes there; the ranks of a check test it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray
from scipy import stats

from bread.backends.base import FloatArray
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.rounding import derivatives_note, rounding_noise
from bread.backends.stan.state_draws import StateDraws
from bread.errors import BreadError, DensityError, UnsupportedModelError

REWRITE_POINTS = 10  # prior draws, and as many states between -2 and 2, as Stan starts from
REWRITE_TOLERANCE = 1e-8  # nats, relative to the size of the terms; rounding leaves about 1e-13
LIKELIHOOD_TOLERANCE = 1e-2  # nats, and 1e-8 of the log likelihood: solvers of differential equations leave noise
NOISE_TIMES = 10.0  # beyond the tolerance: times the noise that rounding of the state makes there
# Joint draws whose gradients are compared. Their number depends on the program alone, never on the load of a machine:
# fewer where their data, written as JSON for each, would be longer than this in all (100 kB allow 200 draws).
GRADIENT_DRAWS, FEWEST_GRADIENT_DRAWS, MOST_CHARACTERS = 200, 20, 20_000_000
MORE_DRAWS = 4  # a suspicion is tested on this many times as many fresh draws
LEFT_OUT, OUTCOME_DRAWS = 20, 5  # parameters at which generators fail, outcomes that are tried there
NEXT_TO_IMPOSSIBLE = 30.0  # nats
LEVEL = 1e-4  # of both tests: a false refusal needs two such chances
_ROOT = 20160816  # of the random numbers of all checks: a program is accepted or refused, whoever asks

Condition = Callable[[Mapping[str, NDArray[Any]]], StanInstance]


def prove_rewrite(tempered: StanInstance, original: StanInstance, prior_states: FloatArray) -> str:
    """Compare the tempered program with the original one at random points; return a note for the report.

    Parameters
    ----------
    tempered, original : StanInstance
        Both with the same data.
    prior_states : ndarray, shape (n, dim)
        Prior draws; states between -2 and 2 are added.

    Raises
    ------
    UnsupportedModelError
        The densities differ, or none is finite.
    """
    if tempered.coordinates != original.coordinates:
        raise UnsupportedModelError(_rewrite_failed("the programs have different parameters"))
    uniform = default_rng(_ROOT).uniform(-2.0, 2.0, (REWRITE_POINTS, tempered.dim))
    states = np.concatenate([prior_states[:REWRITE_POINTS], uniform])
    log_prior, log_likelihood, _ = tempered.terms(states)
    whole, _, message = original.terms(states)
    with np.errstate(invalid="ignore"):
        rewritten = log_prior + log_likelihood
        scale = 1.0 + np.abs(log_prior) + np.abs(log_likelihood)
    finite = np.isfinite(whole)
    if not finite.any():
        raise UnsupportedModelError(
            f"The program's log density is finite at none of {len(states)} random points on these data: "
            f"{message or 'it is -inf or NaN everywhere'}."
        )
    if (np.isfinite(rewritten) != finite).any():
        raise UnsupportedModelError(_rewrite_failed("one density is zero where the other is not"))
    difference = np.abs(rewritten[finite] - whole[finite])
    if (difference > REWRITE_TOLERANCE * scale[finite]).any():
        raise UnsupportedModelError(_rewrite_failed(f"the log densities differ by {difference.max():.3g} nats"))
    for row in np.flatnonzero(finite)[:2]:
        _compare_gradients(tempered, original, states[row], float(log_prior[row]), float(scale[row]))
    return (
        f"The tempered program has the density of the original one at {finite.sum()} random points "
        f"(largest difference {(difference / scale[finite]).max():.1e} of its size)."
    )


def _compare_gradients(
    tempered: StanInstance, original: StanInstance, state: FloatArray, log_prior: float, scale: float
) -> None:
    try:
        wanted = original.gradient(state, 1.0)[2]
    except DensityError:  # the density has a value here but no derivative: nothing to compare
        return
    gradient = tempered.gradient(state, 1.0)[2]
    start = tempered.gradient(state, 0.0)[0]
    with np.errstate(invalid="ignore"):
        excess = np.abs(gradient - wanted) - 1e-6 * (1.0 + np.abs(wanted).max())
    if (excess > 0).any() or (np.isfinite(gradient) != np.isfinite(wanted)).any():
        raise UnsupportedModelError(_rewrite_failed("the gradients differ"))
    if abs(start - log_prior) > REWRITE_TOLERANCE * scale:
        raise UnsupportedModelError(_rewrite_failed("at inverse temperature 0 the density is not the prior's"))


def _rewrite_failed(what: str) -> str:
    return (
        f"bread rewrote the program to temper its likelihood, and the result is another density: {what}. Nothing was "
        "computed. Please report the program."
    )


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
    redrawn : str
        How many joint draws were made again and why; "" for none.
    """

    gradients: FloatArray
    log_likelihood: FloatArray
    excess: FloatArray
    with_derivatives: FloatArray
    states: FloatArray
    data: Sequence[Mapping[str, NDArray[Any]]]
    redrawn: str = ""


def reason_of(original: StanInstance) -> str:
    """Return why the program rejects states between -2 and 2, as Stan starts from, in Stan's words; "" if it does not.

    The words of the program itself are worth more than those of a simulator derived from it: they name a line.
    """
    states = default_rng(_ROOT).uniform(-2.0, 2.0, (REWRITE_POINTS, original.dim))
    return original.terms(states)[2]


def prove_simulator(
    draws: StateDraws, condition: Condition, original: Condition | None = None, *, is_split: bool = True
) -> tuple[str, ...]:
    """Check the simulator against the tempered density; return notes for the report.

    Parameters
    ----------
    draws : StateDraws
    condition, original : callable
        Return the tempered and the original program (if there is one, for its messages) with other observed data.
    is_split : bool
        Whether prior and likelihood are known apart.

    Raises
    ------
    UnsupportedModelError
        They disagree; the message names the coordinate.
    """
    n_draws = n_gradient_draws(draws)
    scores = draw_scores(draws, condition, original, SeedSequence(_ROOT), n_draws, is_split)
    check_excess(scores, condition)
    doubts = derivatives_note(scores.with_derivatives, scores.log_likelihood, LIKELIHOOD_TOLERANCE) if is_split else ()
    before = (*([scores.redrawn] if scores.redrawn else []), *doubts)
    if not np.isfinite(scores.gradients).all():
        n = int((~np.isfinite(scores.gradients).all(axis=1)).sum())
        return (
            *before,
            f"Simulator and density were not compared by gradients: they overflow at {n} of {len(scores.gradients)} "
            "prior draws. The alarm compares them.",
        )
    dim = draws.instance.dim
    is_tested: NDArray[np.bool_] = np.logical_not(draws.edged.ravel() if is_split else np.any(draws.edged, axis=0))
    if scores.redrawn:  # the law of the draws that are kept may end abruptly anywhere
        is_tested[:dim] = False
    p_values = np.where(is_tested, gradient_p_values(scores.gradients), 1.0)
    if p_values.min() < LEVEL:
        again = draw_scores(draws, condition, original, SeedSequence(_ROOT + 1), MORE_DRAWS * n_draws, is_split)
        is_tested[:dim] &= not again.redrawn
        suspect = is_tested & (p_values < LEVEL) & (gradient_p_values(again.gradients) < LEVEL)
        suspect &= np.sign(again.gradients.mean(axis=0)) == np.sign(scores.gradients.mean(axis=0))
        if suspect.any():
            index = int(np.flatnonzero(suspect)[0])
            said = " ".join((_disagreement(index, again.gradients, draws.instance, is_split), *doubts))
            raise UnsupportedModelError(said)
        scores, p_values = again, np.where(is_tested, gradient_p_values(again.gradients), 1.0)
    what = "gradients of log prior and log likelihood are" if is_split else "gradient of the log joint density is"
    return (
        *before,
        f"Simulator and density agree on {len(scores.gradients)} joint draws: mean {what} zero (smallest p-value "
        f"{p_values.min():.2g}, corrected for {p_values.size} tests).",
        *(
            [
                f"Of these means, {n_edges} may differ from zero, because a density ends abruptly there, and are not "
                "tested."
            ]
            if (n_edges := int((~is_tested).sum()))
            else []
        ),
    )


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
        raise UnsupportedModelError(f"The prior cannot be simulated: {error}") from error
    gradients, log_likelihood, with_derivatives, outcomes = [], [], [], []
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
        np.array(gradients), values, values - own, np.array(with_derivatives), states, outcomes, joint.redrawn_note(n)
    )


def check_excess(scores: Scores, condition: Condition) -> None:
    """Refuse a simulator whose own log likelihood differs from the program's by more than a constant and rounding."""
    known = np.isfinite(scores.excess)
    if not known.any():
        return
    tolerance = LIKELIHOOD_TOLERANCE + 1e-8 * float(np.abs(scores.log_likelihood[known]).max())
    spread = float(np.ptp(scores.excess[known]))
    if spread <= tolerance:
        return
    deviation = np.abs(scores.excess - np.median(scores.excess[known]))
    for row in map(int, np.flatnonzero(known & (deviation > 0.5 * tolerance))):
        noise = rounding_noise(condition(scores.data[row]), scores.states[row])
        if deviation[row] > 0.5 * tolerance + NOISE_TIMES * noise:
            raise UnsupportedModelError(
                f"The simulator derived from the program draws the outcomes from another law than its likelihood: the "
                f"log densities differ by amounts that vary by {spread:.3g} nats. Pass simulator=, and please report "
                "the program."
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


def gradient_p_values(gradients: FloatArray) -> FloatArray:
    """Return Bonferroni p-values of mean zero for each column; 1 for a column of zeros."""
    n, n_tests = gradients.shape
    with np.errstate(all="ignore"):  # scores may be as large as the numbers of vague priors
        error = gradients.std(axis=0, ddof=1) / np.sqrt(n)
        size = np.abs(gradients).max(axis=0)
        is_rounding = size <= 1e-10 * (1.0 + np.abs(gradients).max(initial=0.0))
        t = np.where(is_rounding, 0.0, np.abs(gradients.mean(axis=0)) / error)
    result: FloatArray = np.minimum(1.0, n_tests * 2.0 * stats.t.sf(np.nan_to_num(t), n - 1))
    return result


def _part(index: int, instance: StanInstance, is_split: bool) -> str:
    part = "joint density" if not is_split else "prior" if index < instance.dim else "likelihood"
    return f"{part} with respect to {instance.coordinates[index % instance.dim]!r} (unconstrained)"


def _disagreement(index: int, gradients: FloatArray, instance: StanInstance, is_split: bool) -> str:
    values = gradients[:, index]
    error = values.std(ddof=1) / len(values) ** 0.5
    return (
        f"The simulator and the program disagree: over {len(values)} joint draws the mean gradient of the log "
        f"{_part(index, instance, is_split)} is {values.mean():.3g} (standard error {error:.2g}), and must be 0. "
        "If you passed simulator=, its draws do not follow the program. If priors are very vague, such as "
        "inv_gamma(0.001, 0.001), the noise of simulated data is lost in rounding: use others. Else pass simulator=, "
        "and please report the program."
    )
