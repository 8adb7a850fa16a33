"""Plots: what is drawn, where it comes from, and what happens when a report lacks it. No pixels."""

import sys

import numpy as np
import pytest
from scipy.stats import norm

import bread
from bread.errors import InvalidArgumentError, MissingDependencyError
from bread.reading.plots import plot_data, plots
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def made():
    return report.to_container(fake_result(temperatures=(8, 16, 32, 64)), constrain)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


@pytest.mark.parametrize("name", ["plot_bounds", "plot_consistency", "plot_work", "plot_path"])
def test_plots_take_and_return_axes(made, name):
    _, ax = pyplot.subplots()
    assert getattr(bread, name)(made, ax=ax) is ax
    assert ax.get_title() and ax.get_xlabel() and ax.get_ylabel()
    assert "nat" in ax.get_ylabel()
    fresh = getattr(bread, name)(made)
    assert fresh is not ax
    fresh.figure.canvas.draw()  # ticks and scales must work too


def test_plot_bounds_draws_means_and_bands(made):
    ax = bread.plot_bounds(made)
    drawn = lines(ax)
    forward = next(line for label, line in drawn.items() if label.startswith("forward"))
    reverse = next(line for label, line in drawn.items() if label.startswith("reverse"))
    assert list(forward.get_xdata()) == [8, 16, 32, 64]
    assert (np.asarray(reverse.get_ydata()) > np.asarray(forward.get_ydata())).all()
    assert len(ax.collections) == 2  # two quartile bands
    assert any(label.startswith("real data") for label in labels(ax))
    assert ax.get_xscale() == "log"
    _, below = ax.figure.axes
    assert [text.get_text() for text in below.get_xticklabels()] == ["8", "16", "32", "64"]


def test_plot_bounds_draws_the_certificate_below():
    made = report.to_container(fake_result(), constrain)
    upper = bread.plot_bounds(made)
    _, below = upper.figure.axes
    certificate = report.read_group(made, "certificate")
    final = certificate.sel(n_temperatures=64)
    drawn = lines(below)
    point = drawn["V with its limits"]
    assert list(point.get_xdata()) == [64] and list(point.get_ydata()) == [float(final["error"])]
    assert list(drawn["limit whatever other data sets are like"].get_ydata()) == [float(final["error_limit_exact"])]
    assert list(drawn["asked for: 0.1"].get_ydata()) == [0.1, 0.1]
    (whiskers,) = below.collections
    ends = np.array([segment[:, 1] for segment in whiskers.get_segments()])
    np.testing.assert_allclose(ends, certificate["error_ci"].values)
    jeffreys = report.read_group(made, "bounds")["jeffreys"].sel(n_temperatures=64)
    assert upper.get_legend().get_title().get_text().startswith(f"B = {float(jeffreys):.2g} nats (")
    _, pair = pyplot.subplots(2, 1)
    assert bread.plot_bounds(made, ax=pair) is pair[0] and pair[1].get_ylabel() == "error of a probability"


def test_an_error_that_is_out_of_reach_stays_inside(made):
    _, below = bread.plot_bounds(report.to_container(fake_result(gap=9.0), constrain)).figure.axes
    assert max(below.get_yticks()) <= 1.0 and lines(below)["asked for: 0.1"].get_ydata()[0] < below.get_ylim()[1]


def test_consistency_over_two_temperatures_draws_one_difference_a_data_set():
    result = fake_result(observed_extra=8.0, temperatures=(32, 64))
    ax = bread.plot_consistency(report.to_container(result, constrain))
    group = report.read_group(report.to_container(result, constrain), "consistency")
    drawn = lines(ax)
    np.testing.assert_array_equal(drawn["39 simulated data sets"].get_xdata(), group["simulated_curve"].values[:, 0])
    assert drawn["real data"].get_xdata()[0] == group["observed_curve"].values[0]
    assert ax.get_xlabel() == "forward log weight at 32 temperatures − at 64 (nats)"


def test_distance_of_the_lines_is_the_bound(made):
    data = plot_data.bounds_data(made)
    jeffreys = report.read_group(made, "bounds")["jeffreys_raw"].values
    np.testing.assert_allclose(data.reverse.mean - data.forward.mean, jeffreys, atol=1e-9)
    assert (data.forward.lower <= data.forward.upper).all()


def test_each_simulation_is_shifted_by_its_own_level():
    # Evidence varies by 10 nats between data sets; a quartile band of the shifted weights is as wide as the gap's.
    data = plot_data.bounds_data(report.to_container(fake_result(gap=0.4), constrain))
    assert np.ptp([data.forward.lower[-1], data.reverse.upper[-1]]) < 2.0


def test_plot_consistency_shows_the_real_data_and_the_p_value():
    made = report.to_container(fake_result(observed_extra=8.0), constrain)
    ax = bread.plot_consistency(made)
    assert "p = 0.05" in ax.get_title()
    assert list(lines(ax)["real data"].get_ydata())[-1] == 0.0
    assert labels(ax)[0] == "39 simulated data sets, range"
    assert len(ax.collections) == 2


