"""Are the real data harder, or plainly different, to sample? What is compared, and for how long.

Relaxation along the path is no measure of its own. Added up over the path it is the curve: a forward chain lags behind
its tempered density, the more so the fewer the temperatures, and the slope of the curve over T is that lag. Where along
the path the chains lag could only be told from values at equilibrium, knot by knot: simulated data sets have them from
their reverse chains, the real data do not, and all data sets must be measured alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bread.backends.base import FloatArray, IntArray
from bread.running.plan import Plan
from bread.running.results import OBSERVED, CheckResult
from bread.statistics.sequential import MOST_SIMULATIONS, Shape, shape_test

FIRST_SIMULATIONS = 40


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
    """

    simulations: IntArray
    temperatures: IntArray
    curves: FloatArray
    effort: dict[str, FloatArray]

    @property
    def shape(self) -> Shape:
        """Return the test of curves and effort together."""
        return shape_test(self.curves, self.effort)


def left_out(plan: Plan) -> str | None:
    """Return why these data sets cannot be compared; None where they can."""
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
    columns = [_column(result, everyone, number) for number in temperatures]
    names = [name for name in columns[0] if name != "curve"]
    return Items(
        simulations,
        np.array(temperatures, dtype=np.int64),
        np.stack([column["curve"] for column in columns], axis=1),
        {name: np.stack([column[name] for column in columns], axis=1) for name in names},
    )


def _temperatures(result: CheckResult, simulations: IntArray) -> list[int]:
    """Return the T at which all of these and the real data have run."""
    everyone = np.array([*simulations, OBSERVED])
    numbers = sorted({key[2] for key in result.runs})
    return [number for number in numbers if not np.isnan(result.log_weights("forward", number, everyone)).any()]


def _column(result: CheckResult, everyone: Sequence[int], n_temperatures: int) -> dict[str, FloatArray]:
    """Return what the forward chains of every data set tell at one T, each (data set,)."""
    runs = [result.runs[index, "forward", n_temperatures] for index in everyone]
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
    if found is None or found.shape.is_final:
        return 0
    n_now = len(found.simulations)
    return min(n_now, MOST_SIMULATIONS - n_now)
