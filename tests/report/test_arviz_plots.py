"""ArviZ's own plots and summaries read a report, as it is and after its way through a file."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import uniform

from bread.report import container as report
from tests.support.fake_results import constrain, fake_result

pyplot = pytest.importorskip("matplotlib.pyplot")

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

IS_TREE = int(arviz.__version__.split(".")[0]) >= 1
of_arviz_1 = pytest.mark.skipif(not IS_TREE, reason="the plots of ArviZ 1; those of 0.x are tested beside it")
of_arviz_0 = pytest.mark.skipif(IS_TREE, reason="the plots of ArviZ 0.x; those of 1 are tested beside it")


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module", params=["as it is", "from its file"])
def made(request: Any, tmp_path_factory: Any) -> Any:
    whole = report.to_container(fake_result(gap=0.5, temperatures=(16, 64), n_forward=0), constrain)
    if request.param == "as it is":
        return whole
    path = tmp_path_factory.mktemp("report") / "report.nc"
    whole.to_netcdf(str(path))
    return arviz.from_netcdf(str(path))


def difference_to_uniform(values: Any, at: Any) -> Any:
    ordered = np.sort(np.asarray(values).ravel())
    return np.searchsorted(ordered, at, side="right") / len(ordered) - at


@of_arviz_1
def test_plot_ecdf_pit_draws_the_ranks_of_every_parameter(made: Any) -> None:
    drawn = arviz.plot_ecdf_pit(made).viz["ecdf_lines"]
    assert set(drawn.data_vars) == {"mu", "tau", "theta", "kind"} and drawn["theta"].sizes == {"school": 3}
    line = drawn["mu"].item()
    at = np.asarray(line.get_xdata())
    expected = difference_to_uniform(report.read_group(made, "prior_sbc")["mu"].values, at)
    np.testing.assert_allclose(np.asarray(line.get_ydata()), expected, atol=1e-9)


@of_arviz_1
def test_plot_ecdf_pit_draws_the_ranks_that_the_verdict_uses(made: Any) -> None:
    collection = arviz.plot_ecdf_pit(made, group="alarm", var_names="weighted_rank", sample_dims="simulation")
    functions = report.read_group(made, "alarm")["function"]
    assert collection.viz["ecdf_lines"]["weighted_rank"].sizes["function"] == len(functions)


@of_arviz_1
def test_coverage_of_central_intervals_is_drawn_from_the_same_ranks(made: Any) -> None:
    """A rank of u lies outside of all central intervals of content below |2 u - 1|."""
    line = arviz.plot_ecdf_pit(made, coverage=True).viz["ecdf_lines"]["mu"].item()
    at = np.asarray(line.get_xdata())
    contents = np.abs(2.0 * report.read_group(made, "prior_sbc")["mu"].values - 1.0)
    np.testing.assert_allclose(np.asarray(line.get_ydata()), difference_to_uniform(contents, at), atol=1e-9)


@of_arviz_1
@pytest.mark.parametrize("plot", ["plot_dist", "plot_forest", "plot_ridge", "plot_rank", "plot_rank_dist"])
def test_annealed_draws_are_plotted_as_any_posterior(made: Any, plot: str) -> None:
    collection = getattr(arviz, plot)(made, var_names=["mu", "theta"])
    visuals = [node["theta"] for node in collection.viz.children.values() if "theta" in node.data_vars]
    assert any(one.sizes.get("school") == 3 for one in visuals)


@of_arviz_1
@pytest.mark.parametrize("plot", ["plot_dist", "plot_forest"])
def test_errors_of_the_data_sets_are_plotted(made: Any, plot: str) -> None:
    collection = getattr(arviz, plot)(made, group="by_data_set")
    assert any({"error", "jeffreys"} <= set(node.data_vars) for node in collection.viz.children.values())


def test_means_over_data_sets_are_v_and_b(made: Any) -> None:
    final = dict(report.read_attributes(made))["n_temperatures"]
    table = arviz.summary(made, group="by_data_set", round_to="none")
    for name, group in (("error", "certificate"), ("jeffreys", "bounds")):
        expected = float(report.read_group(made, group)[name].sel(n_temperatures=final))
        assert float(table.loc[name, "mean"]) == pytest.approx(expected, rel=1e-12)


def test_data_sets_that_did_not_decide_have_no_part_in_it(made: Any) -> None:
    draws, used = report.read_group(made, "by_data_set"), report.read_group(made, "bounds")["used"]
    deciding = used.sel(n_temperatures=64)
    assert 0 < len(draws["draw"]) < deciding.size
    np.testing.assert_array_equal(draws["draw"].values, np.flatnonzero(deciding.values))


def test_an_infinite_gap_leaves_v_alone() -> None:
    result = fake_result(gap=0.5, temperatures=(16, 64), n_forward=0, n_draws=0)
    deciding = report.read_group(report.to_container(result, None), "by_data_set")["draw"].values
    result.runs[int(deciding[0]), "forward", 64].log_weight[0] = -np.inf
    draws = report.read_group(report.to_container(result, None), "by_data_set")
    assert set(draws.data_vars) == {"error"} and np.isfinite(draws["error"].values).all()


@of_arviz_0
def test_plot_ecdf_draws_the_same_line(made: Any) -> None:
    at = np.linspace(0.0, 1.0, 51)
    ranks = made.prior_sbc["mu"]
    ax = arviz.plot_ecdf(ranks.values.copy(), cdf=uniform.cdf, eval_points=at, difference=True)
    (line,) = ax.get_lines()
    drawn = dict(zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True))
    assert drawn[at[25]] == pytest.approx(difference_to_uniform(ranks.values, at[25]), abs=1e-9)


@of_arviz_0
@pytest.mark.parametrize("plot", ["plot_forest", "plot_rank"])
def test_annealed_draws_are_plotted_as_any_posterior_before_arviz_1(made: Any, plot: str) -> None:
    axes = getattr(arviz, plot)(made, var_names=["mu"])
    assert any(ax.lines or ax.patches for ax in np.ravel(axes))
