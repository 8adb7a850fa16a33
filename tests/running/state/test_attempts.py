"""What counts in bounds and tests is chosen neither by success nor by speed; rules that are fail here."""

import heapq
from types import SimpleNamespace

import numpy as np
import pytest

from bread.running.state.attempts import Attempts
from bread.statistics.bounds.alarms import theory_alarm
from tests.support.finite_annealing import FiniteAnnealing, lazy

TEMPERATURES = (2, 4, 8)
SEARCH, CONFIRM, CHAINS = 4, 6, 2
GAP = 0.02  # nats: an attempt has succeeded where reverse and forward log weights differ by less on average
CHECKS = 700


def models():
    """One model of three states and two data sets at each number of temperatures; kernels that move 7 times in 10."""
    prior, likelihood = np.array([0.5, 0.3, 0.2]), np.array([[0.6, 0.4], [0.4, 0.6], [0.2, 0.8]])
    return [FiniteAnnealing(prior, likelihood, np.linspace(0, 1, number), lazy(0.3)) for number in TEMPERATURES]


def annealed(n_simulations, rng):
    """Log weights of exact pairs, the same pairs at every T: forward and reverse (check, simulation, chain)."""
    built = models()
    pairs = built[0].pairs(CHECKS * n_simulations, rng)
    chains = [model.sample(CHECKS * n_simulations, CHAINS, CHAINS, rng, pairs=pairs) for model in built]
    shape = (CHECKS, n_simulations, CHAINS)
    return [(one.forward.reshape(shape), one.reverse.reshape(shape)) for one in chains]


def check(search, confirm, number):
    """Search and confirm as a check does, on weights made beforehand; return attempts and runs.

    The search goes on at more temperatures until it succeeds; then fresh simulations confirm, or it goes on.
    """
    attempts, runs = Attempts(), {}

    def anneal(first, weights, place):
        forward, reverse = (part[number] for part in weights[place])
        simulations = range(first, first + len(forward))
        attempts.plan(simulations, TEMPERATURES[place], "first")
        for row, index in enumerate(simulations):
            runs[index, "forward", TEMPERATURES[place]] = SimpleNamespace(log_weight=forward[row])
            runs[index, "reverse", TEMPERATURES[place]] = SimpleNamespace(log_weight=reverse[row])
        return reverse.mean() - forward.mean() <= GAP

    fresh = SEARCH
    for place in range(len(TEMPERATURES)):
        is_last = place == len(TEMPERATURES) - 1
        if anneal(0, search, place) or is_last:
            if anneal(fresh, confirm[place], place):
                break
            fresh += CONFIRM
    return attempts, runs


def e_value(runs, pairs):
    forward, reverse = ([runs[i, way, number].log_weight for i, number in pairs] for way in ("forward", "reverse"))
    return np.exp(theory_alarm(forward, reverse, [i for i, _ in pairs]).log_e_value)


@pytest.mark.slow
@pytest.mark.statistical
def test_success_does_not_select_what_the_alarm_counts():
    """The e-value over all attempts has mean 1 where all is right; two rules that look at success have more."""
    rng = np.random.default_rng(3)
    search, confirm = annealed(SEARCH, rng), [annealed(CONFIRM, rng) for _ in TEMPERATURES]
    ours, of_last, of_all_runs = [], [], []
    for number in range(CHECKS):
        attempts, runs = check(search, confirm, number)
        pairs, _, _ = attempts.finished_tests(runs)
        ours.append(e_value(runs, pairs))
        of_last.append(
            e_value(runs, [pair for pair in attempts.planned if pair[0] > attempts.planned[-1][0] - CONFIRM])
        )
        of_all_runs.append(e_value(runs, attempts.planned))  # the search at every T that its own outcome asked for
    ours, of_last, of_all_runs = np.array(ours), np.array(of_last), np.array(of_all_runs)

    def error(values):
        return values.std(ddof=1) / np.sqrt(CHECKS)

    assert abs(ours.mean() - 1.0) < 4 * error(ours) < 0.06
    assert of_last.mean() > 1.0 + 4 * error(of_last)
    assert (of_all_runs - ours).mean() > 4 * error(of_all_runs - ours)


def ends_of_tasks(seconds, workers):
    """When each task ends, on so many workers that take them in order."""
    free, ends = [0.0] * workers, []
    for own in seconds:
        ends.append(heapq.heappop(free) + own)
        heapq.heappush(free, ends[-1])
    return np.array(ends)


@pytest.mark.statistical
def test_speed_does_not_select_what_an_interrupted_check_counts():
    """A fifth of data sets are hard, and take 20 times as long. Interrupted at a fixed time, with 4 workers."""
    rng = np.random.default_rng(4)
    counted, all_finished = [], []
    for _ in range(2000):
        is_hard = rng.random(100) < 0.2
        ends = ends_of_tasks(np.where(is_hard, 20.0, 1.0) * rng.uniform(0.8, 1.2, 100), 4)
        attempts = Attempts()
        attempts.plan(range(100), 8, "first")
        done = np.flatnonzero(ends <= 40.0)
        runs = {(int(i), way, 8): None for i in done for way in ("forward", "reverse")}
        first = attempts.finished(runs, 8, range(100))
        if first:
            counted.append(is_hard[first].mean())
            all_finished.append(is_hard[done].mean())
    error = np.std(counted, ddof=1) / np.sqrt(len(counted))
    assert abs(np.mean(counted) - 0.2) < 4 * error < 0.015
    assert np.mean(all_finished) < 0.2 - 0.04  # the control: those that happen to be finished


def test_the_order_is_that_of_the_plan():
    attempts, runs = Attempts(), {}
    attempts.plan([0, 1, 2], 4, "first")
    attempts.plan([0, 1, 2], 8, "first")
    attempts.plan([3, 4], 8, "first")
    for pair in ((0, 4), (1, 4), (2, 4), (0, 8), (2, 8), (3, 8), (4, 8)):
        runs |= {(pair[0], way, pair[1]): object() for way in ("forward", "reverse")}
    assert attempts.finished(runs, 8, [0, 1, 2]) == [0]  # 1 is missing
    assert attempts.finished(runs, 8, [3, 4]) == [3, 4]
    assert attempts.finished_tests(runs)[0] == [(0, 4), (1, 4), (2, 4), (3, 8), (4, 8)]
    del runs[1, "reverse", 4]
    assert attempts.finished_tests(runs)[0] == [(0, 4)]


def test_given_temperatures_all_count_and_a_path_that_was_left_still_does():
    given, runs = Attempts(), {}
    for number in (4, 8):
        given.plan([0, 1], number, "all")
    assert given.tested == [(0, 4), (1, 4), (0, 8), (1, 8)]
    searched = Attempts()
    searched.plan([0, 1], 4, "first")
    runs = {(i, way, number): (i, number) for i in (0, 1) for way in ("forward", "reverse") for number in (4, 8)}
    searched.leave_path(runs)
    assert searched.planned == [] and searched.finished({}, 4, [0, 1]) == []
    searched.plan([2], 4, "first")
    searched.plan([2], 2, "none")
    pairs, forward, _ = searched.finished_tests({(2, way, 4): (2, 4) for way in ("forward", "reverse")})
    assert pairs == [(0, 4), (1, 4), (2, 4)] == forward
