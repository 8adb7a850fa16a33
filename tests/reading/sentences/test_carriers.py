"""Where a few data sets carry the bound, verdict and summary say how many, which, and what to look at."""

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.report import container as report
from bread.statistics.bounds.goal import Goal
from tests.support.fake_results import constrain, fake_result
from tests.support.verdicts import judge

CONFIRM = range(6, 26)  # the confirming simulations of a fake result
T = 64


def carried(simulations, gap, *, goal=Goal(), tau=None, **changes):  # noqa: B008  (a frozen value)
    """A check with a gap of so many nats in a few of its confirming simulations, and nearly none in the others."""
    result = fake_result(gap=0.001, goal=goal, **changes)
    for simulation in simulations:
        for direction, sign in (("forward", -0.5), ("reverse", 0.5)):
            run = result.runs[simulation, direction, T]
            result.runs[simulation, direction, T] = replace(run, log_weight=run.log_weight + sign * gap)
        if tau is not None:
            result.simulations.states[simulation, 1] = np.log(tau)
    if tau is not None:
        parameters = constrain(result.simulations.states)
        result.simulations = replace(result.simulations, parameters=parameters)
    return result


@pytest.mark.parametrize(
    ("simulations", "gap", "goal", "status", "sentence"),
    [
        ((8, 12, 20), 400.0, Goal(target=1.0), "inconclusive", "3 of 20 simulated data sets carry 100% of B"),
        ((8,), 600.0, Goal(target=1.0), "inconclusive", "1 of 20 simulated data sets carries 100% of B (simulation 8)"),
        ((8, 12), 9.0, Goal(), "inconclusive", "2 of 20 simulated data sets carry 8"),  # V_r = 1 there
        ((8, 12, 17, 20, 22), 30.0, Goal(max_error=0.05), "not converged", "5 of 20 simulated data sets carry 9"),
    ],
)
def test_a_few_data_sets_carry_the_bound(simulations, gap, goal, status, sentence):
    verdict = judge(carried(simulations, gap, goal=goal))
    assert verdict.status == status and sentence in verdict.details
    assert f"(simulation{'s' if len(simulations) > 1 else ''} {', '.join(map(str, simulations))}" in verdict.details
    assert "Look at" in verdict.details and "whether your data are like" in verdict.details
    assert "More simulations narrow the limits; more temperatures lower the bound." not in verdict.details


def test_all_data_sets_alike_are_carried_by_none():
    verdict = judge(fake_result(gap=1.2, goal=Goal(target=1.2)))  # the limits hold the target
    assert verdict.status == "inconclusive" and "carr" not in verdict.details
    assert "More simulations narrow the limits; more temperatures lower the bound." in verdict.details


def test_a_parameter_that_sets_them_apart_is_named():
    result = carried((8, 12, 20), 400.0, goal=Goal(target=1.0), tau=1e-6)
    others = [index for index in CONFIRM if index not in (8, 12, 20)]
    nearest = float(result.simulations.parameters["tau"][others].min())
    assert f"all with tau below {nearest:.3g}, where no other has it" in judge(result).details
    assert "where no other has it" not in judge(carried((8, 12, 20), 400.0, goal=Goal(target=1.0)))


def test_what_converged_says_nothing_of_them():
    assert "carr" not in judge(carried((8,), 0.5))


def test_summary_counts_them():
    table = bread.summary(report.to_container(carried((8, 12, 20), 30.0), constrain), kind="bounds")
    assert table.loc[T, "n_carrying"] == 3
    alike = bread.summary(report.to_container(fake_result(gap=1.2), constrain), kind="bounds")
    assert alike.loc[T, "n_carrying"] > 10  # of 20: 80% of equal values are 16
    assert list(alike["n_simulations"] >= alike["n_carrying"]) == [True] * 3


def test_an_interrupted_check_says_it_too():
    result = carried((8, 12, 20), 400.0, goal=Goal(target=1.0))
    result.is_interrupted = True
    assert "3 of 20 simulated data sets carry" in judge(result).details
