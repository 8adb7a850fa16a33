"""Does the kernel leave the density invariant? Exact draws before and after, at many step counts, by many functions."""

from __future__ import annotations

import numpy as np

from bread.debugging.finding import BatteryTest, Finding, LeftOut, certain
from bread.debugging.sample import LOG_DENSITY, Sample
from bread.debugging.simulator_tests import found_unsound, unsound
from bread.debugging.subject import FloatArray
from bread.statistics.exactness.functions import DECIMALS, Label
from bread.statistics.exactness.invariance import FEWEST_DRAWS, crossing_p_values
from bread.statistics.exactness.means import mean_zero_test

TOLERANCE = 1e-6  # of a log density that a kernel carries, relative to its size and that of its spread
FIRST_ROWS = 0.2  # share of draws that set the weight of the start, and on which averages are not tested
LEAST_SHOWN = 1e-3  # below, chains have not left their start
FEW = LeftOut(f"fewer than {FEWEST_DRAWS} chains are numbers throughout")


def run_states(sample: Sample) -> Finding:
    """Check states of chains for what cannot be."""
    started = ~np.isnan(sample.table).any(axis=1)
    chains = np.concatenate([sample.first, sample.second], axis=1)[started]
    counts = unsound(sample, chains[..., :-1], chains[..., -1])
    return found_unsound(counts, "states of chains", 2 * int(started.sum()), sample.failures)


def run_invariance(sample: Sample) -> Finding | LeftOut:
    """Compare draws with the states of one chain from each, step count by step count."""
    rows = sample.sound_rows()
    if rows.sum() < FEWEST_DRAWS:
        return FEW
    functions = sample.functions
    before, after = sample.table[rows], sample.first[rows]
    smooth, inside = functions.smooth(before), functions.indicators(before)
    labels: list[Label] = []
    p_values, effect = [], []
    for column, n_steps in enumerate(sample.keep):
        if n_steps not in _looked_at(sample):
            continue
        moved = functions.smooth(after[:, column]) - smooth
        crossing = functions.indicators(after[:, column]).astype(np.int64) - inside
        p_values += [mean_zero_test(moved, is_bounded=True).p_values, crossing_p_values(crossing)]
        effect += [moved.mean(axis=0), crossing.mean(axis=0)]
        text = _after(n_steps)
        for label in (*functions.smooth_labels, *functions.indicator_labels):
            labels.append(Label(label.quantity, f"{label.function} {text}"))
    return Finding(tuple(labels), np.concatenate(p_values), np.concatenate(effect), len(before))


def run_averages(sample: Sample) -> Finding | LeftOut:
    """Compare averages along both chains of a draw with fresh exact draws."""
    rows = sample.sound_rows()
    if rows.sum() < FEWEST_DRAWS:
        return FEW
    functions = sample.functions
    averages = 0.5 * (_average(sample, sample.first[rows][:, sample.spaced]) + _average(sample, sample.second[rows]))
    start = np.concatenate([functions.smooth(sample.table[rows]), functions.indicators(sample.table[rows])], axis=-1)
    fresh = sample.fresh[rows]
    exact = np.concatenate([functions.smooth(fresh), functions.indicators(fresh)], axis=-1).mean(axis=1)
    difference, shown = difference_of_averages(start, averages, exact)
    test = mean_zero_test(difference, is_bounded=True)
    labels = (*functions.smooth_labels, *functions.indicator_labels)
    spread = np.where(shown > LEAST_SHOWN, difference.std(axis=0) / np.maximum(shown, LEAST_SHOWN), np.inf)
    return Finding(labels, test.p_values, difference.mean(axis=0), len(difference), spread)


