"""`bread.bayes_factor`: which of two models the real data favour, and how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bread.errors import InvalidArgumentError
from bread.reading.evidence.evidence import Evidence, evidence
from bread.reading.evidence.evidence_chains import require_evidence
from bread.report.compat import read_group
from bread.report.opening import opened_report
from bread.statistics.bounds.betting import check_level

SCALE = ((1.0, "hardly worth a mention"), (3.0, "positive"), (5.0, "strong"), (math.inf, "very strong"))


@dataclass(frozen=True, eq=False)
class BayesFactor:
    """The log Bayes factor of model a over model b, in nats; `print` it for a sentence and a table.

    Attributes
    ----------
    log_bayes_factor : float
        Log evidence of a minus that of b.
    lower, upper : float
        Its interval at ``level``; infinite where one of the two evidences has no limit on that side.
    level : float
    favoured : {"a", "b", "undecided"}
        The model on whose side of 0 the whole interval lies.
    strength : str
        How strong the evidence is at least, by the end of the interval nearest to 0, on the scale of Kass & Raftery
        (1995): "hardly worth a mention" (below 1 nat), "positive" (1 to 3), "strong" (3 to 5), "very strong". "" where
        undecided.
    evidence_a, evidence_b : Evidence
        Each at a level such that both hold at once with ``level``.
    """

    log_bayes_factor: float
    lower: float
    upper: float
    level: float
    favoured: str
    strength: str
    evidence_a: Evidence
    evidence_b: Evidence

    @property
    def table(self) -> pd.DataFrame:
        """A row for each model and one for the factor: ``log_evidence``, ``lower``, ``upper``, ``kind``; nats."""
        rows: list[tuple[float, float, float, str, str]] = [
            (one.log_evidence, one.lower, one.upper, one.kind, "; ".join(one.reasons))
            for one in (self.evidence_a, self.evidence_b)
        ]
        rows.append((self.log_bayes_factor, self.lower, self.upper, self.favoured, self.strength))
        index = pd.Index(["a", "b", "a over b"], name="model")
        return pd.DataFrame(rows, columns=["log_evidence", "lower", "upper", "kind", "note"], index=index)

    def __str__(self) -> str:
        """Return a sentence and the table."""
        return f"{self.sentence()}\n\n{self.table.drop(columns='note').to_string(float_format=lambda x: f'{x:.2f}')}"

    def sentence(self) -> str:
        """Return what to report, in words."""
        limits = f"{self.level:.0%} interval {self.lower:.2f} to {self.upper:.2f}"
        if self.favoured == "undecided":
            reasons = [
                f"Of model {name}: {'; '.join(one.reasons)}."
                for name, one in (("a", self.evidence_a), ("b", self.evidence_b))
                if one.reasons
            ]
            why = " ".join(reasons) or "More draws on the real data (draws=) make the interval shorter."
            return f"Undecided: the log Bayes factor of a over b is {self.log_bayes_factor:.2f} nats ({limits}). {why}"
        other = "b" if self.favoured == "a" else "a"
        return (
            f"The data favour model {self.favoured} over {other}: the log Bayes factor of a over b is "
            f"{self.log_bayes_factor:.2f} nats ({limits}), {self.strength} at least."
        )


def bayes_factor(report_a: Any, report_b: Any, *, level: float = 0.95) -> BayesFactor:
    """Return the log Bayes factor of two models of the same data, with an interval and what it decides.

    Parameters
    ----------
    report_a, report_b : InferenceData, DataTree or path
        From `bread.check` on the same observed data, or the paths of their files.
    level : float
        Two-sided confidence level of the interval. Each evidence has its own at (1 + level) / 2, so that both hold at
        once; the factor's ends are differences of theirs.

    Returns
    -------
    BayesFactor
        ``favoured`` is "undecided" unless the whole interval lies on one side of 0. A report whose evidence is a lower
        bound can still win, if the other has an upper limit below it. A factor is about priors as much as about
        likelihoods: it moves with the width of every prior.

    Raises
    ------
    InvalidArgumentError
        The reports have other observed data, as far as values tell, or none; or one has no evidence of the user's
        model (see `bread.evidence`).

    References
    ----------
    Kass & Raftery (1995), "Bayes factors", JASA 90, 773-795, section 3.2: the scale.
    """
    check_level(level)
    with opened_report(report_a) as a, opened_report(report_b) as b:
        for name, report in (("report_a", a), ("report_b", b)):
            require_evidence(report, name)
        _require_same_data(a, b)
        own = (1.0 + level) / 2.0
        return compare_evidence(evidence(a, level=own), evidence(b, level=own), level)


def compare_evidence(one: Evidence, other: Evidence, level: float) -> BayesFactor:
    """Return the log Bayes factor of ``one`` over ``other``, each at a level of (1 + level) / 2."""
    lower, upper = one.lower - other.upper, one.upper - other.lower
    favoured, strength = "undecided", ""
    if lower > 0.0 or upper < 0.0:
        favoured = "a" if lower > 0.0 else "b"
        least = lower if lower > 0.0 else -upper
        strength = next(words for limit, words in SCALE if least <= limit)
    difference = one.log_evidence - other.log_evidence if one.log_evidence != other.log_evidence else 0.0
    return BayesFactor(difference, lower, upper, level, favoured, strength, one, other)


def _require_same_data(a: Any, b: Any) -> None:
    """Raise InvalidArgumentError unless both reports have the same observed values, under whatever names."""
    values = [_observed(report, name) for report, name in ((a, "report_a"), (b, "report_b"))]
    if set(values[0]) == set(values[1]):
        differing = [name for name in values[0] if not _are_same(values[0][name], values[1][name])]
        if not differing:
            return
        shapes = [" and ".join(str(found[name].shape) for found in values) for name in differing]
        what = f"{differing[0]!r} has other values (shapes {shapes[0]})"
    else:
        left = list(values[1].values())
        for array in values[0].values():
            match = next((place for place, item in enumerate(left) if _are_same(array, item)), None)
            if match is None:
                break
            del left[match]
        else:
            if not left:
                return
        what = f"one observes {', '.join(sorted(values[0]))}, the other {', '.join(sorted(values[1]))}"
    raise InvalidArgumentError(
        f"The reports are of different observed data: {what}. A Bayes factor compares models of the same values, in "
        "the same order and units. Run bread.check of both models on the same data."
    )


def _observed(report: Any, name: str) -> dict[str, NDArray[Any]]:
    group = read_group(report, "observed_data")
    if group is None or not len(group.data_vars):
        raise InvalidArgumentError(f"{name} holds no observed data, so that nobody can tell whether they are the same.")
    return {str(variable): np.asarray(values.values) for variable, values in group.data_vars.items()}


def _are_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.shape != other.shape:
        return False
    is_number = all(np.issubdtype(array.dtype, np.number) or array.dtype == bool for array in (one, other))
    if not is_number:
        return bool(np.array_equal(one, other))
    return bool(np.array_equal(one.astype(np.float64), other.astype(np.float64), equal_nan=True))
