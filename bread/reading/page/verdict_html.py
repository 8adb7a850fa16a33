"""A verdict in a notebook: its lines and details, as a piece of HTML that brings its own colours."""

from __future__ import annotations

from typing import Any

from bread.reading.page.banner import banner_of
from bread.reading.page.environment import environment
from bread.reading.page.palette import LIGHT


def verdict_html(verdict: Any) -> str:
    """Return a `Verdict` as HTML."""
    tone = banner_of(verdict.status).tone
    return environment().get_template("verdict.html.jinja").render(
        background=LIGHT[tone], colour=LIGHT[f"on-{tone}"], lines=verdict.split("\n"), details=verdict.details
    )  # fmt: skip
