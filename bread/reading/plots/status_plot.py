"""`bread.plot`: the one figure that shows what a report came to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bread.errors import InvalidArgumentError
from bread.reading.other_verbs.compare import is_compare
from bread.reading.other_verbs.data_annealing import data_annealing_summary, is_data_annealing
from bread.reading.other_verbs.debug import is_debug
from bread.reading.other_verbs.path_sampling import is_path_sampling, path_sampling_summary
from bread.reading.other_verbs.unbiased import is_unbiased
from bread.reading.plots.agreement_plot import plot_agreement
from bread.reading.plots.compare_plot import plot_compare
from bread.reading.plots.debug_plot import plot_debug
from bread.reading.plots.first_look_plot import plot_first_look
from bread.reading.plots.modes_plot import plot_modes
from bread.reading.plots.plot_axes import import_pyplot, new_axes
from bread.reading.plots.plot_text import begin, finish, names_that_fit, say_why
from bread.reading.plots.plots import FORWARD, REVERSE, plot_bounds, plot_consistency, plot_work
from bread.reading.plots.unbiased_plot import plot_unbiased
from bread.reading.sentences.first_look import is_first_look
from bread.reading.verdict import Verdict, verdict
from bread.report.opening import takes_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Plot = Callable[..., Any]
_OF_STATUS: dict[str, tuple[_Plot, ...]] = {
    "bug": (plot_work,),
    "mismatch": (plot_consistency,),
    "not converged": (plot_modes, plot_bounds),
}
_OTHERWISE: tuple[_Plot, ...] = (plot_agreement, plot_first_look, plot_bounds)
_OF_VERB: tuple[tuple[Callable[[Any], bool], _Plot], ...] = (
    (is_debug, plot_debug),
    (is_compare, plot_compare),
    (is_unbiased, plot_unbiased),
    (is_data_annealing, lambda report: _plot_evidence(data_annealing_summary(report), "simulated data set")),
    (is_path_sampling, lambda report: _plot_evidence(path_sampling_summary(report), "estimate of")),
)
MOST_ROWS = 20


@takes_report
def plot(report: Any) -> Axes:
    """Draw the figure that shows what a report came to.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        Of any verb and status, whole or interrupted.

    Returns
    -------
    matplotlib.axes.Axes
        The first, as every plot of bread returns; ``ax.figure`` is the figure, with all axes in ``ax.figure.axes``, for
        ``ax.figure.savefig("answer.png")``. Of a check: your draws against certified ones (`bread.plot_agreement`),
        without them the first look (`bread.plot_first_look`); where the status is "mismatch" `bread.plot_consistency`,
        "bug" `bread.plot_work`, "not converged" `bread.plot_bounds`, or the modes that draws miss, with the shares of
        posterior and draws in each. Of `bread.look`: the first look. Of `bread.debug`, `bread.compare` and
        `bread.lab.unbiased`: their plots. Of `bread.lab.data_annealing` and `bread.lab.path_sampling`: log evidence
        with its limits. Where nothing can be drawn, the figure says why.

    Raises
    ------
    InvalidArgumentError
        It is no report of bread.
    MissingDependencyError
        matplotlib is not installed.
    """
    own = next((one for is_its, one in _OF_VERB if is_its(report)), None)
    of_verb = (own,) if own is not None else (plot_first_look,) if is_first_look(report) else _OTHERWISE
    of_status = () if own is not None else _of_status(verdict(report))
    reasons = []
    for one in (*of_status, *of_verb):
        try:
            return _drawn(one, report)
        except InvalidArgumentError as error:
            reasons.append(str(error))
    ax = new_axes(1)[0]
    say_why(ax, reasons[len(of_status)])
    return ax


def _of_status(answer: Verdict) -> tuple[_Plot, ...]:
    """Return what shows why the status is what it is: of a disagreement, what saw it."""
    if answer.status == "disagreement" and answer.comparison != "disagreement":
        return (plot_first_look,)
    return _OF_STATUS.get(answer.status, ())


def _drawn(one: _Plot, report: Any) -> Axes:
    """Return the axes of a plot in a figure of its own; none is left where it cannot be drawn."""
    pyplot = import_pyplot()
    before = set(pyplot.get_fignums())
    try:
        ax: Axes = one(report, ax=new_axes(1)[0]) if one is plot_agreement else one(report)
    except InvalidArgumentError:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
        raise
    return ax


def _plot_evidence(table: Any, what: str) -> Axes:
    """Draw rows of a table with log evidences, or scores, and their limits."""
    name = next(name for name in ("log_evidence", "value") if name in table)
    shown = table[np.isfinite(table[name].to_numpy(dtype=float))].head(MOST_ROWS)
    if shown.empty:
        raise InvalidArgumentError(
            f"plot needs a finite log evidence, and none of {len(table)} is. Read the report by bread.summary."
        )
    ax = new_axes(1)[0]
    begin(ax)
    rows, values = np.arange(len(shown)), shown[name].to_numpy(dtype=float)
    lower, upper = (shown[end].to_numpy(dtype=float) for end in ("lower", "upper"))
    is_known = np.isfinite(lower) & np.isfinite(upper)
    ax.hlines(rows[is_known], lower[is_known], upper[is_known], color=FORWARD, linewidth=1.4)
    ax.plot(values[is_known], rows[is_known], "o", color=FORWARD, label="with limits")
    if not is_known.all():
        ax.plot(values[~is_known], rows[~is_known], "D", color=REVERSE, label="a limit is infinite, or not known")
    ax.set_yticks(rows, names_that_fit(ax, [str(one) for one in shown.index]))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_ylabel(what)
    ax.set_xlabel(f"{name.replace('_', ' ')} (nats)")
    finish(ax, legend={}, is_below=True, columns=2)
    return ax
