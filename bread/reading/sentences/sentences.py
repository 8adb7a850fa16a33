"""The details of a verdict: plain sentences about findings, for a statistician and for a beginner."""

from __future__ import annotations

import math

from bread.reading.sentences import agreement as own
from bread.reading.sentences import not_shown, remarks
from bread.reading.sentences.direct import direct_bug
from bread.reading.sentences.findings import Findings
from bread.reading.sentences.fit import misfit_sentence
from bread.reading.sentences.modes import missed_mode
from bread.reading.sentences.numbers import error, percent
from bread.reading.sentences.phrases import (
    about_localised,
    contradiction,
    data_sets,
    estimated,
    in_brackets,
    modes_sentence,
    nats_limit,
    near,
    ratio,
    whatever,
)
from bread.reading.sentences.prior_integrals import named_constants, prior_integral_bug
from bread.reading.sentences.quantities import quantities_sentence
from bread.reading.sentences.remarks import ALARM_LEVEL
from bread.reading.sentences.shape import harder, size_of_difference
from bread.reading.sentences.words import NOTHING_MEANS_ANYTHING, p_words
from bread.reading.sentences.zero_weights import zero_weights
from bread.statistics.bounds.bounds import unseen_failure_fraction


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
    what = contradiction(findings)
    step = "" if findings.makers.library else ", or a custom step method that does not leave the posterior unchanged"
    return [
        f"Something is broken: {what}. Where simulator, density and kernel fit together, a p-value this small "
        "comes up by chance in fewer than one check of 200.",
        f"Look for a custom distribution whose random draws do not follow its log density{step}.",
        findings.makers.or_derived() or "If there is none, please report this to bread.",
        NOTHING_MEANS_ANYTHING,
    ]


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
            f"{contradiction(findings)}.",
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
