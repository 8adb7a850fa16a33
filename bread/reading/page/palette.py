"""Colours of the page, light and dark; the contrast of each pair that carries text is tested (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1a1f25",
    "muted": "#525c66",
    "line": "#ccd3da",
    "link": "#0a5299",
    "good": "#0b6b4b",
    "open": "#44546a",
    "caution": "#f2bf4a",
    "alarm": "#a32a12",
    "on-good": "#ffffff",
    "on-open": "#ffffff",
    "on-caution": "#1a1f25",
    "on-alarm": "#ffffff",
    "fig-ink": "#1a1f25",
    "fig-1": "#0072b2",
    "fig-2": "#d55e00",
    "fig-3": "#000000",
    "fig-4": "#6f6f6f",
}
DARK = {
    "paper": "#10151a",
    "panel": "#1a2129",
    "ink": "#e8ebee",
    "muted": "#a8b2bc",
    "line": "#3b4650",
    "link": "#8cc4ff",
    "good": "#0b6b4b",
    "open": "#44546a",
    "caution": "#f2bf4a",
    "alarm": "#a32a12",
    "on-good": "#ffffff",
    "on-open": "#ffffff",
    "on-caution": "#1a1f25",
    "on-alarm": "#ffffff",
    "fig-ink": "#e8ebee",
    "fig-1": "#56b4e9",
    "fig-2": "#ff9147",
    "fig-3": "#ffffff",
    "fig-4": "#9aa4ae",
}

TEXT_PAIRS = (
    ("ink", "paper"), ("ink", "panel"), ("muted", "paper"), ("muted", "panel"), ("link", "paper"), ("link", "panel"),
    ("on-good", "good"), ("on-open", "open"), ("on-caution", "caution"), ("on-alarm", "alarm"), ("fig-ink", "panel"),
)  # fmt: skip
"""Text and what it stands on: a contrast of 4.5 at least."""

GRAPHIC_PAIRS = tuple((f"fig-{i}", "panel") for i in (1, 2, 3, 4))
"""Lines of plots and what they stand on: 3 at least (WCAG 2.2, 1.4.11)."""


def variables(colours: dict[str, str]) -> str:
    """Return the colours as declarations of CSS variables."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
