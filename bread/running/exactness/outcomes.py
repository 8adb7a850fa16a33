"""The likelihood against simulated outcomes: along flows of continuous outcomes, and by moves where it jumps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bread.backends.base import FloatArray
from bread.running.exactness.densities import JointDensities
from bread.running.exactness.tasks import RowData
from bread.running.state.exactness_results import DirectTest
from bread.statistics.exactness import flows
from bread.statistics.exactness.exchange import flow_along
from bread.statistics.exactness.jumps import MOST_SEGMENTS, failing, jumps_along, lengths
from bread.statistics.exactness.means import MeanTest
from bread.statistics.exactness.score import WINDOW

FLOW_DRAWS = 500  # joint draws whose outcomes are moved, four evaluations each and variable
N_CORNERS = 40  # draws moved to the window's corners
MOVES = ("side", "distance")
JUMP = "the density has a bound or a jump within reach of the test; moves across it are tested instead"
FACTOR = "the likelihood may leave out a factor of these data, which a posterior does not need and this test does"
ATOMS = "draws have values in common, as where outcomes are censored"


class _Variable(NamedTuple):
    """Outcomes of one variable: how they are mapped to the whole line, where they are there, and their fields."""

    line: flows.Line
    coordinates: FloatArray
    flow: flows.Flow


class Outcomes:
    """Tests of the outcomes of joint draws; ``left_out`` says what was not tested along flows, and why.

    Parameters
    ----------
    states : ndarray, shape (n, dim)
    data : dict of str to ndarray, each (n, ...)
    densities : JointDensities
    beta : float or None
        The density that is moved along: the likelihood (None), or the joint density (1), which has the same slopes.
    functions : mapping of str to str
        As `bread.backends.info.ModelInfo.outcome_functions`.
    """

    def __init__(
        self,
        states: FloatArray,
        data: RowData,
        densities: JointDensities,
        beta: float | None,
        functions: Mapping[str, str],
    ) -> None:
        self.left_out: dict[str, str] = {}
        self._functions = functions
        self._states = states[:FLOW_DRAWS]
        self._data = {name: values[:FLOW_DRAWS] for name, values in data.items()}
        self._densities = densities
        self._beta = beta

    def tests(self) -> list[DirectTest]:
        """Return the test, in a list; an empty one without continuous outcomes."""
        context = np.where(np.isfinite(self._states), self._states, 0.0)
        columns: dict[tuple[str, str], FloatArray] = {}
        jumping: dict[str, _Variable] = {}
        variables = {name: one for name in self._data if (one := self._variable(name, context)) is not None}
        for name, variable in variables.items():
            if self._is_smooth_in(name, variable):
                columns |= self._slopes(name, variable)
            else:
                jumping[name] = variable
        functions: tuple[str, ...] = MOVES
        p_values = effect = np.empty((0, len(MOVES)))
        while columns:
            test = flows.conditional_mean_test(np.column_stack(list(columns.values())), context)
            functions, p_values, effect = test.functions, test.p_values, test.effect
            names = [name for name, _ in columns]
            suspects = dict.fromkeys(name for name, bad in zip(names, failing(p_values), strict=True) if bad)
            found = {name: variables[name] for name in suspects if self._jumps_in(name)}
            if not found:
                break
            jumping |= found
            kept = [name not in found for name in names]
            columns = {key: column for key, column in columns.items() if key[0] not in found}
            p_values, effect = p_values[kept], effect[kept]
        self.left_out |= {f"outcome score of {name}": JUMP for name in jumping}
        labels = [f"{name} ({field})" for name, field in columns] + [f"{name} (moves)" for name in jumping]
        if not labels:
            return []
        for name, variable in jumping.items():
            moves = self._moves(name, variable)
            rows = np.full((2, 1, len(functions)), np.nan)
            rows[:, 0, : len(MOVES)] = moves.p_values, moves.effect
            p_values, effect = np.concatenate([p_values, rows[0]]), np.concatenate([effect, rows[1]])
        return [DirectTest("outcome score", tuple(labels), functions, p_values, effect, len(self._states))]

    def _variable(self, name: str, context: FloatArray) -> _Variable | None:
        """Return the outcomes of a variable on the whole line; None where they are not tested."""
        values = self._data[name]
        real = np.asarray(values, dtype=np.float64)
        if np.asarray(values).dtype.kind != "f" or not real[0].size or not np.isfinite(real).all():
            return None
        if _has_atoms(real):
            self.left_out[f"outcome score of {name}"] = ATOMS
            return None
        line = flows.line_of(real, self._functions.get(name, ""))
        if line is None:
            self.left_out[f"outcome score of {name}"] = FACTOR
            return None
        coordinates = line.to_line(real)
        return _Variable(line, coordinates, flows.flow_of(coordinates.reshape(len(real), -1), context))

    # -- slopes -----------------------------------------------------------------------------------------------

    def _is_smooth_in(self, name: str, variable: _Variable) -> bool:
        """Return whether the likelihood has no bound within the window of an outcome."""
        flow, shape = variable.flow, variable.coordinates.shape[1:]
        signs = np.random.default_rng(1).random((N_CORNERS, len(flow.scale))) < 0.5
        ends = flow.centre[:N_CORNERS] + WINDOW * flow.scale * np.where(signs, 1.0, -1.0)
        return bool(np.isfinite(self._on_line(name, variable.line, ends.reshape(N_CORNERS, *shape))[0]).all())

    def _slopes(self, name: str, variable: _Variable) -> dict[tuple[str, str], FloatArray]:
        """Return what has mean zero for each field: derivative along it, by central differences, plus divergence."""
        line, coordinates, flow = variable
        found = {}
        for index, field in enumerate(np.moveaxis(flow.field, -1, 0)):
            moved = field.reshape(coordinates.shape)
            if not moved.any():
                continue
            up, down = (sum(self._on_line(name, line, coordinates + sign * flows.STEP * moved)) for sign in (1.0, -1.0))
            with np.errstate(invalid="ignore"):
                found[name, flows.FIELDS[index]] = (up - down) / (2.0 * flows.STEP) + flow.divergence[:, index]
        return found

    # -- jumps ------------------------------------------------------------------------------------------------

    def _jumps_in(self, name: str) -> bool:
        """Return whether the likelihood jumps between draws of an element of these outcomes."""
        n = min(MOST_SEGMENTS, len(self._states))
        start = np.asarray(self._data[name][:n], dtype=np.float64).reshape(n, -1)
        rows, element = np.arange(n), np.arange(n) % start.shape[1]
        step = (np.roll(start, 1, axis=0)[rows, element] - start[rows, element]) * lengths(n)

        def along(place: FloatArray) -> FloatArray:
            moved = start.copy()
            moved[rows, element] += place * step
            outcomes = moved.reshape(n, *self._data[name].shape[1:])
            return self._densities.of(self._beta, self._states[:n], {name: outcomes})

        return bool(jumps_along(along, n).any())

    def _moves(self, name: str, variable: _Variable) -> MeanTest:
        """Test one element of each draw by the flow to perturbed copies, given the parameters."""
        line, coordinates, flow = variable
        n, rng = len(self._states), np.random.default_rng(3)
        flat, rows = coordinates.reshape(n, -1), np.arange(n)
        element = rng.integers(flat.shape[1], size=n)
        centre, scale = flow.centre[rows, element], flow.scale[element]

        def density(at_element: FloatArray) -> FloatArray:
            moved = flat.copy()
            moved[rows, element] = at_element
            return np.asarray(sum(self._on_line(name, line, moved.reshape(coordinates.shape))))

        return flow_along(flat[rows, element], centre, scale, density, rng)

    # -- densities --------------------------------------------------------------------------------------------

    def _on_line(self, name: str, line: flows.Line, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log density and log Jacobian at outcomes of a variable, given on the whole line."""
        outcomes, log_jacobian = line.from_line(coordinates)
        return self._densities.of(self._beta, self._states[: len(outcomes)], {name: outcomes}), log_jacobian


def _has_atoms(draws: FloatArray) -> bool:
    """Return whether elements that vary, (draw, ...), have a value in common, which continuous laws never do.

    The density of the continuous part then ends at the value in common (a limit, where outcomes are censored).
    """
    flat = draws.reshape(len(draws), -1)
    varying = flat[:, (flat != flat[:1]).any(axis=0)]
    return len(np.unique(varying)) < varying.size
