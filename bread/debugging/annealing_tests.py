"""Do annealed chains obey Crooks' relation? Forward from the base and in reverse from an exact draw, by one kernel."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from bread.debugging.annealed import BASE, END, FORWARD, REVERSE, AnnealedSample
from bread.debugging.finding import BatteryTest, Finding, LeftOut, certain
from bread.debugging.sample import DECIMALS, Sample, Stream
from bread.debugging.subject import FloatArray
from bread.statistics.bounds.alarms import rank_p_values, theory_alarm, weighted_ranks
from bread.statistics.exactness.crooks_order import STATISTICS, crooks_order
from bread.statistics.exactness.functions import Label

TOLERANCE = 1e-4  # of a log density, relative to its size: single precision passes
FEWEST_PAIRS = 20
WEIGHT, RATIO, DENSITY = "log weight", "log ratio", "log density of the base"
ENDS = ((BASE, "at beta = 0"), (END, "at beta = 1"))
WAYS = ((FORWARD, "forward"), (REVERSE, "in reverse"))
NOT_ANNEALED = LeftOut("no chains were annealed")


def run_weights(sample: Sample) -> Finding | LeftOut:
    """Compare what chains say of their weights and densities with the sum that a weight is, and with fresh values."""
    annealed = sample.annealed
    if annealed is None:
        return NOT_ANNEALED
    pairs = annealed.pairs
    labels: list[Label] = []
    failed: list[tuple[Label, float, str]] = []

    def compare(label: Label, gap: FloatArray, scale: FloatArray) -> None:
        labels.append(label)
        with np.errstate(invalid="ignore"):
            is_wrong = np.isfinite(gap) & (np.abs(gap) > TOLERANCE * (1.0 + scale))
        if is_wrong.any():
            largest = float(np.abs(gap[is_wrong]).max())
            text = f"The {label.quantity} {label.function} is off in {int(is_wrong.sum())} of {len(gap)} chains, by up "
            failed.append((label, float(is_wrong.mean()), f"{text}to {largest:.2g} nats."))

    with np.errstate(invalid="ignore"):
        steps = np.diff(annealed.betas) * pairs.log_ratio[..., :-1]
        weight_gap = pairs.log_weight - steps.sum(axis=-1)
        ratio = pairs.log_ratio[..., [0, -1]]
        ratio_gap = ratio - pairs.fresh_ratio
        # A constant of the data may be left out of fresh densities.
        base_gap = pairs.log_base - pairs.fresh_base
        base_gap = base_gap - _first_finite(base_gap)[:, None, None]
    size = np.abs(np.where(np.isfinite(pairs.fresh_base), pairs.fresh_base, 0.0)).max(axis=(1, 2), initial=0.0)
    size += np.abs(np.where(np.isfinite(pairs.fresh_ratio), pairs.fresh_ratio, 0.0)).max(axis=(1, 2), initial=0.0)
    for way, direction in WAYS:
        total = np.abs(np.where(np.isfinite(steps[:, way]), steps[:, way], 0.0)).sum(axis=-1)
        compare(Label(WEIGHT, direction), weight_gap[:, way], total)
        for end, where in ENDS:
            compare(Label(RATIO, f"{direction} {where}"), ratio_gap[:, way, end], size)
            compare(Label(DENSITY, f"{direction} {where}"), base_gap[:, way, end], size)
    return certain(failed, labels, len(pairs))


def run_order(sample: Sample) -> Finding | LeftOut:
    """How often the reverse weight is the larger one, and e-values of the differences."""
    found = _sound_pairs(sample)
    if isinstance(found, LeftOut):
        return found
    forward, reverse = found.pairs.log_weight.T
    order = crooks_order(forward, reverse)
    alarm = theory_alarm(forward[:, None], reverse[:, None])
    labels = (*(Label(WEIGHT, f"{name}: reverse above forward") for name in STATISTICS), Label(WEIGHT, "e-value"))
    effect = np.array([*order.effect, alarm.crooks_slope - 1.0])
    return Finding(labels, np.array([*order.p_values, alarm.p_value]), effect, len(forward))


def run_weighted_ranks(sample: Sample) -> Finding | LeftOut:
    """Rank paths from exact draws among annealed ones, by weight."""
    found = _sound_pairs(sample)
    if isinstance(found, LeftOut):
        return found
    pairs = found.pairs
    labels, values = _path_functions(sample, found)
    rng = default_rng(sample.seeds(Stream.ANNEAL_RANK, 0, 1)[0])
    uniforms = rng.random((len(pairs), len(labels)))  # row by row: pairs of an earlier round keep theirs
    ranks = weighted_ranks(
        pairs.log_weight[:, [FORWARD]], pairs.log_weight[:, REVERSE], values[:, [FORWARD]], values[:, REVERSE], uniforms
    )
    return Finding(labels, rank_p_values(ranks), 2.0 * ranks.mean(axis=0) - 1.0, len(pairs))


def _sound_pairs(sample: Sample) -> AnnealedSample | LeftOut:
    """Return annealed chains of which none failed: to leave out those that did would choose by the outcome."""
    annealed = sample.annealed
    if annealed is None:
        return NOT_ANNEALED
    n_failed = int((~annealed.pairs.is_sound).sum())
    if n_failed:
        why = "; ".join(annealed.failures[:2])
        return LeftOut(f"{n_failed} of {len(annealed.pairs)} annealed pairs have no weights ({why})")
    if len(annealed.pairs) < FEWEST_PAIRS:
        return LeftOut(f"fewer than {FEWEST_PAIRS} pairs of annealed chains")
    return annealed


def _path_functions(sample: Sample, annealed: AnnealedSample) -> tuple[tuple[Label, ...], FloatArray]:
    """Return functions of paths, shape (n, 2, function): of both ends, log ratios along the path, and the weight."""
    pairs = annealed.pairs
    with np.errstate(invalid="ignore"):
        density = np.round(pairs.log_base + pairs.log_ratio[..., [0, -1]], DECIMALS)
    table = np.concatenate([pairs.states, np.where(np.isnan(density), -np.inf, density)[..., None]], axis=-1)
    functions = sample.functions
    at_ends = functions.smooth(table)
    values = np.concatenate(
        [
            *(at_ends[:, :, end] for end, _ in ENDS),
            np.round(pairs.log_ratio, DECIMALS),
            np.round(pairs.log_weight[..., None], DECIMALS),
        ],
        axis=-1,
    )
    labels = (
        *(Label(label.quantity, f"{label.function} {where}") for _, where in ENDS for label in functions.smooth_labels),
        *(Label(RATIO, f"at beta = {beta:.3g}") for beta in annealed.betas),
        Label(WEIGHT, "x"),
    )
    return labels, np.where(np.isnan(values), -np.inf, values)


def _first_finite(gaps: FloatArray) -> FloatArray:
    """Return the first finite number of each row of (n, 2, 2), and 0 where there is none."""
    flat = gaps.reshape(len(gaps), -1)
    is_finite = np.isfinite(flat)
    first = np.argmax(is_finite, axis=1)
    return np.where(
        is_finite.any(axis=1), np.nan_to_num(flat[np.arange(len(flat)), first], posinf=0.0, neginf=0.0), 0.0
    )


WEIGHTS = BatteryTest(
    "annealed weights",
    "annealing",
    "Log weights of annealed chains are the sums of their steps; log ratios and densities are those of their states.",
    f"No chance: they agree to {TOLERANCE:g} of their size.",
    (
        "Weights of annealed chains are not those of their states: taken after the kernel in place of before it, at "
        "another inverse temperature, or from a stale density.",
    ),
    "share of chains",
    run_weights,
    is_random=False,
    needs=("annealing",),
)
ORDER = BatteryTest(
    "order of annealed weights",
    "annealing",
    "How often the reverse log weight is the larger, given how far it is from the forward one: Crooks' slope.",
    "Coins of known chance, exact for every n (Chernoff's bound), and e-values: if simulator and density agree, and "
    "kernels are invariant between 0 and 1 and run in reverse by their reversal.",
    (
        "Tempering is wrong: the kernel's inverse temperature is not that of the weights (one step off, multiplied in "
        "twice, left out of a part), or the kernel is not turned round in reverse.",
    ),
    "standard deviations of the sum; for the e-value the slope less 1",
    run_order,
    needs=("annealing",),
)
WEIGHTED_RANKS = BatteryTest(
    "weighted ranks",
    "annealing",
    "The path from an exact draw has a uniform rank, by weight, beside an annealed one: of states at both ends, of log "
    "ratios between them, of the weight.",
    "Exact for every n, under the same conditions.",
    ORDER.culprits,
    "mean of a rank on [-1, 1]",
    run_weighted_ranks,
    needs=("annealing",),
)
ANNEALING_TESTS = (WEIGHTS, ORDER, WEIGHTED_RANKS)