def difference_of_averages(start: FloatArray, averages: FloatArray, exact: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return averages of chains less those of exact draws, and what share of an error of the chains' law they show.

    Parameters
    ----------
    start, averages, exact : ndarray, shape (n, function)
        Functions of the draws that chains start from, their averages along chains, and over fresh draws.

    Returns
    -------
    difference : ndarray, shape (m, function)
        Mean zero row by row; the first fifth of the draws sets the weight of the start, and is left out.
    shown : ndarray, shape (function,)
    """
    n_first = int(FIRST_ROWS * len(start))
    first, reply = start[:n_first] - start[:n_first].mean(axis=0), averages[:n_first] - averages[:n_first].mean(axis=0)
    variance = (first**2).sum(axis=0)
    # What a chain still owes to its start is taken off: any weight leaves the mean at zero, this one least spread.
    weight = np.clip((first * reply).sum(axis=0) / np.where(variance > 0.0, variance, 1.0), 0.0, 1.0)
    difference = (averages - weight * start - (1.0 - weight) * exact)[n_first:]
    difference = np.where(weight > 1.0 - LEAST_SHOWN, 0.0, np.round(difference, DECIMALS))  # what is left is rounding
    return difference, 1.0 - weight


def run_carried(sample: Sample) -> Finding | LeftOut:
    """Compare the log density that the kernel carries with a fresh one."""
    if sample.carried is None:
        return LeftOut("the kernel does not show the log density that it carries")
    fresh = sample.first[:, :, -1]
    with np.errstate(invalid="ignore"):
        gap = sample.carried - fresh
    looked_at = np.isfinite(fresh)
    if not looked_at.any():
        return LeftOut("no chain has a finite log density")
    finite = gap[looked_at & np.isfinite(gap)]
    constant = float(np.median(finite)) if finite.size else 0.0  # kernels may leave out a constant
    scale = 1.0 + np.abs(np.where(looked_at, fresh, 0.0))
    with np.errstate(invalid="ignore"):
        is_wrong = looked_at & ~(np.abs(gap - constant) <= TOLERANCE * scale)
    labels = [Label(LOG_DENSITY, f"carried {_after(n_steps)}") for n_steps in sample.keep]
    failed: list[tuple[Label, float, str]] = []
    for label, wrong in zip(labels, is_wrong.T, strict=True):
        if wrong.any():
            text = f"{int(wrong.sum())} of {len(wrong)} log densities {label.function} are wrong." if not failed else ""
            failed.append((label, float(wrong.mean()), text))
    return certain(failed, labels, len(fresh))


def _average(sample: Sample, spaced: FloatArray) -> FloatArray:
    functions = sample.functions
    return np.concatenate([functions.smooth(spaced).mean(axis=1), functions.indicators(spaced).mean(axis=1)], axis=-1)


def _looked_at(sample: Sample) -> set[int]:
    """Return the step counts at which draws are compared one by one: few, since all are corrected for."""
    return {1, 2, 5, *(sample.keep[column] for column in sample.spaced[[4, -1]])}


def _after(n_steps: int) -> str:
    return f"after {n_steps} step{'s' if n_steps > 1 else ''}"


STATES = BatteryTest(
    "states of chains",
    "kernel",
    "The kernel runs, and its states are numbers, lie in the support and have a log density that is finite.",
    "No chance: one exception is a contradiction.",
    ("The kernel raises errors or accepts states of density zero, NaN or -inf; it does not look at the support.",),
    "number of states",
    run_states,
    is_random=False,
    needs=("kernel",),
)
INVARIANCE = BatteryTest(
    "invariance",
    "kernel",
    "After 1 to many steps from exact draws, functions of the state have the mean they had before.",
    "Indicators: exact for every n (McNemar). Smooth functions: t tests of bounded differences, with a counter-value.",
    (
        "The acceptance probability is wrong: ratio inverted or left out, an asymmetric proposal not corrected.",
        "The proposal or a conditional draw is wrong.",
    ),
    "normal scores, or probability for indicators",
    run_invariance,
    needs=("kernel",),
)
AVERAGES = BatteryTest(
    "averages of chains",
    "kernel",
    "Averages along chains from exact draws have the mean of fresh exact draws.",
    "t tests of bounded differences, with a counter-value.",
    ("A small bias of each step, which adds up over many.",),
    "normal scores, or probability for indicators",
    run_averages,
    needs=("kernel",),
)
CARRIED = BatteryTest(
    "carried density",
    "kernel",
    "The log density that the kernel carries is that of its state, but for one constant.",
    f"No chance: the difference is constant to {TOLERANCE:g} of its size.",
    ("A cached log density is stale: not renewed after another block moved, or after a rejection.",),
    "share of chains",
    run_carried,
    is_random=False,
    needs=("kernel",),
)
KERNEL_TESTS = (STATES, CARRIED, INVARIANCE, AVERAGES)
