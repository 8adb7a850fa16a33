"""Verdicts on what was interrupted, failed or too little, and after a file."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.backends.base import Failure
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result, model_info
from tests.support.verdicts import judge


def test_interrupted_is_inconclusive_whatever_the_number():
    result = fake_result(gap=0.01)
    result.is_interrupted = True
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "did not finish" in verdict.details
    result.is_interrupted = False
    assert judge(result).status == "converged"  # the control: the flag alone made the difference


def test_unconfirmed_bounds_never_converge():
    result = fake_result(gap=0.01)
    for key in list(result.runs):
        if key[2] == 64 and key[0] >= 0 and result.roles[key[0]] == "confirm":
            del result.runs[key]
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "no fresh simulations confirmed" in verdict.details


def test_failed_chains_are_named():
    result = fake_result()
    run = result.runs[8, "reverse", 64]
    log_weight, failure = run.log_weight.copy(), run.failure.copy()
    log_weight[0], failure[0] = np.nan, Failure.NAN
    result.runs[8, "reverse", 64] = replace(run, log_weight=log_weight, failure=failure)
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "1 annealed chain failed" in verdict.details


def test_nothing_finished():
    result = fake_result()
    result.runs.clear()
    result.is_interrupted = True
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "nothing can be said" in verdict.details
    assert np.isnan(verdict.estimate)


@pytest.mark.parametrize("n_kept", [1, 5, 20, 60, 140])
def test_interrupted_anywhere_gives_a_verdict(n_kept):
    result = fake_result()
    for key in list(result.runs)[n_kept:]:
        del result.runs[key]
    result.is_interrupted = True
    assert judge(result).status == "inconclusive"


def test_own_chains_that_disagree_with_each_other_are_too_few():
    result = fake_result(posterior_shift=0.0)
    draws = dict(result.fit.draws)
    half = np.array([-1.0, -1.0, 1.0, 1.0])[:, None] + np.random.default_rng(1).normal(0, 0.2, (4, 200))
    draws["mu"] = half  # chains stuck in two modes: an effective sample size near that of the chains
    result.fit = replace(result.fit, draws=draws)
    verdict = judge(result)
    assert verdict.status == "inconclusive" and not verdict
    assert verdict.agreement is None and verdict.comparison == "too few draws"
    assert "pass all of its draws" in verdict.details and verdict.details.count("were not compared") == 1
    assert "Your draws were not compared" in verdict.details and "effective draws of mu are too few" in verdict.details
    assert "No difference" not in verdict.details and "intervals" not in verdict.details
    assert "not about a run of pm.sample." in verdict.details


def test_the_fit_that_bread_made_is_named():
    same, other = (fake_result(posterior_shift=shift, simulate_from="fitted") for shift in (0.0, 1.5))
    for result in (same, other):
        result.fit = replace(result.fit, source="pm.sample")
    verdict = judge(same)
    assert verdict.details.startswith(
        "Converged. The 90% intervals of pm.sample (its defaults, 4 chains) hold between 0."
    )
    assert "are estimated to be within" in verdict.details and "Your 90%" not in verdict.details
    verdict = judge(other)
    assert verdict.status == "disagreement"
    assert (
        "The draws of pm.sample (its defaults, 4 chains) are not the posterior's: their 90% interval of mu"
        in verdict.details
    )


def test_chains_of_the_real_data_that_failed_are_counted():
    result = fake_result(posterior_shift=0.0)
    assert "failed" not in judge(result).details
    result.n_draws_dropped = 3
    assert "3 of 1003 annealed chains on your data failed" in judge(result).details


def test_other_backends_are_not_told_of_pymc():
    verdict = judge(fake_result(info=model_info(backend="reference", versions={})))
    assert "pm.sample" not in verdict.details and "your usual sampler" in verdict.details


def test_pickle_keeps_the_numbers():
    verdict = judge(fake_result())
    again = pickle.loads(pickle.dumps(verdict))
    assert again == verdict and again.status == verdict.status and again.ci_upper == verdict.ci_upper


def test_the_same_after_a_file(tmp_path):
    import arviz

    made = report.to_container(fake_result(posterior_shift=0.0), constrain)
    made.to_netcdf(str(tmp_path / "report.nc"))
    verdict, again = bread.verdict(made), bread.verdict(arviz.from_netcdf(str(tmp_path / "report.nc")))
    assert verdict == again and verdict.status == again.status
