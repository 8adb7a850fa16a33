"""What the pattern of failures suggests, in words, most likely first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bread.debugging.annealing_tests import ORDER, WEIGHTED_RANKS, WEIGHTS
from bread.debugging.between_tests import STEPS
from bread.debugging.ensemble_tests import WALKERS
from bread.debugging.gradient_tests import GRADIENT
from bread.debugging.kernel_tests import AVERAGES, CARRIED, INVARIANCE, STATES
from bread.debugging.randomness_tests import HISTORY, MEMORY_TEST, SEED_TEST, STREAMS
from bread.debugging.results import TestResult
from bread.debugging.reversibility_tests import PAIRS, RANKS
from bread.debugging.sample import LOG_DENSITY, Sample
from bread.debugging.simulator_tests import DRAWS, FLOW, INDEPENDENCE, SCORE
from bread.statistics.exactness.functions import EVERYTHING, Label

HARDLY_MOVES = 0.02  # share of chains
HIDES_ALL = 10.0  # nats between log weights: one in 20,000 pairs has the rarer order
NAMED = 3  # quantities that a sentence names
NO_PATH = "Chains were not annealed: a kernel without a model has no path, and tempering is not tested."


class _Pattern:
    """Which comparisons of some tests failed, over all subjects, and of which kind they are."""

    def __init__(self, results: Sequence[TestResult], samples: Sequence[Sample], test_level: float) -> None:
        subjects = {sample.subject.name: sample.subject for sample in samples}
        found: list[tuple[str, Label]] = []
        for result in results:
            if not result.fails:
                continue
            finding = result.finding
            share = test_level / (result.rounds * (result.rounds + 1)) / max(finding.n_tested, 1)
            p_values = np.nan_to_num(finding.p_values, nan=1.0)
            found += [(result.subject, finding.labels[k]) for k in np.flatnonzero(p_values <= share)]
        self.subjects = tuple(dict.fromkeys(name for name, _ in found))
        functions = {label.function for _, label in found}
        # Products and the log density answer to almost every defect.
        telling = [label for _, label in found if label.function[:3] != "x y" and label.quantity != LOG_DENSITY]
        self.only_products = bool(found) and not [
            t for t in telling if t.quantity != EVERYTHING and t.quantity[:5] != "axis "
        ]
        own = {label.function.split(" after")[0] for label in telling}
        self.only_scale = bool(own) and own <= {"x^2", "x < q2", "x < q10", "x < q90", "x < q98"} and "x^2" in own
        self.only_late = bool(functions) and all("after" in f and " 1 step" not in f for f in functions)
        self.quantities = tuple(
            dict.fromkeys(
                label.quantity for label in telling if label.quantity != EVERYTHING and label.quantity[:5] != "axis "
            )
        )
        involved = [
            (subject.is_continuous[i], np.isfinite(subject.lower[i]) or np.isfinite(subject.upper[i]))
            for name, label in found
            if (subject := subjects[name]) and (label in telling or self.only_products)
            for i in _coordinates_of(label, subject.coordinates)
        ]
        self.only_discrete = bool(involved) and not any(is_continuous for is_continuous, _ in involved)
        self.only_bounded = bool(involved) and all(is_bounded for _, is_bounded in involved)

    def where(self, samples: Sequence[Sample]) -> str:
        """Return where it failed: subjects, and coordinates if only some."""
        text = ""
        if len(samples) > 1:
            text += f" It fails on {_listed(self.subjects)} ({len(self.subjects)} of {len(samples)})."
        known = {name for sample in samples for name in sample.subject.coordinates}
        if self.quantities and set(self.quantities) < known:
            text += f" Only in {_listed(self.quantities)}."
        return text


def _coordinates_of(label: Label, names: Sequence[str]) -> list[int]:
    """Return which coordinates a comparison is about; none for the log density."""
    if label.quantity == LOG_DENSITY:
        return []
    return [i for i, name in enumerate(names) if name in label.quantity.split(", ")] or list(range(len(names)))


def diagnose(results: Sequence[TestResult], samples: Sequence[Sample], test_level: float) -> tuple[str, ...]:
    """Return likely culprits, most likely first; empty if nothing failed.

    Parameters
    ----------
    results : sequence of TestResult
    samples : sequence of Sample
    test_level : float
        Level of one test on one subject, before it is shared among rounds and comparisons.
    """
    failed = {result.name for result in results if result.fails}
    said: list[str] = []
    for test in (DRAWS, STATES, CARRIED, SEED_TEST, HISTORY, GRADIENT, WEIGHTS):
        found = [result for result in results if result.fails and result.name == test.name]
        if found:
            said.append(f"{test.culprits[0]} {found[0].finding.note}")

    def pattern(*names: str) -> _Pattern:
        return _Pattern([result for result in results if result.name in names], samples, test_level)

    simulator = failed & {FLOW.name, SCORE.name}
    if simulator:
        seen = pattern(*simulator)
        said.append(_of_simulator(failed, seen) + seen.where(samples))
    if INDEPENDENCE.name in failed:
        said.append(INDEPENDENCE.culprits[0])
    for test in (STREAMS, MEMORY_TEST, WALKERS):
        if test.name in failed:
            said.append(test.culprits[0])
    kernel = failed & {INVARIANCE.name, AVERAGES.name}
    if _only_between(results, samples):
        text = "Both ends of the path are right, as far as was seen, and what was drawn between them is not."
        return (*said, f"{text} {STEPS.culprits[0]}")
    if STEPS.name in failed:
        said.append(STEPS.culprits[0])
    if kernel:
        seen = pattern(*kernel)
        text = _of_kernel(failed, seen) + seen.where(samples)
        if simulator:
            text = f"Perhaps only because the exact draws are wrong, from which chains start: {text}"
        said.append(text)
    if failed & {RANKS.name, PAIRS.name}:
        said.append(_of_reversibility(failed, bool(kernel)))
    if failed & {ORDER.name, WEIGHTED_RANKS.name}:
        said.append(_of_annealing(failed, bool(simulator or kernel)))
    return tuple(said)


def _only_between(results: Sequence[TestResult], samples: Sequence[Sample]) -> bool:
    """Return whether only kernels between the ends of a path, and chains that go there, were found to be wrong."""
    between = {sample.subject.name for sample in samples if sample.subject.is_between}
    about = {"kernel", "reversibility", "between"}
    wrong = [result for result in results if result.fails]
    return any(one.subject in between for one in wrong) and all(
        (one.subject in between and one.test.about in about) or one.name in (ORDER.name, WEIGHTED_RANKS.name)
        for one in wrong
    )


def _of_simulator(failed: set[str], seen: _Pattern) -> str:
    if FLOW.name not in failed:
        if GRADIENT.name in failed:
            return "The gradient is wrong, while exact draws and log density agree as far as was seen."
        return (
            "Exact draws and gradient disagree, which the log density alone did not show: a small difference between "
            "simulator and density, or a support that ends where no bound is named."
        )
    if seen.only_discrete:
        return "Simulator and density give a discrete coordinate different masses: offset, end of support, or order."
    if seen.only_products:
        return "Simulator and density agree on each coordinate and not on how they depend on one another."
    if seen.only_scale:
        return "Simulator and density differ in scale: variance for sd, rate for scale, or a Jacobian."
    return FLOW.culprits[0]


def _of_kernel(failed: set[str], seen: _Pattern) -> str:
    if SEED_TEST.name in failed:
        return "All chains move alike because they share random numbers, so that their law is not looked at."
    if CARRIED.name in failed:
        return "The kernel decides by a stale log density."
    if failed & {HISTORY.name, MEMORY_TEST.name}:
        return "What the kernel remembers makes it wrong: adaptation within the run, or a cache."
    if STATES.name in failed:
        return "States that should have been rejected are accepted."
    if seen.only_discrete:
        return (
            "The kernel is wrong in discrete coordinates: proposals at the ends of the support are not corrected, an "
            "offset is missing, or a conditional draw has wrong masses."
        )
    if seen.only_bounded:
        return (
            "The kernel is wrong in bounded coordinates: proposals beyond a wall are redrawn or moved without a "
            "correction, or a transform's Jacobian is missing."
        )
    if seen.only_products:
        return (
            "Each coordinate keeps its law, as far as was seen, and their dependence does not: a conditional draw "
            "given old or wrong values, a wrong triangle of a Cholesky factor, or an integration error that is not "
            "corrected."
        )
    if seen.only_scale:
        return (
            "Draws get wider or narrower, and do not move to one side: the acceptance step is left out, a proposal's "
            "density or a Jacobian is missing, or a variance stands for an sd."
        )
    if seen.only_late:
        return (
            "A small bias of each step, which adds up: a term left out of the acceptance probability, or a rare branch."
        )
    return INVARIANCE.culprits[0]


def _of_reversibility(failed: set[str], is_wrong: bool) -> str:
    if is_wrong:
        return "That the kernel is not reversible either follows from its not being invariant."
    if PAIRS.name not in failed:
        return (
            "Ranks of exact draws in chains are not uniform: the kernel is not reversible, or it is not invariant in a "
            "way that the tests of invariance did not see."
        )
    return f"The kernel is invariant, as far as was seen, and not reversible. {PAIRS.culprits[0]}"


def _of_annealing(failed: set[str], is_wrong: bool) -> str:
    if WEIGHTS.name in failed:
        return "That annealed chains contradict Crooks' relation follows from their weights."
    if is_wrong:
        return "That annealed chains contradict Crooks' relation follows from what was found at the end of the path."
    return f"Both ends of the path are right, as far as was seen, and chains between them are not. {ORDER.culprits[0]}"


def notes_on(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return what limits the tests of these samples."""
    notes = []
    for sample in samples:
        name, n = sample.subject.name, len(sample)
        if not sample.has_kernel or not n:
            continue
        ends = sample.first[:, -1, :-1]
        moved = float((ends != sample.table[:, :-1]).any(axis=1).mean())
        if moved <= HARDLY_MOVES:
            notes.append(
                f"On '{name}' {moved:.0%} of chains moved in {sample.n_steps} steps: next to nothing was tested."
            )
        stuck = [
            coordinate
            for i, coordinate in enumerate(sample.subject.coordinates)
            if moved > HARDLY_MOVES and (ends[:, i] == sample.table[:, i]).all()
        ]
        if stuck:
            notes.append(f"On '{name}' the kernel never moved {_listed(stuck)}.")
        lost = int((~sample.sound_rows()).sum())
        if lost:
            notes.append(f"On '{name}' {lost} of {n} draws or their chains are not numbers and were left out.")
        if sample.annealed is not None and sample.annealed.gap > HIDES_ALL:
            gap = f"{sample.annealed.gap:.0f} nats apart" if np.isfinite(sample.annealed.gap) else "never both finite"
            notes.append(
                f"On '{name}' log weights of chains annealed forward and in reverse are {gap}: their order says next "
                "to nothing of tempering."
            )
    if any(sample.has_kernel for sample in samples) and not any(sample.subject.anneals for sample in samples):
        notes.append(NO_PATH)
    return tuple(notes)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
