"""Do annealed chains move by kernels that leave the laws between the ends of the path invariant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bread.debugging.between import BETA, LOG_RATIO, NEXT
from bread.debugging.finding import BatteryTest, Finding, LeftOut
from bread.debugging.sample import Sample
from bread.statistics.exactness.functions import Label
from bread.statistics.exactness.invariance import FEWEST_DRAWS, crossing_p_values
from bread.statistics.exactness.means import mean_zero_test


def run_steps(sample: Sample) -> Finding | LeftOut:
    """Compare functions of the log ratio before and after one step at either temperature."""
    between = sample.between
    if between is None:
        return LeftOut("exact draws between the ends of the path are not to be had")
    rows: NDArray[np.bool_] = np.asarray(
        np.isfinite(between.log_ratio).all(axis=(1, 2)) & np.isfinite(between.weight).all(axis=1), dtype=np.bool_
    )
    n_lost = int((~rows).sum())
    if n_lost:  # to leave out those that failed would choose by the outcome
        return LeftOut(f"{n_lost} of {len(rows)} chains have log ratios that are not finite")
    if len(rows) < FEWEST_DRAWS:
        return LeftOut(f"fewer than {FEWEST_DRAWS} draws")
    functions = between.functions
    states = between.log_ratio[..., None]
    smooth, inside = functions.smooth(states), functions.indicators(states).astype(np.int64)
    both = np.concatenate([smooth[:, :, 2] - smooth[:, :, 1], inside[:, :, 2] - inside[:, :, 1]], axis=2)
    # Chains of one data set depend on one another, and make one row.
    weighted = (between.weight[:, :, None] * both).mean(axis=1)
    moved = (smooth[:, :, 1] - smooth[:, :, 0]).mean(axis=1)
    crossing = inside[:, 0, 1] - inside[:, 0, 0]
    p_values = [
        mean_zero_test(moved, is_bounded=True).p_values,
        crossing_p_values(crossing),
        mean_zero_test(weighted).p_values,
    ]
    effect = [moved.mean(axis=0), crossing.mean(axis=0), weighted.mean(axis=0)]
    own = [label.function for label in (*functions.smooth_labels, *functions.indicator_labels)]
    labels = tuple(Label(LOG_RATIO, f"{name} after a step at beta = {beta:g}") for beta in (BETA, NEXT) for name in own)
    return Finding(labels, np.concatenate(p_values), np.concatenate(effect), len(rows))


STEPS = BatteryTest(
    "steps between temperatures",
    "between",
    "Chains annealed from an exact draw of a tempered law keep that law in the first step, and reach the next in the "
    "second, by weight.",
    "First step: exact (McNemar) and t tests of bounded differences; second: t tests, with a counter-value.",
    (
        "The inverse temperature that the kernel is run at is not the one of its place in the schedule: an index that "
        "is off by one, or a factor that is multiplied in twice.",
    ),
    "normal scores, or probability for indicators",
    run_steps,
    needs=("kernel",),
)
BETWEEN_TESTS = (STEPS,)
