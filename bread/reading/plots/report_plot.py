"""`bread.plot_report`: the four main plots of a check in one figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bread.errors import InvalidArgumentError
from bread.reading.other_verbs.debug import is_debug
from bread.reading.other_verbs.other_reports import refuse_other_reports
from bread.reading.plots.plot_axes import import_pyplot
from bread.reading.plots.plot_text import say_why
from bread.reading.plots.plots import plot_bounds, plot_consistency, plot_path, plot_work
from bread.report.opening import takes_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (12.0, 9.0)
_PLOTS: tuple[Callable[..., Any], ...] = (plot_bounds, plot_consistency, plot_work, plot_path)
_NARROW = 5.0  # inches, below which the plots stand in one column


@takes_report
def plot_report(report: Any, *, figure: Figure | None = None) -> Axes:
    """Draw `plot_bounds`, `plot_consistency`, `plot_work` and `plot_path` in one figure.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check`, whole or interrupted.
    figure : matplotlib.figure.Figure, optional
        Where to draw; a new one of 12 by 9 inches by default.

    Returns
    -------
    matplotlib.axes.Axes
        The first of four, which ``ax.figure.axes`` has: in one column where the figure is narrower than 5 inches (make
        it four times as high as wide), in this order by rows: log weights against the number of temperatures; real
        against simulated data; densities of log weights; where the gap arises. A plot that this report cannot have is
        replaced by the reason.

    Raises
    ------
    InvalidArgumentError
        It is no report of `bread.check`.
    MissingDependencyError
        matplotlib is not installed.
    """
    if is_debug(report):
        raise InvalidArgumentError("plot_report draws reports of bread.check; plot_debug draws those of bread.debug.")
    refuse_other_reports(report, "report", "bread.check")
    if figure is None:
        figure = import_pyplot().figure(figsize=_SIZE, layout="constrained")
    is_narrow = figure.get_figwidth() < _NARROW
    grid = figure.subplots(len(_PLOTS), 1) if is_narrow else figure.subplots(2, 2)
    for plot, ax in zip(_PLOTS, grid.flat, strict=True):
        try:
            plot(report, ax=ax)
        except InvalidArgumentError as error:
            say_why(ax, str(error))
    first: Axes = grid.flat[0]
    return first
