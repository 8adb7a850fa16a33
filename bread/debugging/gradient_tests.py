"""Is the gradient that of the log density? Against finite differences, with an error that is estimated."""

from __future__ import annotations

import numpy as np

from bread.debugging.finding import BatteryTest, Finding, LeftOut, certain
from bread.debugging.sample import EVALUATIONS, Sample
from bread.debugging.subject import FloatArray
from bread.statistics.exactness.functions import Label

N_STATES = 40
FEWEST_WRONG = 2  # states: at a single one the density may have a kink
STEP = 1e-2  # of the spread of a coordinate: the largest of three, each half of the one before
N_HALVINGS = 3
MARGIN = 20.0  # times the estimated error
RELATIVE = 1e-5  # of the gradient's size, and of the typical gradient of the coordinate


def run_gradient(sample: Sample) -> Finding | LeftOut:
    """Compare the gradient with extrapolated central differences at exact draws."""
    subject = sample.subject
    continuous = np.flatnonzero(subject.is_continuous)
    if continuous.size == 0:
        return LeftOut("no coordinate is continuous")
    draws = sample.pilot.rows(slice(0, N_STATES))
    spread = np.subtract(*np.quantile(sample.pilot.states, [0.84, 0.16], axis=0)) / 2.0
    gradient = np.asarray(subject.gradient(draws), dtype=np.float64)
    sample.spent += len(draws) / EVALUATIONS
    labels = [Label(subject.coordinates[i], "derivative") for i in continuous]
    failed = []
    n_compared = 0
    for i, label in zip(continuous, labels, strict=True):
        value, error = _derivative(sample, draws.states, int(i), STEP * (spread[i] if spread[i] > 0.0 else 1.0))
        known = np.isfinite(value) & np.isfinite(error)
        n_compared += int(known.sum())
        typical = float(np.median(np.abs(value[known]))) if known.any() else 0.0
        allowed = MARGIN * error + RELATIVE * (np.abs(value) + typical)
        with np.errstate(invalid="ignore"):
            is_wrong = known & ~(np.abs(gradient[:, i] - value) <= allowed)
        if is_wrong.sum() >= FEWEST_WRONG:
            gap = np.where(is_wrong, np.abs(gradient[:, i] - value) / (np.abs(value) + typical), -1.0)
            worst = int(np.argmax(np.nan_to_num(gap, nan=np.inf)))
            state = ", ".join(f"{x:.4g}" for x in draws.states[worst])
            text = (
                f"At ({state}) the derivative by {label.quantity} is {value[worst]:.6g} by differences, and the "
                f"gradient says {gradient[worst, i]:.6g}; {int(is_wrong.sum())} of {int(known.sum())} states differ."
            )
            failed.append((label, float(is_wrong.sum()), text))
    if not n_compared:
        return LeftOut("no finite differences could be computed")
    return certain(failed, labels, n_compared)


def _derivative(sample: Sample, states: FloatArray, i: int, step: float) -> tuple[FloatArray, FloatArray]:
    """Return derivatives by coordinate ``i`` by Richardson's extrapolation, and what they may be wrong by."""
    draws = sample.pilot.rows(slice(0, len(states)))
    differences, rounding = [], np.zeros(len(states))
    for k in range(N_HALVINGS):
        size = step / 2.0**k
        ahead, behind = states.copy(), states.copy()
        ahead[:, i] += size
        behind[:, i] -= size
        up, down = sample.log_density(draws.at(ahead)), sample.log_density(draws.at(behind))
        with np.errstate(invalid="ignore"):
            differences.append((up - down) / (ahead[:, i] - behind[:, i]))
            rounding = np.finfo(np.float64).eps * (np.abs(up) + np.abs(down)) / size * 10.0
    with np.errstate(invalid="ignore"):
        once = [(4.0 * differences[k + 1] - differences[k]) / 3.0 for k in range(2)]
        twice = (16.0 * once[1] - once[0]) / 15.0
        # At a kink the plain differences do not converge, and the extrapolated ones agree by chance at most.
        error = np.abs(twice - once[1]) + 1e-3 * np.abs(differences[2] - differences[1]) + rounding
    return twice, error


GRADIENT = BatteryTest(
    "gradient",
    "gradient",
    "The gradient is the derivative of the log density.",
    "No chance: finite differences, extrapolated, with 20 times their estimated error. Assumes a smooth density.",
    (
        "The gradient has an error of sign, a term left out, or a transform's Jacobian that the density has.",
        "The log density is not smooth where it was looked at.",
    ),
    "states that differ",
    run_gradient,
    is_random=False,
    needs=("gradient",),
    once=True,
)
GRADIENT_TESTS = (GRADIENT,)
