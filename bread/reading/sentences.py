"""The details of a verdict: plain sentences about findings, for a statistician and for a beginner."""

from __future__ import annotations

import math

from bread.reading import agreement as own
from bread.reading import not_shown, remarks
from bread.reading.direct import direct_bug
from bread.reading.findings import Findings
from bread.reading.fit import misfit_sentence
from bread.reading.modes import missed_mode
from bread.reading.numbers import error, percent
from bread.reading.phrases import (
    about_localised,
    data_sets,
    estimated,
    in_brackets,
    modes_sentence,
    nats_limit,
    near,
    or_one,
    ratio,
    whatever,
)
from bread.reading.prior_integrals import named_constants, prior_integral_bug
from bread.reading.quantities import furthest, quantities_sentence
from bread.reading.remarks import ALARM_LEVEL
from bread.reading.shape import harder, size_of_difference
from bread.reading.words import NOTHING_MEANS_ANYTHING, p_words
from bread.reading.zero_weights import zero_weights
from bread.statistics.bounds import unseen_failure_fraction


def text(findings: Findings, status: str) -> str:
    """Return the sentences of a verdict with this status."""
    build = {
        "bug": _bug,
        "mismatch": _mismatch,
        "disagreement": _disagreement,
        "converged": _converged,
        "not converged": not_shown.not_converged,
        "inconclusive": not_shown.inconclusive,
    }[status]
    sentences, look = [f"{status.capitalize()}.", *build(findings)], findings.first_look
    is_by_look = look is not None and look.is_disagreement
    if status != "bug":  # what an answer rests on stands next to it
        place = 2 if status == "converged" or (status == "disagreement" and not is_by_look) else len(sentences)
        sentences[place:place] = [findings.unguarded.sentence(), findings.unguarded.about_prior()]
    if status != "bug" and not findings.misses_mode:
        sentences += remarks.draws_remarks(findings, status)
    if status != "bug":
        if status != "inconclusive" or not findings.lacks_prior:
            held = (*findings.held, *findings.localised)
            sentences.append(misfit_sentence(findings.fit, findings.draws is not None, held))
        sentences.append(named_constants(findings.prior_integrals))
        sentences.append(quantities_sentence(findings.quantities, ALARM_LEVEL))
        sentences.append(zero_weights(findings.zero_weights, ratio(findings)))
        if look is not None and not (status == "disagreement" and is_by_look):
            sentences += look.sentences()
    if status in ("disagreement", "converged", "not converged", "inconclusive") and findings.n_simulations:
        sentences += [
            remarks.held(findings),
            remarks.also_proposed(findings),
            remarks.dense(findings),
            remarks.fit_remark(findings, status),
            remarks.not_forgotten(findings),
            remarks.scope(findings, status),
        ]
    return " ".join(sentence for sentence in sentences if sentence)


def _bug(findings: Findings) -> list[str]:
    if findings.direct is not None and findings.direct.is_bug:
        return direct_bug(findings.direct, p_words(findings.direct.p_value), findings.makers)
    if findings.prior_integrals is not None and findings.prior_integrals.is_bug:
        return prior_integral_bug(findings.prior_integrals, p_words(findings.prior_integrals.p_value))
    what = _contradiction(findings)
    step = "" if findings.makers.library else ", or a custom step method that does not leave the posterior unchanged"
    return [
        f"Something is broken: {what}. Where simulator, density and kernel fit together, a p-value this small "
        "comes up by chance in fewer than one check of 200.",
        f"Look for a custom distribution whose random draws do not follow its log density{step}.",
        findings.makers.or_derived() or "If there is none, please report this to bread.",
        NOTHING_MEANS_ANYTHING,
    ]


def _contradiction(findings: Findings) -> str:
    """Say which exact test of the chains failed."""
    of_weights = min(or_one(findings.alarm_p_value), or_one(findings.forms_p_value))
    of_ranks = min(or_one(findings.rank_p_value), or_one(findings.quantity_p_value))
    if of_ranks > of_weights:
        return f"forward and reverse log weights contradict each other ({p_words(of_weights)})"
    where = furthest(findings.quantities, findings.rank_p_value, findings.rank_function)
    return f"weighted ranks of the exact draws are not uniform ({p_words(of_ranks)}, first in {where})"


