"""The plots of a page, and why those that are missing are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bread.errors import InvalidArgumentError, MissingDependencyError
from bread.reading.page import alternatives
from bread.reading.page.parts import Figure
from bread.reading.page.svg import drawn
from bread.reading.plots.agreement_plot import MOST_ROWS, plot_agreement
from bread.reading.plots.debug_plot import plot_debug
from bread.reading.plots.first_look_plot import plot_first_look
from bread.reading.plots.plot_axes import import_pyplot
from bread.reading.plots.plots import plot_bounds, plot_consistency, plot_path, plot_work
from bread.reading.plots.plots_fit import plot_fit
from bread.report.compat import read_group, require_group
from bread.report.debug import GROUP
from bread.report.first_look import GROUP as FIRST_LOOK

WIDTH = 4.9  # inches: legible on a phone, where a plot is some 9 cm wide
MOST_TESTS = 6  # of a debug report that a page draws; its table has all
_ROW = 0.3


class _Plot(NamedTuple):
    name: str
    title: str
    draw: Callable[[Any, Any], Any]  # report, figure
    alt: Callable[[Any], str]
    caption: str
    height: Callable[[Any], float]


def _one(plot: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda report, figure: plot(report, ax=figure.subplots())


def _bounds(report: Any, figure: Any) -> None:
    plot_bounds(report, ax=list(figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))))


def _agreement(report: Any, figure: Any) -> None:
    plot_agreement(report, ax=[*figure.subplots(2, 1, height_ratios=(_agreement_rows(report) + 2, 8))])


def _agreement_rows(report: Any) -> int:
    group = read_group(report, "agreement")
    return 1 if group is None else min(MOST_ROWS, int(group.sizes["parameter"]))


def _first_look(report: Any, figure: Any) -> None:
    plot_first_look(report, ax=list(figure.subplots(1, 2)))


def _looked_rows(report: Any) -> int:
    return min(MOST_ROWS, int(require_group(report, FIRST_LOOK).sizes.get("parameter", 1)))


def _fit_rows(report: Any) -> int:
    group = read_group(report, "fit")
    return 1 if group is None else int(group.sizes["node"])


def _debug_rows(report: Any) -> int:
    found = require_group(report, GROUP)
    return -(-(min(MOST_TESTS, alternatives.n_drawn_tests(found)) + ("pp_before" in found)) // 2)


_FIRST_LOOK = _Plot(
    "first_look", "First look", _first_look, alternatives.first_look,
    "Means and standard deviations of the draws compared, against what the gradient of the density says of them, with "
    "two standard errors; a difference as long as a grey bar is seen 9 times in 10.",
    lambda report: 2.2 + _ROW * _looked_rows(report),
)  # fmt: skip
_CHECK = (
    _Plot(
        "bounds", "Bounds", _bounds, alternatives.bounds,
        "Above: log weights of forward and reverse chains close in on the log evidence, 0; their distance is the gap "
        "that B bounds. Below: V with its limits, which is to fall below the dashed line.",
        lambda report: 5.0,
    ),
    _Plot(
        "consistency", "Consistency", _one(plot_consistency),
        alternatives.consistency, "A line outside the band: the bounds say little about the real data.",
        lambda report: 3.5,
    ),
    _Plot(
        "work", "Log weights", _one(plot_work), alternatives.work,
        "Densities of forward and reverse log weights cross at the log evidence; little overlap: a loose bound.",
        lambda report: 3.5,
    ),
    _Plot(
        "path", "Path", _one(plot_path), alternatives.path,
        "Where chains up and down the path differ, the shaded area, the gap arises.",
        lambda report: 3.5,
    ),
    _Plot(
        "agreement", "Draws", _agreement, alternatives.agreement,
        "Above: 90% intervals of the draws compared, as shares of the certified draws: they should go from 5% to 95%, "
        "up to the certified draws' error (grey). "
        "Below: both distribution functions of the worst parameter, their difference.",
        lambda report: 3.4 + _ROW * (_agreement_rows(report) + 2),
    ),
    _Plot(
        "fit", "Fit", _one(plot_fit), alternatives.fit,
        "Points on the left are misfits of the model.",
        lambda report: 2.0 + 1.7 * _ROW * min(_fit_rows(report), 40),
    ),
)  # fmt: skip
_DEBUG = (
    _Plot(
        "debug", "Comparisons", lambda report, figure: plot_debug(report, most=MOST_TESTS, figure=figure),
        lambda report: alternatives.debug(report, MOST_TESTS),
        f"p-values against uniform ones, worst tests first, {MOST_TESTS} at most: far below the line on the left no "
        "chance explains them.",
        lambda report: 2.4 * max(1, _debug_rows(report)),
    ),
)  # fmt: skip
_WIDE = {"debug": 5.6, "first_look": 5.6}  # two panels beside each other


def figures_of(report: Any, kind: str) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """Return the plots that can be drawn, and a line on each that cannot: nothing that a plot lacks breaks a page."""
    figures, missing = [], []
    looked = (_FIRST_LOOK,) if read_group(report, FIRST_LOOK) is not None else ()  # older reports have none
    for plot in _DEBUG if kind == "debug" else (*looked, *_CHECK):
        try:
            figures.append(_figure(plot, report))
        except MissingDependencyError as error:
            return (), (str(error),)
        except InvalidArgumentError as error:
            missing.append(f"{plot.title}: {str(error).split(' lacks: ')[-1]}")
        except Exception as error:  # a page without a plot is better than no page
            missing.append(f"{plot.title}: it could not be drawn ({type(error).__name__}: {error}).")
    return tuple(figures), tuple(missing)


def _figure(plot: _Plot, report: Any) -> Figure:
    import_pyplot()  # says what to install
    alt = plot.alt(report)
    width = _WIDE.get(plot.name, WIDTH)
    svg = drawn(lambda figure: plot.draw(report, figure), width, plot.height(report), f"fig-{plot.name}")
    return Figure(plot.name, plot.title, svg, alt, plot.caption)
