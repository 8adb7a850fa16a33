"""The plot of own draws: rows in order, limits, nominal lines, the worst parameter's difference. No pixels."""

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.errors import InvalidArgumentError
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def made():
    return report.to_container(fake_result(posterior_shift=1.5), constrain)


def test_worst_first_with_limits_and_nominal_lines(made):
    ax = bread.plot_agreement(made)
    group = report.read_group(made, "agreement")
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[0] == "mu" and set(names) == set(group["parameter"].values)
    drawn = {line.get_label(): line for line in ax.get_lines()}
    mu = group.sel(parameter="mu")
    for quantile in (0.05, 0.5, 0.95):
        points = drawn[f"{100 * quantile:.0f}% quantile"].get_xdata()
        assert points[0] == float(mu["interval_content"].sel(quantile=quantile))
        assert any(np.allclose(line.get_xdata(), quantile) for line in ax.get_lines())
    limits = [one.get_segments()[0][:, 0] for one in ax.collections]
    np.testing.assert_allclose(limits, mu["interval_content_ci"].values)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first row at the top
    assert "1000 annealed draws" in ax.get_xlabel() and ax.get_title() == "Disagreement"


def test_the_difference_of_the_worst_is_drawn_beside_it(made):
    figure = bread.plot_agreement(made).figure
    figure.canvas.draw()
    _, other = figure.axes
    group = report.read_group(made, "agreement").sel(parameter="mu")
    drawn = {line.get_label(): line for line in other.get_lines()}
    largest = np.abs(drawn["difference"].get_ydata()).max()
    # At 201 points of all draws; between two of them each function rises by a half percent or so.
    assert float(group["cdf_difference"]) - 0.02 <= largest <= float(group["cdf_difference"])
    band = other.collections[0].get_datalim(other.transData)
    assert band.y0 == pytest.approx(drawn["difference"].get_ydata().min() - group.attrs["sampling_error"], abs=1e-6)
    assert f"± {group.attrs['error']:.2f} (V)" in drawn
    assert other.get_xlabel() == "mu"


def test_axes_of_the_users_own_take_the_shares_alone(made):
    figure, ax = pyplot.subplots()
    assert bread.plot_agreement(made, ax=ax) is ax
    assert figure.axes == [ax] and len(ax.lines) > 0
    figure, pair = pyplot.subplots(1, 2)
    assert bread.plot_agreement(made, ax=pair) is pair[0]
    assert pair[1].get_xlabel() == "mu"


def test_the_fit_that_bread_made_is_named():
    result = fake_result(posterior_shift=0.0)
    result.fit = replace(result.fit, source="pm.sample")
    ax = bread.plot_agreement(report.to_container(result, constrain))
    assert ax.get_xlabel().replace("\n", " ").endswith("pm.sample's quantile") and ax.get_title() == "Agreement"


def test_many_parameters_show_the_worst(monkeypatch):
    monkeypatch.setattr("bread.reading.agreement_plot.MOST_ROWS", 3)
    ax = bread.plot_agreement(report.to_container(fake_result(posterior_shift=1.5), constrain))
    assert len(ax.get_yticklabels()) == 3 and "4 more agree better" in ax.get_title()


def test_a_report_without_draws_says_why():
    with pytest.raises(InvalidArgumentError, match="plot_agreement needs the group 'agreement'.*no draws"):
        bread.plot_agreement(report.to_container(fake_result(), constrain))
