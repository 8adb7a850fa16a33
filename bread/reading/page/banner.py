"""The verdict at first sight: a word, a colour that never stands alone, and a line."""

from __future__ import annotations

from bread.reading.page.parts import Banner, Tone

_LINES: dict[str, tuple[Tone, str]] = {
    "converged": ("good", "The bound is below what was asked for."),
    "no bug found": ("good", "Every test passed. Defects smaller than those named below may be there."),
    "inconclusive": ("open", "Not enough is known yet to say yes or no."),
    "not converged": (
        "caution",
        "The draws are not shown to be near the posterior: the bound is above what was asked for, or a mode is missed.",
    ),
    "mismatch": ("alarm", "Your data anneal unlike simulated data: the bound says little about them."),
    "no difference seen": ("open", "The first look found nothing. It bounds no error."),
    "disagreement": ("alarm", "The draws that were compared are not the posterior's."),
    "bug": ("alarm", "Something is broken: until it is found, no number here means anything."),
}


def banner_of(status: str) -> Banner:
    """Return the banner of a verdict's status; one that is not known here is never shown as good."""
    tone, line = _LINES.get(status, ("open", ""))
    return Banner(f"{status[:1].upper()}{status[1:]}", tone, line)
