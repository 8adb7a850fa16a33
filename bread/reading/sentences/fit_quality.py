"""What a verdict says of the fit that data sets were simulated from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bread.reading.sentences.lines import LETTERS, counted, short
from bread.reading.sentences.words import YOURS
from bread.statistics.agreement.mixing import Mixing
from bread.statistics.agreement.repeats import ALMOST_DISTINCT

_SMALLER_STEPS = {"pymc": "target_accept", "stan": "adapt_delta", "numpyro": "target_accept_prob"}


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


def fit_warning(
    fit: FitQuality, backend: str, compared: tuple[float, str] | None = None, *, has_advice: bool = True
) -> str:
    """Return the same as a warning of one line, with what to do about it.

    ``backend`` says how the setting is called that makes steps smaller. Not ``has_advice``: draws of other data
    are not to be made longer.
    """
    signs, advice = [], "sample longer or reparametrise"
    if fit.is_doubtful:
        if not math.isnan(fit.mixing.r_hat):
            signs.append(f"R-hat {fit.mixing.r_hat:.2f} ({short(fit.mixing.r_hat_name, LETTERS)})")
        size, name = compared or (fit.mixing.n_effective, fit.mixing.n_effective_name)
        signs.append(f"{size:.0f} effective draws ({short(name, LETTERS)})")
    if fit.distinct_share < ALMOST_DISTINCT:
        signs.append(f"copies (draws count for {100 * fit.distinct_share:.0f}% of their number)")
    if fit.n_divergences:
        if not signs:
            advice = f"raise {_SMALLER_STEPS.get(backend, 'the target of acceptance')}, sample again, check again"
        signs.append(f"{counted(fit.n_divergences, 'transition')} diverged")
    if not signs:
        return ""
    whose = "" if fit.source == YOURS else "the fit: "
    return f"{whose}{', '.join(signs)}{f': {advice}' if has_advice else ''}"
