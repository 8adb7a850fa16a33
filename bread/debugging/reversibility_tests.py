"""Is the kernel reversible? Asked apart from invariance: a sweep in fixed order is right, and is not reversible."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from bread.debugging.finding import BatteryTest, Finding, LeftOut
from bread.debugging.kernel_tests import FEW
from bread.debugging.sample import LOG_DENSITY, N_SPACED, Sample, Stream
from bread.statistics.exactness.chain_ranks import KINDS, chain_rank_p_values, chain_ranks
from bread.statistics.exactness.functions import Label
from bread.statistics.exactness.invariance import FEWEST_DRAWS
from bread.statistics.exactness.symmetry import symmetry_test

BLOCK = 500  # chains at a time: functions of all their states are held


def run_ranks(sample: Sample) -> Finding | LeftOut:
    """Rank exact draws among the states of the chains through them."""
    rows = sample.sound_rows()
    if rows.sum() < FEWEST_DRAWS:
        return FEW
    functions = sample.functions
    labels = functions.smooth_labels
    rng = default_rng(sample.seeds(Stream.RANK, 0, 1)[0])
    n = len(sample)
    # Drawn for all chains, in order: those of an earlier round keep theirs.
    position = np.empty(n, dtype=np.int64)
    uniforms = np.empty((n, len(labels)))
    for row in range(n):
        position[row] = rng.integers(N_SPACED + 1)
        uniforms[row] = rng.random(len(labels))
    ranks = []
    for low in range(0, n, BLOCK):
        block = np.flatnonzero(rows[low : low + BLOCK]) + low
        start = functions.smooth(sample.table[block])
        backward = functions.smooth(sample.second[block])
        forward = functions.smooth(sample.first[block][:, sample.spaced])
        ranks.append(chain_ranks(start, backward, forward, position[block], uniforms[block]))
    every = np.concatenate(ranks)
    p_values = chain_rank_p_values(every)
    effect = np.stack([2.0 * every.mean(axis=0) - 1.0, 4.0 * np.abs(every - 0.5).mean(axis=0) - 1.0])
    effect = np.concatenate([effect, np.full((1, len(labels)), np.nan)])
    every_label = tuple(
        Label(label.quantity, f"rank of {label.function}: {kind}") for kind in KINDS for label in labels
    )
    return Finding(every_label, p_values.ravel(), effect.ravel(), len(every))


def run_pairs(sample: Sample) -> Finding | LeftOut:
    """Antisymmetric functions of pairs of states, summed along a chain."""
    rows = sample.sound_rows()
    if rows.sum() < FEWEST_DRAWS:
        return FEW
    functions = sample.functions
    used = np.flatnonzero(functions.is_used)
    names = (*sample.subject.coordinates, LOG_DENSITY)
    before = functions.scores(sample.table[rows])
    left, right = (np.array([pair[k] for pair in functions.pairs], dtype=np.int64) for k in (0, 1))
    with_density = np.setdiff1d(used, [len(names) - 1]) if len(names) - 1 in used else used[:0]
    left = np.concatenate([left, with_density])
    right = np.concatenate([right, np.full(len(with_density), len(names) - 1)])
    path = functions.scores(sample.first[rows])
    early = np.concatenate([before[:, None], path[:, : sample.n_early]], axis=1)
    spaced = np.concatenate([before[:, None], path[:, sample.spaced]], axis=1)
    labels: list[Label] = []
    values = []
    for states, lag, text in (
        (early, 1, "1 step apart"),
        (early, 2, "2 steps apart"),
        (spaced, 1, f"{sample.spacing} steps apart"),
        (spaced, N_SPACED, f"{sample.n_steps} steps apart"),
    ):
        # Turned round, the path of a reversible chain has the same law, and each of these sums the other sign.
        old, new = states[:, :-lag], states[:, lag:]
        values += [
            (old[..., left] * new[..., right] - old[..., right] * new[..., left]).sum(axis=1),
            (old * new**2 - old**2 * new)[..., used].sum(axis=1),
            # Small moves one way and large ones the other: the mean of x does not change, that of sign(move) does.
            np.sign(new - old)[..., used].sum(axis=1),
        ]
        labels += [Label(f"{names[i]}, {names[j]}", f"x y exchanged, {text}") for i, j in zip(left, right, strict=True)]
        labels += [Label(names[i], f"x and x^2 exchanged, {text}") for i in used]
        labels += [Label(names[i], f"direction of moves, {text}") for i in used]
    test = symmetry_test(np.concatenate(values, axis=1))
    return Finding(tuple(labels), test.p_values, test.effect, int(rows.sum()))


RANKS = BatteryTest(
    "ranks in chains",
    "reversibility",
    "An exact draw at a random place of a chain that runs both ways from it has a uniform rank (Gandy & Scott 2020).",
    "Exact for every n if the kernel is invariant and reversible.",
    ("The kernel is not invariant, or not reversible.",),
    "mean of a rank on [-1, 1], or of its distance from the middle",
    run_ranks,
    needs=("kernel",),
)
PAIRS = BatteryTest(
    "reversibility",
    "reversibility",
    "A chain from an exact draw can be read backwards: earlier and later states can be exchanged.",
    "Antisymmetric functions of a path are symmetric about zero: exact for every n if the kernel is invariant and "
    "reversible.",
    (
        "A sweep in fixed order, a compound step that is not turned round, or a momentum that is kept: right for Monte "
        "Carlo, wrong where a kernel must be reversed.",
        "The kernel is not invariant.",
    ),
    "root mean squares of one value",
    run_pairs,
    needs=("kernel",),
)
REVERSIBILITY_TESTS = (RANKS, PAIRS)