def _mismatch(findings: Findings) -> list[str]:
    known = f", {error(findings.error_upper)}," if math.isfinite(findings.error_upper) else ""
    size = size_of_difference(findings)
    return [
        f"Your data anneal unlike simulated data ({p_words(findings.consistency_p_value)}{size}), so the bound{known} "
        "says little about them.",
        *(missed_mode(findings.modes) if findings.modes is not None and findings.misses_mode else []),
        "The model probably misses something in the data: look at posterior predictive plots, improve the model, "
        "and check again.",
    ]


def _disagreement(findings: Findings) -> list[str]:
    if findings.first_look is not None and findings.first_look.is_disagreement:
        draws = findings.draws
        also = [own.differs_somehow(draws)] if draws is not None and draws.differ else []
        return [*findings.first_look.sentences(), *also]
    if findings.contradicts_draws:
        whose = "Your draws" if findings.has_own_draws else "The fit's draws"
        return [
            f"{whose} are not the posterior's: on data simulated at them and added to yours, "
            f"{_contradiction(findings)}.",
            "The tests of the likelihood's simulator found nothing. Sample again with another sampler, or "
            "reparametrise; bread.debug tells whether this one is at fault.",
        ]
    assert findings.draws is not None
    known = f"{estimated(findings, 'are')} within {error(findings.error_upper)} of it"
    return own.disagrees(findings.draws, known)


def _converged(findings: Findings) -> list[str]:
    if findings.draws is None or findings.draws.status != "agreement":
        first = [*about_localised(findings), modes_sentence(findings)] if findings.localised else []
        return [*first, near(findings), _typical(findings), harder(findings), "" if first else modes_sentence(findings)]
    unseen = percent(unseen_failure_fraction(findings.n_simulations))
    return [
        own.intervals_hold(findings.draws),
        f"Those {estimated(findings, 'are')} within {error(findings.error_upper)} of the posterior, if the "
        f"{data_sets(findings)} are typical{in_brackets(whatever(findings), nats_limit(findings))}: a failure in "
        f"up to {unseen} of data sets would go unseen.",
        own.power(findings.draws),
        harder(findings),
        modes_sentence(findings),
    ]


def _typical(findings: Findings) -> str:
    unseen = percent(unseen_failure_fraction(findings.n_simulations))
    return (
        f"That takes the {data_sets(findings)} for typical{in_brackets(whatever(findings))}: a failure in up to "
        f"{unseen} of data sets would go unseen."
    )
<<<<<<< HEAD
=======


def _whatever(findings: Findings) -> str:
    """Return the one limit of V that has its level for every population of data sets."""
    if not findings.error_limit_exact < 1.0:
        return ""
    level, limit = _percent_of(findings.error_level), _error(findings.error_limit_exact)
    return f"{level} limit whatever others are like: {limit}"


def _in_brackets(*parts: str) -> str:
    """Return what there is, in brackets."""
    known = [part for part in parts if part]
    return f" ({'; '.join(known)})" if known else ""


def _not_converged(findings: Findings) -> list[str]:
    if findings.modes is not None and findings.modes.n_missed:
        return [*missed_mode(findings.modes), _on_simulated_data(findings), mode_advice()]
    name = "V" if findings.decides == "V" else "B"
    first = (
        f"At {_temperatures(findings)} {name} {_estimated(findings, 'is')} {_bound(findings, findings.estimate)} "
        f"({_bound(findings, findings.lower)} to {_bound(findings, findings.upper)}), above the "
        f"{_bound(findings, findings.limit)} that was asked for: draws of annealed {findings.kernel} are not shown to "
        "be near the posterior, which does not say that they are far."
    )
    rate = findings.rate_of_fall * (1.0 if findings.decides == "V" else 0.5)
    more = "max_temperatures" if findings.max_temperatures else "n_temperatures"
    if rate >= _FALLS:
        power = 2.0 if findings.decides == "V" else 1.0
        needed = findings.n_temperatures * (findings.estimate / findings.limit) ** power
        return [
            first,
            f"The bound is too loose: it still falls with the number of temperatures as it does for a sampler "
            f"without fault on a long path. About {_round_up(needed)} temperatures ({more}=), or chains that start "
            "nearer (path='reference', or posterior draws as path=), would show more.",
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


def _on_simulated_data(findings: Findings) -> str:
    """Say whether simulated data show what a missed mode shows on the real data."""
    if not findings.is_confirmed or not math.isfinite(findings.error):
        return ""
    if not findings.is_reached or findings.error_upper >= 1.0:
        asked, found = _bound(findings, findings.limit), _bound(findings, findings.estimate)
        return f"Simulated data show no small error either: there {findings.decides} is {found} (asked for: {asked})."
    if findings.localised:
        return f"The localised model does not show that: on its data V is at most {_error(findings.error_upper)}."
    return f"Simulated data do not show that: on them V is at most {_error(findings.error_upper)}."


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
            f"B is infinite: {findings.n_zero} of {findings.n_forward} forward chains met a {_ratio(findings)} of "
            "zero. Priors under which the data are always possible would mend that."
        )
    return ""


