"""What each plot shows, in words: its text alternative for those who do not see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bread.reading.other_verbs.debug import is_drawn
from bread.reading.plots.agreement_plot import MOST_ROWS
from bread.reading.plots.plot_data import bounds_data, consistency_data, path_data, require, work_data
from bread.reading.sentences.fit import read_fit
from bread.reading.sentences.words import p_words
from bread.report.compat import require_group
from bread.report.debug import GROUP
from bread.report.first_look import GROUP as FIRST_LOOK


def bounds(report: Any) -> str:
    """Describe `bread.plot_bounds`."""
    data = bounds_data(report)
    certificate = data.certificate
    said = [f"Two panels against the number of temperatures, {_range(data.forward.x)}."]
    first, last = _at(data.forward.mean, 0), _at(data.forward.mean, -1)
    said.append(f"Above, the mean log weight of forward chains goes from {first} to {last} nats of the log evidence,")
    said.append(f"that of reverse chains from {_at(data.reverse.mean, 0)} to {_at(data.reverse.mean, -1)}.")
    if certificate.size_of_b:
        said.append(f"{certificate.size_of_b}.")
    if len(certificate.x):
        low, high = certificate.error[0], certificate.error[-1]
        reached = "below" if certificate.upper[-1] <= certificate.max_error else "not below"
        said.append(
            f"Below, V goes from {low:.2g} to {high:.2g}; its limit at the last, {certificate.upper[-1]:.2g}, is "
            f"{reached} the {certificate.max_error:.2g} that was asked for."
        )
    return " ".join(said)


def consistency(report: Any) -> str:
    """Describe `bread.plot_consistency`."""
    data = consistency_data(report)
    n, n_known = len(data.simulated), np.isfinite(data.simulated[:, 0])
    observed = data.observed[0]
    share = float(np.mean(data.simulated[n_known, 0] < observed)) if n_known.any() else float("nan")
    where = (
        f"at {data.x[0]:.0f} it lies above {100 * share:.0f}% of them" if np.isfinite([share, observed]).all() else ""
    )
    curve = "The forward curve of the real data against those of"
    return f"{curve} {n} simulated data sets over {_range(data.x)} temperatures{_then(where)}; {p_words(data.p_value)}."


def work(report: Any) -> str:
    """Describe `bread.plot_work`."""
    data = work_data(report, None, None)
    forward, reverse = (values[np.isfinite(values)] for values in (data.forward, data.reverse))
    sides = [
        f"{name} ones have mean {_signed(float(values.mean()))} and standard deviation {float(values.std()):.2g}"
        for name, values in (("forward", forward), ("reverse", reverse))
        if len(values)
    ]
    lost = len(data.forward) - len(forward)
    missing = f"; {lost} forward chains are at minus infinity" if lost else ""
    return (
        f"Densities of log weights minus log evidence at {data.n_temperatures} temperatures, in nats: "
        f"{', '.join(sides)}{missing}."
    )


def path(report: Any) -> str:
    """Describe `bread.plot_path`."""
    data = path_data(report)
    gap = f"{max(data.gap, 0.0):.2g} nats" if np.isfinite(data.gap) else "infinite"
    half = f"; half of it arises below an inverse temperature of {data.gap_location:.2g}"
    return (
        f"Mean {data.log_ratio_name} of forward and reverse chains against the inverse temperature, from the "
        f"{data.base_name} to the posterior: the area between them is {gap}"
        f"{half if np.isfinite(data.gap_location) else ''}."
    )


def agreement(report: Any) -> str:
    """Describe `bread.plot_agreement`."""
    group = require(report, "agreement", "plot_agreement")
    central = group["central_content"].values
    n = min(MOST_ROWS, int(group.sizes["parameter"]))
    known = central[np.isfinite(central)]
    held = f"90% intervals hold {known.min():.2f} to {known.max():.2f} of them" if len(known) else "intervals unknown"
    return (
        f"90% intervals of the draws compared as shares of {group.attrs['n_annealed']} certified draws, for {n} "
        f"parameters, the worst first: {held}. Status: {group.attrs['status']}."
    )


def first_look(report: Any) -> str:
    """Describe `bread.plot_first_look`."""
    look = require(report, FIRST_LOOK, "plot_first_look")
    n = min(MOST_ROWS, int(look.sizes["parameter"]))
    far = [f"{np.nanmax(np.abs(look[name].values - at)):.2g}" for name, at in (("shift", 0.0), ("sd_ratio", 1.0))]
    return (
        f"How far means and standard deviations of {n} parameters are off by the first look, the worst first: means by "
        f"up to {far[0]} standard deviations, ratios of standard deviations from 1 by up to {far[1]}; "
        f"{p_words(float(look['p_value']))}."
    )


def fit(report: Any) -> str:
    """Describe `bread.plot_fit`."""
    found = read_fit(require(report, "fit", "plot_fit"))
    return f"p-values of the fit test by part of the model: {found.p_words} in all, smallest in {found.node}."


def debug(report: Any, most: int) -> str:
    """Describe `bread.plot_debug` of the ``most`` worst tests."""
    found = require_group(report, GROUP)
    failed = [
        f"{name} of {subject}"
        for name, subject, fails in zip(
            found["name"].values, found["subject"].values, found["fails"].values.astype(bool), strict=True
        )
        if fails
    ]
    what = (
        f"{len(failed)} fail: {', '.join(failed[:5])}{', ...' if len(failed) > 5 else ''}" if failed else "none fails"
    )
    pp = "; P-P plots of the joint test of Geweke" if "pp_before" in found else ""
    drawn = min(n_drawn_tests(found), most)
    return f"p-values of the comparisons of {drawn} tests against uniform ones{pp}; {what}."


def n_drawn_tests(found: xr.Dataset) -> int:
    """Return how many tests have comparisons that `bread.plot_debug` draws."""
    return sum(is_drawn(found, i) for i in range(int(found.sizes["test"])))


def _range(x: np.ndarray[Any, Any]) -> str:
    return f"{x[0]:.0f} to {x[-1]:.0f}" if len(x) > 1 else ", ".join(f"{value:.0f}" for value in x)


def _at(values: np.ndarray[Any, Any], index: int) -> str:
    return _signed(float(values[index])) if len(values) else "nothing"


def _signed(value: float) -> str:
    if not np.isfinite(value):
        return "minus infinity" if value < 0 else "an unknown number"
    return f"{value:.2g}".replace("-", "−")


def _then(clause: str) -> str:
    return f": {clause}" if clause else ""
