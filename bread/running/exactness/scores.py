"""Score tests of joint draws, with what they need: densities without jumps where test functions do not vanish.

Stein's identity fails at a jump of the density, such as the bound of an exponential law whose coordinate is not
transformed; the score of a likelihood fails where the support of the data depends on parameters. Both show as densities
of zero at states that are composed of the draws: such coordinates are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, ModelInfo, Simulations
from bread.paths.kinds import PriorPath
from bread.running.exactness.densities import JointDensities, RunTasks
from bread.running.exactness.joint import BY_CHANCE, MAY_COME, N_ROWS, N_STATES, NEXT_TO_IMPOSSIBLE
from bread.running.exactness.outcomes import FLOW_DRAWS, JUMP, N_CORNERS, Outcomes
from bread.running.exactness.tasks import JointGradients
from bread.running.state.exactness_results import DirectTest
from bread.statistics.exactness.damping import location_and_scale
from bread.statistics.exactness.exchange import flow_along
from bread.statistics.exactness.jumps import beside_jumps
from bread.statistics.exactness.means import are_few
from bread.statistics.exactness.score import WINDOW, ScoreTest, likelihood_score_test, prior_score_test

MIN_DRAWS = 300  # of a test, whatever the check costs: with fewer it sees little
MOST_PROBES = 1000  # evaluations that look for the coordinates with a jump
MOST_MOVED = 10  # coordinates that are tested by moves, four evaluations each and draw
SUPPORT = "the support of the data depends on it"
NOT_FINITE = "its gradient is not finite at some draws"
HELD = "held at draws of the fit"
Density = Callable[[FloatArray], FloatArray]


class Scores:
    """Score tests of one set of joint draws; ``left_out`` says what was not tested, and why.

    Parameters
    ----------
    info : ModelInfo
    simulations : Simulations
        Those that have no data are draws of the parameters alone.
    run : callable
        Runs tasks and returns their results in order.
    held : sequence of str
        Parameters that were not drawn from their prior: its score is not tested in their coordinates.
    """

    def __init__(self, info: ModelInfo, simulations: Simulations, run: RunTasks, held: Sequence[str] = ()) -> None:
        self.left_out: dict[str, str] = {}
        self.not_finite: set[str] = set()  # tests that lack a coordinate because its gradient is no number
        self._info = info
        self._states = simulations.states
        self._discarded = simulations.discarded
        real = {name: np.asarray(values) for name, values in info.data.observed.items()}
        anything = {name: np.broadcast_to(values, (len(simulations), *values.shape)) for name, values in real.items()}
        self._data = simulations.data or anything
        self._densities = JointDensities(self._data, run)
        self._continuous = ~np.asarray(info.layout.discrete, dtype=bool)
        names = list(info.layout.positions)
        self._groups = np.zeros(info.layout.dim, dtype=np.int64)
        for number, name in enumerate(names):
            self._groups[info.layout.positions[name]] = number
        self._group_names = names or ["all"]
        self._own = np.ones(info.layout.dim, dtype=bool)
        for name in held:
            self._own[info.layout.positions[name]] = False
        if held:
            self.left_out[f"prior score of {', '.join(held)}"] = HELD

    @property
    def n_evaluations(self) -> int:
        """Densities that were evaluated."""
        return self._densities.n_evaluations

    def of_parts(self, parts: Sequence[JointGradients], is_split: bool) -> list[DirectTest]:
        """Test the draws of all ``parts``; outcomes alone, which need no gradient, where model or kernel has none."""
        refusal = next((part.refusal for part in parts if part.refusal), "")
        if refusal:
            self.left_out["score"] = refusal
            return self._of_likelihood(None) if is_split else []
        joint = np.concatenate([part.gradients[1.0] for part in parts if part.gradients])
        if not is_split:
            return self._of_joint(joint)
        prior = np.concatenate([part.gradients[0.0] for part in parts if part.gradients])
        tests = []
        if are_few(self._discarded.n_outcomes, len(self._states)):
            tests = self.of_prior(prior)
        with np.errstate(invalid="ignore"):
            return [*tests, *self._of_likelihood(joint - prior)]

    def of_prior(self, gradient: FloatArray) -> list[DirectTest]:
        """Test draws of the parameters against the prior, whose gradient is given, (n, dim)."""
        log_prior = self._densities.at(0.0)
        tested = self._smooth(log_prior, "prior score") & self._own
        return [self._test("prior score", prior_score_test, gradient, tested, log_prior)]

    @cached_property
    def may_come_from_elsewhere(self) -> bool:
        """Return whether these outcomes may come from parameters at which none can be drawn.

        If they may, the parameters that they were drawn at are no exact draws given them.
        """
        elsewhere, n = np.array(self._discarded.states[:N_STATES]), min(N_ROWS, len(self._states))
        if are_few(self._discarded.n_outcomes, len(self._states)) or not len(elsewhere):
            return False
        if np.isnan(np.array(self._discarded.states)).any():
            return True
        beta = None if PriorPath.name in self._info.paths else 1.0
        own = self._densities.of(beta, self._states[:n])
        data = {name: np.tile(values[:n], (len(elsewhere), *[1] * (values.ndim - 1)))
                for name, values in self._data.items()}  # fmt: skip
        there = self._densities.of(beta, np.repeat(elsewhere, n, axis=0), data).reshape(-1, n)
        return bool((there > own - NEXT_TO_IMPOSSIBLE).any())

    def _of_likelihood(self, gradient: FloatArray | None) -> list[DirectTest]:
        """Test outcomes against the likelihood, by its gradient in the parameters, if there is one, and by outcomes."""
        if not are_few(self._discarded.n_by_chance, len(self._states)):
            self.left_out |= dict.fromkeys(
                ("likelihood score", "outcome score"), f"{BY_CHANCE} ({self._discarded.reason})"
            )
            return []
        log_prior, log_likelihood = self._densities.at(0.0), self._densities.at(None)
        tests = []
        if gradient is not None:
            tests = [
                self._test(
                    "likelihood score", likelihood_score_test, gradient, self._fixed_support(log_likelihood),
                    log_likelihood, lambda states: log_prior(states) + log_likelihood(states),
                )
            ]  # fmt: skip
        return [*tests, *self._of_outcomes(None)]

    def _of_joint(self, gradient: FloatArray) -> list[DirectTest]:
        """Test the joint density of a model whose prior cannot be told from its likelihood."""
        if self.may_come_from_elsewhere:
            self.left_out["joint score"] = f"{MAY_COME} ({self._discarded.reason})"
            return []
        log_joint = self._densities.at(1.0)
        tested = self._smooth(log_joint, "joint score") & self._own
        tests = [self._test("joint score", prior_score_test, gradient, tested, log_joint)]
        if not are_few(self._discarded.n_by_chance, len(self._states)):
            self.left_out["outcome score"] = f"{BY_CHANCE} ({self._discarded.reason})"
            return tests
        return [*tests, *self._of_outcomes(1.0)]

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
        unknown = kept & np.isnan(result.p_values).all(axis=1) & (result.n_not_finite > 0)
        if unknown.any():
            self.not_finite.add(name)
            self._leave_out(name, np.flatnonzero(unknown), NOT_FINITE)
        self._leave_out(name, np.flatnonzero(jumping), JUMP)
        if test is prior_score_test:  # a support that the data depend on is none of the draws
            jumping |= self._continuous & self._own & ~tested
        dim, labels = self._info.layout.dim, [f"all of {group}" for group in self._group_names]
        rows = np.full((2, dim + len(labels), len(result.functions)), np.nan)
        rows[:, :dim] = result.p_values, result.effect
        rows[0, dim : dim + len(result.pooled_p_values), :2] = result.pooled_p_values
        for coordinate, *moves in self._moves(np.flatnonzero(jumping & self._own)[:MOST_MOVED], of_draws or density):
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
