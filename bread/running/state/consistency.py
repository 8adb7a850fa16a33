"""Are the real data harder, or plainly different, to sample? What is compared, and for how long.

Relaxation along the path is no measure of its own. Added up over the path it is the curve: a forward chain lags behind
its tempered density, the more so the fewer the temperatures, and the slope of the curve over T is that lag. Where along
the path the chains lag could only be told from values at equilibrium, knot by knot: simulated data sets have them from
their reverse chains, the real data do not, and all data sets must be measured alike.

Where the curves are flat, the rank of a data set is that of its chains' noise, and another seed gives another one. So
the real data are annealed again before "harder" is said, and the largest of the p-values counts. It is never smaller
than the first, which has the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bread.backends.base import AnnealRun, FloatArray, IntArray
from bread.running.state.plan import Plan
from bread.running.state.results import OBSERVED, CheckResult
from bread.statistics.real_data.sequential import MOST_SIMULATIONS, SHAPE_LEVEL, Shape, shape_test

FIRST_SIMULATIONS = 40
REPEATS = 3  # more times that the real data are annealed where the first time says so

Measures = tuple[FloatArray, dict[str, FloatArray]]  # curve and effort of one data set, by T


@dataclass(frozen=True)
class Items:
    """What the test compares: simulated data sets, then the real one.

    Attributes
    ----------
    simulations : ndarray of int, shape (simulation,)
    temperatures : ndarray of int, shape (n_temperatures,)
        Those at which all of them, and the real data, have run.
    curves : ndarray, shape (simulation + 1, n_temperatures)
        Median forward log weight of the chains, in nats; the real data last.
    effort : dict of str to ndarray, each (simulation + 1, n_temperatures)
        What the same chains tell of the sampler's effort.
    repeats : tuple of (ndarray, dict of str to ndarray)
        Curve and effort, each (n_temperatures,), of other chains of the real data; see `repeats_wanted`.
    """

    simulations: IntArray
    temperatures: IntArray
    curves: FloatArray
    effort: dict[str, FloatArray]
    repeats: tuple[Measures, ...] = field(default=())

    @property
    def first(self) -> Shape:
        """Return the test of curves and effort together, by the first chains of the real data."""
        return shape_test(self.curves, self.effort)

    @property
    def shape(self) -> Shape:
        """Return the test that decides: where the first says "harder", the least sure of it and the repeats."""
        first = self.first
        if not first.is_final or first.p_value > SHAPE_LEVEL:
            return first
        if len(self.repeats) < REPEATS:
            return first._replace(is_final=False)
        tests = [first, *(self._with(curve, effort) for curve, effort in self.repeats)]
        return max(tests, key=lambda test: test.p_value)._replace(is_final=True)

    def _with(self, curve: FloatArray, effort: dict[str, FloatArray]) -> Shape:
        others = {name: np.vstack([values[:-1], effort[name]]) for name, values in self.effort.items()}
        return shape_test(np.vstack([self.curves[:-1], curve]), others)


def left_out(plan: Plan) -> str | None:
    """Return why these data sets cannot be compared; None where they can."""
    if plan.adds_data:
        return (
            "Whether your data are harder to sample was not tested: simulated data come on top of yours, so that "
            "their posterior is another one."
        )
    if plan.path.reference is not None:
        return (
            "Whether your data are harder to sample was not tested: one reference, which you passed as path=, serves "
            "all data sets, and may be near your data alone."
        )
    return None


def items(result: CheckResult) -> Items | None:
    """Return what is compared; None where that means nothing, or without two simulations and the real data at two T."""
    if result.is_shape_left_out:
        return None
    simulations = np.flatnonzero(np.isin(np.array(result.roles, dtype=np.str_), ["confirm", "forward"]))
    temperatures = _temperatures(result, simulations)
    while len(temperatures) < 2 and len(simulations) > 2:  # interrupted: those before the first that did not finish
        simulations = simulations[:-1]
        temperatures = _temperatures(result, simulations)
    if len(temperatures) < 2 or len(simulations) < 2:
        return None
    everyone = [*(int(index) for index in simulations), OBSERVED]
    columns = [_column([result.runs[one, "forward", number] for one in everyone], number) for number in temperatures]
    curves, effort = _by_temperature(columns)
    return Items(simulations, np.array(temperatures, dtype=np.int64), curves, effort, _repeats(result, temperatures))


def _by_temperature(columns: Sequence[dict[str, FloatArray]]) -> Measures:
    stacked = {name: np.stack([column[name] for column in columns], axis=1) for name in columns[0]}
    return stacked.pop("curve"), stacked


def _repeats(result: CheckResult, temperatures: Sequence[int]) -> tuple[Measures, ...]:
    """Return the other measurements of the real data that finished at all these T."""
    found = []
    for repeat in range(REPEATS):
        runs = [result.repeats.get((repeat, number)) for number in temperatures]
        complete = [run for run in runs if run is not None]
        if len(complete) < len(runs) or any(np.isnan(run.log_weight).any() for run in complete):
            break
        columns = [_column([run], number) for run, number in zip(complete, temperatures, strict=True)]
        curves, effort = _by_temperature(columns)
        found.append((curves[0], {name: values[0] for name, values in effort.items()}))
    return tuple(found)


def _temperatures(result: CheckResult, simulations: IntArray) -> list[int]:
    """Return the T at which all of these and the real data have run."""
    everyone = np.array([*simulations, OBSERVED])
    numbers = sorted({key[2] for key in result.runs})
    return [number for number in numbers if not np.isnan(result.log_weights("forward", number, everyone)).any()]


def _column(runs: Sequence[AnnealRun], n_temperatures: int) -> dict[str, FloatArray]:
    """Return what the forward chains of each data set tell at one T, each (data set,)."""
    weights = np.array([run.log_weight for run in runs])
    is_finite = np.isfinite(weights).all(axis=1)
    spread = np.where(is_finite, np.where(is_finite[:, None], weights, 0.0).std(axis=1), np.inf)
    steps = max(1, n_temperatures - 1)
    return {
        "curve": np.median(weights, axis=1),
        "spread of log weights": spread,
        "gradients a transition": np.array([run.n_gradients.mean() / steps for run in runs]),
        "divergences": np.array([float(run.n_divergences.sum()) for run in runs]),
    }


def more_simulations(result: CheckResult) -> int:
    """Return how many simulations to add before anything is said: as many again, up to 199; 0 where enough is known."""
    found = items(result)
    if found is None or found.first.is_final:
        return 0
    n_now = len(found.simulations)
    return min(n_now, MOST_SIMULATIONS - n_now)


def ended_early(result: CheckResult) -> str:
    """Return that no more simulations were added, of a fit that is doubtful."""
    found = items(result)
    assert found is not None
    return (
        f"The comparison of your data with simulated ones ended after {len(found.simulations)} of these: more, at "
        "draws of a fit that did not converge, would not make it surer."
    )


def repeats_wanted(result: CheckResult) -> list[tuple[int, int]]:
    """Return (repeat, T) of the chains of the real data that are still to be run before "harder" is said."""
    found = items(result)
    if found is None or not found.first.is_final or found.first.p_value > SHAPE_LEVEL:
        return []
    pairs = [(repeat, int(number)) for repeat in range(REPEATS) for number in found.temperatures]
    return [pair for pair in pairs if pair not in result.repeats]
