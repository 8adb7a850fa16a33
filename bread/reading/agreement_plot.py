"""`bread.plot_agreement`: the user's own draws, or the fit's, against annealed draws on the real data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bread.reading.agreement import worst_first
from bread.reading.plot_axes import new_axes
from bread.reading.plot_data import require
from bread.reading.plot_text import begin, finish, is_small, names_that_fit
from bread.reading.words import YOURS
from bread.report.opening import takes_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#000000", "#D55E00")  # of the three quantiles; Okabe & Ito, colour-blind safe
MARKERS = ("<", "o", ">")
BAND, NOMINAL = "#0072B2", "#7F7F7F"
MOST_ROWS = 20
_LEGEND = {"handlelength": 1.4, "columnspacing": 1.2}


@takes_report
def plot_agreement(report: Any, *, ax: Axes | Sequence[Axes] | None = None) -> Axes:
    """Draw what share of annealed draws lies below the quantiles of your draws, parameter by parameter, worst first.

    Parameters
    ----------
    report : InferenceData, DataTree or path
    ax : matplotlib.axes.Axes or two of them, optional
        Where to draw: one takes the shares alone. By default two in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Shares of annealed draws below the 5, 50 and 95% quantile of your draws (or those of bread's fit), with limits
        that hold for all parameters at once, and lines where they should be: at most 20 parameters, the worst at the
        top. The second axes show for the worst parameter the difference of both distribution functions, with the band
        of what the number of annealed draws leaves open (Dvoretzky, Kiefer & Wolfowitz), and dashed the error V of the
        annealed draws, an average over simulated data sets.

    Raises
    ------
    InvalidArgumentError
        The report has no comparison of draws.
    """
    agreement = require(report, "agreement", "plot_agreement")
    axes = _chosen_axes(ax)
    order = worst_first(agreement)[:MOST_ROWS]
    _draw_contents(axes[0], agreement, order)
    if len(axes) > 1:
        _draw_difference(axes[1], agreement.isel(parameter=int(order[0])))
    return axes[0]


def _chosen_axes(ax: Axes | Sequence[Axes] | None) -> list[Axes]:
    if ax is None:
        return new_axes(2)
    return list(ax) if isinstance(ax, Sequence | np.ndarray) else [ax]


def _draw_contents(ax: Axes, agreement: xr.Dataset, order: np.ndarray[Any, Any]) -> None:
    begin(ax)
    whose = _whose(agreement)
    content = agreement["interval_content"].transpose("parameter", "quantile").values[order]
    limits = agreement["interval_content_ci"].transpose("parameter", "quantile", "ci_bound").values[order]
    rows = np.arange(len(order))
    drawn = zip(agreement["quantile"].values, COLOURS, MARKERS, strict=True)
    for column, (quantile, colour, marker) in enumerate(drawn):
        ax.axvline(float(quantile), color=NOMINAL, linestyle=":", linewidth=1.0, zorder=1)
        ax.hlines(rows, limits[:, column, 0], limits[:, column, 1], color=colour, linewidth=1.4)
        ax.plot(content[:, column], rows, marker, color=colour, markersize=5, label=f"{100 * quantile:.0f}% quantile")
    ax.set_yticks(rows, names_that_fit(ax, [str(name) for name in agreement["parameter"].values[order]]))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xticks(
        [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0],
        ["0", "", "" if is_small(ax) else "0.25", "0.5", "" if is_small(ax) else "0.75", "", "1"],
    )
    n_left = agreement.sizes["parameter"] - len(order)
    rest = f"; {n_left} more agree better" if n_left else ""
    ax.set_xlabel(f"share of {agreement.attrs['n_annealed']} annealed draws below {whose} quantile")
    ax.set_ylabel("parameter, worst first")
    ax.set_title(f"{agreement.attrs['status'].capitalize()}{rest}")
    finish(ax, legend=_LEGEND, is_below=True, columns=3)


def _draw_difference(ax: Axes, worst: xr.Dataset) -> None:
    begin(ax)
    x, difference = worst["step"].values, worst["fit_cdf"].values - worst["annealed_cdf"].values
    band, error = float(worst.attrs["sampling_error"]), float(worst.attrs["error"])
    ax.fill_between(
        x, difference - band, difference + band, step="post", color=BAND, alpha=0.2, linewidth=0,
        label=f"± {band:.2f} ({worst.attrs['n_annealed']} draws)",
    )  # fmt: skip
    ax.step(x, difference, where="post", color=BAND, linewidth=1.6, label="difference")
    ax.axhline(0.0, color=NOMINAL, linestyle=":", linewidth=1.0)
    for sign, label in ((1.0, f"± {error:.2f} (V)"), (-1.0, "_nolegend_")):
        ax.axhline(sign * error, color=COLOURS[2], linestyle="--", linewidth=1.0, label=label)
    size = 1.1 * max(float(np.abs(difference).max()) + band, min(error, 0.5))
    ax.set_ylim(-size, size)
    name = str(worst["parameter"].values)
    ax.set_xlabel(name)
    ax.set_ylabel(f"P(draw ≤ x): {_whose(worst, alone='yours')} − annealed")
    largest, limit = float(worst["cdf_difference"]), float(worst["error_limit"])
    ax.set_title(f"{name}: differs by {largest:.2f}, off by {limit:.2f} at most")
    finish(ax, legend=_LEGEND, is_below=True, columns=3)


def _whose(agreement: xr.Dataset, *, alone: str = "your") -> str:
    """Return "your" (``alone``: the word without a noun), or "pm.sample's"."""
    source = str(agreement.attrs["source"])
    return alone if source == YOURS else f"{source}'s"
