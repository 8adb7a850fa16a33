"""The verdict: statuses in order of precedence, and sentences that say what they must."""

import re
from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.backends.base import Failure
from bread.reading.sentences.numbers import nats
from bread.report import container as report
from bread.running.state.exactness_results import DirectTest, DirectTests
from bread.statistics.bounds.goal import Goal
from tests.support.fake_results import constrain, fake_result, model_info, shift_reverse_starts
from tests.support.verdicts import fitted, judge


def zero_weight(result, simulation=8):
    run = result.runs[simulation, "forward", 64]
    log_weight, failure = run.log_weight.copy(), run.failure.copy()
    log_weight[0], failure[0] = -np.inf, Failure.ZERO_RATIO
    result.runs[simulation, "forward", 64] = replace(run, log_weight=log_weight, failure=failure)
    return result


def heavy_start(result):
    result.base_log_ratio = [-(np.random.default_rng(3).standard_cauchy(2000) ** 2)]
    return result


def direct(name, p_value):
    """A result whose test of exact draws has this p-value for tau."""
    variables, functions = ("mu", "tau"), ("1", "tanh(own)")
    p_values = np.array([[0.5, 0.7], [0.9, p_value]])
    sound = DirectTest("kernel at beta = 0", variables, functions, np.full((2, 2), 0.5), np.zeros((2, 2)), 500, 2)
    return DirectTests((DirectTest(name, variables, functions, p_values, np.zeros((2, 2)), 1000), sound), {}, 2000)


@pytest.mark.parametrize("simulate_from", ["prior", "fitted", "localised"])
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("prior score", "The random draws of tau do not follow its log density"),
        ("likelihood score", "by its slope in tau"),
        ("outcome score", "Simulated data do not follow the likelihood, by the tau"),
        ("joint score", "Simulated parameters and data do not follow the log density"),
        ("kernel at beta = 1", "Steps of the kernel change the law of exact draws"),
    ],
)
def test_a_failed_test_of_exact_draws_is_a_bug_under_every_protocol(simulate_from, name, sentence):
    verdict = judge(replace(fake_result(simulate_from=simulate_from), direct_tests=direct(name, 1e-5)))
    assert verdict.status == "bug" and verdict.direct_p_value == pytest.approx(8e-5)
    assert (
        f"the {name} of 1000 exact draws fails (p < 0.001" in verdict.details
        and "tau, function tanh(own)" in verdict.details
    )
    assert sentence in verdict.details
    kept = judge(replace(fake_result(simulate_from=simulate_from), direct_tests=direct(name, 2e-4)))
    assert kept.status == "converged"  # 8 p-values: 0.0016 after correction


@pytest.mark.parametrize("simulate_from", ["prior", "fitted", "localised"])
def test_converged_says_first_what_was_not_tested(simulate_from):
    """Nobody may read "converged" without it; a report of an older version, which does not know, says nothing."""
    whole, scores = direct("kernel at beta = 0", 0.5), "ValueError: lam is too large"
    sound = judge(replace(fake_result(simulate_from=simulate_from), direct_tests=whole))
    assert sound.status == "converged" and "Not tested" not in sound.details and "your priors" not in sound.details
    lacking = {"likelihood score": scores, "outcome score": scores, "outcome score of y": "atoms"}
    verdict = judge(replace(fake_result(simulate_from=simulate_from), direct_tests=replace(whole, left_out=lacking)))
    assert verdict.status == "converged"
    said = "Not tested: likelihood score, outcome score (ValueError: lam is too large)."
    assert (
        said in verdict.details
        and "atoms" not in verdict.details
        and verdict.details.index(said) < verdict.details.index("typical")
    )
    empty = replace(whole.tests[0], name="prior score", p_values=np.full((2, 2), np.nan))
    nothing = replace(whole, tests=(empty, *whole.tests), left_out={"prior score of mu, tau": "it jumps"})
    assert "Not tested: prior score (it jumps)." in judge(replace(fake_result(), direct_tests=nothing)).details


