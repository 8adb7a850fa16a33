"""What a test of the battery is, and what it says about one sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from bread.debugging.sample import Sample
from bread.debugging.subject import FloatArray
from bread.statistics.agreement.probability_plots import ProbabilityPlot
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.exactness.functions import Label

About = Literal["simulator", "gradient", "kernel", "reversibility", "annealing", "between", "ensemble"]


class Curves(NamedTuple):
    """P-P plots of some of the functions that were compared, those with the smallest p-values."""

    labels: tuple[Label, ...]
    plot: ProbabilityPlot


@dataclass(frozen=True, eq=False)
class Finding:
    """What a test says about one sample; k comparisons.

    Attributes
    ----------
    labels : tuple of Label, length k
        Quantity and function of each comparison.
    p_values : ndarray, shape (k,)
        Not adjusted; NaN where not tested. Of a comparison without chance: 0 if it fails, 1 if not.
    effect : ndarray, shape (k,)
        In the unit that the test's ``effect_unit`` says; 0 in theory.
    n : int
        Independent draws behind it.
    spread : ndarray, shape (k,), or None
        Standard deviation of one draw's difference, divided by the share of a constant error of the chains' law that
        it shows: what could have been seen follows.
    note : str
        What was found in words, where numbers do not say it.
    curves : Curves or None
        P-P plots, where a test is about two samples that go together.
    """

    labels: tuple[Label, ...]
    p_values: FloatArray
    effect: FloatArray
    n: int
    spread: FloatArray | None = None
    note: str = ""
    curves: Curves | None = None

    @property
    def p_value(self) -> float:
        """Bonferroni over the comparisons; NaN if nothing was tested."""
        return combined_p_value(self.p_values)

    @property
    def n_tested(self) -> int:
        """Comparisons that were made."""
        return int((~np.isnan(self.p_values)).sum())

    @property
    def worst(self) -> Label | None:
        """The comparison with the smallest p-value; None if nothing was tested."""
        return self.labels[int(np.nanargmin(self.p_values))] if self.n_tested else None


@dataclass(frozen=True)
class LeftOut:
    """A test that was not run, and why."""

    reason: str


@dataclass(frozen=True)
class BatteryTest:
    """One test of the battery.

    Attributes
    ----------
    name : str
    about : str
        What a failure is about: "simulator", "gradient", "kernel", "annealing" (asked of subjects that anneal alone),
        "between" (of those between the ends of a path), "ensemble" (of those with several walkers) or
        "reversibility", which a right kernel may lack.
    checks : str
        What is compared with what.
    law : str
        Why a right subject passes: the law of the p-value, or the assumption made.
    culprits : tuple of str
        What usually makes it fail, most likely first.
    effect_unit : str
    run : callable
        ``run(sample)`` returns a `Finding` or `LeftOut`.
    is_random : bool
        False: nothing is left to chance, a failure is a contradiction and no level is spent.
    needs : tuple of str
        Names in `Subject.missing` without which it is left out.
    once : bool
        It looks at chains of its own, in the first round only.
    before_chains : bool
        It looks at the pilot alone, before any other chain runs, and says whether others may run beside one another.
    """

    name: str
    about: About
    checks: str
    law: str
    culprits: tuple[str, ...]
    effect_unit: str
    run: Callable[[Sample], Finding | LeftOut]
    is_random: bool = True
    needs: tuple[str, ...] = ()
    once: bool = False
    before_chains: bool = False


def certain(failed: Sequence[tuple[Label, float, str]], labels: Sequence[Label], n: int) -> Finding:
    """Return the finding of comparisons without chance.

    Parameters
    ----------
    failed : sequence of (Label, effect, text)
        Those that failed; ``text`` says how.
    labels : sequence of Label
        All that were made.
    n : int
    """
    effect = {label: size for label, size, _ in failed}
    p_values = np.array([0.0 if label in effect else 1.0 for label in labels])
    sizes = np.array([effect.get(label, 0.0) for label in labels])
    return Finding(tuple(labels), p_values, sizes, n, note=" ".join(text for _, _, text in failed))
