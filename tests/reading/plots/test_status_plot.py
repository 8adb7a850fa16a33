"""`bread.plot` picks the figure of the status; every plot returns the first of its axes."""

from __future__ import annotations

import inspect
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bread
from bread.errors import InvalidArgumentError
from bread.report import container as report
from bread.report.compat import group_names, make_container, read_attributes, read_group
from bread.running.state.mode_results import FoundMode, ModeResults
from bread.statistics.real_data.modes import RegionEvidence, Share, WeighedMode
from tests.support.fake_results import constrain, fake_result
from tests.support.situations import look_of

pyplot = pytest.importorskip("matplotlib.pyplot")

NOWHERE, MOST = Share(0.0, 0.0, 0.007), Share(0.97, 0.9, 0.99)


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def container(**settings: Any) -> Any:
    return report.to_container(fake_result(**settings), constrain)


def with_modes() -> Any:
    """A mode at mu = 8.1 that holds nearly everything, and no draw is there; the draws are in the other."""
    result = fake_result(gap=0.01, posterior_shift=0.0)
    modes = []
    for at, mass, annealed, is_missed in ((8.1, 0.978, NOWHERE, True), (-3.0, 0.02, MOST, False)):
        weighed = WeighedMode(RegionEvidence(-40.0, 0.02, 900.0), False, mass, mass - 0.002, annealed, is_missed)
        modes.append(FoundMode(np.array([at, 0.5, 0.0, 0.0, 0.0, 1.0]), -38.0, weighed, annealed))
    result.modes = ModeResults(tuple(modes), -44.0, 100, 4000, 13, 250, 16_400, ())
    return report.to_container(result, constrain)


def interrupted() -> Any:
    result = fake_result()
    result.runs.clear()
    result.is_interrupted, result.observed_draws, result.fit_check = True, None, None
    return report.to_container(result, constrain)


def look(p_value: float = 0.5, shift: float = 0.01, other_data: Any = (), names: Any = ("mu", "tau")) -> Any:
    """Return a report of a look in which tau is off by ``shift``."""
    values = {
        "shift": shift * (np.arange(len(names)) == 1), "sd_ratio": 1.0, "shift_se": 0.03, "sd_ratio_se": 0.02,
        "detectable_shift": 0.15, "detectable_sd_ratio": 0.1,
    }  # fmt: skip
    columns = {name: ("parameter", one + np.zeros(len(names))) for name, one in values.items()}
    group = look_of(names, p_value, other_data=other_data).assign(columns)
    return make_container({"first_look": group}, read_attributes(interrupted()) | {"is_interrupted": 0})


