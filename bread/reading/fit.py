"""What a report says on the fit: whether the real data look like the model's."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from bread.statistics.fit import FIT_LEVEL, RANKED_LEVEL

NAMED = 3  # extreme elements in a sentence
FAR = 3.0  # standard deviations from which an element is named
_STATISTIC = {
    "total": "its values taken together",
    "extreme": "its most extreme element",
    "rank": "where it lies in its prior",
}


@dataclass(frozen=True)
class FitFindings:
    """The fit test, and what misfits most.

    Attributes
    ----------
    p_value : float
        Over nodes and draws.
    ranked_p_value : float
        Its rank among those of simulated data sets, exact whatever the sampler; NaN where there are none.
    node, kind, statistic : str
        Where the p-value is smallest.
    extremes : tuple of (str, float)
        Its elements furthest from where the model expects them, in standard deviations, with sign.
    effect : float
        Nats an element by which that node is less probable than replicates; NaN where it has no log density.
    left_out : tuple of str
        Nodes that could not be tested.
    """

    p_value: float
    ranked_p_value: float
    node: str
    kind: str
    statistic: str
    extremes: tuple[tuple[str, float], ...]
    effect: float
    left_out: tuple[str, ...]

    @property
    def is_poor(self) -> bool:
        """Whether the real data do not look like the model's.

        The p-value by annealed draws decides. Where its rank is known too, a rank above 0.05 overrules it: a sampler
        that ends far from the posterior finds misfits in every data set.
        """
        return self.p_value <= FIT_LEVEL and not self.ranked_p_value > RANKED_LEVEL

    @property
    def p_words(self) -> str:
        """Return the p-value that decides, in words."""
        if self.p_value <= FIT_LEVEL and not self.is_poor:
            return f"{_p(self.ranked_p_value)} by its rank among simulated data sets"
        return _p(self.p_value)


def read_fit(group: xr.Dataset) -> FitFindings:
    """Return what the group `fit` says."""
    by_node = group["p_value_by_node"].values
    row, column = np.unravel_index(int(np.nanargmin(by_node)), by_node.shape)
    names, sizes = group["extreme_element"].values[row], group["extreme_size"].values[row]
    return FitFindings(
        p_value=float(group["p_value"]),
        ranked_p_value=float(group["ranked_p_value"]) if "ranked_p_value" in group else math.nan,
        node=str(group["node"].values[row]),
        kind=str(group["kind"].values[row]),
        statistic=str(group["statistic"].values[column]),
        extremes=tuple((str(name), float(size)) for name, size in zip(names, sizes, strict=True) if str(name)),
        effect=float(group["effect"].values[row]),
        left_out=tuple(json.loads(str(group.attrs.get("left_out", "{}")))),
    )


def fit_status(fit: FitFindings | None) -> Literal["ok", "poor", "not tested"]:
    """Return what `Verdict.fit` is."""
    if fit is None or math.isnan(fit.p_value):
        return "not tested"
    return "poor" if fit.is_poor else "ok"


def looks_like(fit: FitFindings | None) -> str:
    """Say that the real data look like the model's, without a full stop; "" where they do not, or were not tested."""
    return f"Your data look like the model's ({fit.p_words})" if fit_status(fit) == "ok" and fit else ""


def misfit_sentence(fit: FitFindings | None, has_compared: bool) -> str:
    """Say where the real data do not look like the model's, and what that does to the bound; "" where they do.

    ``has_compared``: the user's draws were compared with annealed ones on the real data.
    """
    if fit is None or not fit.is_poor:
        return ""
    what = {"data": "Your data do", "predictive": "Your data do", "latent": f"The latent {fit.node} does"}.get(
        fit.kind, f"{fit.node} does"
    )
    first = f"{what} not look like the model's ({fit.p_words}, {fit.node}, {_STATISTIC[fit.statistic]}"
    far = [(name, size) for name, size in fit.extremes if abs(size) >= FAR][:NAMED]
    if far:
        first += ": " + ", ".join(f"{name} is {_size(size)}" for name, size in far)
    if fit.effect > 0:
        first += f"; {_nats(fit.effect)} nats an observation less probable than replicates"
    elif fit.effect < 0 and fit.statistic == "total":
        first += f"; {_nats(-fit.effect)} nats an observation more probable than replicates"
    stands = " What was compared on your own data stands." if has_compared else ""
    return f"{first}): the bound is about data that the model makes, which these are unlike.{stands}"


def _size(size: float) -> str:
    where = "above" if size > 0 else "below"
    number = "infinitely many" if math.isinf(size) else f"{abs(size):.2g}"
    return f"{number} standard deviations {where} what the model expects"


def _nats(value: float) -> str:
    return "infinitely many" if math.isinf(value) else f"{value:.2g}"


def _p(value: float) -> str:
    return "fit p < 0.001" if value < 0.001 else f"fit p = {value:.2g}"