def test_densities_cross_at_the_log_evidence():
    # Gaussian work, 400 simulations of 4: the true densities cross at the log evidence. Shifts are estimates, so the
    # crossing of the kernel estimates is within 0.15 nats (gap 2 nats, standard deviation 1.4).
    made = report.to_container(
        fake_result(gap=2.0, n_confirm=400, n_forward=0, n_search=0, temperatures=(8,), n_draws=0), constrain
    )
    data = plot_data.work_data(made, None, None)
    grid = np.linspace(-1.0, 1.0, 401)
    difference = plot_data.density(data.reverse, grid) - plot_data.density(data.forward, grid)
    assert difference[0] < 0.0 < difference[-1]
    assert abs(grid[int(np.argmax(difference > 0.0))]) < 0.15
    assert abs(data.forward.mean() + 1.0) < 0.15
    assert data.log_evidence == 0.0 and data.is_shifted


def test_plot_work_draws_two_densities_and_the_log_evidence(made):
    ax = bread.plot_work(made)
    names = labels(ax)
    assert names[0].startswith("forward, mean ") and names[1].startswith("reverse, mean ")
    assert "log evidence estimate" in names
    assert len(ax.collections) == 2
    assert "64 temperatures, 20 simulated data sets" in ax.get_title()
    assert min(ax.get_yticks()) >= 0.0


def test_plot_work_of_one_simulation(made):
    ax = bread.plot_work(made, simulation=2, n_temperatures=16)
    assert "simulated data set 2" in ax.get_title() and "16" in ax.get_title()
    bounds = report.read_group(made, "bounds").sel(simulation=2)
    position = lines(ax)["log evidence estimate"].get_xdata()[0]
    assert abs(position - float(bounds["log_evidence_upper_many"].sel(n_temperatures=64))) < 2.0


def test_plot_work_refuses_what_the_report_lacks(made):
    with pytest.raises(InvalidArgumentError, match=r"n_temperatures must be one of .* 8, 16, 32, 64, got 5"):
        bread.plot_work(made, n_temperatures=5)
    with pytest.raises(InvalidArgumentError, match="simulation must be None or one of 0 to 44, got 99"):
        bread.plot_work(made, simulation=99)
    with pytest.raises(InvalidArgumentError, match="simulation 44 has not finished both directions"):
        bread.plot_work(made, simulation=44)


def test_density_is_normalised_and_counts_infinite_values():
    rng = np.random.default_rng(0)
    grid = np.linspace(-8.0, 8.0, 1601)
    values = rng.standard_normal(1000)
    heights = plot_data.density(values, grid)
    assert np.trapezoid(heights, grid) == pytest.approx(1.0, abs=1e-3)
    assert np.abs(heights - norm.pdf(grid)).max() < 0.05
    half = plot_data.density(np.concatenate([values, np.full(1000, -np.inf)]), grid)
    assert np.trapezoid(half, grid) == pytest.approx(0.5, abs=1e-3)
    assert plot_data.density(np.ones(10), grid) is None


def test_plot_path_shades_the_hysteresis_and_marks_the_gap(made):
    ax = bread.plot_path(made)
    assert len(ax.collections) == 1
    assert {"forward chains", "reverse chains"} <= set(lines(ax))
    names = labels(ax)
    assert any(name.startswith("hysteresis: the gap of") for name in names)
    assert any(name.startswith("half of the gap below 0.2") or name == "half of the gap below 0.19" for name in names)
    assert "log likelihood" in ax.get_ylabel()
    assert ax.get_xlim() == (0.0, 1.0)
    data = plot_data.path_data(made)
    assert (data.reverse >= data.forward).mean() > 0.5
    assert data.reverse[-1] == 0.0


def test_infinite_and_failed_weights_can_be_drawn():
    result = fake_result()
    result.runs[8, "forward", 64].log_weight[0] = -np.inf
    result.runs[8, "forward", 64].log_ratio[0, 3] = -np.inf
    result.runs[9, "forward", 32].log_weight[0] = -np.inf
    made = report.to_container(result, constrain)
    ax = bread.plot_work(made)
    assert any("1 at −∞" in name for name in labels(ax))
    for plot in (bread.plot_bounds, bread.plot_consistency, bread.plot_path):
        plot(made).figure.canvas.draw()


def test_few_values_are_drawn_as_ticks():
    made = report.to_container(fake_result(n_confirm=1, n_chains=1, n_search=0, temperatures=(8,)), constrain)
    ax = bread.plot_work(made)
    assert not ax.collections
    ax.figure.canvas.draw()


def test_a_plot_says_what_the_report_lacks():
    made = report.to_container(fake_result(temperatures=(8,)), constrain)
    with pytest.raises(InvalidArgumentError, match="plot_consistency needs the group 'consistency'"):
        bread.plot_consistency(made)
    result = fake_result()
    result.runs.clear()
    empty = report.to_container(result, constrain)
    for plot in (bread.plot_bounds, bread.plot_work, bread.plot_path):
        with pytest.raises(InvalidArgumentError, match=r"plot_.* needs"):
            plot(empty)


