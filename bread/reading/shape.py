"""What a verdict says of the question whether the real data are harder to sample than simulated ones."""

from __future__ import annotations

import math

from bread.reading.findings import Findings
from bread.reading.numbers import nats

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
