"""Plots of a report. matplotlib is imported when a plot is drawn; every function takes ``ax`` and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bread.reading.plots.plot_axes import (
    compress,
    import_pyplot,
    inverse_temperature_axis,
    new_axes,
    temperature_axis,
    width_in_letters,
)
from bread.reading.plots.plot_data import (
    CertificateData,
    ConsistencyData,
    Curve,
    FloatArray,
    bounds_data,
    consistency_data,
    density,
    path_data,
    smoothed,
    work_data,
)
from bread.reading.plots.plot_text import begin, finish, is_small
from bread.report.opening import takes_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORWARD, REVERSE, OBSERVED, REFERENCE = "#0072B2", "#D55E00", "#000000", "#7F7F7F"  # Okabe & Ito, colour-blind safe
_BAND = 0.22  # opacity of filled areas
_LEGEND_LETTERS = 75  # of the legend of V on one line
_BINS = 60  # of plot_path, which averages over neighbouring temperatures


@takes_report
def plot_bounds(report: Any, *, ax: Axes | Sequence[Axes] | None = None) -> Axes:
    """Draw log weights and the certificate V against the number of temperatures.

    Parameters
    ----------
    report : InferenceData, DataTree or path
    ax : matplotlib.axes.Axes, or two of them, optional
        Where to draw log weights and V; with one, V is left out. A new figure of two by default.

    Returns
    -------
    matplotlib.axes.Axes
        Above, log weights: means (lines) and quartile bands over all chains, in nats. Each simulation is shifted by its
        own log evidence estimate at the largest T it has: 0 is the log evidence. The distance between the two lines is
        the raw gap, whose mean is B; B itself with its limits stands in the legend. The real data have a forward curve
        only, shifted by its own estimate at the largest T. Below, V with its limits at every T, the limit that holds
        whatever other data sets are like (a tick), and the error that was asked for. The filled point decides; hollow
        ones come from fewer simulations, or from those that chose the number of temperatures.

    References
    ----------
    Grosse, Ancha & Roy (2016), figure 1.
    """
    upper, lower = _pair_of_axes(ax)
    data = bounds_data(report)
    begin(upper)
    _draw_curve(upper, data.reverse, REVERSE, "v", "reverse chains, from the exact posterior")
    if data.observed is not None:
        _draw_curve(upper, data.observed, OBSERVED, "s", "real data, forward", linestyle="--", band=0.0)
    _draw_curve(upper, data.forward, FORWARD, "^", f"forward chains, from the {data.base_name}")
    upper.axhline(0.0, color=REFERENCE, linewidth=0.8, linestyle=":", zorder=1)
    temperatures = data.forward.x if data.observed is None else np.union1d(data.forward.x, data.observed.x)
    temperature_axis(upper, temperatures)
    compress(upper, np.concatenate([data.forward.lower, data.forward.mean, data.reverse.mean]))
    upper.set_ylabel("log weight − log evidence (nats)")
    upper.set_title("Bounds of the log evidence: mean and quartiles")
    if lower is not None:
        upper.set_xlabel("")
    finish(upper, legend={"title": data.certificate.size_of_b or None})
    if lower is not None:
        begin(lower)
        _draw_certificate(lower, data.certificate, temperatures)
    return upper


def _draw_certificate(ax: Axes, data: CertificateData, temperatures: FloatArray) -> None:
    known = np.isfinite(data.upper)
    ax.vlines(data.x[known], data.lower[known], data.upper[known], color=FORWARD, linewidth=1.6)
    ax.plot(data.x, data.error, color=FORWARD, linewidth=0.8, alpha=0.6)
    for chosen, face, label in ((data.is_final, FORWARD, "V with its limits"), (~data.is_final, "white", "_nolegend_")):
        ax.plot(data.x[chosen], data.error[chosen], "o", color=FORWARD, markerfacecolor=face, markersize=5, label=label)
    shown = data.is_final & (data.limit_exact < 1.0)
    if shown.any():
        label = "limit whatever other data sets are like"
        ax.plot(
            data.x[shown], data.limit_exact[shown], "_", color=REVERSE, markersize=14, markeredgewidth=2, label=label
        )
    ax.axhline(data.max_error, color=OBSERVED, linestyle="--", linewidth=1.0, label=f"asked for: {data.max_error:.2g}")
    temperature_axis(ax, temperatures)
    highest = np.concatenate([data.error, data.upper[known], data.limit_exact[shown], [data.max_error]]).max()
    is_narrow = width_in_letters(ax) < _LEGEND_LETTERS
    top = (1.1 if is_small(ax) else 1.85 if is_narrow else 1.35) * float(highest)  # room for the legend
    ax.set_ylim(0.0, top)
    ax.set_yticks([tick for tick in ax.get_yticks() if tick <= 1.0])
    ax.set_ylim(0.0, top)
    ax.set_ylabel("error of a probability")
    finish(
        ax,
        legend={
            "loc": "upper right" if is_narrow else "upper center", "ncols": 1 if is_narrow else 3,
            "fontsize": "small", "columnspacing": 1.0, "labelspacing": 0.25,
        },
    )  # fmt: skip


@takes_report
def plot_consistency(report: Any, *, ax: Axes | None = None) -> Axes:
    """Draw forward curves of simulated data against that of the real data.

    Parameters
    ----------
    report : InferenceData, DataTree or path
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
        Median forward log weights minus their value at the largest T, in nats: quartile band and range of the
        simulated data sets, the real data as a line. A line below the band: real data are harder to anneal, and the
        bounds say little about them. The p-value in the title is the whole test's.

    References
    ----------
    Grosse, Ancha & Roy (2016), section 3.2.
    """
    ax = _axes(ax)
    data = consistency_data(report)
    begin(ax)
    finite = np.where(np.isfinite(data.simulated), data.simulated, np.nan)
    if len(data.x) == 2:
        return _draw_one_difference(ax, data, finite[:, 0])
    low, first, median, third, high = np.nanquantile(finite, (0.0, 0.25, 0.5, 0.75, 1.0), axis=0)
    n = len(data.simulated)
    ax.fill_between(data.x, low, high, color=FORWARD, alpha=0.10, linewidth=0, label=f"{n} simulated data sets, range")
    ax.fill_between(data.x, first, third, color=FORWARD, alpha=0.30, linewidth=0, label="simulated, quartiles")
    ax.plot(data.x, median, color=FORWARD, linewidth=1.5, label="simulated, median")
    ax.plot(data.x, data.observed, color=OBSERVED, linewidth=1.8, marker="s", markersize=4, label="real data")
    temperature_axis(ax, data.x)
    compress(ax, np.concatenate([finite[:, :-1].ravel(), data.observed[:-1]]))  # every curve ends at 0
    ax.set_ylabel(f"forward log weight − its value at {data.x[-1]:.0f} (nats)")
    ax.set_title(f"Do real data anneal like simulated data? p = {data.p_value:.2g}")
    finish(ax, legend={"loc": "lower right"})
    return ax


def _draw_one_difference(ax: Axes, data: ConsistencyData, simulated: FloatArray) -> Axes:
    """Draw what curves of two points hold: one difference a data set."""
    heights = np.linspace(0.2, 0.8, len(simulated))[np.random.default_rng(0).permutation(len(simulated))]
    n = int(np.isfinite(simulated).sum())
    ax.plot(simulated, heights, "o", color=FORWARD, alpha=0.6, markersize=5, label=f"{n} simulated data sets")
    ax.axvspan(
        *np.nanquantile(simulated, (0.25, 0.75)), color=FORWARD, alpha=0.15, linewidth=0, label="their quartiles"
    )
    if np.isfinite(data.observed[0]):
        ax.axvline(data.observed[0], color=OBSERVED, linewidth=1.8, label="real data")
    low, high = (f"{value:.0f}" for value in data.x)
    ax.set_ylim(0.1, 0.9 if is_small(ax) else 1.2)  # room for the legend
    ax.set_yticks([])
    ax.set_xlabel(f"forward log weight at {low} temperatures − at {high} (nats)")
    ax.set_title(f"Do real data anneal like simulated data? p = {data.p_value:.2g}")
    finish(ax, legend={"loc": "upper center", "ncols": 3})
    return ax


@takes_report
def plot_work(
    report: Any, *, simulation: int | None = None, n_temperatures: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw densities of forward and reverse log weights: they cross at the log evidence.

    Parameters
    ----------
    report : InferenceData, DataTree or path
    simulation : int, optional
        One simulated data set; by default all that gave the bound, each shifted by its log evidence estimate.
    n_temperatures : int, optional
        By default the final one.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
        Kernel density estimates, the values as ticks below, the means as short lines. In theory the ratio of the
        reverse to the forward density at w is w / evidence, so that they cross there (Crooks 1999); little overlap
        means that the bound is loose.
    """
    ax = _axes(ax)
    begin(ax)
    data = work_data(report, simulation, n_temperatures)
    everything = np.concatenate([data.forward, data.reverse])
    everything = everything[np.isfinite(everything)]
    if not everything.size:
        everything = np.array([data.log_evidence])
    margin = 0.4 * max(float(np.ptp(everything)), 0.1)
    grid = np.linspace(everything.min() - margin, everything.max() + margin, 400)
    for values, colour, name, height in (
        (data.forward, FORWARD, "forward", 0.06),
        (data.reverse, REVERSE, "reverse", 0.025),
    ):
        finite = values[np.isfinite(values)]
        missing = len(values) - len(finite)
        mean = f", mean {finite.mean():.3g}".replace("-", "−") if finite.size and not missing else ""
        label = f"{name}{mean}" + (f" ({missing} at −∞)" if missing else "")
        heights = density(values, grid)
        if heights is not None:
            ax.fill_between(grid, heights, color=colour, alpha=_BAND, linewidth=0)
            ax.plot(grid, heights, color=colour, linewidth=1.6, label=label)
            label = "_nolegend_"
        ticks = np.full(len(finite), height)
        ax.plot(
            finite, ticks, "|", color=colour, markersize=6, alpha=0.6, transform=ax.get_xaxis_transform(), label=label,
        )  # fmt: skip
    ax.axvline(data.log_evidence, color=REFERENCE, linestyle=":", linewidth=1.2, label="log evidence estimate")
    top = ax.get_ylim()[1]
    ax.set_yticks([tick for tick in ax.get_yticks() if 0.0 <= tick <= top])
    ax.set_ylim(-0.09 * top, top)  # the ticks of single chains lie below zero
    ax.set_ylabel("density (per nat)")
    if data.is_shifted:
        ax.set_xlabel("log weight − log evidence estimate of its data set (nats)")
        what = f"{data.n_simulations} simulated data set{'' if data.n_simulations == 1 else 's'}"
    else:
        ax.set_xlabel("log weight (nats)")
        what = f"simulated data set {simulation}"
    ax.set_title(f"Log weights at {data.n_temperatures} temperatures, {what}")
    finish(ax, legend={})
    return ax


