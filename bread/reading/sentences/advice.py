"""What stands behind the status in the first line of a verdict on a check, and what to do now."""

from __future__ import annotations

import math

from bread.reading.sentences.findings import FEWEST_SIMULATIONS, Findings
from bread.reading.sentences.first_look import MORE_THAN_THE_FIT, SAMPLE_AGAIN
from bread.reading.sentences.lines import LETTERS, counted, short
from bread.reading.sentences.modes import mode_todo
from bread.reading.sentences.not_shown import FALLS, temperatures_needed
from bread.reading.sentences.phrases import data_sets, is_difference
from bread.reading.sentences.unfinished import advice_on_time

STOPPED = "stopped"  # how the finding on a check that did not finish begins


def advice_of(findings: Findings, status: str) -> tuple[str, str]:
    """Return the finding and what to do; the latter is "" where all is well."""
    if status == "mismatch":
        return (
            "your data are sampled unlike simulated data",
            "look at posterior predictive plots, improve the model, check again",
        )
    if status == "disagreement":
        return _disagreement(findings)
    if status == "not converged":
        return _not_converged(findings)
    return _inconclusive(findings) if status == "inconclusive" else ("", "")


def _disagreement(findings: Findings) -> tuple[str, str]:
    look = findings.first_look
    if look is not None and look.is_disagreement:
        whose = "your" if look.is_yours else "the fit's"
        if look.other_data:
            return f"{whose} draws are of other data", look.advice
        return f"{whose} draws are not the posterior's", look.advice
    compared = None if findings.contradicts_draws else findings.draws
    whose = "your" if (findings.has_own_draws if compared is None else compared.is_yours) else "the fit's"
    return f"{whose} draws are not the posterior's", SAMPLE_AGAIN if whose == "your" else MORE_THAN_THE_FIT


def _not_converged(findings: Findings) -> tuple[str, str]:
    if findings.modes is not None and findings.misses_mode:
        return "a mode is missed", mode_todo(findings.modes)
    if findings.rate_of_fall * (1.0 if findings.decides == "V" else 0.5) >= FALLS:
        more = "max_temperatures" if findings.max_temperatures else "n_temperatures"
        needed = temperatures_needed(findings)
        return "the bound is too loose", f'{more}={needed} (about), or chains that start nearer: path="reference"'
    where = f" (the gap arises near beta {findings.gap_beta:.1g})" if math.isfinite(findings.gap_beta) else ""
    return "the error is not shown to be small", f"reparametrise, or change the kernel{where}"


def _inconclusive(findings: Findings) -> tuple[str, str]:
    if findings.tests_disagree:
        return (
            "simulated data contradict draws that pass all else",
            "is there an outcome whose draws and density differ? If not: another random_seed",
        )
    if findings.n_failed:
        return (
            f"{counted(findings.n_failed, 'annealed chain')} failed",
            "look at the model where that happened (`failure` in the groups forward and reverse)",
        )
    if findings.is_interrupted or not findings.n_simulations:
        seconds = findings.phase_seconds.total
        after = f" after {seconds:.0f} s" if seconds >= 1.0 else ""
        return f"{STOPPED}{after}", advice_on_time(findings.phase_seconds)
    if not findings.is_confirmed:
        return "not confirmed on fresh simulated data", "run the check to the end"
    if findings.lacks_prior:
        assert findings.fit is not None and findings.fit.of_prior is not None
        name = short(findings.fit.of_prior.node, LETTERS)
        return (
            f"{name} is where its prior hardly lets it be",
            "look at that prior and at your data, mend the one or the other, check again",
        )
    if is_difference(findings):
        whose = "your" if findings.draws is None or findings.draws.is_yours else "the fit's"
        return f"{whose} draws differ, by no more than the error may explain", "ask for a smaller max_error="
    if findings.lacks_own_draws:
        return "your draws were not compared well enough", " ".join(findings.not_compared[1:]).rstrip(".")
    if findings.n_simulations < FEWEST_SIMULATIONS:
        return f"{data_sets(findings)} decide nothing", f"run it with simulations=20 ({FEWEST_SIMULATIONS} at least)"
    if findings.is_reached and findings.is_fit_doubtful:
        return (
            "the fit did not converge",
            'run it longer or reparametrise, pass its draws as posterior=; simulate_from="prior" needs none',
        )
    narrower = "more simulations= narrow the limits; more temperatures lower the bound"
    return "the error may be above what was asked for", narrower
