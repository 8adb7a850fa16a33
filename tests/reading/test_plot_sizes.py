"""Texts of every plot lie inside the figure and not on each other, in a column of 80 mm and on a projector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bread
from bread.reading.plots.plot_text import names_that_fit
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result

pyplot = pytest.importorskip("matplotlib.pyplot")

COLUMN, PROJECTOR = (3.15, 2.9, 10.0), (12.0, 6.75, 20.0)  # inches wide and high, points of the labels
OUTSIDE = 2.0  # pixels that a box may stand out or overlap: boxes have a margin around the ink
SINGLE = ("plot_bounds", "plot_consistency", "plot_work", "plot_path", "plot_fit", "plot_agreement")


def interrupted() -> Any:
    result = fake_result(gap=2.0, temperatures=(16, 32, 64))
    result.is_interrupted, result.observed_draws, result.fit_check = True, None, None
    for key in [key for key in result.runs if key[2] == 64 and key[0] > 8]:
        del result.runs[key]
    return result


RESULTS = {
    "small": lambda: fake_result(temperatures=(2, 4), gap=0.01, posterior_shift=0.0),
    "large": lambda: fake_result(
        temperatures=tuple(2**k for k in range(4, 11)), n_search=3, n_forward=5, posterior_shift=1.5, misfit=True
    ),
    "not converged": lambda: fake_result(
        temperatures=(16, 64, 256), gap=40.0, n_forward=5, observed_extra=8.0, posterior_shift=0.1
    ),
    "interrupted": interrupted,
}
MADE: dict[str, Any] = {}


def made(name: str) -> Any:
    if name not in MADE:
        MADE[name] = report.to_container(RESULTS[name](), constrain)
    return MADE[name]


@pytest.fixture(autouse=True)
def closed() -> Any:
    with pyplot.rc_context():
        yield
    pyplot.close("all")


def boxes(figure: Any) -> dict[str, Any]:
    """Return the extent of every piece of text: titles, labels, ticks, legends, annotations."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    found = {}
    for number, ax in enumerate(figure.axes):
        texts = {"title": ax.title, "x": ax.xaxis.label, "y": ax.yaxis.label}
        for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
            shown = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible()]
            low, high = sorted(axis.get_view_interval())
            inside = [low <= place <= high for place in axis.get_ticklocs()]
            for k, (label, is_inside) in enumerate(zip(shown, inside, strict=False)):
                if is_inside:
                    texts[f"{name} tick {k}"] = label
        legend = ax.get_legend()
        if legend is not None:
            found[f"{number} legend"] = legend.get_window_extent(renderer)
        texts |= {f"text {k}": text for k, text in enumerate(ax.texts)}
        for name, text in texts.items():
            if text.get_text().strip() and text.get_visible():
                found[f"{number} {name}"] = text.get_window_extent(renderer)
    return found


def faults(figure: Any) -> list[str]:
    """Return what lies outside the figure or on something else; annotations and legends may lie on data alone."""
    found = boxes(figure)
    width, height = figure.canvas.get_width_height()
    wrong = [
        f"{name} is outside"
        for name, box in found.items()
        if box.x0 < -OUTSIDE or box.y0 < -OUTSIDE or box.x1 > width + OUTSIDE or box.y1 > height + OUTSIDE
    ]
    names = list(found)
    for i, one in enumerate(names):
        for other in names[:i]:
            a, b = found[one], found[other]
            wide = min(a.x1, b.x1) - max(a.x0, b.x0)
            high = min(a.y1, b.y1) - max(a.y0, b.y0)
            if wide > OUTSIDE and high > OUTSIDE:
                wrong.append(f"{one} is on {other}")
    return wrong


