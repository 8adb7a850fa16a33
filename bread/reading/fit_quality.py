"""What a verdict says of the fit that data sets were simulated from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bread.statistics.mixing import Mixing
from bread.statistics.repeats import ALMOST_DISTINCT


@dataclass(frozen=True)
class FitQuality:
    """The worst diagnostics of the fit, its divergent transitions (0 where nobody counted), and what copies cost it."""

    source: str
    mixing: Mixing
    n_divergences: int
    distinct_share: float = 1.0

    @property
    def is_doubtful(self) -> bool:
        """Whether its chains disagree or hold too few effective draws."""
        return self.mixing.is_doubtful


def read_fit_quality(attributes: Mapping[str, Any]) -> FitQuality | None:
    """Return what a report's attributes tell; None without a fit."""
    if "fit_r_hat" not in attributes:
        return None
    found = Mixing(
        float(attributes["fit_r_hat"]),
        str(attributes["fit_r_hat_parameter"]),
        float(attributes["fit_n_effective"]),
        str(attributes["fit_n_effective_parameter"]),
    )
    return FitQuality(
        str(attributes["fit_source"]),
        found,
        int(attributes.get("fit_n_divergences", 0)),
        float(attributes.get("fit_distinct_share", 1.0)),
    )


def doubt(fit: FitQuality, compared: tuple[float, str] | None = None) -> str:
    """Return what is wrong with a fit, as the end of a sentence; empty where nothing is known to be.

    ``compared`` is the smallest effective size, and whose, that the verdict says of the same draws elsewhere.
    """
    signs = []
    if fit.is_doubtful:
        found = fit.mixing
        if not math.isnan(found.r_hat):
            signs.append(f"its largest R-hat is {found.r_hat:.2f} ({found.r_hat_name})")
        size, name = compared or (found.n_effective, found.n_effective_name)
        signs.append(f"{size:.0f} draws of {name} are effective")
    if fit.distinct_share < ALMOST_DISTINCT:
        signs.append(f"it holds copies (its draws count for {100 * fit.distinct_share:.0f}% of their number)")
    if fit.n_divergences:
        signs.append(f"{fit.n_divergences} transition{'' if fit.n_divergences == 1 else 's'} diverged")
    return " and ".join([", ".join(signs[:-1]), signs[-1]] if len(signs) > 1 else signs)
