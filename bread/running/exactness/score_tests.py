"""The score tests of a model: of joint draws as far as these are what a test needs, else of other exact draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from bread.backends.base import Discarded, ModelInfo, Simulations
from bread.errors import DensityError
from bread.paths.kinds import PriorPath
from bread.running.exactness.densities import JointDensities, RunTasks
from bread.running.exactness.joint import MAY_COME
from bread.running.exactness.scores import Scores
from bread.running.exactness.tasks import JointGradients, JointTask, PriorTask
from bread.running.state.exactness_results import DirectTest
from bread.statistics.exactness.means import are_few
from bread.statistics.exactness.score import FEWEST_DRAWS

DRAWING = 2  # gradients, about as dear as a joint draw
OUTCOMES = ("likelihood score", "outcome score")
ROUNDING = 16 * float(np.finfo(np.float64).eps)  # relative move of outcomes
# Nats by which a move of 16 roundings may change a log likelihood: the outcomes' own rounding, half of one, is then a
# thirtieth of what a residual of an sd would take. Explosive series lose all of their residuals.
LARGEST_CHANGE = 1.0
LOOKED_AT = 40  # draws of which that is asked; fewer than one in 20 shift a test of 300 by less than a standard error
GIVEN = "parameters are draws of the fit, which the ranks of the check test"
LOST = "rounding the outcomes changes their density"


class Held(Protocol):
    """Values of some parameters near the real data, to draw the others and outcomes at."""

    names: tuple[str, ...]

    def direct(self, index: int) -> dict[str, NDArray[Any]]:
        """Return the values of draw ``index``."""
        ...


@dataclass
class ScoreResults:
    """What the tests found.

    Attributes
    ----------
    tests : list of DirectTest
    left_out : dict of str to str
        Reasons, by test or by part of one.
    joint : Simulations or None
        The joint draws; None where there are too few.
    inexact : str
        Why their parameters are no exact posterior draws given their data; "" where they are.
    n_lost : float
        Joint draws that are counted as discarded, because their outcomes lost their digits, and are there all the same.
    n_gradients, n_evaluations : int
        Cost; draws count as `DRAWING` gradients.
    """

    tests: list[DirectTest] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    joint: Simulations | None = None
    inexact: str = ""
    n_lost: float = 0.0
    n_gradients: int = 0
    n_evaluations: int = 0

    @property
    def discarded(self) -> Discarded:
        """Joint draws that were thrown away."""
        return Discarded() if self.joint is None else self.joint.discarded


def score_tests(
    info: ModelInfo,
    root: int,
    n_batches: int,
    batch: int,
    run: RunTasks,
    held: Held | None = None,
    *,
    are_given: bool = False,
) -> ScoreResults:
    """Test simulator against density.

    Where joint draws are conditioned, or cannot be had, the prior is tested on draws of the parameters alone. The
    likelihood is also tested at values near the real data, where there are any.

    Parameters
    ----------
    info : ModelInfo
    root : int
        Of the random numbers.
    n_batches, batch : int
        Tasks, and draws of each.
    run : callable
        Runs tasks and returns their results in order.
    held : Held, optional
    are_given : bool, default False
        Whether parameters are draws of a fit, which are not known to be exact: the likelihood alone is then tested, of
        which the tests hold whatever law parameters have.
    """
    found, is_split = ScoreResults(), PriorPath.name in info.paths or are_given
    betas = (0.0, 1.0) if is_split else (1.0,)

    def drawn(tasks: Sequence[JointTask | PriorTask]) -> tuple[list[JointGradients], Simulations]:
        parts: list[JointGradients] = [part for part in run(tasks) if len(part.simulations)]
        found.n_gradients += sum(len(part.gradients) + DRAWING for part in parts) * batch
        if sum(len(part.simulations) for part in parts) < FEWEST_DRAWS:
            raise DensityError("too few draws can be had.")
        joined = reduce(Simulations.joined, [part.simulations for part in parts])
        densities = JointDensities(joined.data, run)
        n_lost = _count_lost(densities, joined, None if is_split else 1.0)
        found.n_evaluations += densities.n_evaluations
        if n_lost:
            lost = Discarded(n_outcomes=n_lost, n_by_chance=n_lost, reason=LOST)
            joined = replace(joined, discarded=joined.discarded + lost)
        return parts, joined

    def keep(scores: Scores, tests: list[DirectTest]) -> None:
        found.tests += tests
        found.left_out |= scores.left_out
        found.n_evaluations += scores.n_evaluations

    lacking = set(OUTCOMES if is_split else ("joint score",))
    try:
        parts, found.joint = drawn([JointTask(index, batch, betas, root) for index in range(n_batches)])
        thrown_away = sum(part.simulations.discarded.n_outcomes for part in parts)
        found.n_lost = found.discarded.n_outcomes - thrown_away
    except Exception as error:  # a simulator or density may raise anything
        found.inexact = _reason(error)
        found.left_out |= dict.fromkeys(sorted(lacking), found.inexact)
    else:
        scores = Scores(info, found.joint, run, tuple(info.layout.positions) if are_given else ())
        keep(scores, scores.of_parts(parts, is_split))
        if scores.may_come_from_elsewhere:
            found.inexact = f"{MAY_COME} ({found.discarded.reason})"
        if "score" in found.left_out:  # model or kernel has no gradients
            return found
        lost = found.discarded.n_outcomes + found.discarded.n_parameters
        if are_few(lost, len(found.joint)):
            lacking &= {*found.left_out, *scores.not_finite}
    if are_given:
        found.tests = [test for test in found.tests if test.name != "prior score"]
        found.inexact = found.inexact or GIVEN
        return found
    if is_split and not any(test.name == "prior score" for test in found.tests):
        try:
            parts, prior = drawn([PriorTask(index, batch, root) for index in range(n_batches)])
            if not are_few(prior.discarded.n_parameters, len(prior)):
                raise DensityError(f"not all parameters can be drawn: {prior.discarded.reason}")
            scores = Scores(info, prior, run)
            found.tests[:0] = scores.of_prior(np.concatenate([part.gradients[0.0] for part in parts]))
            keep(scores, [])
        except Exception as error:
            found.left_out["prior score"] = _reason(error)
            lacking.add("prior score")
    # Of a wide prior most outcomes are so extreme that they tell nothing: tested near the data too.
    wanted = lacking | set(OUTCOMES if is_split else ())
    if wanted and held is not None:
        try:
            tasks = [
                JointTask(i, batch, betas, root, tuple(held.direct(k) for k in range(i * batch, (i + 1) * batch)))
                for i in range(n_batches)
            ]
            parts, near = drawn(tasks)
            scores = Scores(info, near, run, held.names)
            _add(found, scores, scores.of_parts(parts, is_split), wanted)
        except Exception as error:
            for name in lacking & set(found.left_out):
                found.left_out[name] += f"; near the real data, {_reason(error)}"
    return found


def _count_lost(densities: JointDensities, drawn: Simulations, beta: float | None) -> float:
    """Return of about how many draws the outcomes are so large that their digits do not hold what was drawn."""
    states = drawn.states[:LOOKED_AT]
    moved = {
        name: values[:LOOKED_AT] * (1.0 + ROUNDING * default_rng(0).uniform(-1.0, 1.0, values[:LOOKED_AT].shape))
        for name, values in drawn.data.items()
        if values.dtype.kind == "f"
    }
    if not moved:
        return 0.0
    with np.errstate(invalid="ignore"):
        change = densities.of(beta, states, moved) - densities.of(beta, states)
    return float(len(drawn) * (np.abs(change) > LARGEST_CHANGE).mean())  # where either is no number nobody knows


def _add(found: ScoreResults, scores: Scores, tests: list[DirectTest], names: set[str]) -> None:
    """Join tests of these names with those that there are, or put them in the place of those that tested less."""
    found.n_evaluations += scores.n_evaluations
    for test in tests:
        others = [other for other in found.tests if other.name == test.name]
        if test.name not in names or test.n_tested < 1:
            continue
        if len(others) == 1 and others[0].p_values.shape == test.p_values.shape and others[0].n_tested:
            found.tests[found.tests.index(others[0])] = _joined(others[0], test)
        elif test.n_tested >= sum(other.n_tested for other in others):
            found.tests = [other for other in found.tests if other.name != test.name] + [test]
        else:
            continue
        if test.n_tested >= max((other.n_tested for other in others), default=0):
            found.left_out = {what: why for what, why in found.left_out.items() if not what.startswith(test.name)}
            found.left_out |= {what: why for what, why in scores.left_out.items() if what.startswith(test.name)}


def _joined(one: DirectTest, other: DirectTest) -> DirectTest:
    """Return a test by two sets of draws: of each p-value the smaller one, doubled (Bonferroni), with its effect."""
    both = np.isfinite(one.p_values) & np.isfinite(other.p_values)
    is_other = np.nan_to_num(other.p_values, nan=2.0) < np.nan_to_num(one.p_values, nan=2.0)
    p_values = np.where(is_other, other.p_values, one.p_values)
    return replace(
        one,
        p_values=np.where(both, np.minimum(1.0, 2.0 * p_values), p_values),
        effect=np.where(is_other, other.effect, one.effect),
        n_draws=one.n_draws + other.n_draws,
    )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
