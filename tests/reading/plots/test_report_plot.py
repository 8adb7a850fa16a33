"""The four main plots in one figure, of whatever a check came to."""

from __future__ import annotations

from typing import Any

import pytest
import xarray as xr

import bread
from bread.errors import InvalidArgumentError
from bread.report import container as report
from bread.report.compat import make_container, read_attributes
from tests.support.fake_results import constrain, fake_result

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def texts(figure: Any) -> list[str]:
    """Return the title of each panel, or what stands there in place of a plot, whatever its lines."""
    found = [ax.get_title() or " ".join(text.get_text() for text in ax.texts) for ax in figure.axes]
    return [text.replace("\n", " ") for text in found]


def test_four_plots_in_one_figure() -> None:
    made = report.to_container(fake_result(gap=0.01), constrain)
    figure = bread.plot_report(made).figure
    found = texts(figure)
    for words, title in zip(("Bounds", "real data anneal", "Log weights at 64", "Up and down"), found, strict=True):
        assert words in title
    figure.canvas.draw()
    own = pyplot.Figure(figsize=(7.0, 6.0), layout="constrained")
    assert bread.plot_report(made, figure=own) is own.axes[0] and texts(own) == found


@pytest.mark.parametrize(("temperatures", "n_missing"), [((16,), 1), ((16, 32), 0)])
def test_what_cannot_be_drawn_is_said_in_its_place(temperatures: tuple[int, ...], n_missing: int) -> None:
    result = fake_result(gap=6.0, temperatures=temperatures, n_draws=0)
    figure = bread.plot_report(report.to_container(result, constrain)).figure
    figure.canvas.draw()
    assert len(figure.axes) == 4 and sum("which this" in text for text in texts(figure)) == n_missing
    result.runs.clear()
    result.is_interrupted, result.observed_draws, result.fit_check = True, None, None
    empty = bread.plot_report(report.to_container(result, constrain)).figure
    empty.canvas.draw()
    assert all("needs" in text for text in texts(empty)) and len(texts(empty)) == 4


def test_reports_of_debug_are_refused() -> None:
    made = report.to_container(fake_result(), constrain)
    debug = make_container({"debug": xr.Dataset({"alarm": ((), 0)})}, read_attributes(made))
    with pytest.raises(InvalidArgumentError, match="plot_debug draws those"):
        bread.plot_report(debug)