@takes_report
def plot_path(report: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the mean log ratio up and down the path: where forward and reverse chains differ, the gap arises.

    Parameters
    ----------
    report : InferenceData, DataTree or path
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
        Means over chains and simulations at the final T, relative to the mean at the exact posterior draws, in nats;
        thick lines are averaged over neighbouring temperatures, on a scale that spreads them. The shaded hysteresis
        integrates (over inverse temperature) to B; the vertical line marks where half of it has arisen.
    """
    ax = _axes(ax)
    data = path_data(report)
    begin(ax)
    betas, forward = smoothed(data.betas, data.forward, data.power, _BINS)
    _, reverse = smoothed(data.betas, data.reverse, data.power, _BINS)
    is_finite = np.isfinite(data.gap)
    gap = f"hysteresis: the gap of {max(data.gap, 0.0):.2g} nats" if is_finite else "hysteresis: an infinite gap"
    ax.fill_between(betas, forward, reverse, color=REFERENCE, alpha=0.3, linewidth=0, label=gap)
    for values, mean, colour, label in (
        (data.reverse, reverse, REVERSE, "reverse chains"),
        (data.forward, forward, FORWARD, "forward chains"),
    ):
        if len(betas) < len(data.betas):
            ax.plot(data.betas, values, color=colour, linewidth=0.6, alpha=0.25, label="_nolegend_")
        ax.plot(betas, mean, color=colour, linewidth=1.6, label=label)
    if np.isfinite(data.gap_location):
        where = (
            f"half of the gap below {data.gap_location:.2g}" if is_finite else f"infinite at {data.gap_location:.2g}"
        )
        ax.axvline(data.gap_location, color=OBSERVED, linestyle=":", linewidth=1.2, label=where)
    inverse_temperature_axis(ax, data.power, data.base_name)
    compress(ax, np.concatenate([data.forward, data.reverse]))
    ax.set_ylabel(f"mean {data.log_ratio_name}, relative to exact draws (nats)")
    ax.set_title(f"Up and down the path at {data.n_temperatures} temperatures")
    finish(ax, legend={"loc": "lower right"})
    return ax


def _draw_curve(
    ax: Axes, curve: Curve, colour: str, marker: str, label: str, *, linestyle: str = "-", band: float = _BAND
) -> None:
    lower = np.where(np.isfinite(curve.lower), curve.lower, np.nan)
    if band:
        ax.fill_between(curve.x, lower, curve.upper, color=colour, alpha=band, linewidth=0)
    mean = np.where(np.isfinite(curve.mean), curve.mean, np.nan)
    if len(mean) and np.isnan(mean).all():
        label += " (mean −∞)"
    ax.plot(curve.x, mean, color=colour, marker=marker, markersize=4.5, linewidth=1.6, linestyle=linestyle, label=label)


def _pair_of_axes(ax: Axes | Sequence[Axes] | None) -> tuple[Axes, Axes | None]:
    """Return the axes of two panels that share the number of temperatures; one alone where one was given."""
    if ax is None:
        figure = import_pyplot().figure(figsize=(7.0, 6.6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        return upper, lower
    if isinstance(ax, Sequence | np.ndarray):
        upper, lower = ax
        return upper, lower
    return ax, None


def _axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or the axes of a new figure."""
    return new_axes(1)[0] if ax is None else ax
