"""How many draws are annealed on the real data: what was asked for, what is needed, what may be spent."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bread.running.check.comparison import CHEAP, FEWEST_DRAWS, told_apart, wanted_draws
from bread.statistics.agreement.content import draws_needed
from tests.support.fake_results import constrain, fake_result, model_info

T = 64
NEEDED = draws_needed(7)  # mu, tau, three of theta, kind, and the log density


def wanted(result, draws=None):
    return wanted_draws(SimpleNamespace(draws=draws, chains=4), result, T)


def compared(*, runs_compiled, n_gradients=0):
    result = fake_result(posterior_shift=0.0, info=model_info(runs_compiled=runs_compiled))
    result.n_gradients = {"tune": 10**9, "start": 0, "search": 0, "confirm": n_gradients}
    return result


def test_what_was_asked_for_is_annealed():
    assert wanted(compared(runs_compiled=True), 37) == 37 and wanted(compared(runs_compiled=False), 0) == 0


def dear(result, gradients):
    """The same where each chain takes so many gradient evaluations."""
    result.runs = {
        key: replace(run, n_gradients=np.full_like(run.n_gradients, gradients)) for key, run in result.runs.items()
    }
    return result


def test_compiled_chains_give_as_many_as_the_limits_need():
    assert NEEDED <= wanted(compared(runs_compiled=True)) < NEEDED + 4
    assert 900 < NEEDED < 1050


@pytest.mark.parametrize(
    ("spent", "each", "expected"),
    [
        (0, CHEAP // 2000, -(-NEEDED // 4) * 4),
        (0, CHEAP // 400, 400),
        (CHEAP // 2, CHEAP // 400, 400),
        (2 * CHEAP, CHEAP // 200, 400),
        (2 * CHEAP, CHEAP // 10, FEWEST_DRAWS),
    ],
)
def test_dear_compiled_chains_cost_no_more_than_search_and_confirmation_or_what_is_cheap(spent, each, expected):
    assert wanted(dear(compared(runs_compiled=True, n_gradients=spent), each)) == expected


@pytest.mark.parametrize(("affordable", "expected"), [(20, FEWEST_DRAWS), (400, 400), (10**5, -(-NEEDED // 4) * 4)])
def test_others_cost_no_more_than_search_and_confirmation(affordable, expected):
    per_draw = 10 * T  # gradient evaluations of one chain on the real data
    assert wanted(compared(runs_compiled=False, n_gradients=affordable * per_draw)) == expected


@pytest.mark.parametrize(
    ("seconds_left", "expected"), [(np.inf, 400), (1e4, 400), (2.0, FEWEST_DRAWS), (-1.0, FEWEST_DRAWS), (50.0, 300)]
)
def test_as_many_as_there_is_time_for(seconds_left, expected):
    """A draw takes a tenth of a second, as simulated chains did; six tenths of what is left may go into draws."""
    per_draw = 10 * T
    result = compared(runs_compiled=False, n_gradients=400 * per_draw)
    result.seconds = {"search": 0.0, "confirm": 40.0, "tune": 1e6}
    plan = SimpleNamespace(draws=None, chains=4)
    assert wanted_draws(plan, result, T, seconds_left) == expected
    assert wanted_draws(SimpleNamespace(draws=37, chains=4), result, T, seconds_left) == 37
    result.seconds = {}
    assert wanted_draws(plan, result, T, seconds_left) == 400, "nothing has been timed"


def test_without_a_fit_to_compare_a_hundred_do():
    assert wanted(fake_result(info=model_info(runs_compiled=True))) == FEWEST_DRAWS
    localised = compared(runs_compiled=True)
    localised.localisation = object()
    assert wanted(localised) == FEWEST_DRAWS


def test_kernels_without_gradients_count_evaluations():
    result = compared(runs_compiled=False)
    few = wanted(result)
    for key, run in result.runs.items():
        result.runs[key] = replace(run, n_gradients=0 * run.n_gradients)
        if key[0] >= 0:
            result.runs[key] = replace(run, n_gradients=0 * run.n_gradients, n_evaluations=100 * run.n_evaluations)
    assert few < wanted(result) <= -(-NEEDED // 4) * 4


def with_draws(result, name, values):
    result.fit = replace(result.fit, draws={**result.fit.draws, name: values})
    return result


def test_draws_that_cannot_be_compared_cost_a_hundred():
    result = compared(runs_compiled=True)
    assert wanted(result) > FEWEST_DRAWS
    steps = np.random.default_rng(5).standard_normal((4, 200))
    slow = np.cumsum(steps, axis=1)  # a random walk: a handful of effective draws
    assert wanted(with_draws(result, "tau", slow)) == FEWEST_DRAWS
    assert wanted(with_draws(compared(runs_compiled=True), "tau", steps)) > FEWEST_DRAWS
    short = compared(runs_compiled=True)  # ten draws a chain
    short.fit = replace(short.fit, draws={name: values[:, :10] for name, values in short.fit.draws.items()})
    assert wanted(short) == FEWEST_DRAWS


def test_what_is_no_parameter_of_the_model_is_not_asked_for_effective_draws():
    slow = np.cumsum(np.random.default_rng(5).standard_normal((4, 200)), axis=1)
    assert wanted(with_draws(compared(runs_compiled=True), "derived", slow)) > FEWEST_DRAWS


@pytest.mark.statistical
def test_a_classifier_sees_all_variables_and_the_log_density():
    """Of draws that are right in both nothing is told apart; of those wrong in one alone, a third or more."""
    right, shifted = fake_result(seed=2, posterior_shift=0.0), fake_result(seed=2, posterior_shift=0.0)
    shifted.fit.draws["theta"][..., 2] += 2.0
    denser = fake_result(seed=2, posterior_shift=0.0)
    denser.fit_log_density = denser.fit_log_density + 4.0
    model = SimpleNamespace(constrain=constrain)
    limits = [told_apart(model, one, one.observed_draws).lower_limit(0.025) for one in (right, shifted, denser)]
    assert limits[0] <= 0.0 and min(limits[1:]) > 0.33
    infinite = fake_result(seed=2, posterior_shift=0.0)
    infinite.fit.draws["tau"][0, 0] = np.inf
    assert told_apart(model, infinite, infinite.observed_draws).lower_limit(0.025) <= 0.0
    right.observed_log_density = right.observed_log_density[:50]
    assert told_apart(model, right, right.observed_draws[:50]) is None
