"""Plain sentences about findings, for a statistician and for a beginner."""

from __future__ import annotations

import math

from bread.reading.findings import EXACT_SIMULATIONS, Findings
from bread.statistics.bounds import unseen_failure_fraction

_STILL_FALLS = 1.4  # B at half the T over B at T, above which more temperatures look worth their price
ALARM_LEVEL = 0.005
LONGEST = 1e6  # nats from here on are written as powers of ten


def text(findings: Findings, status: str) -> str:
    """Return the sentences of a verdict with this status."""
    build = {
        "bug": _bug,
        "mismatch": _mismatch,
        "converged": _converged,
        "not converged": _not_converged,
        "inconclusive": _inconclusive,
    }[status]
    sentences = [_disagreement(findings, status), *build(findings)]
    if status in ("converged", "not converged", "inconclusive") and findings.n_simulations:
        sentences += [_alarm_when_fitted(findings), _scope(findings, status)]
    return " ".join(sentence for sentence in sentences if sentence)


def _bug(findings: Findings) -> list[str]:
    is_rank = not findings.alarm_p_value <= findings.rank_p_value
    if is_rank:
        p_value = findings.rank_p_value
        what = f"weighted ranks of the exact draws are not uniform ({_p(p_value)}, first in {findings.rank_function})"
    else:
        what = f"forward and reverse log weights contradict each other ({_p(findings.alarm_p_value)})"
    return [
        f"Something is broken: {what}, which is impossible when the simulator, the density and the kernel "
        "fit together.",
        "Look for a custom distribution whose random draws do not follow its log density, or a custom step method "
        "that does not leave the posterior unchanged; if there is neither, please report this to bread.",
        "Until it is found, no bound in this report means anything.",
    ]


def _mismatch(findings: Findings) -> list[str]:
    size = ""
    if math.isfinite(findings.effect):
        size = f", {nats(abs(findings.effect))} nats {'harder' if findings.effect > 0 else 'easier'}"
    about = "the bound says"
    if math.isfinite(findings.estimate):
        about = f"the bound of {nats(findings.estimate)} nats says"
    return [
        f"Your data anneal unlike simulated data ({_p(findings.consistency_p_value)}{size}): {about} little about "
        "them.",
        "The model probably misses something in the data: look at posterior predictive plots, improve the model, "
        "and check again.",
    ]


def _converged(findings: Findings) -> list[str]:
    estimated = _estimated(findings, "are")
    where = (
        f"On {findings.n_simulations} simulated data sets, draws of annealed {findings.kernel} "
        f"({findings.n_temperatures} temperatures) {estimated} within {nats(max(findings.estimate, 0.0))} nats of the "
        f"posterior ({_limit(findings)} {nats(findings.upper)}, target {nats(findings.target)})"
    )
    if not findings.is_jeffreys:
        where += ", by the one-sided bound, which sees posterior mass that draws miss"
    sentences = [f"{where}: on average no probability is off by more than {_probability(findings)}."]
    if not findings.is_jeffreys:
        sentences.append(_why_one_sided(findings))
    unseen = unseen_failure_fraction(findings.n_simulations)
    if math.isnan(findings.consistency_p_value):
        sentences.append(
            f"Whether your data behave like the simulated ones was not tested, and a failure in up to "
            f"{_percent(unseen)} of data sets would go unseen."
        )
    else:
        blind = "" if findings.simulate_from in EXACT_SIMULATIONS else "; a fitted model hides what the fit absorbs"
        sentences.append(
            f"Your data anneal like the simulated ones ({_p(findings.consistency_p_value)}{blind}), but a failure in "
            f"up to {_percent(unseen)} of such data sets would go unseen."
        )
    return sentences


def _not_converged(findings: Findings) -> list[str]:
    if findings.is_jeffreys and math.isinf(findings.jeffreys):
        return [
            f"At {_temperatures(findings)} the bound is infinite: {findings.n_zero} of {findings.n_forward} forward "
            f"chains met a {_ratio(findings)} of zero, and more temperatures will not mend that.",
            "Draws are not shown to be near the posterior: give the parameters a prior under which the data are "
            "always possible, or reparametrise so that the likelihood is positive everywhere.",
        ]
    bound = "the bound" if findings.is_jeffreys else "the one-sided bound"
    first = (
        f"At {_temperatures(findings)} {bound} {_estimated(findings, 'is')} {nats(findings.estimate)} nats "
        f"({nats(findings.lower)} to {nats(findings.upper)}, target {nats(findings.target)}): draws of annealed "
        f"{findings.kernel} may be far off (a probability by up to {_probability(findings)}), though a large upper "
        "bound does not prove it."
    )
    advice = "Reparametrise, or change the kernel."
    if math.isfinite(findings.gap_beta):
        advice = f"The gap arises near beta {findings.gap_beta:.1g}: reparametrise, or change the kernel"
        if findings.gap_beta < 0.01:
            advice += ", or tighten the prior"
        advice += "."
    if math.isfinite(findings.previous) and findings.previous > _STILL_FALLS * findings.estimate:
        more = "max_temperatures" if findings.max_temperatures else "n_temperatures"
        advice = advice[:-1] + f"; the bound still falls as temperatures grow, so a larger {more} may help too."
    return [first, advice if findings.is_jeffreys else f"{_why_one_sided(findings)} {advice}"]


