"""The race between paths: it goes on until gaps are near the target, and extrapolates at the rate they fall."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bread.backends.base import Kernel, Simulations
from bread.paths.kinds import PriorPath
from bread.running.path_choice import costs as path_choice
from bread.running.path_choice.costs import PathCost, Round
from bread.running.path_choice.race import Candidate, Race
from bread.running.pilots.tasks import RaceResult
from bread.running.pilots.tuning import PathRequest, Pilot
from bread.running.state.plan import Plan
from bread.statistics.bounds import bounds
from bread.statistics.bounds.certificate import error_by_simulation
from bread.statistics.bounds.goal import Goal, gap_of_error

IN_NATS = Goal(0.1, 1.0)


@pytest.mark.parametrize("rate", [0.35, 0.8, 1.0])
def test_the_extrapolation_is_exact_for_a_power(rate):
    cost = PathCost("prior", True, 10.0, 5.0, 0.0, 8)
    rounds = [Round(n, 100.0 * (n - 1.0) ** -rate, 5.0) for n in (65, 257)]
    assert path_choice.rate_of_fall(rounds) == pytest.approx(rate)
    wanted = path_choice.measured(cost, rounds, 0.2).n_temperatures
    assert 100.0 * (wanted * 256 / 257) ** -rate == pytest.approx(0.2)


@pytest.mark.parametrize(("shift", "log_evidence"), [(0.0, 0.0), (1.0, 0.0), (2.0, -300.0)])
def test_the_shortest_length_between_normal_distributions(shift, log_evidence):
    """2 arccos exp(-shift^2 / 8) exactly (Hellinger affinity), to 4 standard errors; a path by tempering is longer."""
    n, x = 100_000, np.random.default_rng(1).normal(size=100_000)
    roots = np.exp((shift * x - shift**2 / 2) / 2)
    length = path_choice.shortest_length(shift * x - shift**2 / 2 + log_evidence, log_evidence)
    assert np.cos(length / 2) == pytest.approx(np.exp(-(shift**2) / 8), abs=4 * roots.std() / np.sqrt(n) + 1e-12)
    assert length <= shift + 0.01  # the standard deviation of the log ratio, which is the same all along


def test_densities_that_do_not_overlap_are_as_far_apart_as_can_be():
    assert path_choice.shortest_length(np.array([-900.0, np.nan, -np.inf]), 0.0) == pytest.approx(np.pi)


def test_the_rate_at_its_limits():
    def rate(*gaps):
        return path_choice.rate_of_fall([Round(4**k, gap, 1.0) for k, gap in enumerate(gaps, 1)])

    assert rate(100.0) == 1.0, "one round: as with an ideal kernel"
    assert rate(100.0, 10.0) == 1.0, "no path falls faster for long"
    assert rate(100.0, -0.1) == 1.0
    assert rate(100.0, 101.0) == rate(100.0, np.inf) == path_choice.SLOWEST


def test_expected_upper_is_the_interval_of_a_search():
    gaps = np.random.default_rng(1).normal(2.0, 1.0, size=10)
    log_weights = np.tile(gaps[:, None], 4)
    interval = bounds.jeffreys_bound(np.zeros((10, 4)), log_weights, 0.95)
    half_width = interval.estimate - interval.lower
    assert path_choice.expected_upper(gaps, 10) == pytest.approx(gaps.mean() + half_width)
    assert path_choice.expected_upper(gaps, 10, 4) == pytest.approx(gaps.mean() + half_width / 2)
    assert path_choice.expected_upper(np.array([1.0, np.inf]), 10) == np.inf


# ---- where V decides ------------------------------------------------------------------------------------------


def test_the_gap_of_an_error_is_that_of_gaussian_log_weights():
    """V of 20,000 data sets of Gaussian log weights with that gap, to 4 standard errors and 4% of first order."""
    rng = np.random.default_rng(2)
    for error, n_chains in ((0.1, 1), (0.1, 4), (0.3, 4)):
        s = np.sqrt(gap_of_error(error, n_chains))
        forward = rng.normal(-(s**2) / 2.0, s, (20_000, n_chains))
        found = error_by_simulation(forward, rng.normal(s**2 / 2.0, s, (20_000, 1)))
        assert abs(found.mean() - error) < 4.0 * found.std() / np.sqrt(len(found)) + 0.04 * error
        narrow = error_by_simulation(0.9 * forward, 0.9 * rng.normal(s**2 / 2.0, s, (20_000, 1)))
        assert abs(narrow.mean() - error) > 4.0 * narrow.std() / np.sqrt(len(narrow)) + 0.04 * error, "control"


def test_one_data_set_that_is_far_off_counts_as_one():
    goal, gaps = Goal(0.1), np.array([0.01, 0.02, 0.01, 60.0])
    errors = np.tanh(gaps / 2.0)
    found = path_choice.deciding_gap(gaps, errors, goal, 1, 10, 4)
    assert found == pytest.approx(gap_of_error(path_choice.expected_upper(errors, 10, 4), 1)) and 0.1 < found < 2.0
    assert path_choice.deciding_gap(gaps, errors, Goal(0.1, 1.0), 1, 10, 4) == path_choice.expected_upper(gaps, 10, 4)
    far = np.array([40.0, 50.0, 45.0, 60.0])
    assert path_choice.deciding_gap(far, np.tanh(far / 2.0), goal, 1, 10, 4) == path_choice.expected_upper(far, 10, 4)
    nowhere = np.array([0.1, np.inf])
    assert path_choice.deciding_gap(nowhere, nowhere, goal, 1, 10) == np.inf, "no path on one of them"


def test_a_path_with_one_far_data_set_wins_over_one_that_is_far_on_all():
    """Gaps of 60 nats on one of four data sets, whatever T, and of 8 falling slowly on all: V is 0.3 against 1."""
    one = np.array([0.0, 0.0, 0.0, 60.0])
    gaps = {"reference": lambda n: one, "prior": lambda n: 8.0 * (64.0 / n) ** 0.3}
    by_error = race(gaps, {"reference": 64.0, "prior": 64.0}, goal=Goal(0.1))[0]
    assert by_error["reference"].total < by_error["prior"].total
    by_gap = race(gaps, {"reference": 64.0, "prior": 64.0}, goal=Goal(0.1, Goal(0.1).gap(4)))[0]
    assert by_gap["reference"].total > by_gap["prior"].total, "control"


# ---- paths along which B has no mean ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "times_dearer", "taken"),
    [
        (Goal(0.1), 1.0, "prior"),
        (Goal(0.1), 2.9, "prior"),
        (Goal(0.1), 3.1, "reference"),
        (Goal(0.1), 100.0, "reference"),
        (IN_NATS, 100.0, "prior"),
    ],
)
def test_where_v_decides_a_mean_of_b_is_worth_three_times_the_cost(goal, times_dearer, taken):
    costs = [PathCost(kind, kind == "prior", 10.0, 1.0, 0.0, 8) for kind in ("reference", "prior")]
    costs[1] = replace(costs[1], n_temperatures=10.0 * times_dearer)
    assert path_choice.best(costs, goal).kind == taken
    assert path_choice.best(costs[::-1], goal).kind == taken


@pytest.mark.parametrize("goal", [Goal(0.1), IN_NATS])
def test_the_cheapest_is_taken_where_b_has_a_mean_nowhere(goal):
    costs = [PathCost(kind, False, length, 1.0, 0.0, 8) for kind, length in (("reference", 10.0), ("prior", 30.0))]
    assert path_choice.best(costs, goal).kind == "reference"


def test_where_v_decides_paths_race_whether_b_has_a_mean_or_not():
    """A reference that is predicted to need 64 temperatures, and gains nothing from more, is found out by the race."""
    far = {"prior": lambda n: 7000.0 / n, "reference": lambda n: 500.0}
    predicted = {"prior": 6000.0, "reference": 64.0}
    costs, raced = race(far, predicted, goal=Goal(0.1), without_mean={"reference"})
    assert {kind for kind, *_ in raced} == {"prior", "reference"}
    assert path_choice.best(list(costs.values()), Goal(0.1)).kind == "prior"
    costs, raced = race(far, predicted, without_mean={"reference"})
    assert raced == [], "control: where B decides only one path is left"
    assert costs["reference"].total < costs["prior"].total


class FakeTrack:
    """Gaps by formula in place of chains."""

    def __init__(self, gaps):
        self.gaps = gaps
        self.raced = []

    def draw_simulations(self, n, simulation):
        return Simulations(np.zeros((n, 1)), {}, {"y": np.zeros((n, 1))})

    def run_tasks(self, tasks):
        kind, n_temperatures = tasks[0].request.kind, len(tasks[0].betas)
        self.raced.append((kind, n_temperatures, tasks[0].is_first))
        for position in reversed(range(len(tasks))):
            gap = float(np.broadcast_to(self.gaps[kind](n_temperatures), len(tasks))[position])
            spent = 2 * 10 * (n_temperatures - 1)
            yield (
                position,
                RaceResult(gap, float(np.tanh(gap / 2.0)), spent, 7 if tasks[0].is_first else 0, tasks[0].pilot),
            )

    def count(self, phase, n_gradients):
        pass

    def phase(self, name, phase, n_chains=None):
        return nullcontext()


def pilot():
    draws = np.random.default_rng(0).normal(size=(2, 100))
    return Pilot(Kernel(np.array([0.0, 1.0]), {}, tuple(draws)), PriorPath(), draws[0], draws[1])


def fake_plan(max_temperatures=4096, simulations=20, goal=IN_NATS):
    plan = SimpleNamespace(
        max_temperatures=max_temperatures, n_temperatures=None, simulations=simulations, root=1, tune=10,
        target=goal.gap(4), goal=goal,
        tune_each=False, chains=4, search_simulations=10, check_simulations=1.5 * simulations,
        largest_temperatures=max_temperatures,
    )  # fmt: skip
    assert all(hasattr(Plan, name) or name in Plan.__dataclass_fields__ for name in vars(plan))
    return plan


def race(
    gaps, predicted, rivals=(), max_temperatures=4096, simulations=20, goal=IN_NATS, without_mean=frozenset(),
    prepared=frozenset(), fitting=0.0, known=0,
):  # fmt: skip
    track, plan = FakeTrack(gaps), fake_plan(max_temperatures, simulations, goal)
    candidates = [
        Candidate(
            PathCost(kind, kind not in without_mean, n_temperatures, 10.0, fitting, 8),
            PathRequest(kind),
            lambda: [pilot()],
            [pilot()] if kind in prepared else [],
        )
        for kind, n_temperatures in predicted.items()
    ]
    Race(plan, track, candidates, rivals, known).run()
    return {candidate.cost.kind: candidate.cost for candidate in candidates}, track.raced


SLOW = {"prior": lambda n: 7000.0 / n, "reference": lambda n: 100.0 * (64.0 / n) ** 0.5}


def test_a_path_that_gains_little_from_temperatures_loses():
    costs, raced = race(SLOW, {"prior": 6000.0, "reference": 6000.0})
    assert costs["prior"].n_temperatures == pytest.approx(7000.0, rel=0.05)
    assert costs["reference"].total > 5 * costs["prior"].total
    assert raced[:2] == [("prior", 64, True), ("reference", 64, True)], "in the first round the slow path is ahead"
    assert all(not is_first for *_, is_first in raced[2:]), "paths are fitted once"
    early = race(SLOW, {"prior": 6000.0, "reference": 6000.0}, max_temperatures=64)[0]
    assert early["reference"].total < early["prior"].total, "control: one round alone takes the wrong path"


def test_a_race_ends_where_it_is_decided():
    near = {"prior": lambda n: 60.0 / n, "reference": lambda n: 50.0 / n}
    assert [n for _, n, _ in race(near, {"prior": 50.0, "reference": 50.0})[1]] == [50, 50]
    far = {"prior": lambda n: 7000.0 / n, "reference": lambda n: 500.0 / n}
    assert [n for _, n, _ in race(far, {"prior": 500.0, "reference": 600.0})[1]] == [64, 64]
    assert race(SLOW, {"prior": 6000.0, "reference": 6e4})[1] == [("prior", 64, True)], "no rival"
    assert race(SLOW, {"prior": 6000.0})[1] == [], "nothing to choose"
    infinite = {"prior": lambda n: np.inf, "reference": lambda n: np.inf}
    assert len(race(infinite, {"prior": 500.0, "reference": 600.0})[1]) == 2


def test_a_path_that_looked_decisively_cheaper_is_tried():
    missed = {"prior": lambda n: 1000.0 / n, "reference": lambda n: 400.0 * (8.0 / n) ** 0.3}
    costs, raced = race(missed, {"reference": 8.0, "prior": 1000.0})
    assert raced[0] == ("reference", 8, True) and ("prior", 64, True) in raced, "a mode that pilots missed"
    assert costs["prior"].total < costs["reference"].total
    dearer = {"prior": lambda n: 50.0 / n, "reference": lambda n: 16.0 / n}
    assert race(dearer, {"reference": 8.0, "prior": 50.0})[1] == [("reference", 8, True)], (
        "dearer, and yet the cheapest"
    )
    found = {"prior": lambda n: 1000.0 / n, "reference": lambda n: 8.0 / n}
    assert race(found, {"reference": 8.0, "prior": 1000.0})[1] == [("reference", 8, True)]


def test_a_path_that_looks_forty_times_dearer_is_tried_where_that_costs_little():
    """As of a banana: slow chains of one pilot predicted 900,000 gradients a data set where 25,000 were enough."""
    good = {"prior": lambda n: 1000.0 / n, "reference": lambda n: 1.0 / n}
    predicted = {"prior": 1000.0, "reference": 40_000.0}
    costs, raced = race(good, predicted, prepared={"reference"})
    assert ("reference", 64, True) in raced and costs["reference"].total < costs["prior"].total
    costs, raced = race(good, predicted)
    assert [kind for kind, *_ in raced] == ["prior"], "control: its pilots would have to run first, which costs more"
    assert costs["prior"].total < costs["reference"].total
    poor = {"prior": lambda n: 1000.0 / n, "reference": lambda n: 1e5 / n}
    costs, raced = race(poor, predicted, prepared={"reference"})
    assert raced.count(("reference", 64, True)) == 1, "tried once"
    assert costs["prior"].total < costs["reference"].total
    dear = race(good, predicted, prepared={"reference"}, simulations=1, fitting=1e5)[1]
    assert [kind for kind, *_ in dear] == ["prior"], "its fits would cost more than a tenth of a small check"


def test_a_path_that_was_screened_races_without_thorough_pilots():
    """They run where it wins; the control has none at all, and runs them first."""
    prepared = []
    for screened in ([pilot()], []):
        track, plan = FakeTrack({"prior": lambda n: 50.0 / n}), fake_plan()
        cost = PathCost("prior", True, 50.0, 10.0, 0.0, 8)
        candidate = Candidate(
            cost, PathRequest("prior"), lambda kept=screened: prepared.append(len(kept)) or [pilot()], screened=screened
        )
        Race(plan, track, [candidate]).try_out()
        assert track.raced == [("prior", 50, True)] and bool(candidate.pilots) == (not screened)
    assert prepared == [0]


def test_a_path_whose_gaps_differ_widely_costs_more_than_its_mean_gap_says():
    mean = np.array([0.0, 0.0, 0.0, 8.0])
    wide = {"prior": lambda n: mean * 32.0 / n, "reference": lambda n: 72.0 / n}
    costs, _ = race(wide, {"prior": 32.0, "reference": 32.0})
    assert costs["reference"].total < costs["prior"].total, "the search ends where the interval is below the target"


def test_rivals_of_known_cost():
    known = PathCost("prior", True, 7000.0, 10.0, 0.0, 8)
    costs, raced = race(SLOW, {"reference": 6000.0}, [known])
    assert [n for _, n, _ in raced][:2] == [64, 256] and costs["reference"].total > 5 * known.total


def test_rounds_cost_a_share_of_the_check():
    equal = {"prior": lambda n: 30000.0 / n, "reference": lambda n: 30000.0 / n}

    def largest(simulations):
        return max(n for _, n, _ in race(equal, {"prior": 3e4, "reference": 3e4}, simulations=simulations)[1])

    for simulations in (1, 5, 20):
        assert 8 * largest(simulations) < 0.1 * 1.5 * simulations * 8 * 30000.0
    assert largest(1) == 4096 < 30000.0 / 4.0 and largest(20) == 4096, "the largest T that is allowed"
    hopeless = {"prior": lambda n: 1e9, "reference": lambda n: 1e9}
    assert max(n for _, n, _ in race(hopeless, {"prior": 3e2, "reference": 3e2}, simulations=1)[1]) == 4096
    few = race(equal, {"prior": 30.0, "reference": 30.0}, [PathCost("another", True, 100.0, 10.0, 0.0, 8)])[1]
    assert [n for _, n, _ in few] == [30, 30], "stopped by a cheap rival"


def test_a_path_races_as_far_as_its_rival_has_been_while_it_looks_cheaper():
    """A gap of 0.8 nats at 64 temperatures and 0.65 at 256: one round takes the fall from there for ideal."""
    slow = {"prior": lambda n: 0.8 * (64.0 / n) ** 0.15}
    goal = Goal(0.1, 0.3)
    rival = PathCost("reference", True, 2000.0, 10.0, 0.0, 8)
    costs, raced = race(slow, {"prior": 64.0}, [rival], goal=goal, known=1024)
    assert [n for _, n, _ in raced] == [64, 256] and costs["prior"].total > rival.total
    costs, raced = race(slow, {"prior": 64.0}, [rival], goal=goal, known=32)
    assert [n for _, n, _ in raced] == [64, 256] and costs["prior"].total > rival.total, "nothing wins by one round"
    costs, raced = race(slow, {"prior": 64.0}, [replace(rival, n_temperatures=1e5)], goal=goal, known=32)
    assert [n for _, n, _ in raced] == [64, 256] and costs["prior"].total < 1e5 * 10.0 * 8, "a far dearer rival, by two"
    good = {"prior": lambda n: 19.0 / n}
    costs, raced = race(good, {"prior": 64.0}, [rival], goal=goal, known=1024)
    assert [n for _, n, _ in raced] == [64] and costs["prior"].total < rival.total, "near enough"
    poor = {"prior": lambda n: 1000.0 / n}
    costs, raced = race(poor, {"prior": 64.0}, [replace(rival, n_temperatures=100.0)], goal=goal, known=1024)
    assert [n for _, n, _ in raced] == [64] and costs["prior"].total > 800.0 * 10.0, "dearer already"
