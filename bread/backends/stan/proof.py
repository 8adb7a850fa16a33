"""Checks of every program, on its own data, before anything is reported: the rewrite, the split, the simulator.

* The rewritten program at inverse temperature 1 has the density and gradient of the program as the user wrote it, and
  at 0 those of the prior (exact, up to rounding).
* The log likelihood that the tempered program states for simulated data differs from the simulator's own only by a
  constant (exact, up to rounding and what solvers make of it).
* So does the log prior, and the constant is the log of what the prior that the program states integrates to
  (`bread.backends.stan.normalising`).
* At draws (theta, y) of the simulator the gradients of log prior and log likelihood have mean zero, as the score of
  any density has; the normalising constant of the prior is not needed (a z test of every coordinate).

A program that cannot be split is taken as a whole: its own density, and the gradient of the log joint density. A
simulator that errs in the spread of symmetric outcomes alone passes there; the ranks of a check test it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray
from scipy import stats

from bread.backends.base import FloatArray
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.normalising import UNKNOWN, Normalisation, compare, compare_priors
from bread.backends.stan.rounding import derivatives_note
from bread.backends.stan.scores import (
    SOLVER_TOLERANCE,
    Condition,
    Scores,
    check_excess,
    draw_scores,
    n_gradient_draws,
)
from bread.backends.stan.state_draws import StateDraws
from bread.errors import DensityError, UnsupportedModelError
from bread.statistics.exactness.means import are_few

REWRITE_POINTS = 10  # prior draws, and as many states between -2 and 2, as Stan starts from
REWRITE_TOLERANCE = 1e-8  # nats, relative to the size of the terms; rounding leaves about 1e-13
MORE_DRAWS = 4  # a suspicion is tested on this many times as many fresh draws
LEVEL = 1e-4  # of both tests: a false refusal needs two such chances
_ROOT = 20160816  # of the random numbers of all checks: a program is accepted or refused, whoever asks
_AGAIN = 20160817  # of the fresh draws on which a suspicion is tested


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


def reason_of(original: StanInstance) -> str:
    """Return why the program rejects states between -2 and 2, as Stan starts from, in Stan's words; "" if it does not.

    The words of the program itself are worth more than those of a simulator derived from it: they name a line.
    """
    states = default_rng(_ROOT).uniform(-2.0, 2.0, (REWRITE_POINTS, original.dim))
    return original.terms(states)[2]


def prove_simulator(
    program: Program, draws: StateDraws, condition: Condition, original: Condition | None = None
) -> Normalisation:
    """Check the simulator against the tempered density; return what the prior integrates to, with notes on all checks.

    Parameters
    ----------
    program : Program
    draws : StateDraws
    condition, original : callable
        Return the tempered and the original program (if there is one, for its messages) with other observed data.

    Raises
    ------
    UnsupportedModelError
        They disagree; the message names the coordinate.
    """
    is_split = program.split_refusal is None
    normalisation = compare_priors(draws, program.drawn) if is_split else UNKNOWN
    n_draws = n_gradient_draws(draws)
    scores = draw_scores(draws, condition, original, SeedSequence(_ROOT), n_draws, is_split)
    constant = check_excess(scores, condition, solves=program.solves)
    if not is_split:
        normalisation = _compare_joint(program, scores, condition)
    doubts = derivatives_note(scores.with_derivatives, scores.log_likelihood, SOLVER_TOLERANCE) if is_split else ()
    before = (*normalisation.notes, *constant, *([scores.redrawn] if scores.redrawn else []), *doubts)
    if not np.isfinite(scores.gradients).all():
        n = int((~np.isfinite(scores.gradients).all(axis=1)).sum())
        overflow = (
            f"Simulator and density were not compared by gradients: they overflow at {n} of {len(scores.gradients)} "
            "prior draws. The alarm compares them."
        )
        return replace(normalisation, notes=(*before, overflow))
    dim = draws.instance.dim
    is_tested: NDArray[np.bool_] = np.logical_not(draws.edged.ravel() if is_split else np.any(draws.edged, axis=0))
    if scores.redrawn:  # the law of the draws that are kept may end abruptly anywhere
        is_tested[:dim] = False
    if not are_few(scores.joint.discarded.n_by_chance, len(scores.states)):  # nor do outcomes follow the likelihood
        is_tested[:] = False
    p_values = np.where(is_tested, gradient_p_values(scores.gradients), 1.0)
    if p_values.min() < LEVEL:
        again = draw_scores(draws, condition, original, SeedSequence(_AGAIN), MORE_DRAWS * n_draws, is_split)
        is_tested[:dim] &= not again.redrawn
        suspect = is_tested & (p_values < LEVEL) & (gradient_p_values(again.gradients) < LEVEL)
        suspect &= np.sign(again.gradients.mean(axis=0)) == np.sign(scores.gradients.mean(axis=0))
        if suspect.any():
            index = int(np.flatnonzero(suspect)[0])
            said = " ".join((_disagreement(index, again.gradients, draws.instance, is_split), *doubts))
            raise UnsupportedModelError(said)
        scores, p_values = again, np.where(is_tested, gradient_p_values(again.gradients), 1.0)
    what = "gradients of log prior and log likelihood are" if is_split else "gradient of the log joint density is"
    notes = (
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
    return replace(normalisation, notes=notes)


def _compare_joint(program: Program, scores: Scores, condition: Condition) -> Normalisation:
    """Compare log joint densities of a program without a split with the simulator's own."""
    joint = scores.joint
    own = None
    if joint.log_prior is not None and joint.log_likelihood is not None:
        own = joint.log_prior + joint.log_likelihood
    return compare(
        scores.states, joint, own, scores.whole, lambda row: condition(scores.data[row]), program.drawn
    )  # fmt: skip


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
