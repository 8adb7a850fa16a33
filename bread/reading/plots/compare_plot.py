"""`bread.plot_compare`: bounds of several models or kernels against what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bread.errors import InvalidArgumentError
from bread.reading.other_verbs.compare import read_comparison
from bread.reading.plots.plot_axes import import_pyplot, new_axes, width_in_letters
from bread.reading.plots.plot_text import begin, finish
from bread.report.opening import takes_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe & Ito (2008): told apart with every common colour blindness; line style and marker differ as well.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_LINES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LABELS = {
    "steps": "kernel steps a chain",
    "gradients": "gradients a chain",
    "evaluations": "density evaluations a chain",
    "seconds": "processor seconds a chain",
}
_NAMES = {"error": "V, error of a probability", "jeffreys": "B (nats)"}
_DODGE = 0.02  # of the width of the axes, in logs: error bars side by side
_GAP = 1.5  # letters between labels
_SHORT, _NUMBER = 3.0, 11.0  # an axis of so small a ratio has ticks of any digits, each in the room of so many letters
_ROOM = 3.0  # decades on an axis up to which values 2 and 5 have ticks


@takes_report
def plot_compare(report: Any, *, against: str | None = None, bound: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw V or B of each model against what a chain costs, with 95% limits.

    Lower and further left is better. Limits are each model's own; paired intervals of the difference, which the
    verdict reads, are narrower, because the data sets are the same. Open markers: B has no finite mean there, and
    decides nothing.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.compare`.
    against : {"steps", "gradients", "evaluations", "seconds"}, optional
        One cost; by default a panel each for steps, gradients (where all models use them) and seconds.
    bound : {"jeffreys", "error"}, optional
        B or V; by default B where it is reliable everywhere, else V.
    ax : Axes, optional
        To draw in, with ``against``.

    Returns
    -------
    matplotlib.axes.Axes
        The first; all are in ``ax.figure.axes``.

    Raises
    ------
    InvalidArgumentError
        It is no report of `bread.compare`, or an argument is not allowed.
    MissingDependencyError
        matplotlib is not installed.
    """
    table = read_comparison(report, "plot_compare")
    if against is not None and against not in _LABELS:
        raise InvalidArgumentError(f"against must be one of {', '.join(map(repr, _LABELS))}, got {against!r}.")
    if bound not in (None, *_NAMES):
        raise InvalidArgumentError(f"bound must be 'jeffreys', 'error' or None, got {bound!r}.")
    if ax is not None and against is None:
        raise InvalidArgumentError("ax= is for one cost: say which with against=, such as against='steps'.")
    import_pyplot()
    name = bound or _default_bound(table)
    if against is not None:
        found = ax if ax is not None else new_axes(1)[0]
        _draw(found, table, name, against)
        finish(found, legend={"frameon": True})
        return found
    shown = [axis for axis in ("steps", "gradients", "seconds") if _is_used(table, axis)]
    axes = new_axes(len(shown))
    for place, (panel, axis) in enumerate(zip(axes, shown, strict=True)):
        _draw(panel, table, name, axis)
        if place:
            panel.set_ylabel("")
            panel.sharey(axes[0])
        finish(panel, legend=None if place else {"frameon": True})
    return axes[0]


def _default_bound(table: xr.Dataset) -> str:
    ran = np.isfinite(table["error"].values)
    has_bound = np.isfinite(table["jeffreys"].values[ran]).all() and (table["jeffreys"].values[ran] > 0).all()
    return "jeffreys" if has_bound and table["jeffreys_reliable"].values[ran].all() else "error"


def _is_used(table: xr.Dataset, axis: str) -> bool:
    ran = np.isfinite(table["error"].values)
    return bool((table[axis].values[ran] > 0).all())


def _draw(ax: Any, table: xr.Dataset, bound: str, axis: str) -> None:
    costs_of_all = table[axis].values[np.isfinite(table["error"].values) & (table[axis].values > 0)]
    if not len(costs_of_all):
        raise InvalidArgumentError(f"No model of this report has {_LABELS[axis]}. Take another cost as against=.")
    begin(ax)
    span = np.log(costs_of_all.max() / costs_of_all.min()) if len(costs_of_all) > 1 else 1.0
    n_models = table.sizes["model"]
    lowest = highest = np.nan
    for i, name in enumerate(table["model"].values):
        value = table[bound].values[i]
        rows = np.flatnonzero(np.isfinite(value) & (value > 0) & (table[axis].values[i] > 0))
        if not len(rows):
            continue
        dodge = _DODGE * max(span, 1.0) * (i - (n_models - 1) / 2.0) if axis == "steps" else 0.0  # equal there alone
        costs = table[axis].values[i, rows] * np.exp(dodge)
        value, limits = value[rows], table[f"{bound}_ci"].values[i, rows]
        floor = value / 30.0  # of a lower limit below zero, on a logarithmic axis
        low = np.clip(value - np.maximum(np.nan_to_num(limits[:, 0]), floor), 0.0, None)
        high = np.clip(np.nan_to_num(limits[:, 1], nan=0.0, posinf=0.0) - value, 0.0, None)
        colour = _COLOURS[i % len(_COLOURS)]
        ax.errorbar(
            costs, value, yerr=[low, high], color=colour, linestyle=_LINES[i % len(_LINES)], linewidth=1.4,
            elinewidth=0.9, capsize=2.5, marker=_MARKERS[i % len(_MARKERS)], markersize=5.5, label=str(name),
        )  # fmt: skip
        if bound == "jeffreys":
            hollow = ~table["jeffreys_reliable"].values[i, rows].astype(bool)
            ax.plot(
                costs[hollow], value[hollow], color=colour, linestyle="", marker=_MARKERS[i % len(_MARKERS)],
                markersize=5.5, markerfacecolor="white", zorder=5,
            )  # fmt: skip
        lowest = np.nanmin([lowest, *(value - low)])
        highest = np.nanmax([highest, *(value + high)])
    ax.set_xscale("log")
    ax.set_yscale("log")
    _ticks(ax.xaxis, costs_of_all.min(), costs_of_all.max(), width_in_letters(ax))
    _ticks(ax.yaxis, lowest, highest)
    ax.set_xlabel(_LABELS[axis])
    ax.set_ylabel(_NAMES[bound])


def _ticks(axis: Any, low: float, high: float, n_letters: float = np.inf) -> None:
    """Put ticks with plain labels at 1, 2 and 5 of each decade; at 1 alone where they would be too many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    narrow = not (np.isfinite(low) and np.isfinite(high) and low > 0) or np.log10(high / low) <= _ROOM / 2
    digits: tuple[float, ...] = (1.0, 2.0, 5.0) if narrow else (1.0, 3.0) if np.log10(high / low) <= _ROOM else (1.0,)
    if np.isfinite(n_letters) and low > 0:
        longest = max(len(f"{10.0 ** np.floor(np.log10(value)):,.10g}") for value in (low, high))
        while len(digits) > 1 and len(digits) * (np.log10(high / low) + 0.5) * (longest + _GAP) > n_letters:
            digits = (1.0, 3.0) if len(digits) == 3 else (1.0,)
    is_short = np.isfinite(n_letters) and low > 0 and 1.0 < high / low < _SHORT
    axis.set_major_locator(
        MaxNLocator(max(2, int(n_letters / _NUMBER))) if is_short else LogLocator(base=10.0, subs=digits, numticks=12)
    )
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