def _inconclusive(findings: Findings) -> list[str]:
    if not findings.n_simulations:
        return [
            "The check did not finish: no simulated data set was annealed both ways, so nothing can be said yet.",
            "Run it again, with more time or fewer temperatures.",
        ]
    if findings.n_failed:
        plural = "" if findings.n_failed == 1 else "s"
        return [
            f"{findings.n_failed} annealed chain{plural} failed because the density was zero, NaN or raised an error, "
            "so there is no valid bound.",
            "Look at the model where that happened (`failure` in the groups forward and reverse).",
        ]
    bound = "the bound" if findings.is_jeffreys else "the one-sided bound"
    number = f"{bound} {_estimated(findings, 'is')} {nats(findings.estimate)} nats"
    if findings.is_interrupted:
        return [
            f"The check did not finish: on the {_data_sets(findings)} done at {_temperatures(findings)} {number}"
            f"{_interval(findings)}, which shows where things stand but confirms nothing.",
            "Run it again to the end.",
        ]
    if not findings.is_confirmed:
        return [
            f"At {_temperatures(findings)} {number}{_interval(findings)} on the simulations that chose this number of "
            "temperatures, which flatters it; no fresh simulations confirmed it.",
            "Run the check to the end.",
        ]
    if findings.n_simulations < 2:
        return [
            f"At {_temperatures(findings)} {number}, but one simulated data set gives no interval and so no "
            "conclusion.",
            "Use simulations=20 or more.",
        ]
    if not findings.is_reliable:
        return [
            f"At {_temperatures(findings)} neither bound can be trusted: the {findings.log_ratio_name} has so heavy a "
            f"tail under the {findings.start_name} (index {findings.tail_index:.2g}) that even the mean over the best "
            f"of {findings.n_chains} chains may be infinite.",
            f"{_finite_path(findings)} Or use more chains, or another parametrisation.",
        ]
    sentences = [
        f"At {_temperatures(findings)} {number}, but its interval{_interval(findings)} contains the target of "
        f"{nats(findings.target)}: on average no probability is off by more than {_probability(findings)}, and "
        "draws are not yet shown to be near enough."
    ]
    if not findings.is_jeffreys:
        sentences.append(_why_one_sided(findings))
    return [*sentences, "More simulations narrow the interval; more temperatures lower the bound."]


def _why_one_sided(findings: Findings) -> str:
    return (
        f"The two-sided bound may be infinite whatever the samples say, because the {findings.log_ratio_name} has too "
        f"heavy a tail under the {findings.start_name} (index {findings.tail_index:.2g}; a mean needs less than 1), so "
        f"it decides nothing. {_finite_path(findings)}"
    )


def _finite_path(findings: Findings) -> str:
    """Return what may make the bound finite."""
    if findings.was_chosen:
        return "A reference of your own, given as path=, may have a finite one."
    return "path='auto' looks for a path on which it is finite."


def _disagreement(findings: Findings, status: str) -> str:
    if findings.agreement is not False:
        return ""
    size = ""
    if math.isfinite(findings.agreement_shift):
        size = f", shifted by {abs(findings.agreement_shift):.2g} standard deviations"
    blame = {
        "converged": "the bound vouches for the annealed draws, so suspect yours",
        "bug": "but the check itself is broken",
    }.get(status, "one of the two is wrong, and the bound does not tell which")
    return (
        f"Your own draws differ from the annealed draws on the real data ({_p(findings.agreement_p_value)}, most in "
        f"{findings.agreement_parameter}{size}): {blame}."
    )


def _alarm_when_fitted(findings: Findings) -> str:
    smallest = min((p for p in (findings.alarm_p_value, findings.rank_p_value) if not math.isnan(p)), default=1.0)
    if findings.simulate_from in EXACT_SIMULATIONS or smallest > ALARM_LEVEL:
        return ""
    which = findings.rank_function if findings.rank_p_value <= ALARM_LEVEL else "the log weights"
    return (
        f"Reverse chains seem not to have forgotten their start ({_p(smallest)}, {which}): raise init_steps, or run "
        'simulate_from="prior", which tells whether it is a bug.'
    )


def _scope(findings: Findings, status: str) -> str:
    """Say what the numbers are about."""
    if findings.agreement is False:
        return ""
    if findings.agreement is True and status == "converged":
        return (
            f"Your own draws agree with the annealed ones on the real data ({_p(findings.agreement_p_value)}), which "
            "carries this over to them."
        )
    if findings.simulate_from == "localised":
        return (
            "This is about annealed draws of the localised model, whose hyperparameters have a widened fit to their "
            "posterior in place of their prior, with this kernel and schedule."
        )
    sampler = {"pymc": "pm.sample", "stan": "Stan's sampler"}.get(findings.backend, "your usual sampler")
    scope = f"This is about annealed draws with this kernel and schedule, not about a run of {sampler}"
    if math.isnan(findings.agreement_p_value):
        return f"{scope}: pass its draws as posterior= to compare." if status == "converged" else f"{scope}."
    if findings.agreement is True:
        return f"{scope}, whose draws agree with them ({_p(findings.agreement_p_value)})."
    return (
        f"{scope}, whose draws are too few to compare ({findings.agreement_n_effective:.0f} effective draws of "
        f"{findings.agreement_parameter})."
    )


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
    return f" ({nats(findings.lower)} to {nats(findings.upper)})"


def _limit(findings: Findings) -> str:
    return f"{100 * findings.level:.4g} % limit"


def _ratio(findings: Findings) -> str:
    name = findings.log_ratio_name
    return name.removeprefix("log ")


def nats(value: float) -> str:
    """Return a number of nats: with two significant digits, whole from 10 up, as a power of ten where it is long."""
    if math.isnan(value) or math.isinf(value):
        return "an unknown number of" if math.isnan(value) else "infinitely many"
    return f"{value:.0f}" if 10 <= abs(value) < LONGEST else f"{value:.2g}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"


def _probability(findings: Findings) -> str:
    value = findings.total_variation
    if math.isnan(value):
        return "an unknown amount"
    return "0.01" if value < 0.01 else f"{value:.2f}"