def test_interrupted_reports_can_be_drawn():
    result = fake_result()
    for key in list(result.runs)[60:]:
        del result.runs[key]
    made = report.to_container(result, constrain)
    for plot in (bread.plot_bounds, bread.plot_work, bread.plot_path):
        plot(made).figure.canvas.draw()


def test_without_matplotlib_the_error_is_the_pip_line(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "bread-mcmc\[plots\]"'):
        plots.plot_bounds(made)


def test_smoothing_keeps_both_ends_and_the_mean():
    betas = np.linspace(0.0, 1.0, 1001)
    noise = np.random.default_rng(4).standard_normal(1001)
    x, y = plot_data.smoothed(betas, betas + noise, 0.5, 60)
    assert x[0] == 0.0 and x[-1] == 1.0
    assert y[0] == noise[0] and y[-1] == 1.0 + noise[-1]
    assert (np.diff(x) > 0).all() and len(x) <= 62
    # The last inner bin averages 33 values, with a standard error of 1 / sqrt(33) = 0.17: 4 of them.
    assert abs(y[-2] - x[-2]) < 0.7
    few = np.array([0.0, 0.3, 1.0])
    np.testing.assert_array_equal(plot_data.smoothed(few, few, 0.5, 60)[1], few)
    steps = np.full(3, -np.inf)
    assert np.isneginf(plot_data.smoothed(few, steps, 0.5, 60)[1]).all()


def test_temperatures_near_zero_are_spread_over_the_axis():
    result = fake_result(temperatures=(64,))
    result.schedules[64] = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 63)])
    made = report.to_container(result, constrain)
    data = plot_data.path_data(made)
    assert np.median(data.betas) ** data.power < 0.6
    ax = bread.plot_path(made)
    ax.figure.canvas.draw()
    ticks = np.asarray(ax.get_xticks()) ** data.power
    assert np.diff(ticks).min() > 0.06 and (np.asarray(ax.get_xticks()) < 0.005).sum() >= 2


def boxes(axis):
    """Return where the labels of the ticks stand in the picture."""
    figure = axis.get_figure()
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    return [label.get_window_extent(renderer) for label in axis.get_ticklabels() if label.get_text()]


def overlapping(axis):
    found = boxes(axis)
    return [(i, j) for i, one in enumerate(found) for j, other in enumerate(found[:i]) if one.overlaps(other)]


@pytest.mark.parametrize("width", [3.5, 7.0])
@pytest.mark.parametrize("lowest", [1e-6, 1e-4])
def test_labels_of_ticks_do_not_overlap(width, lowest):
    result = fake_result(temperatures=(64,))
    result.schedules[64] = np.concatenate([[0.0], np.geomspace(lowest, 1.0, 63)])
    for run in result.runs.values():
        run.log_ratio[:, :8] *= 1e5  # a few nats at most of the temperatures, far more near the prior
    _, ax = pyplot.subplots(figsize=(width, 3.0), layout="constrained")
    bread.plot_path(report.to_container(result, constrain), ax=ax)
    assert ax.get_yscale() == "symlog"
    assert len(boxes(ax.xaxis)) >= 4 and len(boxes(ax.yaxis)) >= 3
    assert overlapping(ax.xaxis) == [] and overlapping(ax.yaxis) == []
    ax.set_xticks([0.5, 0.51], ["0.5", "0.51"])  # a control of the check
    assert overlapping(ax.xaxis) != []


def test_one_wild_data_set_does_not_hide_the_others():
    result = fake_result(gap=0.4, temperatures=(8, 16, 32, 64))
    straight = bread.plot_consistency(report.to_container(result, constrain))
    assert straight.get_yscale() == "linear"
    result.runs[20, "forward", 8].log_weight[:] -= 1e6
    ax = bread.plot_consistency(report.to_container(result, constrain))
    assert ax.get_yscale() == "symlog" and ax.get_ylim()[0] < -2e5
    assert overlapping(ax.yaxis) == []
    scale = ax.yaxis.get_transform().transform
    bottom, top, real = (float(scale(value)) for value in (*ax.get_ylim(), lines(ax)["real data"].get_ydata()[0]))
    assert (top - real) / (top - bottom) > 0.1  # 0.1 % of the height on a straight axis


def test_plot_fit_names_extreme_elements():
    made = report.to_container(fake_result(misfit=True), constrain)
    ax = bread.plot_fit(made)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["y (data)", "theta (latent)", "mu (parameter)"]
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "y[Deerfield, 2024-01-02] +12 sd, y[Exeter, 2024-01-01] −3.5 sd" and texts[1:] == ["", ""]
    assert "p = 0.0005" in ax.get_title()
    ax.figure.canvas.draw()
    untested = fake_result()
    untested.fit_check = None
    with pytest.raises(InvalidArgumentError, match="plot_fit needs the group 'fit'"):
        bread.plot_fit(report.to_container(untested, constrain))
