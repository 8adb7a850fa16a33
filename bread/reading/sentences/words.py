"""Words that several sentences share."""

from __future__ import annotations

SEEN_WITHOUT_ANNEALING = "Something is broken, and annealing was not needed to see it"
YOURS = "posterior="  # the source of draws that the user gave
YOUR_DRAWS, FITS_DRAWS = "Your draws", "The fit's draws"  # labels of lines
YOUR_MODEL = "Your model"
CERTIFIED_DRAWS, YOUR_DATA, NOT_EXCLUDED = "Certified draws", "Your data", "Not excluded"
NOTHING_MEANS_ANYTHING = "Until it is found, no bound in this report means anything."


def p_words(value: float) -> str:
    """Return "p = 0.03", or "p < 0.001"."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"
