"""`bread.plot_debug`: the comparisons of each test, against what they would be where nothing is wrong; P-P plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bread.errors import InvalidArgumentError
from bread.reading.other_verbs.comparison_words import in_words
from bread.reading.other_verbs.debug import is_drawn
from bread.reading.plots.plot_axes import import_pyplot
from bread.reading.plots.plot_text import say_why
from bread.report.compat import read_group
from bread.report.debug import GROUP, JOINT
from bread.report.opening import takes_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3
_WIDTH = 2.7  # inches of a panel, at least
PASSES, FAILS, LIMIT = "#0072B2", "#D55E00", "#000000"  # Okabe & Ito, colour-blind safe; markers and lines differ too
OTHERS = "0.75"
_SMALLEST = 1e-16
_ERRORS = 2.0  # standard errors of a bar


@takes_report
def plot_debug(report: Any, *, most: int | None = None, figure: Figure | None = None) -> Axes:
    """Draw the p-values of each test's comparisons against uniform ones, worst tests first.

    Where nothing is wrong the points lie near the line or above it. Far below it on the left are comparisons that no
    chance explains; the dashed line is where one alone fails the test. Tests without chance are drawn where they fail.

    A last panel has the P-P plots of Geweke's joint test, where it was made: for each function of parameters and data
    its distribution after kernel and simulator took turns against that before. Where nothing is wrong they lie on the
    diagonal. The one with the smallest p-value stands out, with bars of two standard errors.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.debug`.
    most : int, optional
        How many tests are drawn at most, worst first, at least 1; all by default.
    figure : matplotlib.figure.Figure, optional
        To draw in; a new one by default.

    Returns
    -------
    matplotlib.axes.Axes
        The first; ``ax.figure.axes`` has one for each test that is drawn, and one for the P-P plots.

    Raises
    ------
    InvalidArgumentError
        It is no report of `bread.debug`, or ``most`` is less than 1.
    """
    found = read_group(report, GROUP)
    if found is None:
        raise InvalidArgumentError("plot_debug draws reports of bread.debug, and this one is of bread.check.")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise InvalidArgumentError(f"most must be an integer of at least 1, or None for all tests, got {most!r}.")
    level = float(found.attrs["level"])
    shown = []
    for i in np.argsort(np.nan_to_num(found["test_p_value"].values, nan=2.0), kind="stable"):
        p_values = found["comparison_p_value"].values[found["of_test"].values == i]
        p_values = np.sort(np.maximum(p_values[np.isfinite(p_values)], _SMALLEST))
        if is_drawn(found, int(i)):
            shown.append((int(i), p_values))
    shown = shown[:most]
    n_panels = len(shown) + ("pp_before" in found)
    if figure is None:
        figure = import_pyplot().figure(figsize=(9.0, 2.6 * max(1, -(-n_panels // _COLUMNS))), layout="constrained")
    axes = []
    n_columns = min(_COLUMNS, max(1, int(figure.get_figwidth() / _WIDTH)))
    n_rows = max(1, -(-n_panels // n_columns))
    for place, (i, p_values) in enumerate(shown):
        ax = figure.add_subplot(n_rows, n_columns, place + 1)
        n = len(p_values)
        expected = (np.arange(n) + 0.5) / n
        fails = bool(found["fails"].values[i])
        ax.loglog(expected, p_values, "x" if fails else ".", color=FAILS if fails else PASSES, markersize=4)
        ax.loglog([0.3 / n, 1.0], [0.3 / n, 1.0], color="0.6", linewidth=0.8)
        scale = _threshold(found, i, level, n)
        if scale is not None:
            ax.axhline(scale, color=LIMIT, linestyle="--", linewidth=0.8)
        verdict = "fails" if fails else "passes"
        ax.set_title(f"{found['name'].values[i]!s}\n{found['subject'].values[i]!s}: {verdict}", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.set_xlabel("uniform", fontsize=7)
        ax.set_ylabel("p-value", fontsize=7)
        axes.append(ax)
    if "pp_before" in found:
        axes.append(_draw_pp(figure.add_subplot(n_rows, n_columns, n_panels), found))
    if not axes:
        axes.append(figure.add_subplot())
        say_why(axes[0], "No test of this report compares anything that could be drawn: bread.summary lists them all.")
    return axes[0]


def _draw_pp(ax: Any, found: Any) -> Any:
    """Draw the P-P plots of the joint test; the first function has the smallest p-value."""
    is_joint = np.char.startswith(found["name"].values.astype(np.str_), JOINT)
    fails = bool(found["fails"].values[is_joint].any())
    before, after, error = (found[f"pp_{name}"].values for name in ("before", "after", "error"))
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.4", linewidth=0.8)
    ends = np.zeros((len(before), 1)), np.ones((len(before), 1))
    curves = [np.concatenate([ends[0], values, ends[1]], axis=1) for values in (before, after)]
    ax.plot(curves[0][1:].T, curves[1][1:].T, color=OTHERS, linewidth=0.6, zorder=1)
    worst = in_words(str(found["pp_name"].values[0]), str(found["pp_quantity"].values[0]))
    ax.errorbar(
        before[0], after[0], _ERRORS * error[0], fmt="x" if fails else ".", color=FAILS if fails else PASSES,
        markersize=4, linewidth=0.8,
    )  # fmt: skip
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    others = f" and {len(before) - 1} others" if len(before) > 1 else ""
    ax.set_title(f"P-P plots, {JOINT}\n{worst}{others}: {'fails' if fails else 'passes'}", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.set_xlabel("share below, before", fontsize=7)
    ax.set_ylabel("share below, after", fontsize=7)
    return ax


def _threshold(found: Any, index: int, level: float, n: int) -> float | None:
    """Return the p-value of one comparison at which a test fails, from how its smallest was adjusted."""
    adjusted = float(found["test_p_value"].values[index])
    smallest = np.nanmin(found["comparison_p_value"].values[found["of_test"].values == index])
    if not 0.0 < adjusted < 1.0 or smallest <= 0.0:
        return None
    return float(max(level * smallest / adjusted, _SMALLEST))
