"""`bread.evidence`: the log evidence of the model on the real data, and how well that is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
from scipy.stats import norm

from bread.errors import InvalidArgumentError
from bread.reading.evidence.evidence_chains import constant_error, observed_chains, require_evidence, simulated_chains
from bread.reading.evidence.evidence_table import estimator_table, simulated_table
from bread.reading.sentences.findings import FEWEST_SIMULATIONS, Findings, read_findings
from bread.reading.verdict import verdict
from bread.report.compat import read_attributes
from bread.report.opening import takes_report
from bread.statistics.bounds.betting import check_level
from bread.statistics.bounds.intervals import Interval, mean_interval
from bread.statistics.evidence.evidence import Estimate
from bread.statistics.evidence.evidence_interval import weight_interval

Kind = Literal["interval", "lower bound", "none"]

LARGEST_ERROR = 0.5  # V's limit beyond which half of the posterior may be where no chain goes


@dataclass(frozen=True, eq=False)
class Evidence:
    """The log evidence of a model on the real data, in nats; `print` it for sentences and a table.

    Attributes
    ----------
    log_evidence : float
        The recommended estimate: the log of the mean weight of forward chains on the real data (forward AIS).
    lower, upper : float
        Its limits at ``level``, two-sided. The lower one holds whatever the law of the weights is; ``upper`` is inf
        where ``kind`` is not "interval".
    kind : {"interval", "lower bound", "none"}
        "lower bound": no upper limit can be trusted. "none": the numbers mean nothing, or are known up to a constant
        only; both limits are infinite.
    reasons : tuple of str
        Why it is no interval; empty where it is.
    level : float
    n_chains, n_effective : int, float
        Forward chains on the real data, and how many equal weights theirs are worth.
    tail_index : float
        Of the weights: above 1/2 their variance is infinite. NaN where they are too few.
    allowance : float
        Nats in ``upper`` for what forward chains may never reach: -log(1 - V's limit).
    shortfall : Interval
        How far forward AIS with as few chains as there are a simulated data set lies below the log evidence there, at
        most, on average over them (upper end of the sandwich minus lower one), with its interval. NaN without any.
    n_temperatures : int
    path, simulate_from : str
    table : DataFrame
        One row an estimator, see `bread.evidence`.
    simulated : DataFrame
        One row a simulated data set, one column an estimator: log evidences, nats.
    """

    log_evidence: float
    lower: float
    upper: float
    kind: Kind
    reasons: tuple[str, ...]
    level: float
    n_chains: int
    n_effective: float
    tail_index: float
    allowance: float
    shortfall: Interval
    n_temperatures: int
    path: str
    simulate_from: str
    table: pd.DataFrame
    simulated: pd.DataFrame

    def __str__(self) -> str:
        """Return sentences and the table."""
        rows = self.table.drop(columns="note").to_string(float_format=lambda value: f"{value:.3f}", na_rep="-")
        return f"{self.sentence()}{self._on_simulated_data()}\n\n{rows}"

    def _on_simulated_data(self) -> str:
        if math.isnan(self.shortfall.estimate):
            return ""
        low, high = self.shortfall.lower, self.shortfall.upper
        limits = "" if math.isnan(low) else f" ({max(low, 0.0):.2g} to {high:.2g})"
        kind = "estimated to be " if self.simulate_from == "fitted" else ""
        return (
            f" On {len(self.simulated)} simulated data sets, with fewer chains, such an estimate is {kind}at most "
            f"{max(self.shortfall.estimate, 0.0):.2g} nats{limits} too low on average."
        )

    def sentence(self) -> str:
        """Return what to report, in words."""
        chains = f"{self.n_chains} forward chains on the real data, worth {self.n_effective:.0f}"
        why = "; ".join(self.reasons)
        if self.kind == "none":
            return f"No log evidence: {why}."
        if self.kind == "lower bound":
            return (
                f"Log evidence at least {self.lower:.2f} nats ({(1 + self.level) / 2:.1%} confidence; {chains}). Their "
                f"estimate is {self.log_evidence:.2f}, and no upper limit is given: {why}."
            )
        return (
            f"Log evidence {self.log_evidence:.2f} nats ({self.level:.0%} interval {self.lower:.2f} to "
            f"{self.upper:.2f}; {chains}). The upper end allows {self.allowance:.2f} nats for what forward chains miss "
            "on data like these."
        )


@takes_report
def evidence(report: Any, *, level: float = 0.95) -> Evidence:
    """Return the log evidence of the model on the real data with an honest interval, and every estimator beside it.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check`, reopened from a file, or the path of that file (netCDF or zarr). More ``draws=`` there make
        the interval shorter.
    level : float
        Two-sided confidence level.

    Returns
    -------
    Evidence
        The recommended number is ``log_evidence`` with ``lower`` and ``upper``; ``kind`` says what they are. Its
        ``table`` has a row for every estimator: ``log_evidence``, ``standard_error``, ``lower``, ``upper`` on the real
        data (NaN where it needs reverse chains, which need exact draws, or a fit to bridge from), ``direction``
        ("forward", "reverse", "both", or "fit": from the fit's draws, yours where you passed them), ``role``
        ("recommended", "estimate", "lower bound", "upper bound" or "warning"), and how it does on simulated data sets
        with few chains each: ``simulated_error``, its mean difference from Bennett's acceptance ratio there, and
        ``simulated_sd``; ``note``. Nats throughout.

    Raises
    ------
    InvalidArgumentError
        The report is of ``simulate_from="localised"`` (another prior than yours) or of `bread.debug`, or no real data
        were annealed.

    Notes
    -----
    The mean weight of forward chains is unbiased, so that a lower limit exists whatever the weights are like, and
    no upper one: mass that no chain met has no weight. An upper limit is given where at least 50 effective weights, a
    tenth of all, have a tail with a variance, no chain failed, no mode is known to be missed, and at least 10
    simulated data sets were annealed in reverse from exact draws. It then has -log(1 - V's limit) nats added: mass m
    that forward chains never reach costs -log(1 - m) nats, and m is at most V on average over simulated data sets.
    Priors that bread found to integrate to something else than one count as normalised, along every path; a constant
    that is missing from the likelihood is missing here too. Values measured with other units or transformed have
    another evidence.

    References
    ----------
    Grosse, Ghahramani & Adams (2015), "Sandwiching the marginal likelihood using bidirectional Monte Carlo"; Habeck
    (2017), "Model evidence from nonequilibrium simulations".
    """
    check_level(level)
    require_evidence(report)
    chains = observed_chains(report)
    if chains is None or not len(chains.log_weight):
        raise InvalidArgumentError(
            "The report has no annealed chains on the real data: the check ended before. Run bread.check again."
        )
    attributes, findings = read_attributes(report), read_findings(report)
    interval = weight_interval(chains.log_weight, level)
    error, unknown = constant_error(report)
    margin = float(norm.ppf((1.0 + level) / 2.0)) * error
    broken = _why_none(str(verdict(report).status), unknown)
    doubts = (*interval.doubts, *_doubts(findings, chains.n_failed, str(verdict(report).status)))
    kind: Kind = "none" if broken else ("lower bound" if doubts else "interval")
    allowance = -math.log1p(-findings.error_upper) if kind == "interval" else float("nan")
    simulated = simulated_table(simulated_chains(report))
    bridge = Estimate(*(float(attributes.get(f"fit_log_evidence{what}", math.nan)) for what in ("", "_error")))
    limits = (interval.lower - margin, interval.upper + margin + allowance if kind == "interval" else math.inf)
    if kind == "none":
        limits = (-math.inf, math.inf)
    return Evidence(
        log_evidence=interval.value,
        lower=limits[0],
        upper=limits[1],
        kind=kind,
        reasons=broken + doubts,
        level=level,
        n_chains=len(chains.log_weight),
        n_effective=interval.n_effective,
        tail_index=interval.tail,
        allowance=allowance,
        shortfall=_shortfall(simulated, level),
        n_temperatures=chains.n_temperatures,
        path=str(attributes.get("path", "prior")),
        simulate_from=str(attributes.get("simulate_from", "prior")),
        table=estimator_table(chains, simulated, limits, level, bridge),
        simulated=simulated,
    )


def _why_none(status: str, unknown: str) -> tuple[str, ...]:
    """Return why the numbers mean nothing."""
    reasons = ["bread.verdict says that model, simulator or sampler have a bug"] if status == "bug" else []
    return tuple(reasons + ([unknown] if unknown else []))


def _doubts(findings: Findings, n_failed: int, status: str) -> tuple[str, ...]:
    """Return why there is no upper limit, apart from the weights."""
    doubts = []
    if n_failed:
        doubts.append(f"{n_failed} chains on the real data failed, and count as weights of zero")
    if findings.misses_mode:
        doubts.append("a mode on the real data is missed")
    if status == "mismatch":
        doubts.append("the real data anneal unlike simulated data, so that these say nothing about the chains here")
    if findings.is_fit_doubtful:
        doubts.append("the fit that data were simulated from is doubtful")
    if findings.n_simulations < FEWEST_SIMULATIONS:
        doubts.append(
            f"{findings.n_simulations} simulated data sets were annealed both ways, and {FEWEST_SIMULATIONS} are "
            "needed to see what forward chains miss"
        )
    elif not findings.error_upper <= LARGEST_ERROR:
        doubts.append(
            f"on simulated data forward chains may miss much of the posterior (V up to {findings.error_upper:.2f}, "
            f"and {LARGEST_ERROR} is allowed)"
        )
    return tuple(doubts)


def _shortfall(simulated: pd.DataFrame, level: float) -> Interval:
    """Return the mean distance of the sandwich's ends over simulated data sets, nats."""
    if not len(simulated):
        return Interval(math.nan, math.nan, math.nan)
    return mean_interval((simulated["sandwich, upper"] - simulated["forward AIS"]).to_numpy(), level)
