"""What the battery would have seen: the smallest shift and the smallest error of scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import ndtri

from bread.debugging.kernel_tests import AVERAGES
from bread.debugging.results import Detectable, TestResult
from bread.debugging.sample import Sample
from bread.debugging.simulator_tests import FLOW
from bread.debugging.subject import FloatArray

POWER = 0.95
MOST_ROWS = 1000  # draws by which the flow's answer to a defect is estimated
SHIFT, SCALE = 0.2, 0.1  # defects that are tried, small enough for answers to be proportional


def what_was_detectable(
    results: Sequence[TestResult], samples: Sequence[Sample], test_level: float
) -> dict[str, Detectable]:
    """Return what would have been found with probability 0.95, by subject.

    Parameters
    ----------
    results : sequence of TestResult
    samples : sequence of Sample
    test_level : float
        Level of one test on one subject, before it is shared among rounds and comparisons.
    """
    of = {(result.subject, result.name): result for result in results}
    found = {}
    for sample in samples:
        name = sample.subject.name
        averages, flow = of.get((name, AVERAGES.name)), of.get((name, FLOW.name))
        in_chains = in_draws = (float("nan"), float("nan"))
        if averages is not None:
            in_chains = _in_chains(averages, sample, test_level)
        if flow is not None and sample.subject.is_continuous.any():
            in_draws = _in_draws(flow, sample, test_level)
        found[name] = Detectable(*in_chains, *in_draws)
    return found


def worst_of(found: Iterable[Detectable]) -> Detectable:
    """Return the largest of each; NaN where no subject has one."""
    table = np.array([tuple(one) for one in found], dtype=np.float64).reshape(-1, len(Detectable._fields))
    largest = np.max(np.where(np.isnan(table), -np.inf, table), axis=0, initial=-np.inf)
    return Detectable(*(float(value) if value > -np.inf else float("nan") for value in largest))


def _errors(result: TestResult, test_level: float) -> float:
    """Return how many standard errors a mean must be from zero to be found with the power wanted."""
    comparisons = max(result.finding.n_tested, 1)
    level = test_level / (result.rounds * (result.rounds + 1)) / comparisons
    return float(ndtri(1.0 - level / 2.0) + ndtri(POWER))


def _in_chains(result: TestResult, sample: Sample, test_level: float) -> tuple[float, float]:
    """Return the shift and the error of scale that averages of chains show, of the worst coordinate."""
    finding = result.finding
    assert finding.spread is not None
    seen = _errors(result, test_level) * finding.spread / np.sqrt(finding.n)
    at = {label: float(value) for label, value in zip(finding.labels, seen, strict=True)}
    names = sample.subject.coordinates
    shift = [value for label, value in at.items() if label.quantity in names and label.function == "x"]
    # A scale that is wrong by e changes the mean of x^2 by 2 e.
    scale = [value / 2.0 for label, value in at.items() if label.quantity in names and label.function == "x^2"]
    return max(shift, default=np.nan), max(scale, default=np.nan)


def _in_draws(result: TestResult, sample: Sample, test_level: float) -> tuple[float, float]:
    """Return the same of exact draws: the flow's mean under a wrong law, by weighting draws with its density."""
    table = sample.exact_table
    rows = np.flatnonzero(~np.isnan(table).any(axis=1) & np.isfinite(table[:, -1]))[:MOST_ROWS]
    flow, draws, old = sample.flow[rows], sample.exact.rows(rows), table[rows, -1]
    errors = _errors(result, test_level) / np.sqrt(result.n)
    subject = sample.subject
    is_free = subject.is_continuous & ~np.isfinite(subject.lower) & ~np.isfinite(subject.upper)
    found = []
    for i in np.flatnonzero(is_free):
        x = draws.states[:, i]
        centre, spread = float(np.median(x)), float(np.subtract(*np.quantile(x, [0.84, 0.16])) / 2.0)
        moved = draws.states.copy(), draws.states.copy()
        moved[0][:, i] = x - SHIFT * spread
        moved[1][:, i] = centre + (x - centre) / (1.0 + SCALE)
        constants = 0.0, -np.log1p(SCALE)
        found.append(
            [
                size * errors / _answer(flow, sample.log_density(draws.at(states)) + constant - old)
                for states, size, constant in zip(moved, (SHIFT, SCALE), constants, strict=True)
            ]
        )
    worst: FloatArray = np.max(np.array(found), axis=0) if found else np.full(2, np.nan)
    return float(worst[0]), float(worst[1])


def _answer(flow: FloatArray, log_weight: FloatArray) -> float:
    """Return the largest change of a function's mean, in its standard deviations."""
    weight = np.exp(np.where(np.isnan(log_weight), -np.inf, log_weight))
    weight /= weight.mean() if weight.any() else 1.0
    deviation = flow.std(axis=0)
    change = np.abs(((weight - 1.0)[:, None] * flow).mean(axis=0))
    return float((change[deviation > 0.0] / deviation[deviation > 0.0]).max(initial=1e-300))
