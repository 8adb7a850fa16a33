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
        assert any(np.allclose(line.get_xdata(), quantile) for line in ax.get_lines())
    content = mu["interval_content"].sel(quantile=[0.05, 0.5, 0.95]).values
    assert drawn["differs beyond it"].get_xdata()[0] == content[1]
    segments = [one.get_segments()[0][:, 0] for one in ax.collections if hasattr(one, "get_segments")]
    differing = next(k for k, one in enumerate(segments) if np.allclose(one, content[[0, 2]]))
    np.testing.assert_allclose(segments[differing + 1 : differing + 4], mu["interval_content_ci"].values)
    assert set(drawn["no difference seen"].get_ydata()) == set(range(2, len(names)))  # all but mu and log density
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first row at the top
    held = f"{float(mu['central_content']):.2f}"
    assert ax.get_title().replace("\n", " ") == f"Your 90% interval of mu holds {held} of the certified draws"
    assert "1000 certified draws" in ax.get_xlabel().replace("\n", " ")


def test_the_error_is_a_band_and_the_bound_of_each_parameter_a_number(made):
    ax = bread.plot_agreement(made, ax=pyplot.figure(figsize=(7.0, 4.4)).subplots())
    group = report.read_group(made, "agreement")
    error = group.attrs["error"]
    bands = [one.get_extents() for one in ax.patches]
    edges = [(max(q - error, 0.0), min(q + error, 1.0)) for q in (0.05, 0.5, 0.95)]
    assert 0.05 < error < 0.2 and len(bands) == 3
    np.testing.assert_allclose([(box.x0, box.x1) for box in map(ax.transData.inverted().transform_bbox, bands)], edges)
    (right,) = ax.child_axes
    shown = [text.get_text() for text in right.get_yticklabels()]
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert shown == [f"≤ {float(group['error_limit'].sel(parameter=name)):.2f}" for name in names]


def test_a_difference_that_the_error_may_explain_is_not_called_one_beyond_it():
    made = report.to_container(fake_result(gap=40.0, posterior_shift=1.5), constrain)  # V is 1: it explains everything
    ax = bread.plot_agreement(made)
    drawn = {line.get_label() for line in ax.get_lines()}
    assert "differs, within it" in drawn and "differs beyond it" not in drawn
    assert ax.get_title().replace("\n", " ").endswith("as their error may explain")
    (whole,) = ax.patches  # three bands that meet are one
    assert ax.transData.inverted().transform_bbox(whole.get_extents()).width == pytest.approx(1.0)


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
    assert ax.get_xlabel().replace("\n", " ").startswith("pm.sample's 90% interval")
    assert ax.get_title() == "No difference seen"


def test_many_parameters_show_the_worst(monkeypatch):
    monkeypatch.setattr("bread.reading.plots.agreement_plot.MOST_ROWS", 3)
    ax = bread.plot_agreement(report.to_container(fake_result(posterior_shift=1.5), constrain))
    assert len(ax.get_yticklabels()) == 3 and "4 more agree better" in ax.get_title().replace("\n", " ")


def test_a_report_without_draws_says_why():
    with pytest.raises(InvalidArgumentError, match="plot_agreement needs the group 'agreement'.*no draws"):
        bread.plot_agreement(report.to_container(fake_result(), constrain))
