"""Plot of the fit test: which parts of the model the real data do not look like, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bread.reading.plots.plot_axes import new_axes, width_in_letters
from bread.reading.plots.plot_data import require
from bread.reading.plots.plot_text import begin, finish, names_that_fit
from bread.reading.plots.plots import FORWARD, OBSERVED, REFERENCE, REVERSE
from bread.reading.sentences.fit import FAR, NAMED
from bread.report.opening import takes_report
from bread.statistics.real_data.fit import FIT_LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = {1: 55, 2: 75}  # of the legend, where the axes are narrower than so many letters
_MARKERS = {"total": ("o", FORWARD, "taken together"), "extreme": ("D", REVERSE, "most extreme element"),
            "rank": ("s", OBSERVED, "place in its prior")}  # fmt: skip


@takes_report
def plot_fit(report: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the p-values of the fit test, one row a node of the model, with its most extreme elements by name.

    Parameters
    ----------
    report : InferenceData, DataTree or path
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
        Small p-values, on the left, are misfits; those of single nodes are not adjusted for their number, the one in
        the title is. The dotted line is 0.005, from which `bread.verdict` calls the fit poor. An element is named where
        it lies at least 3 standard deviations from what the model expects of it, given what it depends on.

    Raises
    ------
    InvalidArgumentError
        The fit was not tested.
    """
    ax = new_axes(1)[0] if ax is None else ax
    group = require(report, "fit", "plot_fit")
    begin(ax)
    names, p_values = group["node"].values, group["p_value_by_node"].values
    elements, sizes = group["extreme_element"].values, group["extreme_size"].values
    rows = np.arange(len(names))
    for column, statistic in enumerate(group["statistic"].values):
        marker, colour, label = _MARKERS[str(statistic)]
        known = np.isfinite(p_values[:, column])
        if known.any():
            ax.plot(p_values[known, column], rows[known], marker, color=colour, label=label, markersize=7, alpha=0.85)
    ax.axvline(FIT_LEVEL, color=REFERENCE, linestyle=":", linewidth=1.2, label=f"{FIT_LEVEL:g}")
    ax.set_xscale("log")
    ax.set_xlim(min(1e-4, float(np.nanmin(p_values)) / 2.0), 1.5)
    ax.set_yticks(rows)
    ax.set_yticklabels(names_that_fit(ax, [str(name) for name in names], [str(kind) for kind in group["kind"].values]))
    ax.set_ylim(len(names) - 0.4, -0.6)
    for row in rows:
        far = [
            f"{element} {f'{size:+.2g}'.replace('-', '−')} sd"
            for element, size in zip(elements[row], sizes[row], strict=True)
            if abs(size) >= FAR
        ]
        fitting = _fitting(far[:NAMED], width_in_letters(ax))
        place = {"xy": (0.01, row), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        ax.annotate(fitting, xytext=(0, -9), va="top", fontsize=0.9 * float(ax.xaxis.label.get_fontsize()), **place)  # type: ignore[arg-type]
    ax.set_xlabel("p-value of the node: small is a misfit")
    ax.set_title(f"Do the real data look like the model's? p = {float(group['p_value']):.2g}")
    n_letters = width_in_letters(ax)
    columns = next((columns for columns, most in _COLUMNS.items() if n_letters < most), 4)
    finish(ax, legend={}, is_below=True, columns=columns)
    return ax


def _fitting(names: list[str], n_letters: float) -> str:
    """Return as many names as stand on one line of the axes, and the first in any case, shortened."""
    said = ""
    for name in names:
        longer = f"{said}, {name}" if said else name
        if len(longer) > n_letters:
            break
        said = longer
    if said or not names:
        return said
    half = max(int(n_letters) // 2 - 1, 4)
    return f"{names[0][:half]}…{names[0][-half:]}"
