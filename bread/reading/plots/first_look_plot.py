"""`bread.plot_first_look`: how far means and standard deviations of your draws are off, by the gradient at them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bread.errors import InvalidArgumentError
from bread.reading.plots.plot_axes import new_axes
from bread.reading.plots.plot_data import require
from bread.reading.plots.plot_text import begin, finish, names_that_fit
from bread.reading.sentences.first_look import sizes
from bread.reading.sentences.words import YOURS
from bread.report.compat import read_attributes
from bread.report.first_look import GROUP
from bread.report.opening import takes_report
from bread.statistics.first_look.first_look import LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FINE, OFF, NOMINAL = "#0072B2", "#D55E00", "#7F7F7F"  # Okabe & Ito; markers differ too
MOST_ROWS = 20
ERRORS = 2.0  # standard errors of a bar, and from which a parameter is named
_PANELS = (
    ("shift", 0.0, "how far the mean is off (sd)"),
    ("sd_ratio", 1.0, "sd over the posterior's"),
)


@takes_report
def plot_first_look(report: Any, *, ax: Axes | Sequence[Axes] | None = None) -> Axes:
    """Draw how far means and standard deviations of your draws are off, parameter by parameter, worst first.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.look`, or from a `bread.check` that had draws to look at.
    ax : matplotlib.axes.Axes or two of them, optional
        Where to draw shifts and ratios: one takes the shifts alone. By default two in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The first; all are in ``ax.figure.axes``. Points are estimates with bars of two standard errors. Grey bars show
        what the test could have missed: a difference that long is called a disagreement 9 times in 10. Where the test
        fails (p < 0.001), parameters that are off by two standard errors stand out. At most 20 parameters are drawn,
        the worst at the top; one without a point is one of which the gradient tells no size.

    Raises
    ------
    InvalidArgumentError
        The report has no first look, or nothing could be looked at.
    """
    look = require(report, GROUP, "plot_first_look")
    if "shift" not in look:
        reasons = json.loads(look.attrs["left_out"])
        why = next(iter(reasons.values()), "no parameter is continuous")
        raise InvalidArgumentError(f"plot_first_look has nothing to draw: {why}. Read the report by bread.verdict.")
    axes = new_axes(2) if ax is None else list(ax) if isinstance(ax, Sequence | np.ndarray) else [ax]
    order = np.argsort(-sizes(look), kind="stable")[:MOST_ROWS]
    for place, (panel, (name, nominal, label)) in enumerate(zip(axes, _PANELS, strict=False)):
        _draw(panel, look, order, name, nominal, label)
        if place:
            panel.set_ylabel("")
            panel.set_yticklabels([])
        else:
            whose = "Your" if str(read_attributes(report).get("fit_source", YOURS)) == YOURS else "The fit's"
            panel.set_title(_answer(look, len(order), whose))
        finish(panel, legend=None if place else {}, is_below=True, columns=3)
    return axes[0]


def _draw(ax: Axes, look: xr.Dataset, order: np.ndarray[Any, Any], name: str, nominal: float, label: str) -> None:
    begin(ax)
    shown = look.isel(parameter=order)
    value, error, unseen = (shown[one].values for one in (name, f"{name}_se", f"detectable_{name}"))
    rows = np.arange(len(order))
    ax.axvline(nominal, color=NOMINAL, linestyle=":", linewidth=1.0, zorder=1)
    ax.hlines(
        rows, nominal - unseen, nominal + unseen, color=NOMINAL, linewidth=7.0, alpha=0.25, label="would go unseen",
        zorder=0,
    )  # fmt: skip
    with np.errstate(invalid="ignore"):
        is_off = (np.abs(value - nominal) >= ERRORS * error) & (float(look["p_value"]) < LEVEL)
    for chosen, colour, marker, words in ((~is_off, FINE, "o", "± 2 standard errors"), (is_off, OFF, "D", "off")):
        if np.isfinite(value[chosen]).any():
            ax.errorbar(
                value[chosen], rows[chosen], xerr=ERRORS * error[chosen], fmt=marker, color=colour, markersize=5,
                linewidth=1.4, label=words,
            )  # fmt: skip
    ax.set_yticks(rows, names_that_fit(ax, [str(one) for one in shown["parameter"].values]))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(label)
    ax.set_ylabel("parameter, worst first")


def _answer(look: xr.Dataset, n_drawn: int, whose: str) -> str:
    """Return in a line what the first look found."""
    p_value, other = float(look["p_value"]), json.loads(look.attrs["other_data"])
    n_left = look.sizes["parameter"] - n_drawn
    rest = f"; {n_left} more agree better" if n_left else ""
    if other:
        return f"{whose} draws are of other data ({other[0][0]}){rest}"
    if not np.isfinite(p_value):
        return f"Too few draws to look at{rest}"
    if p_value < LEVEL:
        return f"{whose} draws are not the posterior's (p\u00a0<\u00a0{LEVEL:g}){rest}"
    return f"No difference seen (p = {p_value:.2g}){rest}"
