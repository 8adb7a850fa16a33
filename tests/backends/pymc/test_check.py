"""`bread.check` on PyMC models, end to end: defaults, two cores, modes that chains miss, the user's own draws."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import bread
from bread.report.container import read_attributes, read_group
from tests.support.reports import assert_same_report

pytestmark = pytest.mark.pymc
sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

from models import eight_schools, narrow_and_wide, two_symmetric_modes  # noqa: E402

QUIET = {"progressbar": False, "random_seed": 3}


def test_inside_the_model_context_with_dims_and_coords() -> None:
    model = eight_schools(is_centred=False)
    with model:
        report = bread.check(
            **QUIET, simulate_from="prior", n_temperatures=[4, 8], simulations=4, cores=1, draws=8, tune_on="shared"
        )
    posterior = read_group(report, "posterior")
    assert posterior["theta"].dims == ("chain", "draw", "school")
    assert list(posterior["school"].values) == list("ABCDEFGH")
    assert read_attributes(report)["inference_library"] == "bread-mcmc" or read_attributes(report)["inference_library"]
    assert read_group(report, "simulated_data")["y"].dims == ("simulation", "school")


@pytest.mark.study
def test_eight_schools_with_defaults_converge() -> None:
    verdict = bread.verdict(bread.check(eight_schools(is_centred=False), **QUIET))
    assert verdict.status == "converged"
    assert 0 < verdict.estimate < 1
    assert "estimated to be" in verdict.details


@pytest.mark.study
def test_half_cauchy_is_noticed_and_v_decides() -> None:
    report = bread.check(eight_schools(is_centred=False, has_heavy_tail=True), path="prior", **QUIET)
    bounds = read_group(report, "bounds")
    assert not bounds["jeffreys_reliable"].values.any()
    verdict = bread.verdict(report)
    assert verdict.status == "converged"
    assert verdict.bound == "V" and not verdict.is_reliable and verdict.error_limit <= verdict.limit <= 0.1


@pytest.mark.study
def test_own_draws_that_differ_from_annealed_ones_far_off_are_inconclusive() -> None:
    """An error of 0.47 is within a target of 1 nat, and moves quantiles of the certified draws."""
    report = bread.check(eight_schools(is_centred=False, has_heavy_tail=True), path="prior", target=1.0, **QUIET)
    verdict = bread.verdict(report)
    assert verdict.status == "inconclusive"
    assert verdict.bound == "V" and verdict.error_limit <= verdict.limit < 0.48
    assert "cannot tell which of the two is nearer" in verdict.details


@pytest.mark.slow
def test_two_cores_give_the_bits_of_one() -> None:
    model = eight_schools(is_centred=True)
    settings = QUIET | {"simulate_from": "prior", "n_temperatures": [4, 8], "simulations": 4, "draws": 8}
    assert_same_report(bread.check(model, **settings, cores=1), bread.check(model, **settings, cores=2))


@pytest.mark.study
@pytest.mark.statistical
def test_narrow_heavy_mode_is_not_converged_while_r_hat_is_content() -> None:
    """All chains of pm.sample sit in the wide mode and agree; B stays large whatever T."""
    model = narrow_and_wide()
    draws = pm.sample(model=model, random_seed=1, progressbar=False, cores=2, quiet=True)
    theta = draws["posterior"]["theta"].values
    within, between = theta.var(axis=1, ddof=1).mean(), theta.mean(axis=1).var(ddof=1)
    assert np.sqrt(1 + between / within) < 1.01  # R-hat is content
    assert np.abs(theta.mean() + 3) < 0.2  # and nine tenths of the mass are at 5
    report = bread.check(model, **QUIET, simulate_from="prior", path="prior", kernel="hmc", max_temperatures=64)
    verdict = bread.verdict(report)
    assert verdict.status == "not converged"
    assert verdict.error_lower > 0.3


@pytest.mark.study
@pytest.mark.statistical
def test_two_symmetric_modes_anneal_well_and_one_run_disagrees() -> None:
    """B falls below 1; a run that sits in one mode is rejected by the agreement test, draws from both are not."""
    model = two_symmetric_modes()
    with model:
        one_mode = pm.sample(
            chains=2, random_seed=1, progressbar=False, cores=1, quiet=True, initvals={"theta": 2.0}, init="adapt_diag"
        )
    settings = QUIET | {"simulate_from": "prior", "path": "prior", "n_temperatures": [16, 64]}
    verdict = bread.verdict(bread.check(model, **settings, posterior=one_mode))
    assert verdict.jeffreys < 1
    assert verdict.agreement is False
    draws = one_mode["posterior"]["theta"].values
    both = draws * np.array([1.0, -1.0])[:, None]
    spread = np.concatenate([both[:, ::10], both[::-1, 5::10]], axis=1)  # both modes in each chain, no draw twice
    mixed = np.random.default_rng(0).permuted(spread, axis=1)
    assert bread.verdict(bread.check(model, **settings, posterior={"theta": mixed})).agreement is True


def test_a_missing_extra_is_the_pip_line() -> None:
    code = (
        "import sys, bread\n"
        "from bread.report.container import to_container\n"
        "from tests.support.fake_results import constrain, fake_result\n"
        "made = to_container(fake_result(), constrain)\n"
        "sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "try:\n    bread.plot_bounds(made)\n"
        "except bread.BreadError as error:\n    assert 'pip install \"bread-mcmc[plots]\"' in str(error), error\n"
        "else:\n    raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
