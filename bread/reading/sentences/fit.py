"""What a report says on the fit: whether the real data look like the model's."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import xarray as xr

from bread.reading.sentences.lines import LETTERS, fitted, short
from bread.statistics.real_data.fit import FIT_LEVEL, RANKED_LEVEL

_BY_RANK = " by its rank among simulated data sets"

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
    of_prior : FitFindings or None
        The same of the parameter or latent that is least where its prior expects it, of those with a p-value of at
        most `FIT_LEVEL` after correction. One that was held while simulating counts from `FAR` standard deviations on:
        simulated data have it too, and a scale near 0 under a wide prior is no conflict.
    """

    p_value: float
    ranked_p_value: float
    node: str
    kind: str
    statistic: str
    extremes: tuple[tuple[str, float], ...]
    effect: float
    left_out: tuple[str, ...]
    of_prior: FitFindings | None = None

    @property
    def is_of_prior(self) -> bool:
        """Whether the node is a parameter or latent, whose law is a part of the prior."""
        return self.kind in ("parameter", "latent")

    @property
    def is_far(self) -> bool:
        """Whether an element of the node is far from where the model expects it."""
        return any(abs(size) >= FAR for _, size in self.extremes)

    @property
    def is_poor(self) -> bool:
        """Whether the real data do not look like the model's.

        The p-value by certified draws decides. Where its rank is known too, a rank above 0.05 overrules it: a sampler
        that ends far from the posterior finds misfits in every data set.
        """
        return self.p_value <= FIT_LEVEL and not self.ranked_p_value > RANKED_LEVEL

    @property
    def p_words(self) -> str:
        """Return the p-value that decides, in words."""
        if self.p_value <= FIT_LEVEL and not self.is_poor:
            return f"{_p(self.ranked_p_value)}{_BY_RANK}"
        return _p(self.p_value)


def read_fit(group: xr.Dataset, held: Collection[str] = ()) -> FitFindings:
    """Return what the group `fit` says; ``held`` are parameters that were not drawn from their prior."""
    by_node = group["p_value_by_node"].values
    order = [row for row in np.argsort(np.nan_to_num(by_node, nan=2.0).min(axis=1), kind="stable")]
    found = [_read_node(group, int(row)) for row in order if np.isfinite(by_node[row]).any()]
    smallest = np.nanmin(by_node, axis=1)[order[: len(found)]] * np.isfinite(by_node).sum()
    of_prior = None
    if found[0].is_poor:
        of_prior = next(
            (
                one
                for one, p_value in zip(found, smallest, strict=True)
                if one.is_of_prior
                and (one is found[0] or p_value <= FIT_LEVEL)
                and (one.is_far or not set(one.node.split(", ")) <= set(held))
            ),
            None,
        )
    return replace(found[0], of_prior=of_prior)


def _read_node(group: xr.Dataset, row: int) -> FitFindings:
    by_statistic = group["p_value_by_node"].values[row]
    names, sizes = group["extreme_element"].values[row], group["extreme_size"].values[row]
    return FitFindings(
        p_value=float(group["p_value"]),
        ranked_p_value=float(group["ranked_p_value"]) if "ranked_p_value" in group else math.nan,
        node=str(group["node"].values[row]),
        kind=str(group["kind"].values[row]),
        statistic=str(group["statistic"].values[int(np.nanargmin(by_statistic))]),
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


def looks_words(fit: FitFindings | None) -> str:
    """Return whether the real data look like the model's, as a part of a line."""
    if fit is None or fit_status(fit) == "not tested":
        return "likeness to the model's: not tested"
    p_value = f"({fit.p_words.removeprefix('fit ').removesuffix(_BY_RANK)}"
    if not fit.is_poor:
        return f"like the model's {p_value})"
    node = short(fit.node, LETTERS)
    return f"{node} unlike its prior {p_value})" if fit.is_of_prior else f"unlike the model's {p_value}, {node})"


def what_misfits(fit: FitFindings | None, held: Collection[str] = ()) -> str:
    """Return what misfits most, as a warning of one line; "" where nothing does. ``held`` as in `misfit_sentence`."""
    if fit is None or not fit.is_poor:
        return ""
    of_fit = fit.is_of_prior and set(fit.node.split(", ")) <= set(held)
    ending = "simulated data have it too" if of_fit else "the error is about unlike data"
    name, size = max(fit.extremes, key=lambda one: abs(one[1]), default=("", 0.0))
    if abs(size) >= FAR:
        many = "infinitely many" if math.isinf(size) else f"{abs(size):.2g}"
        return fitted(f"{name} is {many} sd {'above' if size > 0 else 'below'} expectation: {ending}", name)
    return fitted(f"{fit.node} is unlike the model's ({_STATISTIC[fit.statistic]}): {ending}", fit.node)


def misfit_sentence(fit: FitFindings | None, has_compared: bool, held: Collection[str] = ()) -> str:
    """Say where the real data do not look like the model's, and what that does to the bound; "" where they do.

    ``has_compared``: the user's draws were compared with certified ones on the real data. ``held``: parameters that
    simulated data have from the fit.
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
    if fit.is_of_prior and set(fit.node.split(", ")) <= set(held):
        return f"{first}), and simulated data have it from the fit to yours."
    stands = " What was compared on your own data stands." if has_compared else ""
    return f"{first}): the bound is about data that the model makes, which these are unlike.{stands}"


def prior_misfit(found: FitFindings, bound: str) -> list[str]:
    """Say that a parameter is where its prior does not expect it, and that the bound, "0.08", answers nothing then."""
    far = [f"{name} is {_size(size)}" for name, size in found.extremes if abs(size) >= FAR][:NAMED]
    where = f": {', '.join(far)}" if far else ""
    return [
        f"{found.node} is where its prior hardly lets it be ({found.p_words}{where}). Either the prior is wrong or the "
        f"draws are, so the bound, {bound}, is no answer for your data.",
        "Look at that prior and at your data, mend the one or the other, and check again.",
    ]


def _size(size: float) -> str:
    where = "above" if size > 0 else "below"
    number = "infinitely many" if math.isinf(size) else f"{abs(size):.2g}"
    return f"{number} standard deviations {where} what the model expects"


def _nats(value: float) -> str:
    return "infinitely many" if math.isinf(value) else f"{value:.2g}"


def _p(value: float) -> str:
    return "fit p < 0.001" if value < 0.001 else f"fit p = {value:.2g}"