def draw(plot: str, name: str, size: tuple[float, float, float]) -> Any:
    width, height, points = size
    pyplot.rcParams["font.size"] = points
    tall = 1.7 if plot in ("plot_bounds", "plot_agreement") and size is COLUMN else 1.0
    figure = pyplot.figure(figsize=(width, tall * height), layout="constrained")
    if plot == "plot_agreement":
        bread.plot_agreement(made(name), ax=figure.subplots(2, 1) if size is COLUMN else figure.subplots(1, 2))
    else:
        getattr(bread, plot)(made(name), ax=figure.subplots(2, 1) if plot == "plot_bounds" else figure.subplots())
    return figure


CASES = [
    pytest.param(plot, name, size, marks=[] if size is COLUMN and name == "large" else [pytest.mark.slow])
    for plot in SINGLE
    for name in RESULTS
    for size in (COLUMN, PROJECTOR)
    if not (name == "interrupted" and plot in ("plot_fit", "plot_agreement"))
]


@pytest.mark.parametrize(("plot", "name", "size"), CASES)
def test_texts_of_a_plot_fit(plot: str, name: str, size: Any) -> None:
    assert faults(draw(plot, name, size)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["large", "interrupted"])
def test_all_plots_stand_in_one_column_where_it_is_narrow(name: str) -> None:
    figure = pyplot.figure(figsize=(3.15, 12.6), layout="constrained")
    bread.plot_report(made(name), figure=figure)
    assert len({ax.get_subplotspec().colspan.start for ax in figure.axes}) == 1
    assert faults(figure) == []


def test_what_does_not_fit_is_found() -> None:
    """Negative control: a title that is too wide, ticks that are too many, and a legend on a label."""
    figure, ax = pyplot.subplots(figsize=(3.15, 2.6), layout="constrained")
    ax.plot([0, 1], label="one")
    ax.set_title("a title that is much wider than a column of eighty millimetres")
    ax.set_xticks(np.linspace(0, 1, 12), [f"{value:.3f}" for value in np.linspace(0, 1, 12)])
    ax.set_xlabel("label")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12))
    found = faults(figure)
    assert "0 title is outside" in found
    assert any("x tick" in fault and fault.count("x tick") == 2 for fault in found)
    assert any("legend" in fault for fault in found)


def test_wide_figures_keep_the_sizes_that_the_settings_give() -> None:
    figure = pyplot.figure(figsize=(7.0, 4.4), layout="constrained")
    ax = bread.plot_work(made("interrupted"), ax=figure.subplots())
    assert ax.xaxis.label.get_fontsize() == 10.0 and ax.title.get_fontsize() == 12.0
    assert "\n" not in ax.get_title() + ax.get_xlabel()
    narrow = bread.plot_work(made("interrupted"), ax=pyplot.figure(figsize=(3.15, 2.6)).subplots())
    assert 6.2 <= narrow.xaxis.label.get_fontsize() < 8.0


def test_what_a_node_is_goes_below_its_name_before_the_name_is_shortened() -> None:
    names = ["y", "y from the prior", "a name that is much too long for its place"]
    kinds = ["data", "predictive", "data"]
    wide = pyplot.figure(figsize=(12.0, 4.0)).subplots()
    assert names_that_fit(wide, names, kinds) == [f"{name} ({kind})" for name, kind in zip(names, kinds, strict=True)]
    narrow = pyplot.figure(figsize=(4.0, 3.0)).subplots()
    short, broken, shortened = names_that_fit(narrow, names, kinds)
    assert (short, broken) == ("y (data)", "y from the prior\n(predictive)")
    assert "…" in shortened and shortened.endswith("\n(data)")


def test_rows_differ_by_marker_too_and_legends_leave_what_is_below_them_readable() -> None:
    ax = bread.plot_agreement(made("large"))
    markers = [line.get_marker() for line in ax.get_lines() if line.get_marker() != "None"]
    assert len(markers) == len(set(markers)) == 2
    frame = bread.plot_bounds(made("large")).get_legend().get_frame()
    assert frame.get_visible() and 0.5 < frame.get_alpha() < 1.0
