"""Score tests of joint draws, with what they need: densities without jumps where test functions do not vanish.

Stein's identity fails at a jump of the density, such as the bound of an exponential law whose coordinate is not
transformed; the score of a likelihood fails where the support of the data depends on parameters. Both show as densities
of zero at states that are composed of the draws: such coordinates are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, ModelInfo, Simulations
from bread.running.direct_densities import JointDensities, RunTasks
from bread.running.direct_outcomes import FLOW_DRAWS, JUMP, N_CORNERS, Outcomes
from bread.running.direct_results import DirectTest
from bread.running.direct_tasks import JointGradients
from bread.statistics.damping import location_and_scale
from bread.statistics.exchange import flow_along
from bread.statistics.jumps import beside_jumps
from bread.statistics.score import WINDOW, ScoreTest, likelihood_score_test, prior_score_test

MIN_DRAWS = 300  # of a test, whatever the check costs: with fewer it sees little
MOST_PROBES = 1000  # evaluations that look for the coordinates with a jump
MOST_MOVED = 10  # coordinates that are tested by moves, four evaluations each and draw
SUPPORT = "the support of the data depends on it"
Density = Callable[[FloatArray], FloatArray]


class Scores:
    """Score tests of one set of joint draws; ``left_out`` says what was not tested, and why."""

    def __init__(self, info: ModelInfo, simulations: Simulations, run: RunTasks) -> None:
        self.left_out: dict[str, str] = {}
        self._info = info
        self._states = simulations.states
        self._data = simulations.data
        self._densities = JointDensities(simulations.data, run)
        self._continuous = ~np.asarray(info.layout.discrete, dtype=bool)
        names = list(info.layout.positions)
        self._groups = np.zeros(info.layout.dim, dtype=np.int64)
        for number, name in enumerate(names):
            self._groups[info.layout.positions[name]] = number
        self._group_names = names or ["all"]

    @property
    def n_evaluations(self) -> int:
        """Densities that were evaluated."""
        return self._densities.n_evaluations

    def of_parts(self, parts: Sequence[JointGradients], is_split: bool) -> list[DirectTest]:
        """Test the draws of all ``parts``; outcomes alone, which need no gradient, where model or kernel has none."""
        refusal = next((part.refusal for part in parts if part.refusal), "")
        if refusal:
            self.left_out["score"] = refusal
            return self._of_outcomes(None) if is_split else []
        joint = np.concatenate([part.gradients[1.0] for part in parts])
        if not is_split:
            return [*self.of_joint(joint), *self._of_outcomes(1.0)]
        return self.of_split(np.concatenate([part.gradients[0.0] for part in parts]), joint)

    def of_split(self, prior: FloatArray, joint: FloatArray) -> list[DirectTest]:
        """Test prior and likelihood apart, from the gradients (n, dim) of log prior and log joint density."""
        with np.errstate(invalid="ignore"):
            likelihood = joint - prior
        log_prior, log_likelihood = self._densities.at(0.0), self._densities.at(None)
        return [
            self._test("prior score", prior_score_test, prior, self._smooth(log_prior, "prior score"), log_prior),
            self._test(
                "likelihood score", likelihood_score_test, likelihood, self._fixed_support(log_likelihood),
                log_likelihood, lambda states: log_prior(states) + log_likelihood(states),
            ),
            *self._of_outcomes(None),
        ]  # fmt: skip

    def of_joint(self, joint: FloatArray) -> list[DirectTest]:
        """Test the joint density of a model whose prior cannot be told from its likelihood."""
        log_joint = self._densities.at(1.0)
        return [self._test("joint score", prior_score_test, joint, self._smooth(log_joint, "joint score"), log_joint)]

    def _of_outcomes(self, beta: float | None) -> list[DirectTest]:
        """Test outcomes by the likelihood (None), or by the joint density (1), which has the same slopes in data."""
        outcomes = Outcomes(self._states, self._data, self._densities, beta, self._info.outcome_functions)
        tests = outcomes.tests()
        self.left_out |= outcomes.left_out
        return tests

    def _test(
        self,
        name: str,
        test: Callable[..., ScoreTest],
        gradient: FloatArray,
        tested: NDArray[np.bool_],
        density: Density,
        of_draws: Density | None = None,
    ) -> DirectTest:
        """Test coordinates; those that fail, and along which the density jumps, by moves: slopes prove nothing there.

        ``density`` is what the gradient is of, ``of_draws`` the law of the draws where that is another.
        """
        result, kept = beside_jumps(
            lambda which: test(self._states, gradient, is_continuous=which, groups=self._groups),
            tested, self._states, density, self._groups,
        )  # fmt: skip
        jumping = tested & ~kept
        self._leave_out(name, np.flatnonzero(jumping), JUMP)
        if test is prior_score_test:  # a support that the data depend on is none of the draws
            jumping |= self._continuous & ~tested
        dim, labels = self._info.layout.dim, [f"all of {group}" for group in self._group_names]
        rows = np.full((2, dim + len(labels), len(result.functions)), np.nan)
        rows[:, :dim] = result.p_values, result.effect
        rows[0, dim : dim + len(result.pooled_p_values), :2] = result.pooled_p_values
        for coordinate, *moves in self._moves(np.flatnonzero(jumping)[:MOST_MOVED], of_draws or density):
            rows[:, coordinate, :2] = moves
        labels = [*self._info.layout.coordinates, *labels]
        return DirectTest(name, tuple(labels), result.functions, rows[0], rows[1], len(self._states))

    # -- bounds and jumps -------------------------------------------------------------------------------------

    def _moves(self, chosen: NDArray[np.int64], density: Density) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Test coordinates by the flow to perturbed copies; yield each with p-values and effects."""
        states = self._states[:FLOW_DRAWS]
        location, scale = location_and_scale(states[: len(states) // 4])
        for coordinate in chosen:

            def at_coordinate(values: FloatArray, coordinate: int = coordinate) -> FloatArray:
                moved = states.copy()
                moved[:, coordinate] = values
                return density(moved)

            rng = np.random.default_rng((2, coordinate))
            found = flow_along(states[:, coordinate], location[coordinate], scale[coordinate], at_coordinate, rng)
            yield coordinate, found.p_values, found.effect

    def _smooth(self, density: Density, name: str) -> NDArray[np.bool_]:
        """Return which coordinates the density has no bound in, as far as the test functions reach."""
        location, scale = location_and_scale(self._states[: len(self._states) // 4])
        ends = location + WINDOW * scale * np.where(self._signs(), 1.0, -1.0)
        moved = self._states[:N_CORNERS].copy()
        moved[:, self._continuous] = ends[:, self._continuous]
        if np.isfinite(density(moved)).all():
            return self._continuous
        return self._left(ends, density, range(N_CORNERS), name, JUMP)

    def _fixed_support(self, log_likelihood: Density) -> NDArray[np.bool_]:
        """Return on which coordinates the support of the data does not depend."""
        n = min(len(self._states), 5 * N_CORNERS)
        others = np.roll(self._states, 1, axis=0)
        if np.isfinite(log_likelihood(others[:n])).all():
            return self._continuous
        return self._left(others, log_likelihood, range(n), "likelihood score", SUPPORT)

    def _left(self, others: FloatArray, density: Density, rows: range, test: str, reason: str) -> NDArray[np.bool_]:
        """Return the coordinates that may be moved alone to those of ``others`` without a density of zero."""
        tested = self._continuous.copy()
        each = max(1, min(len(rows), MOST_PROBES // max(self._info.layout.dim, 1)))
        for coordinate in np.flatnonzero(tested):
            moved = self._states[:each].copy()
            moved[:, coordinate] = others[:each, coordinate]
            tested[coordinate] = np.isfinite(density(moved)).all()
        self._leave_out(test, np.flatnonzero(self._continuous & ~tested), reason)
        return tested

    def _leave_out(self, test: str, coordinates: NDArray[np.int64], reason: str) -> None:
        names = [self._info.layout.coordinates[coordinate] for coordinate in coordinates]
        if names:
            self.left_out[f"{test} of {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"] = reason

    def _signs(self) -> NDArray[np.bool_]:
        """Return corner signs, (N_CORNERS, dim): the same for every check."""
        return np.random.default_rng(0).random((N_CORNERS, self._info.layout.dim)) < 0.5
