"""Does a chain depend on its draw and its own seed alone? Not on other chains, other seeds or other random numbers."""

from __future__ import annotations

import random

import numpy as np

from bread.debugging.finding import BatteryTest, Finding, LeftOut, certain
from bread.debugging.sample import LOG_DENSITY, N_PILOT, Sample, Stream
from bread.debugging.simulator_tests import neighbours
from bread.debugging.subject import Draws, FloatArray, Subject
from bread.statistics.exactness.functions import EVERYTHING, Label
from bread.statistics.exactness.invariance import FEWEST_DRAWS
from bread.statistics.exactness.means import mean_zero_test
from bread.statistics.exactness.symmetry import symmetry_test

N_REPEATED = 8  # chains that are run again
N_OTHERS = 30  # chains moved in between
STEPS = (1, 10)  # of both
N_SEEDS = 12  # seeds tried from one start
N_STARTS = 5

MOVES = np.array([0.0, 0.05, 0.2, 0.5, 1.0])  # mean size over columns, in normal scores

OUTSIDE = Label(EVERYTHING, "same draw, same seed, twice")
MEMORY = Label(EVERYTHING, "same draw, same seed, after other chains")
SEEDS = Label(EVERYTHING, "same draw, other seeds")


def run_history(sample: Sample) -> Finding | LeftOut:
    """Run the same chains again: at once, and after others."""
    subject = sample.subject
    draws, others = sample.pilot.rows(slice(0, N_REPEATED)), sample.pilot.rows(slice(N_REPEATED, N_REPEATED + N_OTHERS))
    if "renewed" in subject.missing:
        return _without_renewal(sample, draws, others)
    first = subject.renewed()
    once, again = _run(sample, first, draws), _run(sample, subject.renewed(), draws)
    if not _same(once, again):
        text = "Two new kernels differ on the same draws and seeds: random numbers come from outside of the generator."
        return certain([(OUTSIDE, 1.0, text)], [OUTSIDE, MEMORY], N_REPEATED)
    _move_others(sample, first, others)
    if not _same(once, _run(sample, first, draws)):
        text = "The kernel remembers what it did before: it moves otherwise after other chains, on the same seed."
        return certain([(MEMORY, 1.0, text)], [OUTSIDE, MEMORY], N_REPEATED)
    return certain([], [OUTSIDE, MEMORY], N_REPEATED)


def _without_renewal(sample: Sample, draws: Draws, others: Draws) -> Finding:
    """Tell memory from random numbers from outside by what the global generators have to do with it."""
    once, again = _run(sample, sample.subject, draws), _run(sample, sample.subject, draws)
    _move_others(sample, sample.subject, others)
    later = _run(sample, sample.subject, draws)
    if _same(once, again) and _same(once, later):
        return certain([], [OUTSIDE, MEMORY], N_REPEATED)
    legacy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        runs = []
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            random.seed(0)
            runs.append(_run(sample, sample.subject, draws))
    finally:
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(plain)
    if _same(*runs):
        text = "The kernel draws from a global generator (np.random or random), not from the one that it is given."
        return certain([(OUTSIDE, 1.0, text)], [OUTSIDE, MEMORY], N_REPEATED)
    text = (
        "The same draws and seeds end elsewhere when they are run again: the kernel remembers what it did before, or "
        "takes random numbers from outside of the generator that it is given."
    )
    return certain([(MEMORY, 1.0, text)], [OUTSIDE, MEMORY], N_REPEATED)


def run_independence_of_seeds(sample: Sample) -> Finding | LeftOut:
    """Run chains from one draw under many seeds: continuous coordinates never end in the same place twice."""
    subject = sample.subject
    continuous = subject.is_continuous
    if not continuous.any():
        return LeftOut("no coordinate is continuous, so that chains may end in the same place by chance")
    start = sample.pilot.rows(slice(N_PILOT - N_STARTS, N_PILOT))
    draws = start.rows(np.repeat(np.arange(N_STARTS), N_SEEDS))
    moved = sample.move(draws, STEPS[-1:], sample.seeds(Stream.SEEDS, 0, len(draws)))
    ends = moved.states[:, 0][:, continuous].reshape(N_STARTS, N_SEEDS, -1)
    starts = start.states[:, None, continuous]
    has_moved = (ends != starts).any(axis=2) & ~np.isnan(ends).any(axis=2)
    n_moved, n_places = int(has_moved.sum()), 0
    for end, which in zip(ends, has_moved, strict=True):
        n_places += len(np.unique(end[which], axis=0)) if which.any() else 0
    if n_moved < 2 * N_STARTS:
        return LeftOut(f"{n_moved} of {len(draws)} chains moved in {STEPS[-1]} steps")
    if n_places <= n_moved // 2:
        text = f"{n_moved} chains under different seeds end in {n_places} places only: seeds are shared or not used."
        return certain([(SEEDS, n_places / n_moved, text)], [SEEDS], n_moved)
    return certain([], [SEEDS], n_moved)


