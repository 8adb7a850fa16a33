"""A verdict in a notebook: banner, two numbers and sentences, as a piece of HTML that brings its own colours."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from bread.reading.numbers import nats
from bread.reading.page.banner import banner_of
from bread.reading.page.environment import environment
from bread.reading.page.numbers import rounded_up
from bread.reading.page.palette import LIGHT

_WIDTH = 100


def verdict_html(verdict: Any) -> str:
    """Return a `Verdict` as HTML."""
    banner = banner_of(verdict.status)
    return environment().get_template("verdict.html.jinja").render(
        banner=banner,
        background=LIGHT[banner.tone],
        colour=LIGHT[f"on-{banner.tone}"],
        sentences=_without_status(verdict),
        numbers=_numbers(verdict),
    )  # fmt: skip


def verdict_text(verdict: Any) -> str:
    """Return a `Verdict` as lines of text."""
    lines = str(verdict).split("\n")
    return "\n".join(textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False) for line in lines)


def _without_status(verdict: Any) -> str:
    return str(verdict).removeprefix(f"{verdict.status.capitalize()}. ")


def _numbers(verdict: Any) -> list[tuple[str, str]]:
    known = verdict.__dict__
    numbers = []
    if math.isfinite(known.get("error", math.nan)):
        limit = rounded_up(verdict.error_limit)
        numbers.append(("V", f"{verdict.error:.2g} (limit {limit}), the error of a probability"))
    if math.isfinite(known.get("jeffreys", math.nan)) and verdict.is_reliable:
        numbers.append(("B", f"{nats(max(verdict.jeffreys, 0.0))} nats"))
    if known.get("n_temperatures") and known.get("n_simulations"):
        numbers.append(("T", f"{verdict.n_temperatures} temperatures, {verdict.n_simulations} simulated data sets"))
    return numbers