def _inconclusive(findings: Findings) -> list[str]:
    if not findings.n_simulations:
        return [
            "The check did not finish: no simulated data set was annealed both ways, so nothing can be said yet.",
            *(what_took_the_time(findings.phase_seconds) or ["Run it again, with more time or fewer temperatures."]),
        ]
    if findings.contradicts_draws:
        return [
            f"Two tests of your draws say different things: {_contradiction(findings)}, and they agree with certified "
            "draws. Check again with another random_seed and more simulations.",
        ]
    if findings.n_failed:
        plural = "" if findings.n_failed == 1 else "s"
        return [
            f"{findings.n_failed} annealed chain{plural} failed because the density was zero, NaN or raised an error, "
            "so there is no valid bound.",
            "Look at the model where that happened (`failure` in the groups forward and reverse).",
        ]
    number = f"{findings.decides} {_estimated(findings, 'is')} {_bound(findings, findings.estimate)}"
    if findings.is_interrupted:
        standing = "shows where things stand but confirms nothing"
        if findings.is_confirmed:
            standing = "fresh simulations gave; what comes after that is missing"
        advice = what_took_the_time(findings.phase_seconds)
        proposals = _proposals(findings) if findings.phase_seconds.longest == "search" else ""
        return [
            f"The check did not finish: on the {_data_sets(findings)} done at {_temperatures(findings)} {number}"
            f"{_interval(findings)}, which {standing}.",
            _carriers(findings),
            *advice,
            proposals,
            "" if any("Run it again" in one for one in advice) else "Run it again to the end.",
        ]
    if not findings.is_confirmed:
        return [
            f"At {_temperatures(findings)} {number}{_interval(findings)} on the simulations that chose this number of "
            "temperatures, which flatters it; no fresh simulations confirmed it.",
            "Run the check to the end.",
        ]
    if findings.lacks_prior:
        assert findings.fit is not None and findings.fit.of_prior is not None
        why = prior_misfit(findings.fit.of_prior, _error(findings.error_upper))
        return [*findings.not_compared[:1], *why, *_about(findings), _modes(findings)]
    if _is_difference(findings):
        assert findings.draws is not None
        return own.differs(findings.draws, _error(findings.error_upper))
    if findings.lacks_own_draws:
        return [*findings.not_compared, *_about(findings), _near(findings), _modes(findings)]
    if findings.n_simulations < FEWEST_SIMULATIONS:
        return [
            f"{_data_sets(findings).capitalize()} decide nothing: at {_temperatures(findings)} {number}"
            f"{_interval(findings)}, and a verdict needs at least {FEWEST_SIMULATIONS}.",
            "Run it with more simulations.",
        ]
    if findings.is_reached and findings.fit_quality is not None and findings.is_fit_doubtful:
        return [
            f"{number}{_interval(findings)} on data simulated at draws of a fit that did not converge: "
            f"{_doubt(findings)} ({findings.fit_quality.source}), so these data may be unlike yours.",
            "Run the fit longer or reparametrise, and pass its draws as posterior=; or use "
            'simulate_from="prior", which needs no fit.',
        ]
    return [
        f"At {_temperatures(findings)} {number}, but its limits{_interval(findings)} contain the "
        f"{_bound(findings, findings.limit)} that was asked for: draws are not yet shown to be near enough.",
        _carriers(findings) or "More simulations narrow the limits; more temperatures lower the bound.",
        _infinite(findings),
    ]


def _carriers(findings: Findings) -> str:
    """Say which few data sets carry the bound, where a few do."""
    return carriers_sentence(findings.carriers, findings.decides)


def _held(findings: Findings) -> str:
    names = ", ".join(findings.held)
    return f"Held at draws of the fit while simulating: {names}." if names else ""


def _fit(findings: Findings, status: str) -> str:
    """Say what is doubtful about the fit, where that is not the verdict."""
    fit = findings.fit_quality
    if (
        fit is None
        or not _doubt(findings)
        or (status == "inconclusive" and findings.is_reached and findings.is_fit_doubtful)
    ):
        return ""
    return f"The fit to your data ({fit.source}) may be off: {_doubt(findings)}."


