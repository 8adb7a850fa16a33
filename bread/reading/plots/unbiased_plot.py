"""`bread.lab.plot_unbiased`: the bound of the total variation against iterations, and the meeting times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bread.errors import InvalidArgumentError
from bread.reading.plots.plot_axes import new_axes
from bread.report.compat import group_names, read_group
from bread.report.opening import takes_report
from bread.report.unbiased import GROUP

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@takes_report
def plot_unbiased(report: Any, *, axes: Sequence[Axes] | None = None) -> Axes:
    """Draw the bound of the total variation by iteration, with its limits, and the meeting times of the pairs.

    Left: the mean of the bound and its 95% limit, which assumes that longer meeting times are as rare as those seen let
    expect; dashed, the limit of what the next ``lag`` iterations can change, which assumes nothing. Values above 1 say
    nothing, and are drawn as 1. Right: how many iterations after the start each pair met; pairs that did not meet are
    counted in the title.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.lab.unbiased`.
    axes : sequence of two Axes, optional
        To draw in; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The left; both are in ``ax.figure.axes``.

    Raises
    ------
    InvalidArgumentError
        It is no report of `bread.lab.unbiased`.
    """
    found = read_group(report, GROUP)
    if found is None:
        raise InvalidArgumentError(
            f"plot_unbiased draws reports of bread.lab.unbiased; this one has the groups "
            f"{', '.join(group_names(report))}. "
            "Pass the report of bread.lab.unbiased."
        )
    left, right = new_axes(2) if axes is None else axes
    told = found.attrs
    t = found["iteration"].values
    if len(t):
        left.plot(t, np.minimum(found["bound"].values, 1.0), color="#0072B2", label="bound")
        left.plot(t, np.minimum(found["limit"].values, 1.0), color="#D55E00", label="95% limit")
        left.plot(
            t, found["limit_exact"].values, color="0.5", linestyle="--", label=f"of the next {told['lag']} iterations"
        )
        left.legend(frameon=False)
    left.axhline(told["max_error"], color="0.7", linewidth=0.8)
    left.set(xlabel="iteration", ylabel="total variation", ylim=(0.0, 1.05))
    if told["first_iteration"] >= 0:
        left.axvline(told["first_iteration"], color="0.7", linewidth=0.8)
    times = found["meeting_time"].values
    times = times[np.isfinite(times)] - told["lag"]
    if len(times):
        right.hist(times, bins=min(40, max(1, int(np.ptp(times)) + 1)), color="#56B4E9")
    right.set(xlabel="iterations from the start to the meeting", ylabel="pairs")
    right.set_title(f"{told['n_unmet']} of {told['n_pairs']} pairs did not meet", fontsize=10)
    return left
