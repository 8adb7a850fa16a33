"""Sentences beside the verdict: what was held, what the kernel also did, what is doubtful, what it is about."""

from __future__ import annotations

from bread.backends.support.independence import moves_of
from bread.reading.sentences import agreement as own
from bread.reading.sentences.findings import Findings
from bread.reading.sentences.phrases import doubt_of_fit, is_difference, or_one
from bread.reading.sentences.quantities import furthest
from bread.reading.sentences.words import p_words

ALARM_LEVEL = 0.005


def held(findings: Findings) -> str:
    """Say which parameters simulated data have from the fit."""
    names = ", ".join(findings.held)
    return f"Held at draws of the fit while simulating: {names}." if names else ""


def fit_remark(findings: Findings, status: str) -> str:
    """Say what is doubtful about the fit, where that is not the verdict."""
    fit = findings.fit_quality
    if (
        fit is None
        or not doubt_of_fit(findings)
        or (status == "inconclusive" and findings.is_reached and findings.is_fit_doubtful)
    ):
        return ""
    return f"The fit to your data ({fit.source}) may be off: {doubt_of_fit(findings)}."


def draws_remarks(findings: Findings, status: str) -> list[str]:
    """Say what came of comparing draws, where that is not said yet."""
    says_why = (
        status == "inconclusive" and findings.is_certified and (findings.lacks_prior or not is_difference(findings))
    )
    why = [] if says_why else list(findings.not_compared[:1])
    draws = findings.draws
    if draws is None:
        return why
    said = [own.dropped(draws)]
    if draws.status == "too few draws" and not findings.not_compared:
        said.insert(0, own.too_few(draws))
    elif (
        draws.differ
        and status != "disagreement"
        and not (status == "inconclusive" and is_difference(findings) and not findings.lacks_prior)
    ):
        said.insert(0, own.differs_somehow(draws))
    elif draws.status == "agreement" and status != "converged":
        said[:0] = [own.intervals_hold(draws), own.power(draws) if draws.sees_one_sd else ""]
    return [*why, *said]


def is_start_remembered(findings: Findings) -> bool:
    """Return whether tests ring where simulations are not exact: reverse chains may remember their start."""
    return findings.simulate_from == "fitted" and _smallest(findings) <= ALARM_LEVEL


def _smallest(findings: Findings) -> float:
    tests = (findings.rank_p_value, findings.quantity_p_value, findings.alarm_p_value)
    return min(or_one(p_value) for p_value in tests)


def not_forgotten(findings: Findings) -> str:
    """Say that reverse chains remember their start, where simulations are not exact and tests say so."""
    if not is_start_remembered(findings):
        return ""
    of_ranks = min(or_one(findings.rank_p_value), or_one(findings.quantity_p_value))
    which = "the log weights"
    if of_ranks <= ALARM_LEVEL:
        which = furthest(findings.quantities, findings.rank_p_value, findings.rank_function)
    return (
        f"Reverse chains seem not to have forgotten their start ({p_words(_smallest(findings))}, {which}): raise "
        'init_steps, or run simulate_from="prior", which tells whether it is a bug.'
    )


def also_proposed(findings: Findings) -> str:
    """Say that the kernel was not the default one alone, where nobody had asked for that."""
    if not findings.has_proposed:
        return ""
    kernel, every = moves_of(findings.kernel)
    if every > 1:
        return (
            f"Annealed chains also proposed draws from a fit to each data set, and {kernel} moved them at one "
            f'temperature in {every} only (kernel="nuts" does neither).'
        )
    return 'Annealed chains also proposed draws from a fit to each data set (kernel="nuts" leaves that out).'


def dense(findings: Findings) -> str:
    """Say that chains moved by a metric which the default kernel has not, where nobody had asked for that."""
    if not findings.is_dense:
        return ""
    return 'Annealed chains had a dense metric, from a fit to each data set (kernel="nuts" gives them a diagonal one).'


def scope(findings: Findings, status: str) -> str:
    """Say what the numbers are about, where no draws were compared."""
    if findings.misses_mode:
        return ""
    if findings.simulate_from == "posterior":
        return (
            "The bound was measured on posteriors given your data and as many simulated at draws of yours or of the "
            "fit, with nothing held: it is blind to what all of these lack."
        )
    if findings.simulate_from == "localised":
        if status in ("converged", "inconclusive") and findings.is_certified:
            return ""  # said first
        return (
            "This is about draws of the localised model, whose hyperparameters have a widened fit to their "
            "posterior in place of their prior, with this kernel and schedule."
        )
    if findings.draws is not None and findings.draws.status != "too few draws":
        return ""
    sampler = {"pymc": "pm.sample", "stan": "Stan's sampler"}.get(findings.backend, "your usual sampler")
    scope = f"This is about certified draws, by this kernel and schedule, not about a run of {sampler}"
    compare = status == "converged" and findings.draws is None
    return f"{scope}: pass its draws as posterior= to compare." if compare else f"{scope}."
