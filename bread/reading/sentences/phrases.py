"""Phrases about findings that several sentences of a verdict share."""

from __future__ import annotations

import math

from bread.reading.sentences.findings import EXACT_SIMULATIONS, Findings
from bread.reading.sentences.fit_quality import doubt
from bread.reading.sentences.modes import none_found
from bread.reading.sentences.numbers import equals, error, percent_of, with_unit
from bread.reading.sentences.quantities import furthest
from bread.reading.sentences.words import p_words


def estimated(findings: Findings, verb: str) -> str:
    """Return "are", or "are estimated to be" where simulations are not exact."""
    return verb if findings.simulate_from in EXACT_SIMULATIONS else f"{verb} estimated to be"


def temperatures(findings: Findings) -> str:
    """Return "64 temperatures"."""
    return f"{findings.n_temperatures} temperatures"


def data_sets(findings: Findings) -> str:
    """Return "20 simulated data sets"."""
    plural = "" if findings.n_simulations == 1 else "s"
    return f"{findings.n_simulations} simulated data set{plural}"


def interval(findings: Findings) -> str:
    """Return the limits of the bound that decides, in brackets; "" where they are not known."""
    if math.isnan(findings.lower) or math.isnan(findings.upper):
        return ""
    return f" ({bound(findings, findings.lower)} to {bound(findings, findings.upper)})"


def bound(findings: Findings, value: float) -> str:
    """Return a value of the bound that decides, with its unit."""
    return error(value) if findings.decides == "V" else with_unit(value)


def nats_limit(findings: Findings) -> str:
    """Return B, and its limit where that decides; "" where it has no finite mean."""
    if findings.decides == "B":
        return f"B {equals(findings.estimate)}, limit {with_unit(findings.upper)}"
    if not math.isfinite(findings.jeffreys):
        return "B is infinite"
    return f"B {equals(findings.jeffreys)}" if findings.is_reliable else ""


def or_one(p_value: float) -> float:
    """Return a p-value, 1 where nothing was tested."""
    return 1.0 if math.isnan(p_value) else p_value


def ratio(findings: Findings) -> str:
    """Return what the log ratios along the path are ratios of: "likelihood"."""
    return findings.log_ratio_name.removeprefix("log ")


def in_brackets(*parts: str) -> str:
    """Return what there is, in brackets."""
    known = [part for part in parts if part]
    return f" ({'; '.join(known)})" if known else ""


def is_difference(findings: Findings) -> bool:
    """Return whether the draws' difference is all that stands between the check and "converged"."""
    return findings.is_certified and findings.draws is not None and findings.draws.status == "difference"


def doubt_of_fit(findings: Findings) -> str:
    """Say what is wrong with the fit; of its draws one effective size is said in all sentences."""
    draws, fit = findings.draws, findings.fit_quality
    is_said = draws is not None and draws.status == "too few draws"
    return (
        "" if fit is None else doubt(fit, (draws.fewest, draws.fewest_name) if draws is not None and is_said else None)
    )


def near(findings: Findings) -> str:
    """Say how near certified draws are to the posterior."""
    return (
        f"Draws of annealed {findings.kernel} ({temperatures(findings)}) {estimated(findings, 'are')} within "
        f"{error(findings.error_upper)} of the posterior: on average over data sets like yours, no probability "
        f"computed from one of them is off by more{in_brackets(nats_limit(findings))}."
    )


def about_localised(findings: Findings) -> list[str]:
    """Say of which model the certified draws are, where it is not the user's."""
    if not findings.localised:
        return []
    return [
        "What is certified are draws of the localised model, which has a widened fit in place of the prior of "
        f"{', '.join(findings.localised)}."
    ]


def modes_sentence(findings: Findings) -> str:
    """Say that no missed mode was found, or why none was looked for."""
    return findings.no_modes if findings.modes is None else none_found(findings.modes)


def whatever(findings: Findings) -> str:
    """Return the one limit of V that has its level for every population of data sets."""
    if not findings.error_limit_exact < 1.0:
        return ""
    level, limit = percent_of(findings.error_level), error(findings.error_limit_exact)
    return f"{level} limit whatever others are like: {limit}"


def contradiction(findings: Findings) -> str:
    """Say which exact test of the chains failed."""
    of_weights = min(or_one(findings.alarm_p_value), or_one(findings.forms_p_value))
    of_ranks = min(or_one(findings.rank_p_value), or_one(findings.quantity_p_value))
    if of_ranks > of_weights:
        return f"forward and reverse log weights contradict each other ({p_words(of_weights)})"
    where = furthest(findings.quantities, findings.rank_p_value, findings.rank_function)
    return f"weighted ranks of the exact draws are not uniform ({p_words(of_ranks)}, first in {where})"
