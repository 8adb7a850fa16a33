"""Score tests of joint draws, with what they need: densities without jumps where test functions do not vanish.

Stein's identity fails at a jump of the density, such as the bound of an exponential law whose coordinate is not
transformed; the score of a likelihood fails where the support of the data depends on parameters. Both show as densities
of zero at states that are composed of the draws: such coordinates are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, ModelInfo, Simulations
from bread.running.direct_results import DirectTest
from bread.running.direct_tasks import JointDensityTask, JointGradients, RowData
from bread.running.tasks import Task
from bread.statistics import flows
from bread.statistics.damping import location_and_scale
from bread.statistics.jumps import ALARM, MOST_SEGMENTS, failing, jumping_coordinates, jumps_along, lengths
from bread.statistics.means import MeanTest
from bread.statistics.moves import moved_by, moves_test
from bread.statistics.score import WINDOW, ScoreTest, likelihood_score_test, prior_score_test

MIN_DRAWS = 300  # of a test, whatever the check costs: with fewer it sees little
N_CORNERS = 40  # draws moved to the window's corners
MOST_PROBES = 1000  # evaluations that look for the coordinates with a jump
FLOW_DRAWS = 500  # joint draws whose outcomes are moved, four evaluations each and variable
BATCH = 100  # evaluations a task
MOVES = ("side", "distance")
MOST_MOVED = 10  # coordinates that are tested by moves: an evaluation a draw each
JUMP = "the density has a bound or a jump within reach of the test; moves across it are tested instead"
SUPPORT = "the support of the data depends on it"
ATOMS = "draws have values in common, as where outcomes are censored"

RunTasks = Callable[[Sequence[Task]], list[Any]]


class Scores:
    """Score tests of one set of joint draws; ``left_out`` says what was not tested, and why."""

    def __init__(self, info: ModelInfo, simulations: Simulations, run: RunTasks) -> None:
        self.left_out: dict[str, str] = {}
        self.n_evaluations = 0
        self._info = info
        self._states = simulations.states
        self._data = simulations.data
        self._n_flow = min(len(simulations), FLOW_DRAWS)
        self._run = run
        self._of_outcomes: float | None = None  # the likelihood; 1 is the joint density, with the same slopes in data
        self._continuous = ~np.asarray(info.layout.discrete, dtype=bool)
        names = list(info.layout.positions)
        self._groups = np.zeros(info.layout.dim, dtype=np.int64)
        for number, name in enumerate(names):
            self._groups[info.layout.positions[name]] = number
        self._group_names = names or ["all"]

    def of_parts(self, parts: Sequence[JointGradients], is_split: bool) -> list[DirectTest]:
        """Test the draws of all ``parts``; outcomes alone, which need no gradient, where model or kernel has none."""
        refusal = next((part.refusal for part in parts if part.refusal), "")
        if refusal:
            self.left_out["score"] = refusal
            return self.of_outcomes() if is_split else []
        joint = np.concatenate([part.gradients[1.0] for part in parts])
        if not is_split:
            self._of_outcomes = 1.0
            return [*self.of_joint(joint), *self.of_outcomes()]
        return self.of_split(np.concatenate([part.gradients[0.0] for part in parts]), joint)

    def of_split(self, prior: FloatArray, joint: FloatArray) -> list[DirectTest]:
        """Test prior and likelihood apart, from the gradients (n, dim) of log prior and log joint density."""
        with np.errstate(invalid="ignore"):
            likelihood = joint - prior
        smooth = self._smooth(self._log_prior, "prior score")
        tests = [
            self._test("prior score", prior_score_test, prior, smooth, self._log_prior, self._log_prior),
            self._test(
                "likelihood score",
                likelihood_score_test,
                likelihood,
                self._fixed_support(),
                self._log_likelihood_of,
                lambda states: self._log_prior(states) + self._log_likelihood_of(states),
            ),
        ]
        return [*tests, *self.of_outcomes()]

    def of_joint(self, joint: FloatArray) -> list[DirectTest]:
        """Test the joint density of a model whose prior cannot be told from its likelihood."""
        smooth = self._smooth(self._log_joint, "joint score")
        return [self._test("joint score", prior_score_test, joint, smooth, self._log_joint, self._log_joint)]

    def _test(
        self,
        name: str,
        test: Callable[..., ScoreTest],
        gradient: FloatArray,
        tested: NDArray[np.bool_],
        density: Callable[[FloatArray], FloatArray],
        of_draws: Callable[[FloatArray], FloatArray],
    ) -> DirectTest:
        """Test coordinates; those that fail, and along which the density jumps, by moves: slopes prove nothing there.

        ``density`` is what the gradient is of, ``of_draws`` the law of the draws.
        """
        by_moves = self._continuous & ~tested & (test is prior_score_test)
        result = test(self._states, gradient, is_continuous=tested, groups=self._groups)
        while len(jumping := self._jumping(result, tested, density)):
            tested = tested.copy()
            tested[jumping], by_moves[jumping] = False, True
            self._leave_out(name, jumping, JUMP)
            result = test(self._states, gradient, is_continuous=tested, groups=self._groups)
        labels = [*self._info.layout.coordinates, *(f"all of {group}" for group in self._group_names)]
        rows = np.full((len(labels), len(result.functions)), np.nan)
        n_groups = len(result.pooled_p_values)
        rows[: self._info.layout.dim] = result.p_values
        own_effect = result.effect.copy()
        for coordinate in np.flatnonzero(by_moves)[:MOST_MOVED]:
            moves = self._moves(coordinate, of_draws)
            rows[coordinate, :2], own_effect[coordinate, :2] = moves.p_values[:2], moves.effect[:2]
        rows[self._info.layout.dim : self._info.layout.dim + n_groups, :2] = result.pooled_p_values
        effect = np.concatenate([own_effect, np.full((len(labels) - self._info.layout.dim, rows.shape[1]), np.nan)])
        return DirectTest(name, tuple(labels), result.functions, rows, effect, len(self._states))

    # -- bounds and jumps -------------------------------------------------------------------------------------

    def _jumping(
        self, result: ScoreTest, tested: NDArray[np.bool_], density: Callable[[FloatArray], FloatArray]
    ) -> NDArray[np.int64]:
        """Return coordinates that fail, or whose group does, and along which the density jumps between draws."""
        fails = failing(result.p_value, result.p_values, result.pooled_p_values, self._groups)
        return jumping_coordinates(self._states, fails & tested, density)

    def _moves(self, coordinate: int, density: Callable[[FloatArray], FloatArray]) -> MeanTest:
        """Test one coordinate by flows between draws and moved copies; the first quarter scales them."""
        first = len(self._states) // 4
        location, scale = (part[coordinate] for part in location_and_scale(self._states[:first]))
        moved = self._states.copy()
        moved[:, coordinate] = moved_by(moved[:, coordinate], scale, np.random.default_rng((2, coordinate)))
        with np.errstate(invalid="ignore", divide="ignore"):
            change = density(moved) - density(self._states)
            before, after = ((part[first:, coordinate] - location) / scale for part in (self._states, moved))
        return _finite_moves(before, after, change[first:])

    def _smooth(self, density: Callable[[FloatArray], FloatArray], name: str) -> NDArray[np.bool_]:
        """Return which coordinates the density has no bound in, as far as the test functions reach."""
        location, scale = location_and_scale(self._states[: len(self._states) // 4])
        ends = location + WINDOW * scale * np.where(self._signs(), 1.0, -1.0)
        moved = self._states[:N_CORNERS].copy()
        moved[:, self._continuous] = ends[:, self._continuous]
        if np.isfinite(density(moved)).all():
            return self._continuous
        return self._left(ends, density, range(N_CORNERS), name, JUMP)

    def _fixed_support(self) -> NDArray[np.bool_]:
        """Return on which coordinates the support of the data does not depend."""
        n = min(len(self._states), 5 * N_CORNERS)
        others = np.roll(self._states, 1, axis=0)
        if np.isfinite(self._log_likelihood(others[:n], slice(n))).all():
            return self._continuous
        return self._left(others, self._log_likelihood_of, range(n), "likelihood score", SUPPORT)

    def _left(
        self, others: FloatArray, density: Callable[..., FloatArray], rows: range, test: str, reason: str
    ) -> NDArray[np.bool_]:
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

    # -- outcomes ---------------------------------------------------------------------------------------------

    def of_outcomes(self) -> list[DirectTest]:
        """Test the likelihood along flows of continuous outcomes."""
        columns: list[FloatArray] = []
        names: list[tuple[str, str]] = []
        found: dict[str, tuple[flows.Line, flows.Flow, FloatArray]] = {}
        by_moves: list[str] = []
        states = self._states[: self._n_flow]
        context = np.where(np.isfinite(states), states, 0.0)
        for name, values in self._data.items():
            real = np.asarray(values[: self._n_flow], dtype=np.float64)
            if np.asarray(values).dtype.kind != "f" or not real[0].size or not np.isfinite(real).all():
                continue
            if _has_atoms(real):
                self.left_out[f"outcome score of {name}"] = ATOMS
                continue
            line = flows.line_of(real)
            coordinates = line.to_line(real)
            flow = flows.flow_of(coordinates.reshape(len(real), -1), context)
            found[name] = line, flow, coordinates
            if not self._is_smooth_in(name, line, flow, coordinates.shape[1:]):
                self.left_out[f"outcome score of {name}"] = JUMP
                by_moves.append(name)
                continue
            for index, field in enumerate(np.moveaxis(flow.field, -1, 0)):
                moved = field.reshape(coordinates.shape)
                if not moved.any():
                    continue
                slopes = self._along(name, line, coordinates, moved)
                columns.append(slopes + flow.divergence[:, index])
                names.append((name, flows.FIELDS[index]))
        functions: tuple[str, ...] = MOVES
        p_values = effect = np.empty((0, len(MOVES)))
        while columns:
            test = flows.conditional_mean_test(np.column_stack(columns), context)
            functions, p_values, effect = test.functions, test.p_values, test.effect
            level = ALARM / max(1, int(np.isfinite(p_values).sum()))
            fails = np.asarray((np.nan_to_num(p_values, nan=1.0) <= level).any(axis=1))
            jumping = {name for (name, _), bad in zip(names, fails, strict=True) if bad and self._jumps_in(name)}
            if not jumping:
                break
            by_moves += sorted(jumping)
            self.left_out |= {f"outcome score of {name}": JUMP for name in jumping}
            kept = [index for index, (name, _) in enumerate(names) if name not in jumping]
            columns, names = [columns[index] for index in kept], [names[index] for index in kept]
            p_values, effect = p_values[kept], effect[kept]
        labels = [f"{name} ({field})" for name, field in names]
        for name in by_moves:
            moves = self._moved_outcomes(name, *found[name])
            labels.append(f"{name} (moves)")
            rows = np.full((2, 1, max(len(functions), len(MOVES))), np.nan)
            rows[0, 0, :2], rows[1, 0, :2] = moves.p_values, moves.effect
            p_values, effect = np.concatenate([p_values, rows[0]]), np.concatenate([effect, rows[1]])
        if not labels:
            return []
        return [DirectTest("outcome score", tuple(labels), functions, p_values, effect, self._n_flow)]

    def _moved_outcomes(self, name: str, line: flows.Line, flow: flows.Flow, coordinates: FloatArray) -> MeanTest:
        """Test outcomes by flows between draws and copies of which one element was moved, given the parameters."""
        n, rng = self._n_flow, np.random.default_rng(3)
        flat, rows = coordinates.reshape(n, -1), np.arange(n)
        element = rng.integers(flat.shape[1], size=n)
        centre, scale = (
            flow.centre.reshape(n, -1)[rows, element],
            np.broadcast_to(flow.scale, flat.shape)[rows, element],
        )
        moved = flat.copy()
        moved[rows, element] = moved_by(flat[rows, element], scale, rng)
        values = []
        for one in (flat, moved):
            outcomes, log_jacobian = line.from_line(one.reshape(coordinates.shape))
            data = {**{key: part[:n] for key, part in self._data.items()}, name: outcomes}
            values.append(self._densities(self._states[:n], data, self._of_outcomes) + log_jacobian)
        with np.errstate(invalid="ignore", divide="ignore"):
            before, after = ((one[rows, element] - centre) / scale for one in (flat, moved))
            change = values[1] - values[0]
        first = n // 4
        return _finite_moves(before[first:], after[first:], change[first:])

    def _jumps_in(self, name: str) -> bool:
        """Return whether the likelihood jumps between draws of an element of these outcomes."""
        n = min(MOST_SEGMENTS, self._n_flow)
        data = {key: values[:n] for key, values in self._data.items()}
        start = np.asarray(data[name], dtype=np.float64).reshape(n, -1)
        element = np.arange(n) % start.shape[1]
        rows = np.arange(n)
        step = (np.roll(start, 1, axis=0)[rows, element] - start[rows, element]) * lengths(n)

        def along(place: FloatArray) -> FloatArray:
            moved = start.copy()
            moved[rows, element] += place * step
            return self._densities(self._states[:n], {**data, name: moved.reshape(data[name].shape)}, self._of_outcomes)

        return bool(jumps_along(along, n).any())

    def _is_smooth_in(self, name: str, line: flows.Line, flow: flows.Flow, shape: tuple[int, ...]) -> bool:
        """Return whether the likelihood has no bound within the window of an outcome."""
        signs = np.random.default_rng(1).random((N_CORNERS, len(flow.scale))) < 0.5
        ends = flow.centre[:N_CORNERS] + WINDOW * flow.scale * np.where(signs, 1.0, -1.0)
        ends = ends.reshape(N_CORNERS, *shape)
        data = {key: values[:N_CORNERS] for key, values in self._data.items()}
        data[name] = line.from_line(ends)[0]
        return bool(np.isfinite(self._densities(self._states[:N_CORNERS], data, self._of_outcomes)).all())

    def _along(self, name: str, line: flows.Line, coordinates: FloatArray, field: FloatArray) -> FloatArray:
        """Return derivatives of the log density of the outcomes' coordinates along a field, by central differences."""
        sides = []
        for sign in (1.0, -1.0):
            outcomes, log_jacobian = line.from_line(coordinates + sign * flows.STEP * field)
            data = {key: values[: self._n_flow] for key, values in self._data.items()}
            value = self._densities(self._states[: self._n_flow], {**data, name: outcomes}, self._of_outcomes)
            sides.append(value + log_jacobian)
        with np.errstate(invalid="ignore"):
            return (sides[0] - sides[1]) / (2.0 * flows.STEP)

    # -- densities --------------------------------------------------------------------------------------------

    def _log_prior(self, states: FloatArray) -> FloatArray:
        return self._densities(states, {name: values[: len(states)] for name, values in self._data.items()}, 0.0)

    def _log_joint(self, states: FloatArray) -> FloatArray:
        return self._densities(states, {name: values[: len(states)] for name, values in self._data.items()}, 1.0)

    def _log_likelihood_of(self, states: FloatArray) -> FloatArray:
        return self._log_likelihood(states, slice(len(states)))

    def _log_likelihood(self, states: FloatArray, rows: slice) -> FloatArray:
        return self._densities(states, {name: values[rows] for name, values in self._data.items()}, None)

    def _densities(self, states: FloatArray, data: RowData, beta: float | None) -> FloatArray:
        tasks = [
            JointDensityTask(
                states[low : low + BATCH],
                {name: values[low : low + BATCH] for name, values in data.items()},
                beta,
            )
            for low in range(0, len(states), BATCH)
        ]
        self.n_evaluations += len(states)
        return np.concatenate(self._run(tasks))


def _finite_moves(before: FloatArray, after: FloatArray, change: FloatArray) -> MeanTest:
    """Return the test of moves, of those draws whose scale is known."""
    usable = np.isfinite(before) & np.isfinite(after)
    if usable.sum() < MIN_DRAWS // 3:
        return MeanTest(*(np.full(2, np.nan) for _ in MeanTest._fields))
    return moves_test(before[usable], after[usable], change[usable])


def _has_atoms(draws: FloatArray) -> bool:
    """Return whether elements that vary, (draw, ...), have a value in common, which continuous laws never do.

    The density of the continuous part then ends at the value in common (a limit, where outcomes are censored).
    """
    flat = draws.reshape(len(draws), -1)
    varying = flat[:, (flat != flat[:1]).any(axis=0)]
    return len(np.unique(varying)) < varying.size
