"""The verdict: statuses in order of precedence, and sentences that say what they must."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.backends.base import Failure
from bread.reading.gap import gap_increments, gap_location
from bread.reading.sentences import nats
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result, model_info, shift_reverse_starts


def judge(result):
    return bread.verdict(report.to_container(result, constrain))


def zero_weight(result, simulation=8):
    run = result.runs[simulation, "forward", 64]
    log_weight, failure = run.log_weight.copy(), run.failure.copy()
    log_weight[0], failure[0] = -np.inf, Failure.ZERO_RATIO
    result.runs[simulation, "forward", 64] = replace(run, log_weight=log_weight, failure=failure)
    return result


def heavy_start(result):
    result.start_log_ratio = [-(np.random.default_rng(3).standard_cauchy(2000) ** 2)]
    return result


def test_converged():
    verdict = judge(fake_result(gap=0.4))
    assert isinstance(verdict, str)
    assert verdict.status == "converged"
    assert verdict.ci_upper <= verdict.target == 1.0
    assert "On 20 simulated data sets, draws of annealed NUTS (64 temperatures) are within 0." in verdict
    assert "95 % limit" in verdict and "target 1)" in verdict
    assert f"no probability is off by more than {verdict.total_variation:.2f}" in verdict
    assert "up to 14 %" in verdict
    assert "not about a run of pm.sample" in verdict
    assert "estimated" not in verdict


def test_fitted_simulations_only_estimate():
    verdict = judge(fake_result(simulate_from="fitted"))
    assert verdict.status == "converged"
    assert "are estimated to be within" in verdict
    assert "hides what the fit absorbs" in verdict


def test_not_converged_names_where_the_gap_arises_and_what_to_do():
    verdict = judge(fake_result(gap=6.0))
    assert verdict.status == "not converged"
    assert verdict.ci_lower > 1.0
    assert verdict.gap_location == pytest.approx(0.2, abs=0.03)
    assert "The gap arises near beta 0.2: reparametrise, or change the kernel" in verdict
    assert "still falls" in verdict
    assert "does not prove" in verdict


def test_interval_that_contains_the_target_is_inconclusive():
    verdict = judge(fake_result(gap=1.0))
    assert verdict.ci_lower < 1.0 < verdict.ci_upper
    assert verdict.status == "inconclusive"
    assert "contains the target of 1" in verdict


def test_mismatch_precedes_converged():
    verdict = judge(fake_result(observed_extra=8.0))
    assert verdict.status == "mismatch"
    assert verdict.consistency_p_value < 0.05
    assert "nats harder" in verdict and "posterior predictive" in verdict


def test_bug_precedes_mismatch():
    verdict = judge(shift_reverse_starts(fake_result(observed_extra=8.0)))
    assert verdict.status == "bug"
    assert verdict.rank_p_value <= 0.005
    assert "mu (beta=1)" in verdict


def test_fitted_simulations_never_show_a_bug_but_a_start_that_is_not_forgotten():
    verdict = judge(shift_reverse_starts(fake_result(simulate_from="fitted")))
    assert verdict.status == "converged"
    assert verdict.rank_p_value <= 0.005
    assert "raise init_steps" in verdict


def test_infinite_bound_gives_reason_and_count():
    verdict = judge(zero_weight(fake_result()))
    assert verdict.status == "not converged"
    assert verdict.estimate == np.inf
    assert "the bound is infinite: 1 of 80 forward chains met a likelihood of zero" in verdict


def test_an_unreliable_bound_decides_nothing_and_the_one_sided_bound_certifies():
    verdict = judge(heavy_start(fake_result()))
    assert verdict.status == "converged"
    assert verdict.bound == "kl_exact_approx"
    assert "one-sided bound" in verdict and "decides nothing" in verdict
    loose = judge(heavy_start(fake_result(gap=8.0)))
    assert loose.status == "not converged" and loose.bound == "kl_exact_approx"
    assert judge(fake_result()).bound == "jeffreys"


@pytest.mark.parametrize(
    ("asked", "advice"), [("prior", "path='auto' looks for"), ("auto", "reference of your own, given as path=")]
)
def test_the_way_to_a_finite_bound_is_not_the_one_that_was_taken(asked, advice):
    result = heavy_start(fake_result())
    result.settings["path"] = asked
    assert advice in judge(result)


def test_neither_bound_reliable_is_inconclusive():
    verdict = judge(heavy_start(fake_result(gap=0.05, n_chains=1)))
    assert verdict.status == "inconclusive"
    assert "neither bound can be trusted" in verdict


def test_one_simulation_never_converges():
    verdict = judge(fake_result(gap=0.01, n_confirm=1))
    assert verdict.status == "inconclusive"
    assert "no interval" in verdict


def test_interrupted_is_inconclusive_whatever_the_number():
    result = fake_result(gap=0.05)
    result.is_interrupted = True
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "did not finish" in verdict
    result.is_interrupted = False
    assert judge(result).status == "converged"  # the control: the flag alone made the difference


def test_unconfirmed_bounds_never_converge():
    result = fake_result(gap=0.05)
    for key in list(result.runs):
        if key[2] == 64 and key[0] >= 0 and result.roles[key[0]] == "confirm":
            del result.runs[key]
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "no fresh simulations confirmed" in verdict


def test_failed_chains_are_named():
    result = fake_result()
    run = result.runs[8, "reverse", 64]
    log_weight, failure = run.log_weight.copy(), run.failure.copy()
    log_weight[0], failure[0] = np.nan, Failure.NAN
    result.runs[8, "reverse", 64] = replace(run, log_weight=log_weight, failure=failure)
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "1 annealed chain failed" in verdict


def test_nothing_finished():
    result = fake_result()
    result.runs.clear()
    result.is_interrupted = True
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert "nothing can be said" in verdict
    assert np.isnan(verdict.estimate)


@pytest.mark.parametrize("n_kept", [1, 5, 20, 60, 140])
def test_interrupted_anywhere_gives_a_verdict(n_kept):
    result = fake_result()
    for key in list(result.runs)[n_kept:]:
        del result.runs[key]
    result.is_interrupted = True
    assert judge(result).status == "inconclusive"


def test_own_draws_that_agree_carry_the_bound_over():
    verdict = judge(fake_result(posterior_shift=0.0))
    assert verdict.agreement is True
    assert "carries this over" in verdict
    assert "pm.sample" not in verdict
    assert judge(fake_result()).agreement is None


def test_own_draws_that_differ_lead_the_verdict_and_keep_the_status():
    verdict = judge(fake_result(posterior_shift=1.5))
    assert verdict.agreement is False
    assert verdict.status == "converged"
    assert verdict.startswith("Your own draws differ from the annealed draws on the real data")
    assert "most in mu" in verdict and "suspect yours" in verdict


def test_own_chains_that_disagree_with_each_other_say_nothing():
    result = fake_result(posterior_shift=0.0)
    draws = dict(result.fit.draws)
    half = np.array([-1.0, -1.0, 1.0, 1.0])[:, None] + np.random.default_rng(1).normal(0, 0.2, (4, 200))
    draws["mu"] = half  # chains stuck in two modes: an effective sample size near that of the chains
    result.fit = replace(result.fit, draws=draws)
    verdict = judge(result)
    assert verdict.agreement is not True
    assert "carries this over" not in verdict


def test_other_backends_are_not_told_of_pymc():
    verdict = judge(fake_result(info=model_info(backend="reference", versions={})))
    assert "pm.sample" not in verdict and "your usual sampler" in verdict


def test_level_that_was_spent_is_shown():
    result = fake_result()
    result.level = 0.975
    assert "97.5 % limit" in judge(result)


@pytest.mark.parametrize(
    "changes", [{}, {"gap": 1.0}, {"gap": 6.0}, {"observed_extra": 8.0}, {"posterior_shift": 0.0}, {"n_confirm": 1}]
)
def test_two_to_four_sentences(changes):
    verdict = judge(fake_result(**changes))
    sentences = [part for part in str(verdict).replace("pm.sample", "sample").split(". ") if part]
    assert 2 <= len(sentences) <= 4
    assert verdict.endswith(".")
    assert "nan" not in verdict and "  " not in verdict


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


def test_gap_increments_sum_to_the_gap():
    rng = np.random.default_rng(1)
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    forward, reverse = rng.normal(size=(5, 4)), rng.normal(size=(2, 3, 4)) + 1.0
    weights = [np.sum(np.diff(betas) * values.reshape(-1, 4)[:, :-1], axis=1).mean() for values in (forward, reverse)]
    assert gap_increments(betas, forward, reverse).sum() == pytest.approx(weights[1] - weights[0])


def test_gap_location_is_where_half_of_the_gap_lies():
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    forward = np.zeros((1, 4))
    assert gap_location(betas, forward, np.array([[10.0, 0.0, 0.0, 9.0]])) == pytest.approx(0.05)
    assert gap_location(betas, forward, np.array([[0.0, 0.0, 1.0, 9.0]])) == pytest.approx(0.7)
    assert gap_location(betas, forward, np.array([[0.0, 1.0, 0.5, 0.0]])) == pytest.approx(0.4)
    assert np.isnan(gap_location(betas, forward, -np.ones((1, 4))))
    assert gap_location(betas, np.array([[0.0, -np.inf, 0.0, 0.0]]), np.ones((1, 4))) == pytest.approx(0.1)
    assert np.isnan(gap_location(betas, np.full((1, 4), np.nan), np.ones((1, 4))))


@pytest.mark.parametrize(("value", "words"), [(0.123, "0.12"), (23.4, "23"), (123456.0, "123456"), (5e137, "5e+137")])
def test_numbers_of_nats_are_short(value: float, words: str) -> None:
    assert nats(value) == words
