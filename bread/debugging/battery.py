"""The battery: every test on every subject, in rounds of doubled size, until decided or until the budget is spent.

How the level is held: a test of chance in round j, one of M on all subjects together, has the p-value min(1, F *
smallest) over its F comparisons; it fails if that is at most level / (M * j * (j + 1)). Over all tests and rounds
these add up to the level, whatever was seen when it was decided to go on (Bonferroni; 1/2 + 1/6 + 1/12 + ... = 1).
Rounds add to the draws of those before, and a pilot on draws of its own fixes their sizes. Tests without chance spend
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from bread.debugging.annealing_tests import ANNEALING_TESTS
from bread.debugging.between_tests import BETWEEN_TESTS
from bread.debugging.detectable import what_was_detectable, worst_of
from bread.debugging.diagnosis import diagnose, notes_on
from bread.debugging.ensemble_tests import ENSEMBLE_TESTS
from bread.debugging.finding import BatteryTest, Finding, LeftOut
from bread.debugging.gradient_tests import GRADIENT_TESTS
from bread.debugging.kernel_tests import KERNEL_TESTS
from bread.debugging.randomness_tests import RANDOMNESS_TESTS
from bread.debugging.results import BatteryResult, TestResult
from bread.debugging.reversibility_tests import REVERSIBILITY_TESTS
from bread.debugging.sample import Sample
from bread.debugging.simulator_tests import SIMULATOR_TESTS
from bread.debugging.subject import Subject
from bread.debugging.worker_pool import WorkerPool
from bread.errors import InvalidArgumentError
from bread.seeds import root_entropy

TESTS: tuple[BatteryTest, ...] = (
    *SIMULATOR_TESTS,
    *GRADIENT_TESTS,
    *RANDOMNESS_TESTS,
    *KERNEL_TESTS,
    *REVERSIBILITY_TESTS,
    *ENSEMBLE_TESTS,
    *ANNEALING_TESTS,
    *BETWEEN_TESTS,
)
LEVEL = 0.01
BUDGET = 500_000  # steps: about 10 s where each costs 20 microseconds
FEWEST = 250  # draws in the first round
PLANNED = 0.7  # of the budget; the rest is for subjects on which something looks wrong. All of it for a single one.
MOST_ROUNDS = 8
SLACK = 1.1  # costs are estimates
SHARE_OF_STEPS = 0.5  # of the budget, for the steps of two first rounds
UNCLEAR = 0.1  # p-value of a test, corrected for its comparisons alone: such subjects get their next round first


def suited_tests(subject: Subject) -> tuple[BatteryTest, ...]:
    """Return the tests of a subject: of annealing only where there is a path, of walkers only where there are some."""
    unsuited = {
        about for about, is_so in (("annealing", subject.anneals), ("between", subject.is_between)) if not is_so
    }
    if subject.n_walkers < 2:
        unsuited.add("ensemble")
    return tuple(test for test in TESTS if test.about not in unsuited)


def n_tests_of_chance(subjects: Sequence[Subject]) -> int:
    """Return how many tests share the level."""
    return sum(test.is_random for subject in subjects for test in suited_tests(subject))


class _Trial:
    """One subject: its sample, and what its tests have said so far."""

    def __init__(self, sample: Sample, planned: float, multiplicity: int, level: float) -> None:
        self.sample = sample
        n_draws = int((planned - sample.spent) / sample.cost_of_draw)
        self.planned_rounds = int(np.clip(np.log2(max(n_draws, FEWEST) / FEWEST) + 1, 1, MOST_ROUNDS))
        self._first_round = max(FEWEST, n_draws // 2 ** (self.planned_rounds - 1))
        self.rounds = 0
        self.left_out: dict[str, str] = {}
        self.is_unclear = False
        self._multiplicity, self._level = multiplicity, level
        self._results: dict[str, TestResult] = {}

    @property
    def results(self) -> tuple[TestResult, ...]:
        return tuple(self._results[test.name] for test in TESTS if test.name in self._results)

    def cost_of_next(self) -> float:
        """Return about what the next round costs."""
        return float(self._first_round * 2 ** max(self.rounds - 1, 0) * self.sample.cost_of_draw)

    def look_before_chains(self) -> None:
        """Run what looks at the pilot alone: chains may run anywhere if it does not fail."""
        self._run([test for test in suited_tests(self.sample.subject) if test.before_chains])
        self.sample.spreads = not any(result.fails for result in self._results.values())

    def next_round(self) -> None:
        self.rounds += 1
        self.sample.grow(self._first_round * 2 ** (self.rounds - 1))
        due = [
            test
            for test in suited_tests(self.sample.subject)
            if not test.before_chains and not (test.once and self.rounds > 1)
        ]
        self.is_unclear = any(
            test.is_random and finding.p_value < UNCLEAR for test, finding in self._run(due) if finding is not None
        )

    def _run(self, tests: Sequence[BatteryTest]) -> list[tuple[BatteryTest, Finding | None]]:
        """Run tests, and return what each found; None for one that is left out."""
        found: list[tuple[BatteryTest, Finding | None]] = []
        for test in tests:
            reasons = [self.sample.subject.missing[need] for need in test.needs if need in self.sample.subject.missing]
            began = perf_counter()
            finding = LeftOut("; ".join(reasons)) if reasons else test.run(self.sample)
            if isinstance(finding, LeftOut):
                found.append((test, None))
                if test.name not in self._results:
                    self.left_out[test.name] = finding.reason
                continue
            self._note(test, finding, perf_counter() - began)
            found.append((test, finding))
        return found

    def _note(self, test: BatteryTest, finding: Finding, seconds: float) -> None:
        self.left_out.pop(test.name, None)
        spending = self._multiplicity * self.rounds * (self.rounds + 1) if test.is_random else 1
        p_value = float(min(1.0, spending * finding.p_value)) if finding.n_tested else float("nan")
        before = self._results.get(test.name)
        if before is not None:
            seconds += before.seconds
            if before.fails or np.isnan(p_value):
                finding = before.finding
            p_value = float(np.fmin(p_value, before.p_value))
        fails = bool(p_value <= self._level)
        self._results[test.name] = TestResult(
            self.sample.subject.name, test, p_value, finding, max(1, self.rounds), seconds, fails
        )


def run_battery(
    subjects: Sequence[Subject],
    *,
    level: float = LEVEL,
    budget: int = BUDGET,
    seed: int | None = None,
    reversible: bool = False,
    pool: WorkerPool | None = None,
) -> BatteryResult:
    """Run all tests on all subjects.

    Parameters
    ----------
    subjects : sequence of Subject
        Often one kernel on many targets. Names must differ.
    level : float
        Largest probability that anything is called wrong where all is right: of ``alarm`` and of ``not
        is_reversible`` together. Holds exactly but for the t tests, which are cautious, and for the assumptions that
        tests without chance state.
    budget : int
        Largest number of kernel steps, all subjects together (or of evaluations, where the subject counts them); five
        evaluations of a log density outside of the kernel count as one step. The first round of every subject is run
        whatever it costs; later rounds go to subjects on which something looks wrong before others.
    seed : int, optional
        Root of all random numbers; fresh entropy for None. What is found depends on nothing else: not on time.
    reversible : bool
        Whether a kernel that is not reversible is a bug, as it is where chains are run in reverse.
    pool : WorkerPool, optional
        What runs chains, loaded with these subjects; they run in this process by default. The result is the same.

    Returns
    -------
    BatteryResult

    Raises
    ------
    InvalidArgumentError
        No subjects, two of one name, or a level or budget out of range.
    """
    names = [subject.name for subject in subjects]
    if not names or len(set(names)) < len(names):
        raise InvalidArgumentError(f"subjects must be one or more with names that differ, but got {names}.")
    if not 0.0 < level < 1.0 or budget < 1:
        raise InvalidArgumentError(f"level must lie in (0, 1) and budget be positive, but got {level} and {budget}.")
    began = perf_counter()
    root = root_entropy(seed)
    longest = int(SHARE_OF_STEPS * budget / (len(names) * 2 * 2 * FEWEST))
    planned = budget * (PLANNED if len(names) > 1 else 1.0) / len(names)
    n_random = n_tests_of_chance(subjects)
    trials = [
        _Trial(Sample(subject, root, index, longest, pool), planned, n_random, level)
        for index, subject in enumerate(subjects)
    ]
    for trial in trials:
        trial.look_before_chains()
    while _one_round(trials, budget, pool, began) and not _is_decided(trials, reversible):
        pass
    results = tuple(result for trial in trials for result in trial.results)
    counted = [r for r in results if reversible or r.test.about != "reversibility"]
    tested = [r.p_value for r in counted if not np.isnan(r.p_value)]
    samples = [trial.sample for trial in trials]
    detectable = what_was_detectable(results, samples, level / n_random)
    return BatteryResult(
        results,
        {(trial.sample.subject.name, test): why for trial in trials for test, why in trial.left_out.items()},
        level,
        any(r.fails for r in counted),
        not any(r.fails for r in results if r.test.about == "reversibility"),
        min(tested, default=float("nan")),
        diagnose(results, samples, level / n_random),
        notes_on(samples),
        worst_of(detectable.values()),
        round(sum(sample.spent for sample in samples)),
        budget,
        perf_counter() - began,
        detectable,
    )


def _one_round(trials: Sequence[_Trial], budget: int, pool: WorkerPool | None, began: float) -> bool:
    """Run the next round of every subject that the budget allows for; return whether there was any."""

    def spent() -> float:
        return sum(trial.sample.spent for trial in trials)

    def is_due(trial: _Trial) -> bool:
        is_planned = trial.rounds < trial.planned_rounds or (trial.is_unclear and trial.rounds < MOST_ROUNDS)
        return not trial.rounds or (is_planned and spent() + trial.cost_of_next() <= SLACK * budget)

    if pool is not None and any(trial.sample.spreads for trial in trials):
        cost = sum(trial.cost_of_next() for trial in trials if is_due(trial))
        pool.expect(cost * (perf_counter() - began) / max(spent(), 1.0))
    did_any = False
    for trial in sorted(trials, key=lambda trial: not trial.is_unclear):
        if is_due(trial):
            trial.next_round()
            did_any = True
    return did_any


def _is_decided(trials: Sequence[_Trial], reversible: bool) -> bool:
    """Return whether an alarm has rung: that is never taken back."""
    return any(
        result.fails and (reversible or result.test.about != "reversibility")
        for trial in trials
        for result in trial.results
    )
