"""Sentences of a verdict that is "not converged" or "inconclusive": why, and what would change that."""

from __future__ import annotations

import math

from bread.reading.sentences import agreement as own
from bread.reading.sentences.carriers import carriers_sentence
from bread.reading.sentences.findings import FEWEST_SIMULATIONS, Findings
from bread.reading.sentences.fit import prior_misfit
from bread.reading.sentences.modes import missed_mode, mode_advice
from bread.reading.sentences.numbers import error, power_of_two
from bread.reading.sentences.phrases import (
    about_localised,
    bound,
    contradiction,
    data_sets,
    doubt_of_fit,
    estimated,
    interval,
    is_difference,
    modes_sentence,
    near,
    ratio,
    temperatures,
)
from bread.reading.sentences.unfinished import what_took_the_time

FALLS = 0.35  # V of a perfect sampler falls as T^-0.5: from here on the length of the path is to blame


def not_converged(findings: Findings) -> list[str]:
    """Say that a mode is missed, or that the bound is above what was asked for, and what to do."""
    if findings.modes is not None and findings.modes.n_missed:
        return [*missed_mode(findings.modes), _on_simulated_data(findings), mode_advice()]
    name = "V" if findings.decides == "V" else "B"
    first = (
        f"At {temperatures(findings)} {name} {estimated(findings, 'is')} {bound(findings, findings.estimate)} "
        f"({bound(findings, findings.lower)} to {bound(findings, findings.upper)}), above the "
        f"{bound(findings, findings.limit)} that was asked for: draws of annealed {findings.kernel} are not shown to "
        "be near the posterior, which does not say that they are far."
    )
    rate = findings.rate_of_fall * (1.0 if findings.decides == "V" else 0.5)
    more = "max_temperatures" if findings.max_temperatures else "n_temperatures"
    if rate >= FALLS:
        return [
            first,
            f"The bound is too loose: it still falls with the number of temperatures as it does for a sampler "
            f"without fault on a long path. About {temperatures_needed(findings)} temperatures ({more}=), or "
            "chains that start nearer (path='reference', or posterior draws as path=), would show more.",
            _carriers(findings),
            _infinite(findings),
        ]
    advice = "Reparametrise, or change the kernel."
    if math.isfinite(findings.gap_beta):
        advice = f"The gap arises near beta {findings.gap_beta:.1g}: reparametrise, or change the kernel"
        advice += ", or tighten the prior." if findings.gap_beta < 0.01 else "."
    if math.isfinite(rate):
        advice = f"More temperatures hardly lower it: chains do not follow the path. {advice}"
    return [first, _carriers(findings), advice, _proposals(findings), _infinite(findings)]


def temperatures_needed(findings: Findings) -> str:
    """Return about how many would bring the bound to its limit, if it goes on falling as for a perfect sampler."""
    power = 2.0 if findings.decides == "V" else 1.0
    return power_of_two(findings.n_temperatures * (findings.estimate / findings.limit) ** power)


def _on_simulated_data(findings: Findings) -> str:
    """Say whether simulated data show what a missed mode shows on the real data."""
    if not findings.is_confirmed or not math.isfinite(findings.error):
        return ""
    if not findings.is_reached or findings.error_upper >= 1.0:
        asked, found = bound(findings, findings.limit), bound(findings, findings.estimate)
        return f"Simulated data show no small error either: there {findings.decides} is {found} (asked for: {asked})."
    if findings.localised:
        return f"The localised model does not show that: on its data V is at most {error(findings.error_upper)}."
    return f"Simulated data do not show that: on them V is at most {error(findings.error_upper)}."


def _proposals(findings: Findings) -> str:
    """Name the kernel that also draws from the reference, where it was not used."""
    if not findings.may_propose:
        return ""
    return (
        'kernel="independence" also proposes draws from the reference: it reaches places where this kernel stays, and '
        "says less about the kernel."
    )


