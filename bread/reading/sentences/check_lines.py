"""The lines of a verdict on a check: each answers a question that a user has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bread.reading.sentences import agreement as own
from bread.reading.sentences.advice import STOPPED, advice_of
from bread.reading.sentences.direct import bug, direct_lines
from bread.reading.sentences.findings import AT_DRAWS, EXACT_SIMULATIONS, Findings
from bread.reading.sentences.first_look import not_certified
from bread.reading.sentences.fit import looks_words, misfit_sentence, what_misfits
from bread.reading.sentences.fit_quality import fit_warning
from bread.reading.sentences.lines import LETTERS, Answer, Row, counted, fitted, short
from bread.reading.sentences.modes import modes_words, none_found, percent_down
from bread.reading.sentences.numbers import error, nats, percent
from bread.reading.sentences.own_lines import own_rows
from bread.reading.sentences.phrases import bound, data_sets, or_one, ratio
from bread.reading.sentences.prior_integrals import prior_integral_lines
from bread.reading.sentences.quantities import furthest
from bread.reading.sentences.remarks import is_start_remembered
from bread.reading.sentences.sentences import text
from bread.reading.sentences.shape import sampling_words
from bread.reading.sentences.unfinished import time_line
from bread.reading.sentences.words import CERTIFIED_DRAWS, NOT_EXCLUDED, YOUR_DATA, p_words
from bread.statistics.bounds.bounds import unseen_failure_fraction

_ABOUT = {"posterior": "about posteriors given your data and as many again"}


def check_answer(report: Any, findings: Findings, status: str) -> Answer:
    """Return what a report of `bread.check` says, all but its numbers."""
    reason = not_certified(report)
    details = text(findings, status)
    if status == "bug":
        return replace(_bug(findings), details=details)
    finding, advice = advice_of(findings, status)
    if reason and status == "inconclusive":  # all was done that could be
        finding, advice = "nothing could be certified", ""
        also = [misfit_sentence(findings.fit, has_compared=False), none_found(findings.modes)]
        details = " ".join(one for one in [f"Inconclusive. Nothing could be certified: {reason}.", *also] if one)
    rows = [
        *own_rows(findings, status),
        ("Not certified", reason),
        ("Time", time_line(findings.phase_seconds) if finding.startswith(STOPPED) else ""),
        *([] if reason else _certified(findings, status)),
        *_data(findings, status),
        (NOT_EXCLUDED, _not_excluded(findings) if status in ("converged", "inconclusive") else ""),
    ]
    return Answer(status, finding, tuple(rows), tuple(_warnings(findings, status)), advice, details=details)


def _bug(findings: Findings) -> Answer:
    if findings.direct is not None and findings.direct.is_bug:
        return direct_lines(findings.direct, findings.makers)
    if findings.prior_integrals is not None and findings.prior_integrals.is_bug:
        return prior_integral_lines(findings.prior_integrals, p_words(findings.prior_integrals.p_value))
    of_weights = min(or_one(findings.alarm_p_value), or_one(findings.forms_p_value))
    of_ranks = min(or_one(findings.rank_p_value), or_one(findings.quantity_p_value))
    look = "look for a custom distribution whose random draws do not follow its log density; then bread.debug(model)"
    derived = findings.makers.is_derived
    if of_ranks > of_weights:
        finding = f"log weights contradict each other ({p_words(of_weights)})"
        return bug(finding, "forward and reverse chains do not belong to one density", look, is_derived=derived)
    where = short(furthest(findings.quantities, findings.rank_p_value, findings.rank_function), 2 * LETTERS)
    finding = f"exact draws are unlike those of annealed chains ({p_words(of_ranks)})"
    return bug(finding, f"weighted ranks are not uniform, first in {where}", look, is_derived=derived)


def _certified(findings: Findings, status: str) -> list[Row]:
    """Return how far certified draws are from the posterior."""
    zero = findings.zero_weights
    if not findings.n_simulations:
        return [(CERTIFIED_DRAWS, "none: no simulated data set was annealed both ways")]
    if findings.n_failed:
        return [(CERTIFIED_DRAWS, "no valid bound: the density was zero, NaN or raised an error in those chains")]
    if findings.misses_mode and status == "not converged":
        return [(CERTIFIED_DRAWS, _of_mode(findings))]
    where = f"{data_sets(findings)}{_typical(findings, status)}"
    if _is_at_wrong_draws(findings):
        where = f"{counted(findings.n_simulations, 'data set')} made at these draws"
    rows = [(CERTIFIED_DRAWS, f"{_bound(findings)}, on {where}")]
    if findings.localised:
        names = ", ".join(findings.localised)
        about = f"of a localised model: its prior of {names} is a widened fit to your data"
        rows.append(("", fitted(about, names)))
    rows.append(("", _ABOUT.get(findings.simulate_from, "")))
    if status == "not converged":
        rows.append(("", "not shown to be near the posterior, which does not say that they are far"))
    if zero is not None and zero.n_zero and zero.n_zero == zero.n_chains:
        rows.append(("", f"there are none on your data: every chain met a {ratio(findings)} of zero"))
    return rows


def _bound(findings: Findings) -> str:
    """Return the bound that decides, beside what was asked for."""
    name, spell = ("error", error) if findings.decides == "V" else ("B", nats)
    unit = "" if findings.decides == "V" else " nats"
    asked, estimated = f"asked: {spell(findings.limit)}", "estimated " * _is_estimate(findings)
    if findings.is_reached:
        also = f", error at most {error(findings.error_upper)}" if unit else ""
        return f"{name} {estimated}at most {spell(findings.upper)}{unit} ({asked}){also}"
    limits = "" if math.isnan(findings.lower) else f"{spell(findings.lower)} to {spell(findings.upper)}; "
    return f"{name} {estimated}{spell(findings.estimate)}{unit} ({limits}{asked})"


def _is_at_wrong_draws(findings: Findings) -> bool:
    """Return whether data were simulated at draws that are not the posterior's."""
    look = findings.first_look
    is_wrong = findings.contradicts_draws or (look is not None and look.is_disagreement)
    return findings.simulate_from in AT_DRAWS and is_wrong


