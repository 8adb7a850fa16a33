"""What the battery found, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bread.debugging.finding import BatteryTest, Finding
from bread.debugging.subject import FloatArray
from bread.statistics.exactness.functions import Label


@dataclass(frozen=True, eq=False)
class TestResult:
    """One test on one subject.

    Attributes
    ----------
    subject : str
    test : BatteryTest
        What it checks, by which law, and what usually makes it fail.
    p_value : float
        Adjusted for comparisons, rounds, tests and subjects: at most the level if it fails. NaN if nothing was tested.
    finding : Finding
        Of the last round, or of the first in which it failed.
    rounds : int
        How many were run.
    seconds : float
        Spent on its statistics; what draws and chains cost is shared by all tests.
    fails : bool
    """

    __test__ = False  # pytest takes it for a test otherwise

    subject: str
    test: BatteryTest
    p_value: float
    finding: Finding
    rounds: int
    seconds: float
    fails: bool

    @property
    def name(self) -> str:
        """The test's name."""
        return self.test.name

    @property
    def labels(self) -> tuple[Label, ...]:
        """Quantity and function of each comparison."""
        return self.finding.labels

    @property
    def p_values(self) -> FloatArray:
        """Of each comparison, not adjusted; NaN where not tested."""
        return self.finding.p_values

    @property
    def effect(self) -> FloatArray:
        """Of each comparison, in the test's ``effect_unit``; 0 in theory."""
        return self.finding.effect

    @property
    def n(self) -> int:
        """Independent draws behind it."""
        return self.finding.n


class Detectable(NamedTuple):
    """What would have been found with probability 0.95, at this level and number of draws; NaN where not known.

    Normal approximation, and only one comparison is counted, which makes it cautious. The worst coordinate of the worst
    subject.

    Attributes
    ----------
    kernel_shift : float
        Shift of one coordinate in chains, in its standard deviations.
    kernel_scale : float
        Relative error of one coordinate's scale in chains.
    draws_shift, draws_scale : float
        The same, of exact draws against the density.
    """

    kernel_shift: float
    kernel_scale: float
    draws_shift: float
    draws_scale: float


@dataclass(frozen=True, eq=False)
class BatteryResult:
    """Result of `run_battery`.

    Attributes
    ----------
    tests : tuple of TestResult
        Subject by subject.
    left_out : dict of (str, str) to str
        Subject and test that was not run, and why.
    level : float
        Probability of at most this that a right set of subjects fails any test.
    alarm : bool
        A test failed of which a right kernel passes all: a bug. Reversibility counts only where it was asked for.
    is_reversible : bool
        False: a test of reversibility failed. Without ``alarm``: "invariant, as far as was seen, and not reversible".
        True means that none failed, or that none was run.
    p_value : float
        Smallest adjusted p-value of those that count for ``alarm``.
    diagnosis : tuple of str
        What is likely to be wrong, most likely first; empty if nothing failed.
    notes : tuple of str
        What limits the tests: a kernel that hardly moves, ...
    detectable : Detectable
        Of the subject where least is seen.
    spent, budget : int
        Steps; five evaluations of a density count as one.
    seconds : float
    detectable_by : dict of str to Detectable
        The same, of each subject.
    """

    tests: tuple[TestResult, ...]
    left_out: Mapping[tuple[str, str], str]
    level: float
    alarm: bool
    is_reversible: bool
    p_value: float
    diagnosis: tuple[str, ...]
    notes: tuple[str, ...]
    detectable: Detectable
    spent: int
    budget: int
    seconds: float
    detectable_by: Mapping[str, Detectable] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[TestResult, ...]:
        """Tests that failed, smallest p-value first; reversibility last."""
        found = [result for result in self.tests if result.fails]
        return tuple(sorted(found, key=lambda result: (result.test.about == "reversibility", result.p_value)))
