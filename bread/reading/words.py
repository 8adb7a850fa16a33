"""Numbers as words of a sentence."""

from __future__ import annotations


def p_words(value: float) -> str:
    """Return "p = 0.03", or "p < 0.001"."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"