CASES = {
    "converged": (lambda: container(gap=0.01, posterior_shift=0.0), "converged", "No difference seen"),
    "disagreement": (lambda: container(gap=0.01, posterior_shift=1.5), "disagreement", "Your 90% interval of mu holds"),
    "without own draws": (lambda: container(gap=0.01), "converged", "Bounds of the log evidence"),
    "not converged": (lambda: container(gap=40.0, posterior_shift=0.0), "not converged", "Bounds of the log evidence"),
    "a mode is missed": (with_modes, "not converged", "A mode is missed"),
    "interrupted": (interrupted, "inconclusive", ""),
    "a look": (look, "no difference seen", "No difference seen (p = 0.5)"),
    "a look that differs": (lambda: look(1e-5, 0.5), "disagreement", "Your draws are not the posterior's (p < 0.001)"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_figure_is_that_of_the_status(case: str) -> None:
    make, status, title = CASES[case]
    made = make()
    ax = bread.plot(made)
    ax.figure.canvas.draw()
    assert bread.verdict(made).status == status
    assert ax.get_title().replace("\n", " ").startswith(title) and isinstance(ax, pyplot.Axes)
    assert len(pyplot.get_fignums()) == 1  # figures that could not be drawn are closed


def test_where_nothing_can_be_drawn_the_figure_says_why() -> None:
    (text,) = bread.plot(interrupted()).texts
    assert "no draws" in text.get_text().replace("\n", " ")


def test_real_data_that_anneal_otherwise_are_drawn_against_simulated_ones() -> None:
    made = container(gap=0.01, observed_extra=8.0, n_forward=179, posterior_shift=0.0)
    assert bread.verdict(made).status == "mismatch"
    assert bread.plot(made).get_title().startswith("Do real data anneal")


def test_a_missed_mode_shows_what_it_holds_and_who_is_there() -> None:
    ax = bread.plot(with_modes())
    assert [text.get_text() for text in ax.get_yticklabels()] == ["mu = 8.1", "mu = -3"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.976, 0.018])
    shares = {line.get_label(): list(line.get_xdata()) for line in ax.get_lines()}
    assert shares["of your draws"] == shares["of the certified draws"] == [0.0, 0.97]


def test_a_disagreement_is_drawn_by_what_saw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look failed, and the comparison with certified draws, which sees less, did not."""
    whole = container(gap=0.01, posterior_shift=0.0)
    both = make_container(
        {
            **{name: read_group(whole, name) for name in group_names(whole)},
            "first_look": read_group(look(1e-5, 0.5), "first_look"),
        },
        read_attributes(whole),
    )
    says = bread.Verdict("DISAGREEMENT", status="disagreement", comparison="agreement")
    monkeypatch.setattr("bread.reading.plots.status_plot.verdict", lambda report: says)
    assert bread.plot(both).get_title().replace("\n", " ").startswith("Your draws are not the posterior's")
    says.__dict__["comparison"] = "disagreement"
    assert "certified draws" in bread.plot(both).get_xlabel().replace("\n", " ")


def test_added_quantities_that_differ_more_are_drawn() -> None:
    fine, wrong = container(gap=0.01, posterior_shift=0.0), container(gap=0.01, posterior_shift=1.5)
    added = read_group(wrong, "agreement").isel(parameter=[0], tested=[0]).assign_coords(parameter=["profit"])
    groups = {name: read_group(fine, name) for name in group_names(fine)}
    made = make_container({**groups, "quantity_agreement": added}, read_attributes(fine))
    assert [text.get_text() for text in bread.plot_agreement(made).get_yticklabels()] == ["profit"]
    assert len(bread.plot_agreement(fine).get_yticklabels()) == 7


class TestFirstLook:
    def test_what_the_gradient_does_not_tell_has_a_row_without_a_point(self) -> None:
        made = look(names=("mu", "tau", "nu"))
        group = read_group(made, "first_look").copy(deep=True)
        for name in group.data_vars:
            if group[name].dims == ("parameter",):
                group[name][2] = np.nan
        ax = bread.plot_first_look(make_container({"first_look": group}, read_attributes(made)))
        ax.figure.canvas.draw()
        assert [text.get_text() for text in ax.get_yticklabels()][-1] == "nu"

    def test_the_worst_stands_out_where_the_test_fails(self) -> None:
        ax = bread.plot_first_look(look(1e-5, 0.5))
        assert [text.get_text() for text in ax.get_yticklabels()] == ["tau", "mu"]
        marks = {one.get_label(): one for one in ax.containers}
        assert set(marks) == {"off", "± 2 standard errors"} and marks["off"][0].get_xdata().tolist() == [0.5]
        (bar,) = marks["off"][2][0].get_segments()
        assert bar[:, 0] == pytest.approx([0.44, 0.56])
        unseen = [one.get_segments() for one in ax.collections if one.get_label() == "would go unseen"]
        assert unseen[0][0][:, 0] == pytest.approx([-0.15, 0.15])
        assert ax.figure.axes[1].get_xlabel().startswith("sd over")

    def test_nothing_stands_out_where_the_test_passes(self) -> None:
        """One of a hundred parameters is two standard errors off by chance."""
        ax = bread.plot_first_look(look(0.5, 0.07))
        assert {one.get_label() for one in ax.containers} == {"± 2 standard errors"}

    def test_other_data_are_the_title(self) -> None:
        assert "other data (y)" in bread.plot_first_look(look(0.5, other_data=[["y", "0", 28.0, 18.0]])).get_title()

    def test_axes_of_the_users_own_take_the_shifts_alone(self) -> None:
        figure, ax = pyplot.subplots()
        assert bread.plot_first_look(look(), ax=ax) is ax and figure.axes == [ax]

    def test_many_parameters_show_the_worst(self) -> None:
        ax = bread.plot_first_look(look(1e-5, 0.5, names=tuple(f"b[{i}]" for i in range(30))))
        assert len(ax.get_yticklabels()) == 20 and ax.get_yticklabels()[0].get_text() == "b[1]"
        assert "10 more agree better" in ax.get_title().replace("\n", " ")

    def test_reports_without_one_say_why(self) -> None:
        with pytest.raises(InvalidArgumentError, match="needs the group 'first_look'.*no draws were looked at"):
            bread.plot_first_look(container())
        group = xr.Dataset({"p_value": ((), np.nan)}, attrs={"left_out": '{"k": "it is discrete"}', "other_data": "[]"})
        made = make_container({"first_look": group}, read_attributes(look()))
        with pytest.raises(InvalidArgumentError, match="nothing to draw: it is discrete"):
            bread.plot_first_look(made)
        assert "it is discrete" in bread.plot(made).texts[0].get_text().replace("\n", " ")


@pytest.mark.parametrize("name", [*(name for name in bread.__all__ if name.startswith("plot")), "lab.plot_unbiased"])
def test_every_plot_says_that_it_returns_axes(name: str) -> None:
    function = attrgetter(name)(bread)
    assert inspect.signature(function).return_annotation == "Axes"
    assert "\nmatplotlib.axes.Axes\n" in str(inspect.getdoc(function)).partition("Returns\n")[2]


def test_a_plot_of_the_fit_that_bread_made_names_it() -> None:
    result = fake_result(gap=0.01, posterior_shift=0.0)
    result.fit = replace(result.fit, source="pm.sample")
    assert bread.plot(report.to_container(result, constrain)).get_xlabel().startswith("pm.sample's 90% interval")
