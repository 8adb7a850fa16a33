"""Chains on the real data whose weight is zero: counted, and said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ZeroWeights:
    """Annealed chains on the real data.

    Attributes
    ----------
    n_zero, n_chains : int
        Those that met a ratio of zero on their way, and all of them: at the final T, those of the draws included.
    """

    n_zero: int = 0
    n_chains: int = 0


def read_zero_weights(attributes: Mapping[str, Any]) -> ZeroWeights:
    """Return the counts of a report."""
    return ZeroWeights(int(attributes.get("n_observed_zero", 0)), int(attributes.get("n_observed_chains", 0)))


def zero_weights(found: ZeroWeights | None, ratio: str) -> str:
    """Say how many chains weigh nothing; ``ratio`` is what was zero. "" where there are none."""
    if found is None or not found.n_zero:
        return ""
    if found.n_zero == found.n_chains:
        return (
            f"On your data every one of {found.n_chains} annealed chains met a {ratio} of zero: there are no certified "
            "draws, and no bound of their evidence. Priors under which your data are possible would mend that."
        )
    return (
        f"On your data {found.n_zero} of {found.n_chains} annealed chains met a {ratio} of zero: they have weight zero "
        "and are no draws."
    )