def run_streams(sample: Sample) -> Finding | LeftOut:
    """Compare moves of neighbouring chains."""
    rows = sample.sound_rows()
    used = sample.functions.is_used
    before = sample.functions.scores(sample.table[rows])[:, used]
    labels: list[Label] = []
    products = []
    for n_steps in (1, sample.keep[-1]):
        after = sample.functions.scores(sample.first[rows][:, sample.keep.index(n_steps)])[:, used]
        names, values = neighbours(sample, np.concatenate([after - before, after**2 - before**2], axis=1))
        products.append(values)
        labels += [Label(name.quantity, f"move of {name.function} in {n_steps} steps") for name in names]
    if len(products[0]) < FEWEST_DRAWS // 4:
        return LeftOut(f"fewer than {FEWEST_DRAWS} chains are numbers throughout")
    test = symmetry_test(np.concatenate(products, axis=1))
    return Finding(tuple(labels), test.p_values, test.effect, int(rows.sum()))


def run_memory(sample: Sample) -> Finding | LeftOut:
    """Compare how chains go on with how new ones go on from the same states."""
    rows = sample.sound_rows() & ~np.isnan(sample.going_on).any(axis=(1, 2, 3))
    if rows.sum() < FEWEST_DRAWS:
        return LeftOut(f"fewer than {FEWEST_DRAWS} chains are numbers throughout")
    functions = sample.functions
    used = functions.is_used
    names = [(*sample.subject.coordinates, LOG_DENSITY)[i] for i in np.flatnonzero(used)]
    begin, ours, theirs = np.moveaxis(sample.going_on[rows], 1, 0)
    scores = functions.scores(begin)
    kinds = []
    for states in (ours, theirs):
        size = np.abs(functions.scores(states) - scores)[..., used]
        together = size.mean(axis=-1, keepdims=True)
        kinds.append(np.concatenate([functions.smooth(states), size, together, together > MOVES], axis=-1))
    # Mean zero state by state; the ten of a draw depend on one another and make one row.
    difference = (kinds[0] - kinds[1]).mean(axis=1)
    labels = (
        *(Label(label.quantity, f"{label.function} one step on") for label in functions.smooth_labels),
        *(Label(name, "size of a move") for name in (*names, EVERYTHING)),
        *(Label(EVERYTHING, f"moves by more than {size:g}") for size in MOVES),
    )
    test = mean_zero_test(difference, is_bounded=True)
    return Finding(labels, test.p_values, test.effect, len(difference))


def _run(sample: Sample, subject: Subject, draws: Draws) -> FloatArray:
    moved = subject.move(draws, STEPS, sample.seeds(Stream.HISTORY, 0, len(draws)))
    sample.spent += moved.n_evaluations
    return moved.states


def _move_others(sample: Sample, subject: Subject, others: Draws) -> None:
    moved = subject.move(others, STEPS, sample.seeds(Stream.OTHERS, 0, len(others)))
    sample.spent += moved.n_evaluations


def _same(one: FloatArray, other: FloatArray) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))


HISTORY = BatteryTest(
    "history",
    "kernel",
    "A chain run again from the same draw under the same seed ends in the same place, after other chains too.",
    "No chance: bit-equal if the kernel computes in a fixed order.",
    (
        "Adaptation goes on during the run, or a cache or state is kept from chain to chain.",
        "Random numbers come from a global generator, or from one of the kernel's own.",
    ),
    "1 if different",
    run_history,
    is_random=False,
    needs=("kernel",),
    once=True,
    before_chains=True,
)
SEED_TEST = BatteryTest(
    "seeds",
    "kernel",
    "Chains from one draw under different seeds end in different places.",
    "Assumes that the kernel, where it moves continuous coordinates, has a continuous law.",
    ("The generator that is given is not used: a seed is fixed, or shared by all chains.",),
    "places per chain",
    run_independence_of_seeds,
    is_random=False,
    needs=("kernel",),
    once=True,
)
STREAMS = BatteryTest(
    "independence of chains",
    "kernel",
    "Moves of chains that were run one after the other are independent.",
    "Products of differences are symmetric about zero: exact for every n.",
    ("Neighbouring chains share random numbers, or one leaves something to the next.",),
    "root mean squares of a product",
    run_streams,
    needs=("kernel",),
)
MEMORY_TEST = BatteryTest(
    "memory of chains",
    "kernel",
    "A chain goes on from a state as a new chain does that starts there.",
    "Of one law given the state, if what a kernel carries beside its position is drawn at the start from its law given "
    "the position; a t test of bounded differences, with a counter-value.",
    (
        "The chain adapts while it runs, or uses its own past.",
        "What is carried begins otherwise than it goes on: a momentum, an auxiliary variable, a cache.",
    ),
    "standard deviations of a difference",
    run_memory,
    needs=("kernel",),
)
RANDOMNESS_TESTS = (HISTORY, SEED_TEST, STREAMS, MEMORY_TEST)