@pytest.mark.parametrize(("share", "words"), [(0.8, "Most"), (0.3, "Many"), (0.05, None)])
def test_a_prior_whose_data_cannot_be_represented_is_named(share, words):
    tests = replace(direct("kernel at beta = 0", 0.5), share_discarded=share, why_discarded="y overflows.")
    verdict = judge(replace(fake_result(), direct_tests=tests))
    said = f"{words} data sets that your priors make cannot be represented ({share:.0%}: y overflows): tighten"
    assert (said in verdict.details) == (words is not None) == ("your priors" in verdict.details)


def test_a_score_that_fails_is_named_before_a_kernel_that_fails_with_it():
    (score, kernel), *_ = [direct("prior score", 1e-6).tests]
    failed = replace(kernel, p_values=np.full((2, 2), 1e-30))
    verdict = judge(replace(fake_result(), direct_tests=DirectTests((score, failed))))
    assert "the prior score of 1000 exact draws fails" in verdict.details


SITUATIONS = {
    "converged": (
        {},
        "converged",
        [
            "Converged. Draws of annealed NUTS (64 temperatures) are within 0.08 of the posterior",
            "off by more (B = 0.019 nats)",
            "20 simulated data sets for typical (95% limit whatever others are like: 0.20)",
            "up to 14% of data sets would go unseen",
            "Your data look like the model's (fit p = 0.87) and are no harder to sample than simulated ones",
            "not about a run of pm.sample",
        ],
        ["estimated", "Held", "too loose"],
    ),
    "fitted": (
        {"simulate_from": "fitted"},
        "converged",
        [
            "are estimated to be within 0.08",
            "blind to what the fit absorbs",
            "Held at draws of the fit while simulating: mu, tau.",
        ],
        [],
    ),
    "limits contain the error asked for": (
        {"gap": 0.05},
        "inconclusive",
        ["V is 0.10, but its limits (0.09 to 0.13) contain the 0.10 that was asked for", "More simulations narrow"],
        ["Converged"],
    ),
    "a long path": (
        {"gap": 1.0},
        "not converged",
        [
            "V is 0.44 (0.39 to 0.51), above the 0.10 that was asked for",
            "does not say that they are far",
            "The bound is too loose",
            "About 2048 temperatures",
        ],
        ["reparametrise"],
    ),
    "a sampler that does not follow": (
        {"gap": 1.0, "rate": 0.1},
        "not converged",
        ["More temperatures hardly lower it", "The gap arises near beta 0.2: reparametrise, or change the kernel"],
        ["too loose"],
    ),
    "harder data": (
        {"observed_extra": 8.0, "n_forward": 179},
        "mismatch",
        [
            "Your data anneal unlike simulated data (p = 0.01",
            "nats harder",
            "so the bound, 0.09, says little",
            "posterior predictive",
        ],
        ["Converged"],
    ),
    "real data unlike the model's": (
        {"misfit": True},
        "converged",
        [
            "Your data do not look like the model's (fit p < 0.001, y, its values taken together: y[Deerfield, "
            "2024-01-02] is 12 standard deviations above what the model expects, y[Exeter, 2024-01-01] is 3.5 standard "
            "deviations below what the model expects; 2 nats an observation less probable than replicates): the bound "
            "is about data that the model makes, which these are unlike.",
        ],
        ["look like the model's (fit p = ", "stands"],
    ),
    "own draws that agree": (
        {"posterior_shift": 0.0},
        "converged",
        [
            "Converged. Your 90% intervals (4 chains) hold between 0.8",
            "of the certified draws (1000 on your data). Those are within 0.08 of the posterior, if the 20 simulated ",
            "data sets are typical (95% limit whatever others are like: 0.20; B = 0.019 nats)",
            "No difference was seen (p = ",
            "a shift of one continuous parameter by 0.3",
            " or a probability of a discrete one that is off by 0.1",
            "posterior standard deviations or a missing",
        ],
        ["pm.sample", "estimated", "too few"],
    ),
    "own draws that differ": (
        {"posterior_shift": 1.5},
        "disagreement",
        [
            "Disagreement. Your draws are not the posterior's: your 90% interval of mu holds 0.",
            "of certified draws that are within 0.08 of it (p < 0.001). Run longer, or reparametrise.",
        ],
        ["Converged"],
    ),
    "own draws that differ by what V may explain": (
        {"posterior_shift": 0.35},
        "inconclusive",
        [
            "Inconclusive. Your draws differ from the certified draws on your data: 0.6",
            "of those lie below your median of mu (p < 0.001)",
            "own error, up to 0.08, may be why",
        ],
        ["Converged", "not the posterior's", "wrong", "contain the"],
    ),
    "own draws that differ where nothing is certified": (
        {"posterior_shift": 1.5, "gap": 1.0},
        "not converged",
        ["Your draws differ from the certified draws on your data: ", "One of the two is wrong"],
        ["are not the posterior's"],
    ),
    "a target in nats": (
        {"goal": Goal(target=1.0), "gap": 0.4},
        "converged",
        ["B = 0.42 nats, limit 0.6", "within 0.34 of the posterior"],
        [],
    ),
    "a target in nats that is missed": (
        {"goal": Goal(target=1.0), "gap": 6.0},
        "not converged",
        ["B is 6", "above the 1 nats that was asked for", "does not say that they are far"],
        [],
    ),
    "few simulations": (
        {"n_confirm": 9},
        "inconclusive",
        ["9 simulated data sets decide nothing", "a verdict needs at least 10"],
        ["Converged"],
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_a_verdict_says(name):
    changes, status, said, unsaid = SITUATIONS[name]
    verdict = judge(fake_result(**changes))
    assert verdict.status == status
    assert bool(verdict) == (status == "converged")
    for words in said:
        assert words in verdict.details
    for words in unsaid:
        assert words not in verdict.details
    assert verdict.details.startswith(f"{status.capitalize()}. ") and verdict.details.endswith(".")
    assert "nan" not in verdict.details and "  " not in verdict.details and ".." not in verdict.details


def test_numbers_are_those_of_the_report():
    made = report.to_container(fake_result(), constrain)
    verdict, certificate = bread.verdict(made), report.read_group(made, "certificate").sel(n_temperatures=64)
    assert isinstance(verdict, str)
    assert verdict.error == float(certificate["error"])
    assert [verdict.error_lower, verdict.error_limit] == certificate["error_ci"].values.tolist()
    assert verdict.error_limit_exact == float(certificate["error_limit_exact"]) > verdict.error_limit
    assert verdict.estimate == verdict.error and verdict.bound == "V" and verdict.limit == 0.1
    assert verdict.jeffreys == float(report.read_group(made, "bounds")["jeffreys"].sel(n_temperatures=64))


def test_bug_precedes_mismatch():
    verdict = judge(shift_reverse_starts(fake_result(observed_extra=8.0, n_forward=179)))
    assert verdict.status == "bug"
    assert verdict.rank_p_value <= 0.003
    assert "mu (beta=1)" in verdict.details and "impossible" not in verdict.details


def test_log_weights_that_contradict_each_other_are_a_bug():
    result = fake_result(gap=0.5, n_confirm=60)
    for key, run in result.runs.items():
        if key[1] == "reverse":  # a reverse weight that lacks a constant
            result.runs[key] = replace(run, log_weight=run.log_weight - 1.0)
    verdict = judge(result)
    assert verdict.status == "bug"
    assert min(verdict.alarm_p_value, verdict.forms_p_value) <= 0.003
    assert judge(fake_result(gap=0.5, n_confirm=60)).status != "bug"  # the control


def test_fitted_simulations_never_show_a_bug_but_a_start_that_is_not_forgotten():
    verdict = judge(shift_reverse_starts(fake_result(simulate_from="fitted")))
    assert verdict.status == "converged"
    assert verdict.rank_p_value <= 0.003
    assert "raise init_steps" in verdict.details


def test_simulated_from_the_posterior_the_tests_of_chains_are_about_the_draws():
    verdict = judge(shift_reverse_starts(fake_result(simulate_from="posterior")))
    assert verdict.status == "disagreement" and verdict.rank_p_value <= 0.003
    details = verdict.details
    assert "Your draws are not the posterior's" in details and "first in mu" in details and "bug" not in details[:40]
    assert judge(fake_result(simulate_from="posterior")).status == "converged"  # the control
    agreeing = judge(shift_reverse_starts(fitted("posterior")))  # with certified draws
    assert agreeing.status == "inconclusive" and "draws and log density differ" in agreeing.details
    doubtful = fitted("posterior", shift=3.0, n_divergences=7)  # too few draws to say that of
    assert judge(shift_reverse_starts(doubtful)).status == "inconclusive"


def test_zero_weights_leave_v_finite_and_b_infinite():
    verdict = judge(zero_weight(fake_result(gap=0.002, goal=Goal(max_error=0.2))))
    assert verdict.jeffreys == np.inf
    assert verdict.status == "converged" and verdict.error_limit < 0.2
    assert "B is infinite" in verdict.details
    loose = judge(zero_weight(fake_result(gap=1.0)))
    assert "1 of 80 forward chains met a likelihood of zero" in loose.details


def test_an_unreliable_b_decides_nothing():
    asked = Goal(target=1.0)
    verdict = judge(heavy_start(fake_result(goal=asked, gap=0.4)))
    assert verdict.bound == "V" and verdict.limit == pytest.approx(0.479, abs=1e-3)
    assert verdict.status == "converged" and "B =" not in verdict.details
    assert judge(fake_result(goal=asked, gap=0.4)).bound == "B"


def test_a_fit_that_did_not_converge_lets_fitted_simulations_decide_nothing():
    assert judge(fitted("fitted")).status == "converged"  # the control
    verdict = judge(fitted("fitted", shift=3.0, n_divergences=7))
    assert verdict.status == "inconclusive"
    assert "did not converge: its largest R-hat is 1." in verdict.details and "(tau)" in verdict.details
    assert "7 transitions diverged (pm.sample)" in verdict.details and "pass its draws as posterior=" in verdict.details
    assert judge(fitted("fitted", shift=3.0, gap=1.0)).status == "not converged"


def test_a_doubtful_fit_is_said_where_it_does_not_decide():
    verdict = judge(fitted("localised", shift=3.0))
    assert (
        verdict.status == "converged"
        and "The fit to your data (pm.sample) may be off: its largest R-hat" in verdict.details
    )
    verdict = judge(fitted("fitted", n_divergences=1))
    assert verdict.status == "converged" and "may be off: 1 transition diverged." in verdict.details
    assert "may be off" not in judge(fitted("fitted", n_divergences=0)).details


@pytest.mark.parametrize("simulate_from", ["fitted", "localised"])
def test_one_effective_size_is_said_of_draws_that_are_too_few(simulate_from):
    container = report.to_container(fitted(simulate_from, shift=3.0), constrain)
    container.attrs["fit_n_effective"] = 43.0  # of location and scale; that of a quantile is smaller
    verdict = bread.verdict(container)
    sizes = re.findall(r"(\d+) (?:effective draws of|draws of) tau", verdict.details)
    assert verdict.comparison == "too few draws" and len(sizes) == 2 and sizes[0] == sizes[1]


@pytest.mark.parametrize(("value", "words"), [(0.123, "0.12"), (23.4, "23"), (123456.0, "123456"), (5e137, "5e+137")])
def test_numbers_of_nats_are_short(value: float, words: str) -> None:
    assert nats(value) == words


def test_level_that_was_spent_is_shown():
    result = fake_result()
    result.level, result.error_level = 0.975, 0.9875
    assert "98.75% limit" in judge(result).details


@pytest.mark.parametrize("n_confirm", [1, 9])
def test_fewer_than_ten_simulations_never_converge(n_confirm):
    assert judge(fake_result(gap=1e-4, n_confirm=n_confirm)).status == "inconclusive"


@pytest.mark.parametrize(("misfit", "fit"), [(False, "ok"), (True, "poor")])
def test_the_fit_is_no_status(misfit, fit):
    verdict = judge(fake_result(misfit=misfit))
    assert verdict.status == "converged" and bool(verdict)
    assert verdict.fit == fit and (verdict.fit_p_value <= 0.005) == misfit
    assert (
        "What was compared on your own data stands" in judge(fake_result(misfit=misfit, posterior_shift=0.0)).details
    ) == misfit
    untested = fake_result()
    untested.fit_check = None
    assert judge(untested).fit == "not tested" and np.isnan(judge(untested).fit_p_value)


@pytest.mark.parametrize(("others", "fit"), [(0.5, "poor"), (1e-5, "ok")])
def test_a_rank_among_simulated_data_sets_may_overrule_a_misfit(others, fit):
    result = fake_result(misfit=True)
    result.fit_check = replace(result.fit_check, ranked_p_values=np.array([*np.full(40, others), 4e-4]))
    verdict = judge(result)
    assert verdict.fit == fit and verdict.fit_p_value <= 0.005
    assert ("Your data look like the model's (fit p = 1 by its rank among simulated data sets)" in verdict.details) == (
        fit == "ok"
    )


def test_a_difference_that_too_few_simulations_show_is_no_mismatch():
    assert judge(fake_result(observed_extra=8.0)).status == "converged"  # 39 simulations: more would have been added
    assert "harder to sample is not yet known" in judge(fake_result(observed_extra=8.0)).details
    assert "blind to harder data here" in judge(fake_result(simulate_from="localised")).details


def of_library(library, simulator=None, **changes):
    result = fake_result(info=model_info(backend=library, versions={}), **changes)
    result.settings["simulator"] = simulator
    return result


@pytest.mark.parametrize(("library", "name"), [("pymc", "model"), ("stan", "program")])
@pytest.mark.parametrize(
    "test", ["prior score", "likelihood score", "outcome score", "joint score", "kernel at beta = 1"]
)
def test_a_bug_may_be_in_the_simulator_that_bread_derived(library, name, test):
    derived = f"Or the simulator that bread derived from your {name} is wrong"
    verdict = judge(replace(of_library(library), direct_tests=direct(test, 1e-5)))
    assert verdict.status == "bug" and derived in verdict.details
    assert f"please report that to bread, with the {name}, its data and this report" in verdict.details
    own = judge(replace(of_library(library, "simulate"), direct_tests=direct(test, 1e-5)))
    assert own.status == "bug" and "derived" not in own.details and "  " not in own.details


@pytest.mark.parametrize(("library", "who"), [("pymc", "PyMC"), ("stan", "Stan"), ("numpyro", "NumPyro")])
def test_a_step_method_of_the_library_is_never_blamed_first(library, who):
    verdict = judge(replace(of_library(library), direct_tests=direct("kernel at beta = 1", 1e-5)))
    assert verdict.details.index("custom distribution") < verdict.details.index(
        f"Least likely is NUTS, whose steps are {who}'s own."
    )
    assert "correct accept step" not in verdict.details and "  " not in verdict.details
    ranks = judge(shift_reverse_starts(of_library(library)))
    assert ranks.status == "bug" and "step method" not in ranks.details and "custom distribution" in ranks.details


def test_a_backend_of_another_package_says_whose_its_kernels_are():
    result = replace(of_library("somebody"), direct_tests=direct("kernel at beta = 1", 1e-5))
    identity = replace(result.info.identity, kernels_of="Somebody")
    said = judge(replace(result, info=replace(result.info, identity=identity)))
    assert "Least likely is NUTS, whose steps are Somebody's own." in said.details
    own = judge(result)
    assert "look for a step method without a correct accept step" in own.details and "derived" not in own.details