def _infinite(findings: Findings) -> str:
    """Say why B is infinite, where it is."""
    if findings.n_zero:
        return (
            f"B is infinite: {findings.n_zero} of {findings.n_forward} forward chains met a {ratio(findings)} of "
            "zero. Priors under which the data are always possible would mend that."
        )
    return ""


def inconclusive(findings: Findings) -> list[str]:
    """Say what is not known yet, and what to do."""
    if not findings.n_simulations:
        return [
            "The check did not finish: no simulated data set was annealed both ways, so nothing can be said yet.",
            *(what_took_the_time(findings.phase_seconds) or ["Run it again, with more time or fewer temperatures."]),
        ]
    if findings.tests_disagree:
        return [
            "Your draws agree with certified ones, but data simulated at them contradict them: "
            f"{contradiction(findings)}.",
            "Look for an observed custom distribution (or simulator) whose draws and log density differ. If there is "
            "none, check again with another random_seed and more simulations: chance does this in at most 1 of 100 "
            "checks.",
        ]
    if findings.n_failed:
        plural = "" if findings.n_failed == 1 else "s"
        return [
            f"{findings.n_failed} annealed chain{plural} failed because the density was zero, NaN or raised an error, "
            "so there is no valid bound.",
            "Look at the model where that happened (`failure` in the groups forward and reverse).",
        ]
    number = f"{findings.decides} {estimated(findings, 'is')} {bound(findings, findings.estimate)}"
    if findings.is_interrupted:
        standing = "shows where things stand but confirms nothing"
        if findings.is_confirmed:
            standing = "fresh simulations gave; what comes after that is missing"
        advice = what_took_the_time(findings.phase_seconds)
        proposals = _proposals(findings) if findings.phase_seconds.longest == "search" else ""
        return [
            f"The check did not finish: on the {data_sets(findings)} done at {temperatures(findings)} {number}"
            f"{interval(findings)}, which {standing}.",
            _carriers(findings),
            *advice,
            proposals,
            "" if any("Run it again" in one for one in advice) else "Run it again to the end.",
        ]
    if not findings.is_confirmed:
        return [
            f"At {temperatures(findings)} {number}{interval(findings)} on the simulations that chose this number of "
            "temperatures, which flatters it; no fresh simulations confirmed it.",
            "Run the check to the end.",
        ]
    if findings.lacks_prior:
        assert findings.fit is not None and findings.fit.of_prior is not None
        why = prior_misfit(findings.fit.of_prior, error(findings.error_upper))
        return [*findings.not_compared[:1], *why, *about_localised(findings), modes_sentence(findings)]
    if is_difference(findings):
        assert findings.draws is not None
        return own.differs(findings.draws, error(findings.error_upper))
    if findings.lacks_own_draws:
        return [*findings.not_compared, *about_localised(findings), near(findings), modes_sentence(findings)]
    if findings.n_simulations < FEWEST_SIMULATIONS:
        return [
            f"{data_sets(findings).capitalize()} decide nothing: at {temperatures(findings)} {number}"
            f"{interval(findings)}, and a verdict needs at least {FEWEST_SIMULATIONS}.",
            "Run it with more simulations.",
        ]
    if findings.is_reached and findings.fit_quality is not None and findings.is_fit_doubtful:
        return [
            f"{number}{interval(findings)} on data simulated at draws of a fit that did not converge: "
            f"{doubt_of_fit(findings)} ({findings.fit_quality.source}), so these data may be unlike yours.",
            "Run the fit longer or reparametrise, and pass its draws as posterior=; or use "
            'simulate_from="prior", which needs no fit.',
        ]
    return [
        f"At {temperatures(findings)} {number}, but its limits{interval(findings)} contain the "
        f"{bound(findings, findings.limit)} that was asked for: draws are not yet shown to be near enough.",
        _carriers(findings) or "More simulations narrow the limits; more temperatures lower the bound.",
        _infinite(findings),
    ]


def _carriers(findings: Findings) -> str:
    """Say which few data sets carry the bound, where a few do."""
    return carriers_sentence(findings.carriers, findings.decides)