def _doubt(findings: Findings) -> str:
    """Say what is wrong with the fit; of its draws one effective size is said in all sentences."""
    draws, fit = findings.draws, findings.fit_quality
    is_said = draws is not None and draws.status == "too few draws"
    return (
        "" if fit is None else doubt(fit, (draws.fewest, draws.fewest_name) if draws is not None and is_said else None)
    )


def _draws(findings: Findings, status: str) -> list[str]:
    """Say what came of comparing draws, where that is not said yet."""
    says_why = (
        status == "inconclusive" and findings.is_certified and (findings.lacks_prior or not _is_difference(findings))
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
        and not (status == "inconclusive" and _is_difference(findings) and not findings.lacks_prior)
    ):
        said.insert(0, own.differs_somehow(draws))
    elif draws.status == "agreement" and status != "converged":
        said[:0] = [own.intervals_hold(draws), own.power(draws) if draws.sees_one_sd else ""]
    return [*why, *said]


def _is_difference(findings: Findings) -> bool:
    """Return whether the draws' difference is all that stands between the check and "converged"."""
    return findings.is_certified and findings.draws is not None and findings.draws.status == "difference"


def _alarm_when_fitted(findings: Findings) -> str:
    of_ranks = [p for p in (findings.rank_p_value, findings.quantity_p_value) if not math.isnan(p)]
    smallest = min([*of_ranks, _or_one(findings.alarm_p_value)])
    if findings.simulate_from != "fitted" or smallest > ALARM_LEVEL:
        return ""
    is_rank = min(of_ranks, default=1.0) <= ALARM_LEVEL
    which = (
        furthest(findings.quantities, findings.rank_p_value, findings.rank_function) if is_rank else "the log weights"
    )
    return (
        f"Reverse chains seem not to have forgotten their start ({_p(smallest)}, {which}): raise init_steps, or run "
        'simulate_from="prior", which tells whether it is a bug.'
    )


def _also_proposed(findings: Findings) -> str:
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


def _dense(findings: Findings) -> str:
    """Say that chains moved by a metric which the default kernel has not, where nobody had asked for that."""
    if not findings.is_dense:
        return ""
    return 'Annealed chains had a dense metric, from a fit to each data set (kernel="nuts" gives them a diagonal one).'


def _scope(findings: Findings, status: str) -> str:
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
            "This is about annealed draws of the localised model, whose hyperparameters have a widened fit to their "
            "posterior in place of their prior, with this kernel and schedule."
        )
    if findings.draws is not None and findings.draws.status != "too few draws":
        return ""
    sampler = {"pymc": "pm.sample", "stan": "Stan's sampler"}.get(findings.backend, "your usual sampler")
    scope = f"This is about annealed draws with this kernel and schedule, not about a run of {sampler}"
    compare = status == "converged" and findings.draws is None
    return f"{scope}: pass its draws as posterior= to compare." if compare else f"{scope}."


def _estimated(findings: Findings, verb: str) -> str:
    """Return "are", or "are estimated to be" where simulations are not exact."""
    return verb if findings.simulate_from in EXACT_SIMULATIONS else f"{verb} estimated to be"


def _temperatures(findings: Findings) -> str:
    return f"{findings.n_temperatures} temperatures"


def _data_sets(findings: Findings) -> str:
    plural = "" if findings.n_simulations == 1 else "s"
    return f"{findings.n_simulations} simulated data set{plural}"


def _interval(findings: Findings) -> str:
    if math.isnan(findings.lower) or math.isnan(findings.upper):
        return ""
    return f" ({_bound(findings, findings.lower)} to {_bound(findings, findings.upper)})"


def _bound(findings: Findings, value: float) -> str:
    """Return a value of the bound that decides, with its unit."""
    return _error(value) if findings.decides == "V" else _nats(value)


def _nats_limit(findings: Findings) -> str:
    if findings.decides == "B":
        return f"B {_equals(findings.estimate)}, limit {_nats(findings.upper)}"
    if not math.isfinite(findings.jeffreys):
        return "B is infinite"
    return f"B {_equals(findings.jeffreys)}" if findings.is_reliable else ""


def _or_one(p_value: float) -> float:
    return 1.0 if math.isnan(p_value) else p_value


def _ratio(findings: Findings) -> str:
    return findings.log_ratio_name.removeprefix("log ")
>>>>>>> posterior51