def _is_estimate(findings: Findings) -> bool:
    return findings.simulate_from not in EXACT_SIMULATIONS


def _typical(findings: Findings, status: str) -> str:
    if not findings.is_confirmed:
        return ", not confirmed on fresh ones"
    if status == "mismatch":
        return ", which yours are unlike"
    if status == "inconclusive" and findings.lacks_prior:
        return ", no answer for your data"
    is_long = _is_estimate(findings) or findings.decides == "B"
    return (", if typical" if is_long else ", if these are typical") * findings.is_reached


def _of_mode(findings: Findings) -> str:
    modes = findings.modes
    assert modes is not None
    share = "none" if modes.share_annealed == 0.0 else percent_down(modes.share_annealed)
    if not modes.own_limit < modes.mass / 2 and not modes.share_own > 0:  # nothing was said of own draws
        share = f"miss {modes.first_place} ({percent_down(modes.mass)} of the posterior at least): {share}"
    there = f"{share} of {modes.how_many} {'is' if modes.share_annealed == 0.0 else 'are'} there"
    if not findings.is_confirmed or not math.isfinite(findings.error):
        return there
    asked = f"asked: {bound(findings, findings.limit)}"
    if findings.is_reached and findings.error_upper < 1.0:
        return f"{there}; simulated data do not show that: error at most {error(findings.error_upper)} ({asked})"
    return f"{there}; on simulated data too the error bound is {bound(findings, findings.estimate)} ({asked})"


def _data(findings: Findings, status: str) -> list[Row]:
    """Return what is known of the real data: likeness, ease of sampling, modes."""
    if not findings.n_simulations and findings.fit is None and findings.modes is None:
        return []
    if status == "not converged" and findings.misses_mode:
        return []
    is_prior = findings.lacks_prior and findings.fit is not None and findings.fit.of_prior is not None
    looks = looks_words(findings.fit.of_prior if is_prior and findings.fit is not None else findings.fit)
    if status == "mismatch":
        return [(YOUR_DATA, sampling_words(findings)), ("", f"{looks}; {modes_words(findings.modes)}")]
    return [(YOUR_DATA, f"{looks}, {sampling_words(findings)}; {modes_words(findings.modes)}")]


def _not_excluded(findings: Findings) -> str:
    if not findings.is_certified:
        return ""
    modes = "modes nobody visited" if findings.modes is None else "narrow modes nobody visited"
    unseen = percent(unseen_failure_fraction(findings.n_simulations))
    return f"{modes}; failures in up to {unseen} of data sets like yours"


def _warnings(findings: Findings, status: str) -> list[str]:
    """Return what is doubtful and is not the verdict."""
    found = findings.unguarded.warnings()
    fit, draws, zero, look = findings.fit_quality, findings.draws, findings.zero_weights, findings.first_look
    if fit is not None:
        is_said = draws is not None and draws.status == "too few draws"
        compared = (draws.fewest, draws.fewest_name) if draws is not None and is_said else None
        decides = status == "inconclusive" and findings.is_reached and findings.is_fit_doubtful  # has its advice
        has_advice = not (decides or (look is not None and look.other_data))
        found.append(fit_warning(fit, findings.backend, compared, has_advice=has_advice))
    if not findings.lacks_prior:
        found.append(what_misfits(findings.fit, (*findings.held, *findings.localised)))
    if is_start_remembered(findings):
        found.append('reverse chains remember their start: raise init_steps, or simulate_from="prior"')
    if zero is not None and 0 < zero.n_zero < zero.n_chains:
        found.append(f"{zero.n_zero} of {zero.n_chains} chains on your data have weight zero and are no draws")
    added = None if findings.quantities is None else findings.quantities.draws
    if added is not None and added.status == "too few draws":
        found.append(f"added quantities were not compared: {added.fewest:.0f} effective draws of your own")
    if draws is not None and own.dropped(draws):
        found.append(own.dropped(draws).rstrip("."))
    return [one for one in found if one]
