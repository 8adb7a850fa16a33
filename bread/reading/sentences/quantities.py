"""What a report says about quantities that were added to it after the check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bread.reading.sentences.agreement import DrawsFound, read_draws, too_few
from bread.reading.sentences.words import p_words
from bread.report.compat import read_group
from bread.report.quantities import COMPARISON, GROUP


@dataclass(frozen=True)
class QuantitiesFound:
    """Quantities that were added.

    Attributes
    ----------
    names : tuple of str
    p_value : float
        Of their weighted ranks, corrected for their number.
    worst : str
        Whose ranks are furthest from uniform.
    draws : DrawsFound or None
        Their comparison on the real data; None where no own draws were given.
    """

    names: tuple[str, ...]
    p_value: float
    worst: str
    draws: DrawsFound | None


def read_quantities(report: Any) -> QuantitiesFound | None:
    """Return what was found about added quantities; None where there are none."""
    group, compared = read_group(report, GROUP), read_group(report, COMPARISON)
    if group is None:
        return None
    names = tuple(str(name) for name in group["quantity"].values)
    worst = int(np.argmin(group["weighted_rank_p_value"].values))
    draws = None if compared is None else read_draws(compared)
    return QuantitiesFound(names, float(group["weighted_rank_p_value_combined"]), names[worst], draws)


def worse_draws(own: DrawsFound | None, found: QuantitiesFound | None) -> DrawsFound | None:
    """Return the comparison that decides: that of added quantities where it differs more than that of parameters."""
    order = ("difference", "disagreement")
    if found is None or found.draws is None or found.draws.status not in order:
        return own
    if own is None or own.status not in order:
        return found.draws
    return max(own, found.draws, key=lambda draws: order.index(draws.status))  # the check's own of equal ones


def quantities_sentence(found: QuantitiesFound | None, level: float) -> str:
    """Say what came of added quantities; where their ranks are not uniform, another sentence says so."""
    if found is None:
        return ""
    number = len(found.names)
    listed = ", ".join(found.names[:3]) + ("" if number <= 3 else ", ...")
    subject = f"{number} added quantit{'y' if number == 1 else 'ies'} ({listed})"
    said = "" if found.p_value <= level else f"Ranks of {subject} show nothing wrong ({p_words(found.p_value)})."
    draws = found.draws
    if draws is None:
        return said
    if draws.status == "too few draws":
        return f"{said} {too_few(draws)}".strip()
    if draws.status == "agreement":
        held = f"{draws.lowest:.2f}" if number == 1 else f"{draws.lowest:.2f} to {draws.highest:.2f}"
        return f"{said} Your 90% intervals of {subject} hold {held} of the certified draws.".strip()
    return said


def furthest(found: QuantitiesFound | None, rank_p_value: float, rank_function: str) -> str:
    """Return whose ranks are furthest from uniform: a function of the check, or a quantity that was added."""
    if found is None or rank_p_value <= found.p_value:
        return rank_function
    return f"the quantity {found.worst}, which was added after the check"
