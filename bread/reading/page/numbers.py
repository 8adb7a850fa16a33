"""The three numbers of a page, each with a line that says what it means."""

from __future__ import annotations

import json
import math
from typing import Any

from bread.reading.page.parts import Number
from bread.reading.sentences.findings import EXACT_SIMULATIONS, Findings, read_findings
from bread.reading.sentences.numbers import nats, percent_of
from bread.reading.sentences.words import p_words
from bread.report.compat import require_group
from bread.report.debug import GROUP
from bread.statistics.real_data.sequential import SHAPE_LEVEL

NONE = "–"


def numbers_of_check(report: Any) -> tuple[Number, ...]:
    """Return V, B, and what is known of the real data."""
    findings = read_findings(report)
    return _error(findings), _divergence(findings), _real_data(findings)


def rounded_up(value: float) -> str:
    """Return an error of a probability, never smaller than it is."""
    return f"{math.ceil(100 * value - 1e-9) / 100:.2f}" if math.isfinite(value) else NONE


def _error(findings: Findings) -> Number:
    name = "V, the error of a probability"
    if math.isnan(findings.error):
        return Number(name, NONE, "Not known: no simulated data set was annealed both ways.")
    level = f"{percent_of(findings.error_level)} limit" if math.isfinite(findings.error_level) else "limit"
    parts = [f"limit {rounded_up(findings.error_upper)} if the simulated data sets are typical"]
    if findings.decides == "V":
        parts.append(f"asked for: {findings.limit:.2g}")
    parts.append(f"{level} whatever other data sets are like {rounded_up(min(findings.error_limit_exact, 1.0))}")
    line = "On average over data sets like the simulated ones, no probability computed from one annealed draw is off "
    return Number(name, f"{findings.error:.2g}", f"{line}by more ({'; '.join(parts)}).{_doubt(findings)}")


def _divergence(findings: Findings) -> Number:
    name = "B, the divergence"
    if math.isnan(findings.jeffreys):
        return Number(name, NONE, "Not known: no simulated data set was annealed both ways.")
    line = "Bound on KL(q‖p) + KL(p‖q): q the law of an annealed draw, p the posterior"
    if math.isinf(findings.jeffreys):
        return Number(name, "infinite", f"{line}. V is finite all the same.")
    value = "< 0.01 nats" if findings.jeffreys < 0.01 else f"{nats(findings.jeffreys)} nats"
    if not findings.is_reliable:
        return Number(name, value, f"{line}. It may have no finite mean, so that this estimate means little; V has.")
    asked = f" (asked for: {nats(findings.limit)} nats)" if findings.decides == "B" else ""
    return Number(name, value, f"{line}{asked}.{_doubt(findings)}")


def _doubt(findings: Findings) -> str:
    """Say in what way a number is less than a bound."""
    if not findings.is_confirmed:
        return " From the simulations that chose the number of temperatures, which flatters it."
    return "" if findings.simulate_from in EXACT_SIMULATIONS else " An estimate: data are simulated at draws of a fit."


def _real_data(findings: Findings) -> Number:
    draws = findings.draws
    if draws is not None and draws.status != "too few draws" and math.isfinite(draws.lowest):
        low, high = f"{draws.lowest:.2f}", f"{draws.highest:.2f}"
        whose = "your draws" if draws.is_yours else draws.source
        seen = {
            "agreement": "no difference was seen",
            "difference": "a difference was seen, no larger than V may explain",
            "disagreement": "they differ by more than V explains",
        }.get(draws.status, draws.status)
        return Number(
            "On your data: held by 90% intervals",
            low if low == high else f"{low} to {high}",
            f"Share of {draws.n_annealed} certified draws that 90% intervals of {whose} hold, by parameter: {seen}.",
        )
    name, line = "On your data: like simulated data?", "Whether your data anneal like simulated ones"
    if math.isnan(findings.consistency_p_value):
        return Number(name, NONE, f"{line}: not tested.")
    is_unlike = findings.consistency_p_value <= SHAPE_LEVEL
    reading = "the bound says little about them" if is_unlike else "no difference was seen"
    reading = reading if findings.consistency_is_final else "too few simulations to say"
    return Number(name, p_words(findings.consistency_p_value), f"{line}: {reading}.")


def numbers_of_debug(report: Any) -> tuple[Number, ...]:
    """Return the smallest p-value, how many tests failed, and what would have been seen."""
    found = require_group(report, GROUP)
    p_value = float(found["p_value"])
    level, n_tests = float(found.attrs["level"]), int(found.sizes["test"])
    n_failed, n_left = int(found["fails"].values.sum()), len(json.loads(str(found.attrs["left_out"])))
    left = f"; {n_left} could not be run" if n_left else ""
    shift = float(found.attrs.get("kernel_shift", math.nan))
    if not math.isfinite(shift):
        shift = float(found.attrs.get("draws_shift", math.nan))
    seen = f"{shift:.2g} sd" if math.isfinite(shift) else NONE
    return (
        Number(
            "Smallest p-value",
            NONE if math.isnan(p_value) else p_words(p_value),
            f"After correction for all that was tested: a right sampler has one at most {level:g} in {100 * level:g}% "
            "of calls.",
        ),
        Number("Tests that fail", f"{n_failed} of {n_tests}", f"Each at its share of the level{left}."),
        Number(
            "Shift that would be seen",
            seen,
            "A shift of so many standard deviations would have been seen with probability 0.95, where least is seen."
            if math.isfinite(shift)
            else "Not known.",
        ),
    )
