"""The choice of a path where no reference is found at first: two other data sets are looked at before it is dear.

Pilots, gaps and what optimisation finds are given by rule, so that only the choice runs.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from bread.backends.base import Kernel, Simulations
from bread.fitting.search.before_chains import Look
from bread.fitting.search.found_references import Found
from bread.fitting.search.reference_fit import ReferenceFit
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from bread.running.path_choice.chooser import PathChooser
from bread.running.path_choice.costs import PathCost
from bread.running.path_choice.tails import BaseDrawsTask
from bread.running.pilots.tasks import LookTask, PilotTask, RaceResult, RaceTask
from bread.running.pilots.tuning import Pilot
from bread.running.state.plan import AUTO, PathRequest, Plan
from bread.running.state.results import OTHERS, SHARED
from bread.statistics.bounds.goal import Goal

SECOND, THIRD = OTHERS
FAR, NEAR = 20_000.0, 2.0  # gaps (nats) times T
N_LOOK, N_PILOT = 100, 1000  # gradients


class FakeStage:
    """Optimisation finds a reference on the data sets ``found``; any other is fitted to draws and far off.

    ``along_prior`` is the gap times T on the prior path. ``late`` names data sets on which the fit finds what the look
    before it did not. ``at_prior`` is the log ratio at draws from the prior, which 0 says is the posterior.
    """

    def __init__(self, found, *, along_prior=FAR, late=(), found_gap=NEAR, fitted_gap=FAR, at_prior=0.0):
        self.found, self.late, self.along_prior = set(found), set(late), along_prior
        self.found_gap, self.fitted_gap = found_gap, fitted_gap
        self.at_prior = at_prior
        self.looked, self.drawn, self.piloted, self.n_gradients = [], [], [], 0

    def draw_simulations(self, n, simulation):
        self.drawn.append(simulation)
        return Simulations(np.full((n, 2), float(simulation)), {}, {"y": np.full((n, 2), float(simulation))})

    def run_tasks(self, tasks):
        for position, task in reversed(list(enumerate(tasks))):
            yield position, self.result_of(task)

    def result_of(self, task):
        if isinstance(task, LookTask):
            assert task.data["y"][0] == task.simulation, "the first of the data sets that were drawn for this"
            self.looked.append(task.simulation)
            return Look(task.simulation in self.found, N_LOOK)
        if isinstance(task, BaseDrawsTask):
            assert task.path.name == PriorPath.name
            return np.full(task.last - task.first, self.at_prior)
        assert isinstance(task, RaceTask)
        gap = self.times_temperatures(task.pilot) / len(task.betas)
        return RaceResult(gap, float(np.tanh(gap / 2.0)), 40 * len(task.betas), 0, task.pilot)

    def times_temperatures(self, pilot):
        if pilot.fit is None:
            return self.along_prior
        return self.found_gap if pilot.fit.family == "nested" else self.fitted_gap

    def run_pilots(self, tasks):
        assert all(isinstance(task, PilotTask) for task in tasks)
        self.piloted += [(task.request.kind, task.simulation) for task in tasks]
        return [self.pilot(task.request.kind, task.simulation) for task in tasks]

    def pilot(self, kind, simulation):
        rng = np.random.default_rng(-simulation)
        if kind == PriorPath.name:
            spread = np.sqrt(self.along_prior)
            draws = spread * rng.normal(size=(2, 2000))
            return Pilot(Kernel(np.array([0.0, 1.0]), {}, tuple(draws), n_gradients=4000), PriorPath(), *draws)
        is_found = simulation in self.found or simulation in self.late
        draws = (0.3 if is_found or self.fitted_gap == NEAR else 150.0) * rng.normal(size=(2, 2000))
        reference = diagonal(np.zeros(2), np.ones(2))
        fit = ReferenceFit(
            reference, "nested" if is_found else "full", {}, np.zeros((0, 2)), draws[1], {}, np.zeros(2, bool),
            None, n_chains=4, n_gradients=N_PILOT,
        )  # fmt: skip
        kernel = Kernel(np.array([0.0, 1.0]), {}, tuple(draws), n_gradients=4000)
        return Pilot(kernel, ReferencePath(reference), *draws, fit)

    def count(self, phase, n_gradients):
        self.n_gradients += n_gradients

    def phase(self, name, phase, n_chains=None):
        return nullcontext()


def choose(stage, *, n_data_sets=1, max_temperatures=1024, goal=Goal(0.1), may_propose=False):  # noqa: B008
    first = np.full((n_data_sets, 2), float(SHARED))
    extra = Simulations(first, {}, {"y": first})
    return chooser(stage, max_temperatures, goal, may_propose).choose(extra)


def chooser(stage, max_temperatures, goal, may_propose=False):
    plan = Plan(
        simulate_from="fitted", hyperparameters=(), init_steps=0, simulations=20, chains=4, n_temperatures=None,
        max_temperatures=max_temperatures, goal=goal, schedule="adaptive", path=PathRequest(AUTO), tune=200,
        tune_each=False, draws=None, root=1,
    )  # fmt: skip
    layout = SimpleNamespace(dim=2, may_be_scale=np.zeros(2, bool), positions={})
    info = SimpleNamespace(paths=(PriorPath.name, ReferencePath.name), layout=layout, may_propose=may_propose)
    return PathChooser(info, plan, stage)


def test_a_reference_found_on_another_data_set_is_taken():
    """The prior path needs more temperatures than may run; the control finds nothing there either, and takes it."""
    stage = FakeStage({SECOND})
    pilots = choose(stage)
    assert pilots[0].fit is not None and pilots[0].fit.family == "nested"
    assert stage.looked == [SHARED, SECOND]
    assert stage.piloted.index(("reference", SHARED)) < stage.piloted.index(("reference", SECOND))
    stage = FakeStage(set(), along_prior=5000.0)
    assert choose(stage)[0].fit is None, "control"
    assert stage.looked == [SHARED, SECOND, THIRD] and stage.piloted.count(("reference", SHARED)) == 1, "each once"


def test_what_a_look_found_goes_to_the_fit_on_the_same_data():
    """And to no other: of two extra data sets the first was looked at."""
    stage, found = FakeStage({SHARED}), Found({"nested": diagonal(np.zeros(2), np.ones(2))}, is_looked=True)
    look, run_pilots, asked = stage.result_of, stage.run_pilots, []
    stage.result_of = lambda task: look(task)._replace(found=found) if isinstance(task, LookTask) else look(task)
    stage.run_pilots = lambda tasks: asked.extend(tasks) or run_pilots(tasks)
    choose(stage, n_data_sets=2)
    looked = {(task.request.kind, task.simulation): task.request.fit and task.request.fit.looked for task in asked}
    assert looked["reference", SHARED] is found
    assert [one for place, one in looked.items() if place != ("reference", SHARED)] == [None] * (len(looked) - 1)
    assert len(looked) >= 2


def test_where_one_is_found_at_once_nothing_more_is_spent():
    stage, other = FakeStage({SHARED}), FakeStage({SHARED, SECOND})
    for one in (stage, other):
        assert choose(one)[0].fit.family == "nested"
        assert one.looked == [SHARED] and SECOND not in one.drawn
    assert stage.n_gradients == other.n_gradients


@pytest.mark.parametrize(("gap", "walked"), [(NEAR, (False, False)), (5.0, (True, False)), (400.0, (True, True))])
def test_the_prior_path_is_not_walked_where_draws_make_the_reference_cheap(gap, walked):
    """Where the kernel may rest; a near reference needs no walk anyway, a far one is dear whatever is proposed."""
    for may_propose, expected in zip((False, True), walked, strict=True):
        stage = FakeStage({SHARED}, found_gap=gap)
        choose(stage, may_propose=may_propose)
        assert (("prior", SHARED) in stage.piloted) == expected


@pytest.mark.parametrize("at_prior", [0.0, -500.0])
@pytest.mark.parametrize("gap", [5.0, 400.0])
def test_the_prior_path_is_not_walked_where_it_is_longer_whatever_it_is(gap, at_prior):
    """No path between laws that do not overlap is shorter than pi: T of 10 over the target. Where they do it may be."""
    stage = FakeStage({SHARED}, found_gap=gap, at_prior=at_prior)
    choose(stage)
    assert (("prior", SHARED) in stage.piloted) == (gap == 400.0 or at_prior == 0.0)


@pytest.mark.parametrize(("along_prior", "looked"), [(20.0, [SHARED]), (FAR, [SHARED, SECOND])])
def test_others_are_looked_at_only_where_the_prior_path_is_out_of_reach(along_prior, looked):
    stage = FakeStage({SECOND}, along_prior=along_prior)
    found = choose(stage)
    assert stage.looked == looked
    assert (found[0].fit is None) == (looked == [SHARED])


def test_the_largest_temperatures_say_what_is_out_of_reach():
    near, far = FakeStage({SECOND}, along_prior=100.0), FakeStage({SECOND}, along_prior=100.0)
    choose(near, max_temperatures=4096)
    choose(far, max_temperatures=64)
    assert near.looked == [SHARED] and far.looked == [SHARED, SECOND]


def test_a_path_that_wins_out_of_reach_is_no_end_of_the_search():
    """The look finds a reference, the pilots do not: what is fitted to draws loses, and another data set is tried."""
    stage = FakeStage({SECOND})
    look = stage.result_of

    def misled(task):
        return Look(True, N_LOOK) if isinstance(task, LookTask) else look(task)

    stage.result_of = misled
    assert choose(stage)[0].fit.family == "nested"
    assert stage.piloted.index(("reference", SHARED)) < stage.piloted.index(("reference", SECOND))
    stage = FakeStage(set(), along_prior=5000.0)
    look = stage.result_of
    stage.result_of = misled
    assert choose(stage)[0].fit is None, "control: the other reference is as poor, and the prior is taken"


def test_a_third_data_set_is_looked_at_where_what_wins_is_out_of_reach():
    """And not before: pilots on the first find what a look does not, as often as not."""
    stage = FakeStage({THIRD})
    assert choose(stage)[0].fit.family == "nested"
    assert stage.looked == [SHARED, SECOND, THIRD]
    kinds = [one for one in stage.piloted if one[0] == "reference"]
    assert kinds == [("reference", SHARED), ("reference", THIRD)]


def test_what_the_pilots_find_after_all_needs_no_other_data_set():
    """Nothing is found at the look; the pilots, which know draws of the posterior, find it on the first data."""
    stage = FakeStage(set(), late={SHARED})
    assert choose(stage)[0].fit.family == "nested"
    assert stage.looked == [SHARED]


def test_a_reference_fitted_to_draws_that_is_near_needs_none_either():
    """However heavy its tails look, and though one is found elsewhere; where it is far, the control, it does."""
    for gap, looked in ((NEAR, [SHARED]), (FAR, [SHARED, SECOND])):
        stage = FakeStage({SECOND}, fitted_gap=gap)
        found = choose(stage)
        assert stage.looked == looked
        assert found[0].fit.family == ("full" if gap == NEAR else "nested")


def test_as_many_other_data_sets_as_there_were():
    stage = FakeStage({SECOND, SECOND - 1, SECOND - 2})
    assert len(choose(stage, n_data_sets=3)) == 3
    piloted = [simulation for kind, simulation in stage.piloted if kind == "reference"]
    assert piloted == [first - i for first in (SHARED, SECOND) for i in range(3)]


@pytest.mark.parametrize(("searched", "raced"), [(4096, {256, 1024, 4096}), (1024, {256, 1024}), (64, {256})])
def test_a_path_that_lost_races_again_as_far_as_the_search_has_been(searched, raced):
    """It looks a hundred times cheaper after one round; that takes the fall of its gap for ideal, and two are run."""
    stage, found = FakeStage(set(), along_prior=500.0, fitted_gap=4000.0), set()
    result_of = stage.result_of
    stage.result_of = lambda task: (isinstance(task, RaceTask) and found.add(len(task.betas))) or result_of(task)
    again, first = chooser(stage, 4096, Goal(0.1)), np.full((1, 2), float(SHARED))
    assert again.choose(Simulations(first, {}, {"y": first}))[0].fit is None and found == {64}
    found.clear()
    dear = PathCost(PriorPath.name, True, 1e8, 10.0, 0.0, 8)
    assert again.look_again(dear, searched) is not None and found == raced
