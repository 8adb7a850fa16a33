"""`bread.plot_agreement`: the user's own draws, or the fit's, against certified draws on the real data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bread.reading.plots.plot_axes import new_axes
from bread.reading.plots.plot_data import require
from bread.reading.plots.plot_text import begin, finish, is_small, names_that_fit
from bread.reading.sentences.agreement import read_draws, worst_first
from bread.reading.sentences.words import YOURS
from bread.report.compat import read_group
from bread.report.opening import takes_report
from bread.report.quantities import COMPARISON
from bread.statistics.agreement.disagreement import LEVEL, N_FAMILIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGREES, DIFFERS, EXPLAINED = "#0072B2", "#D55E00", "#000000"  # Okabe & Ito, colour-blind safe; markers differ too
NOMINAL = "#7F7F7F"
MOST_ROWS = 20
_STATUSES = ("too few draws", "agreement", "difference", "disagreement")
_LEGEND = {"handlelength": 1.4, "columnspacing": 1.2}


@takes_report
def plot_agreement(report: Any, *, ax: Axes | Sequence[Axes] | None = None) -> Axes:
    """Draw your 90% intervals against certified draws, parameter by parameter, worst first.

    Parameters
    ----------
    report : InferenceData, DataTree or path
    ax : matplotlib.axes.Axes or two of them, optional
        Where to draw: one takes the intervals alone. By default two in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The first; all are in ``ax.figure.axes``. A bar is your 90% interval (or that of bread's fit): it goes from the
        share of certified draws below your 5% quantile to the share below your 95% quantile, with a point at your
        median. In theory it goes from 5% to 95%. Thin lines are limits that hold for all parameters at once; the grey
        bands are the error of the certified draws, an average over simulated data sets. Numbers on the right: by how
        much at most a probability ``P(parameter <= c)`` of your draws is off. At most 20 parameters are drawn, the
        worst at the top; where quantities that were added differ more than the parameters, these. The second axes show
        for the worst parameter the difference of both distribution functions, with the band of what the number of
        certified draws leaves open (Dvoretzky, Kiefer & Wolfowitz), and dashed their error.

    Raises
    ------
    InvalidArgumentError
        The report has no comparison of draws.
    """
    agreement = _deciding(require(report, "agreement", "plot_agreement"), read_group(report, COMPARISON))
    axes = _chosen_axes(ax)
    order = worst_first(agreement)[:MOST_ROWS]
    _draw_contents(axes[0], agreement, order)
    if len(axes) > 1:
        _draw_difference(axes[1], agreement.isel(parameter=int(order[0])))
    return axes[0]


def _deciding(agreement: xr.Dataset, added: xr.Dataset | None) -> xr.Dataset:
    """Return the comparison that decides: that of added quantities where these differ more than the parameters."""
    if added is None or _STATUSES.index(str(added.attrs["status"])) <= _STATUSES.index(str(agreement.attrs["status"])):
        return agreement
    return added


def _chosen_axes(ax: Axes | Sequence[Axes] | None) -> list[Axes]:
    if ax is None:
        return new_axes(2)
    return list(ax) if isinstance(ax, Sequence | np.ndarray) else [ax]


def _draw_contents(ax: Axes, agreement: xr.Dataset, order: np.ndarray[Any, Any]) -> None:
    begin(ax)
    shown = agreement.isel(parameter=order)
    content = shown["interval_content"].transpose("parameter", "quantile").values
    limits = shown["interval_content_ci"].transpose("parameter", "quantile", "ci_bound").values
    rows, quantiles = np.arange(len(order)), agreement["quantile"].values
    error = float(agreement.attrs["error"])
    for number, (low, high) in enumerate(_bands(quantiles, error)):
        label = f"certified draws' error, ± {error:.2f}" if not number else "_nolegend_"
        ax.axvspan(low, high, color=NOMINAL, alpha=0.25, linewidth=0, label=label, zorder=0)
    for quantile in quantiles:
        ax.axvline(float(quantile), color=NOMINAL, linestyle=":", linewidth=1.0, zorder=1)
    for is_drawn, colour, marker, label in _kinds(shown):
        if not is_drawn.any():
            continue
        ax.hlines(rows[is_drawn], content[is_drawn, 0], content[is_drawn, -1], color=colour, linewidth=4.5, alpha=0.55)
        for column in range(len(quantiles)):
            ax.hlines(rows[is_drawn], *limits[is_drawn, column].T, color=colour, linewidth=1.2)
        ax.plot(content[is_drawn, 1], rows[is_drawn], marker, color=colour, markersize=6, label=label)
    ax.set_yticks(rows, names_that_fit(ax, [str(name) for name in shown["parameter"].values]))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xticks([0.05, 0.25, 0.5, 0.75, 0.95], ["5%", "", "50%", "", "95%"])
    if not is_small(ax):
        right = ax.secondary_yaxis("right")
        right.set_yticks(rows, [f"≤ {value:.2f}" for value in shown["error_limit"].values])
        right.tick_params(length=0)
        right.set_ylabel("P(parameter ≤ c) is off by", labelpad=8.0)
    n_left = agreement.sizes["parameter"] - len(order)
    rest = f"; {n_left} more agree better" if n_left else ""
    whose = _whose(agreement)
    n_certified = agreement.attrs["n_annealed"]
    ax.set_xlabel(f"{whose} 90% interval and median: share of {n_certified} certified draws below")
    ax.set_ylabel("parameter, worst first")
    ax.set_title(f"{_answer(agreement)}{rest}")
    finish(ax, legend=_LEGEND, is_below=True, columns=3)


def _answer(agreement: xr.Dataset) -> str:
    """Return in a line what the comparison found."""
    found = read_draws(agreement)
    if not found.differ:
        return "Too few effective draws to compare" if found.status == "too few draws" else "No difference seen"
    worst = found.worst.replace("{them}", "the certified draws")
    return f"{worst[0].upper()}{worst[1:]}{'' if found.status == 'disagreement' else ', as their error may explain'}"


def _bands(quantiles: np.ndarray[Any, Any], error: float) -> list[tuple[float, float]]:
    """Return what lies within the error of a quantile; bands that meet are one."""
    found: list[tuple[float, float]] = []
    for quantile in quantiles:
        low, high = max(float(quantile) - error, 0.0), min(float(quantile) + error, 1.0)
        if found and low <= found[-1][1]:
            low = found.pop()[0]
        found.append((low, high))
    return found


def _kinds(shown: xr.Dataset) -> list[tuple[np.ndarray[Any, Any], str, str, str]]:
    """Return which rows agree, differ by no more than the error explains, and by more; how each is drawn."""
    level = LEVEL / N_FAMILIES
    differs = shown["content_p_value"].min("share").values <= level
    beyond = shown["content_p_value_beyond_error"].min("share").values <= level
    return [
        (~differs, AGREES, "o", "no difference seen"),
        (differs & ~beyond, EXPLAINED, "s", "differs, within it"),
        (differs & beyond, DIFFERS, "D", "differs beyond it"),
    ]


def _draw_difference(ax: Axes, worst: xr.Dataset) -> None:
    begin(ax)
    x, difference = worst["step"].values, worst["fit_cdf"].values - worst["annealed_cdf"].values
    band, error = float(worst.attrs["sampling_error"]), float(worst.attrs["error"])
    ax.fill_between(
        x, difference - band, difference + band, step="post", color=AGREES, alpha=0.2, linewidth=0,
        label=f"± {band:.2f} ({worst.attrs['n_annealed']} draws)",
    )  # fmt: skip
    ax.step(x, difference, where="post", color=AGREES, linewidth=1.6, label="difference")
    ax.axhline(0.0, color=NOMINAL, linestyle=":", linewidth=1.0)
    for sign, label in ((1.0, f"± {error:.2f} (V)"), (-1.0, "_nolegend_")):
        ax.axhline(sign * error, color=DIFFERS, linestyle="--", linewidth=1.0, label=label)
    size = 1.1 * max(float(np.abs(difference).max()) + band, min(error, 0.5))
    ax.set_ylim(-size, size)
    name = str(worst["parameter"].values)
    ax.set_xlabel(name)
    ax.set_ylabel(f"P(draw ≤ x): {_whose(worst, alone='yours')} − certified")
    largest, limit = float(worst["cdf_difference"]), float(worst["error_limit"])
    ax.set_title(f"{name}: differs by {largest:.2f}, off by {limit:.2f} at most")
    finish(ax, legend=_LEGEND, is_below=True, columns=3)


def _whose(agreement: xr.Dataset, *, alone: str = "your") -> str:
    """Return "your" (``alone``: the word without a noun), or "pm.sample's"."""
    source = str(agreement.attrs["source"])
    return alone if source == YOURS else f"{source}'s"
