"""`bread.debug` as its users meet it: bare kernels, builders, models; what it says, and that it survives a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm
from typer.testing import CliRunner

import bread
from bread.arviz_import import import_arviz
from bread.cli.commands import app
from bread.debugging.targets import default_targets
from bread.errors import InvalidArgumentError
from bread.reading.verdict import Verdict
from tests.models.reference import AutoregressiveKernel, HierarchicalNormal
from tests.support.reference_models import CONJUGATE

SCALE = 1.5


def log_density(x):
    return float(norm.logpdf(x, 1.0, SCALE).sum())


def gradient(x):
    return (1.0 - x) / SCALE**2


def simulate(n, rng):
    return rng.normal(1.0, SCALE, (n, 2))


def random_walk(x, rng):
    moved = x + rng.normal(0.0, SCALE, 2)
    return moved if np.log(rng.random()) < log_density(moved) - log_density(x) else x


def twice_tempered(x, rng):
    """Accept by twice the log ratio: the law is too narrow."""
    moved = x + rng.normal(0.0, SCALE, 2)
    return moved if np.log(rng.random()) < 2.0 * (log_density(moved) - log_density(x)) else x


def debugged(kernel=random_walk, **options):
    options = {"log_density": log_density, "simulate": simulate, "gradient": gradient} | options
    return bread.debug(kernel=kernel, random_seed=1, progressbar=False, budget=0.02, **options)


@pytest.fixture(scope="module")
def right():
    return debugged()


@pytest.fixture(scope="module")
def wrong():
    return debugged(twice_tempered)


def test_a_right_kernel_has_no_bug_and_the_verdict_says_what_it_could_have_seen(right):
    found = bread.verdict(right)
    assert found.status == "no bug found" and bool(found)
    assert found.startswith("NO BUG FOUND") and "with probability 0.95, have seen chains" in found.details


def test_a_wrong_kernel_is_a_bug_of_the_kernel_and_the_scale(wrong):
    found = bread.verdict(wrong)
    assert found.status == "bug" and not found and found.direct_p_value < 0.01
    table = bread.summary(wrong)
    failed = table[table["fails"]]
    assert {"invariance", "averages of chains"} & set(failed["test"])
    assert not failed["test"].str.contains("draws").any()  # the exact draws are right


def test_a_simulator_of_another_scale_is_found_without_a_kernel():
    found = debugged(None, only="simulator", simulate=lambda n, rng: rng.normal(1.0, SCALE**2, (n, 2)))
    assert bread.verdict(found).status == "bug"
    assert bread.verdict(debugged(None, only="simulator")).status == "no bug found"


@pytest.mark.slow
def test_a_gradient_of_the_wrong_sign_is_named():
    found = debugged(gradient=lambda x: -gradient(x))
    assert bread.verdict(found).status == "bug" and "derivative by x[0]" in bread.verdict(found).details


def test_a_builder_runs_on_every_target():
    def build(target):
        def step(x, rng):
            moved = x + rng.normal(size=x.shape)
            return moved if np.log(rng.random()) < target.log_density(moved) - target.log_density(x) else x

        return step

    report = bread.debug(kernel=build, targets=default_targets("continuous")[:2], budget=0.02, random_seed=1,
                         progressbar=False)  # fmt: skip
    assert set(bread.summary(report)["subject"]) == {target.name for target in default_targets("continuous")[:2]}
    assert bread.verdict(report).status == "no bug found"


def test_a_report_survives_a_file(wrong, tmp_path):
    wrong.to_netcdf(str(tmp_path / "debug.nc"))
    again = bread.verdict(tmp_path / "debug.nc")
    assert isinstance(again, Verdict) and again == bread.verdict(wrong) and again.status == "bug"
    assert bread.summary(tmp_path / "debug.nc").equals(bread.summary(wrong))
    assert bread.verdict(import_arviz().from_netcdf(str(tmp_path / "debug.nc"))) == again


@pytest.mark.parametrize(("status", "exit_status"), [("no bug found", 0), ("bug", 5)])
def test_the_command_line_shows_it(status, exit_status, right, wrong, tmp_path):
    (wrong if status == "bug" else right).to_netcdf(str(tmp_path / "debug.nc"))
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "debug.nc")])
    assert shown.exit_code == exit_status and status.upper() in shown.output and "averages of chains" in shown.output
    found = json.loads(CliRunner().invoke(app, ["show", str(tmp_path / "debug.nc"), "--json"]).output)
    assert (found["status"], found["exit_status"]) == (status, exit_status)
    assert {row["test"] for row in found["tests"]} >= {"invariance", "gradient"}


def test_plots_of_one_verb_say_so_of_the_other(right):
    with pytest.raises(InvalidArgumentError, match="one of bread.debug, which plot_debug draws"):
        bread.plot_bounds(right)


@pytest.mark.slow
def test_results_depend_on_the_seed_alone(right):
    again = debugged()
    xr.testing.assert_equal(
        bread.report.compat.read_group(again, "debug").drop_vars("seconds"),
        bread.report.compat.read_group(right, "debug").drop_vars("seconds"),
    )


def test_every_test_of_chance_has_a_panel(wrong):
    axes = bread.plot_debug(wrong).figure.axes
    titles = [ax.get_title() for ax in axes]
    assert any("averages of chains" in title and "fails" in title for title in titles)
    found = bread.report.compat.read_group(wrong, "debug")
    for name, is_random, p_value in zip(
        found["name"].values, found["is_random"].values, found["test_p_value"].values, strict=True
    ):
        if is_random and np.isfinite(p_value):
            assert sum(title.startswith(f"{name}\n") for title in titles) == 1


def test_as_many_panels_as_asked_for_are_drawn_worst_first(wrong):
    titles = [ax.get_title() for ax in bread.plot_debug(wrong).figure.axes]
    assert [ax.get_title() for ax in bread.plot_debug(wrong, most=2).figure.axes] == titles[:2]
    for most in (0, -1, 1.5, True):
        with pytest.raises(InvalidArgumentError, match=f"most must be an integer of at least 1.*got {most}"):
            bread.plot_debug(wrong, most=most)


def test_a_test_of_one_comparison_and_one_without_chance_that_fails_have_panels(wrong):
    found = bread.report.compat.read_group(wrong, "debug").copy(deep=True)
    number = {str(name): i for i, name in enumerate(found["name"].values)}
    certain = number["gradient"]
    one = number["invariance"]
    rows = found["of_test"].values == one
    found["comparison_p_value"][np.flatnonzero(rows)[1:]] = np.nan
    report = bread.report.compat.make_container({"debug": found}, dict(bread.report.compat.read_attributes(wrong)))
    before = [ax.get_title() for ax in bread.plot_debug(report).figure.axes]
    assert any(title.startswith("invariance\n") for title in before)
    assert not any(title.startswith("gradient\n") for title in before)
    found["comparison_p_value"][np.flatnonzero(found["of_test"].values == certain)] = 0.0
    found["fails"][certain] = 1
    report = bread.report.compat.make_container({"debug": found}, dict(bread.report.compat.read_attributes(wrong)))
    assert any(ax.get_title().startswith("gradient\n") for ax in bread.plot_debug(report).figure.axes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"simulate": None}, "simulate= is missing"),
        ({"log_density": None}, "log_density= is missing"),
        ({"model": CONJUGATE["normal_mean"]}, "model= was given too"),
        ({"targets": "continuous"}, "have their own log_density"),
        ({"data": {}}, "data= is for models"),
        ({"level": 0.0}, "level must be a probability"),
        ({"budget": -1.0}, "budget must be a positive number"),
        ({"only": "chains"}, "only must be one of"),
        ({"simulate": lambda n, rng: rng.normal(size=n)}, "must return two draws, shape"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options, message):
    options = {"kernel": random_walk, "log_density": log_density, "simulate": simulate} | options
    with pytest.raises(InvalidArgumentError, match=message):
        bread.debug(**options)


@pytest.mark.slow
def test_a_model_is_tested_with_its_kernel():
    report = bread.debug(CONJUGATE["beta_binomial_hmc"], random_seed=1, budget=0.02, progressbar=False)
    found, table = bread.verdict(report), bread.summary(report)
    assert found.status == "no bug found"
    assert {"prior score", "likelihood score", "joint test of Geweke", "transforms", "invariance"} <= set(table["test"])
    assert {"model", "kernel at beta = 0", "kernel at beta = 1"} <= set(table["subject"])
    page = bread.to_html(report).replace("\n", "")
    assert "<dt>Kernel</dt><dd>" in page


def joint_plot(kernel):
    """Return the P-P plots of a model with this kernel as the report has them, and their panel."""
    model = HierarchicalNormal(
        np.array([1.5, -0.2, 0.6]), np.array([1.0, 1.5, 0.8]), prior_mean=0.3, group_sd=0.7, kernel=kernel
    )
    report = bread.debug(model, random_seed=1, budget=0.02, progressbar=False)
    panels = [ax for ax in bread.plot_debug(report).figure.axes if ax.get_title().startswith("P-P plots")]
    assert len(panels) == 1
    return bread.report.compat.read_group(report, "debug"), panels[0]


@dataclass(frozen=True)
class Narrow(AutoregressiveKernel):
    """Draws too little noise: chains are too narrow."""

    def transition(self, run):
        return super().transition(replace(run, random=replace(run.random, normals=0.2 * run.random.normals)))


@pytest.mark.slow
@pytest.mark.statistical
def test_the_joint_test_has_p_p_plots_on_the_diagonal_and_off_it_with_a_broken_kernel():
    """The first function has the smallest p-value of 49: 4 standard errors; more than 4.5 where the kernel is wrong."""
    for kernel, is_right in ((AutoregressiveKernel(0.5), True), (Narrow(0.5), False)):
        found, panel = joint_plot(kernel)
        z = (np.abs(found["pp_after"] - found["pp_before"]) / found["pp_error"]).max("pp_point").values
        assert (z.max() < 4.0) if is_right else (z[0] > 4.5)
        assert found.sizes["pp_function"] == 49 and panel.get_title().endswith("passes" if is_right else "fails")
        assert sum(found[name].nbytes for name in found if name.startswith("pp_")) < 40_000
        joint = found["name"].values == "joint test of Geweke"
        assert bool(found["fails"].values[joint][0]) != is_right
