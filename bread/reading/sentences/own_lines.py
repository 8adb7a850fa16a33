"""What a verdict on a check says in its lines about the user's own draws, or the fit's."""

from __future__ import annotations

import numpy as np

from bread.reading.sentences.agreement import DrawsFound, how_wrong, up, up_number
from bread.reading.sentences.findings import Findings
from bread.reading.sentences.lines import Row, fitted
from bread.reading.sentences.modes import Modes, percent_down
from bread.reading.sentences.words import FITS_DRAWS, YOUR_DRAWS, YOURS, p_words
from bread.statistics.agreement.draws import MINIMUM_EFFECTIVE

_PASS = "not compared: pass them as posterior="


def own_rows(findings: Findings, status: str) -> list[Row]:
    """Return the lines: what the first look found, then what certified draws say."""
    draws, look = findings.draws, findings.first_look
    modes = findings.modes if findings.misses_mode else None
    of_mode = "" if modes is None else _of_mode(modes)
    is_seen = look is not None and (look.is_disagreement or not of_mode)  # gradients see no modes
    rows = look.rows() if look is not None and is_seen else []
    label = YOUR_DRAWS if draws is None or draws.is_yours else FITS_DRAWS
    texts = []
    if modes is not None:
        label, texts = YOUR_DRAWS if modes.own_draws == YOURS else FITS_DRAWS, [of_mode]
    elif findings.not_compared and (draws is None or not draws.differ):
        texts = [findings.not_compared[0].removeprefix("Your draws were ").rstrip(".")]
    elif draws is not None:
        is_told = look is not None and look.is_whole and not look.is_disagreement
        is_typical = not findings.is_unlike and not (findings.fit is not None and findings.fit.is_poor)
        has_bound = is_typical and (status == "converged" or (status == "disagreement" and draws.differ))
        texts = _compared(draws, has_bound=has_bound, is_short=is_told)
    elif look is None and findings.n_simulations:
        texts = [_PASS]
    if findings.contradicts_draws or findings.tests_disagree:
        texts.insert(0, "chains on data simulated at them, added to yours, contradict them")
    for text in filter(None, texts):
        is_same = any(shown == label for shown, _ in rows)
        rows.append(("" if is_same else label, text))
    return rows


def _of_mode(modes: Modes) -> str:
    """Return whether own draws miss a mode; "" where it is not known."""
    mass = f"at least {percent_down(modes.mass)} of the posterior"
    if modes.own_limit < modes.mass / 2:
        return f"miss {modes.first_place}, which holds {mass}"
    if modes.share_own > 0:
        share = percent_down(modes.share_own)
        return f"{share} are at {modes.first_place}, which certified draws miss: it holds {mass}"
    return ""


def _compared(found: DrawsFound, *, has_bound: bool, is_short: bool) -> list[str]:
    """Return what came of the comparison, as one line or two.

    ``has_bound``: certified draws are near the posterior, and your data like those that this was measured on.
    ``is_short``: one line is enough, because another one says what would have been seen.
    """
    if found.status == "too few draws":
        size = f"{found.fewest:.0f} effective ones of"
        return [
            fitted(
                f"not compared with certified draws: {size} {found.fewest_name}, {MINIMUM_EFFECTIVE:.0f} are needed",
                found.fewest_name,
            )
        ]
    if found.differ:
        p_value = found.p_value_beyond_error if found.status == "disagreement" else found.p_value
        them = f"{found.n_annealed} certified draws"
        size = how_wrong(found) if has_bound and found.status == "disagreement" else ""
        return [
            fitted(f"{found.worst.replace('{them}', them)} ({p_words(p_value)})", found.worst_name),
            fitted(size, found.error_limit_name),
        ]
    held = (
        f"{found.lowest:.2f}"
        if f"{found.lowest:.2f}" == f"{found.highest:.2f}"
        else (f"{found.lowest:.2f} to {found.highest:.2f}")
    )
    inside = f"90% intervals hold {held} of {found.n_annealed} certified draws: no difference seen"
    bound = (
        f"any P(x <= c) off by at most {up(found.error_limit)} ({found.error_limit_name}), "
        f"against {found.n_annealed} certified draws"
    )
    if is_short and has_bound and found.error_limit < 1.0:
        return [fitted(bound, found.error_limit_name)]
    return [f"{inside} ({p_words(found.p_value)})", "" if is_short else _would_have_been(found)]


def _would_have_been(found: DrawsFound) -> str:
    seen = []
    if np.isfinite(found.shift):
        seen.append(f"a shift of {up(found.shift)} sd")
    if np.isfinite(found.missing_mass):
        seen.append(f"{100 * up_number(found.missing_mass):.0f}% of mass gone at an end")
    if found.n_discrete and found.probability < 1.0:
        seen.append(f"a discrete P off by {up(found.probability)}")
    return f"would show: {', '.join(seen)}" if seen else "a large difference might not have been seen"
