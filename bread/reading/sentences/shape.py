"""What a verdict says of the question whether the real data are harder to sample than simulated ones."""

from __future__ import annotations

import math

from bread.reading.sentences.findings import Findings
from bread.reading.sentences.fit import looks_like
from bread.reading.sentences.numbers import nats
from bread.reading.sentences.words import p_words
from bread.statistics.real_data.sequential import SHAPE_LEVEL

_BLIND = {
    "fitted": ", a test that is blind to what the fit absorbs",
    "localised": ", a test that is blind to harder data here, because simulated ones are centred on yours",
}


def blind(findings: Findings) -> str:
    """Return what the test cannot see under this protocol; "" under "prior", where it is exact."""
    return _BLIND.get(findings.simulate_from, "")


def size_of_difference(findings: Findings) -> str:
    """Return by how much the real data are harder, or by what else they differ most."""
    if findings.consistency_measure not in ("harder", "different", ""):
        return f", most in {findings.consistency_measure}"
    if not math.isfinite(findings.effect):
        return ""
    return f", {nats(abs(findings.effect))} nats {'harder' if findings.effect > 0 else 'easier'}"


def sampling_words(findings: Findings) -> str:
    """Return whether the real data are as easy to sample as simulated ones, as a part of a line."""
    p_value = findings.consistency_p_value
    if math.isnan(p_value):
        return "whether harder to sample: not tested"
    if p_value > SHAPE_LEVEL:
        here = ", blind here" if findings.simulate_from == "localised" else ""
        return f"no harder to sample ({p_words(p_value)}{here})"
    if not findings.consistency_is_final:
        return "whether harder to sample: not yet known"
    return f"sampled unlike simulated data ({p_words(p_value)}{size_of_difference(findings)})"


def harder(findings: Findings) -> str:
    """Say whether the real data look like the model's, and are harder to sample than simulated ones."""
    looks = looks_like(findings.fit)
    if math.isnan(findings.consistency_p_value):
        start = f"{looks}; whether they" if looks else "Whether your data"
        return f"{start} are harder to sample than simulated ones was not tested."
    start = f"{looks} and" if looks else "Your data"
    if findings.consistency_p_value <= SHAPE_LEVEL:  # interrupted before enough simulations had run
        return f"{f'{looks}; whether they' if looks else 'Whether your data'} are harder to sample is not yet known."
    known = f"{p_words(findings.consistency_p_value)}{blind(findings)}"
    return f"{start} are no harder to sample than simulated ones ({known})."
