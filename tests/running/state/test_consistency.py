"""Shape: what is compared, when more simulations are asked for, and that a mismatch is said only then."""

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.report import container as report
from bread.report.compat import read_group
from bread.running.state import consistency
from bread.running.state.results import OBSERVED
from bread.statistics.real_data.sequential import SHAPE_LEVEL
from tests.support.fake_results import constrain, fake_result


def with_gradients(result, times):
    for n_temperatures in (16, 32, 64):
        run = result.runs[OBSERVED, "forward", n_temperatures]
        result.runs[OBSERVED, "forward", n_temperatures] = replace(run, n_gradients=run.n_gradients * times)
        for repeat in range(consistency.REPEATS):
            run = result.repeats[repeat, n_temperatures]
            result.repeats[repeat, n_temperatures] = replace(run, n_gradients=run.n_gradients * times)
    return result


def test_more_simulations_are_asked_for_until_enough_is_known():
    hard = [consistency.more_simulations(fake_result(observed_extra=8.0, n_forward=n)) for n in (20, 60, 140, 179)]
    assert hard == [40, 80, 39, 0]
    clean = [consistency.more_simulations(fake_result(seed, n_forward=20)) for seed in range(8)]
    assert clean.count(0) >= 4  # p is 0.27 or more in 73% of clean checks
    one = fake_result(temperatures=(64,))
    assert consistency.items(one) is None and consistency.more_simulations(one) == 0


def test_effort_is_compared_too():
    group = read_group(report.to_container(with_gradients(fake_result(n_forward=179), 3), constrain), "consistency")
    assert float(group["shape_p_value"]) <= 0.05 < float(group["p_value"])  # the curves alone see nothing
    assert int(group["is_final"]) == 1 and int(group["n_simulations"]) == 199
    verdict = bread.verdict(report.to_container(with_gradients(fake_result(n_forward=179), 3), constrain))
    assert verdict.status == "mismatch" and "most in gradients a transition" in verdict.details
    # Negative control: the same gradients as everyone's.
    clean = read_group(report.to_container(fake_result(n_forward=179), constrain), "consistency")
    assert float(clean["shape_p_value"]) > 0.05
    assert float(clean["p_value_by_measure"].sel(measure="gradients a transition")) == 1.0


def test_what_the_noise_of_the_chains_says_once_is_no_mismatch():
    result = fake_result(n_forward=179)
    harder = fake_result(n_forward=179, observed_extra=8.0)
    assert consistency.repeats_wanted(result) == []
    for n_temperatures in (16, 32, 64):
        result.runs[OBSERVED, "forward", n_temperatures] = harder.runs[OBSERVED, "forward", n_temperatures]
    found = consistency.items(result)
    assert found.first.p_value <= SHAPE_LEVEL < found.shape.p_value and found.shape.is_final
    verdict = bread.verdict(report.to_container(result, constrain))
    assert verdict.status == "converged" and verdict.consistency_p_value == found.shape.p_value
    # Negative control: the repeats say so too.
    result.repeats = harder.repeats
    assert consistency.items(result).shape.p_value <= SHAPE_LEVEL
    assert bread.verdict(report.to_container(result, constrain)).status == "mismatch"


def test_nothing_is_said_before_the_repeats_have_run():
    result = fake_result(n_forward=179, observed_extra=8.0)
    del result.repeats[consistency.REPEATS - 1, 32]
    assert (
        consistency.repeats_wanted(result) == [(consistency.REPEATS - 1, 32)]
        and consistency.more_simulations(result) == 0
    )
    assert not consistency.items(result).shape.is_final
    verdict = bread.verdict(report.to_container(result, constrain))
    assert verdict.status != "mismatch" and "harder to sample is not yet known" in verdict.details


def test_interrupted_growth_is_read_up_to_the_first_that_did_not_finish():
    result = fake_result(observed_extra=8.0, n_forward=60)
    for index in range(60, 86):
        for n_temperatures in (16, 32):
            if index != 70:  # one that was faster than those before it
                del result.runs[index, "forward", n_temperatures]
    found = consistency.items(result)
    assert found.simulations.tolist() == list(range(6, 60)) and found.temperatures.tolist() == [16, 32, 64]
    assert not found.shape.is_final
    assert bread.verdict(report.to_container(result, constrain)).status != "mismatch"


def test_zero_weights_are_the_largest_spread():
    result = fake_result()
    run = result.runs[OBSERVED, "forward", 64]
    result.runs[OBSERVED, "forward", 64] = replace(run, log_weight=np.array([-np.inf, *run.log_weight[1:]]))
    assert np.isinf(consistency.items(result).effort["spread of log weights"][-1, -1])


def test_the_rank_of_the_log_evidence_is_that_of_the_real_data():
    group = read_group(report.to_container(fake_result(), constrain), "consistency")
    below = sum(
        np.logaddexp.reduce(fake_result().runs[index, "forward", 64].log_weight)
        < np.logaddexp.reduce(fake_result().runs[OBSERVED, "forward", 64].log_weight)
        for index in range(6, 45)
    )
    assert int(group["log_evidence_rank"]) == below
    tail = 1 + min(below, 39 - below)
    assert float(group["log_evidence_p_value"]) == pytest.approx(min(1.0, 2 * tail / 40))
