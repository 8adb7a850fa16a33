"""The verdict: one status, and a few plain sentences that say what the number means and what to do next."""

from __future__ import annotations

import math
from typing import Any, Literal

from bread.reading import sentences as _sentences
from bread.reading.findings import EXACT_SIMULATIONS, Findings, read_findings
from bread.report.opening import takes_report

Status = Literal["bug", "mismatch", "converged", "not converged", "inconclusive"]

BUG_LEVEL = 0.005  # of each of two exact tests: 0.01 together
MISMATCH_LEVEL = 0.05


class Verdict(str):
    """The sentences of a verdict, with its numbers as attributes.

    Attributes
    ----------
    status : {"bug", "mismatch", "converged", "not converged", "inconclusive"}
    estimate, ci_lower, ci_upper : float
        The bound that decides, in nats, and its confidence interval.
    bound : {"jeffreys", "kl_exact_approx"}
        Which bound that is: B, or the one-sided bound of KL(p||q) where B has no finite mean.
    target : float
        Nats.
    total_variation : float
        On average over simulated data sets, no probability computed from one draw is off by more than this.
    n_temperatures, n_simulations : int
    consistency_p_value, effect : float
        Do the real data anneal like simulated data? The difference in nats (positive: harder).
    alarm_p_value, rank_p_value : float
        Of the theory alarm and of the weighted ranks.
    agreement : bool or None
        Whether the user's own draws agree with the annealed draws on the real data; None where that is not known.
    gap_location : float
        Inverse temperature below which half of the gap arises.
    """

    status: Status
    estimate: float
    ci_lower: float
    ci_upper: float
    bound: str
    target: float
    total_variation: float
    n_temperatures: int
    n_simulations: int
    consistency_p_value: float
    effect: float
    alarm_p_value: float
    rank_p_value: float
    agreement: bool | None
    gap_location: float

    def __new__(cls, text: str, **numbers: Any) -> Verdict:
        """Return the sentences ``text`` with these attributes."""
        verdict = super().__new__(cls, text)
        verdict.__dict__.update(numbers)
        return verdict

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the attributes."""
        return (_restore, (str(self), dict(self.__dict__)))


def _restore(text: str, numbers: dict[str, Any]) -> Verdict:
    return Verdict(text, **numbers)


@takes_report
def verdict(report: Any) -> Verdict:
    """Say in plain words what a report found.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check`, reopened from a file, or the path of that file (netCDF or zarr).

    Returns
    -------
    Verdict
        A string of two to four sentences with the attribute ``status``, the first of these that holds:

        * "bug": simulated from the prior, and an exact test (theory alarm or weighted ranks) has p <= 0.005;
        * "mismatch": the real data do not anneal like simulated data (p < 0.05), so the bound says little about them;
        * "converged": the upper end of the interval is at most the target;
        * "not converged": the lower end is above the target, or B is infinite. B is an upper bound, so this means
          "not shown to be near", never "wrong";
        * "inconclusive": the interval contains the target, or the check did not finish, or had one simulation.

        Numbers are about annealed draws with this kernel and schedule; only agreement with draws given as
        ``posterior=`` carries them over to those.

    Raises
    ------
    InvalidArgumentError
        It is no report of bread.
    """
    findings = read_findings(report)
    status = _status(findings)
    return Verdict(
        _sentences.text(findings, status),
        status=status,
        estimate=findings.estimate,
        ci_lower=findings.lower,
        ci_upper=findings.upper,
        bound="jeffreys" if findings.is_jeffreys else "kl_exact_approx",
        target=findings.target,
        total_variation=findings.total_variation,
        n_temperatures=findings.n_temperatures,
        n_simulations=findings.n_simulations,
        consistency_p_value=findings.consistency_p_value,
        effect=findings.effect,
        alarm_p_value=findings.alarm_p_value,
        rank_p_value=findings.rank_p_value,
        agreement=findings.agreement,
        gap_location=findings.gap_beta,
    )


def _status(findings: Findings) -> Status:
    """Return the first status that holds; comparisons with NaN (not tested) are False."""
    is_exact = findings.simulate_from in EXACT_SIMULATIONS
    if is_exact and (findings.alarm_p_value <= BUG_LEVEL or findings.rank_p_value <= BUG_LEVEL):
        return "bug"
    if findings.consistency_p_value < MISMATCH_LEVEL:
        return "mismatch"
    if findings.is_interrupted or not findings.is_confirmed or findings.n_failed:
        return "inconclusive"
    if findings.is_jeffreys and math.isinf(findings.jeffreys):
        return "not converged"
    if not findings.is_reliable or findings.n_simulations < 2:
        return "inconclusive"
    if findings.upper <= findings.target:
        return "converged"
    if findings.lower > findings.target:
        return "not converged"
    return "inconclusive"
