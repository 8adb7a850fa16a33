"""A race between paths: a few more simulated data sets annealed along each, at more and more temperatures.

A gap of a hundred nats says little about where the gap reaches one: a reference that lies across a symmetry of the
posterior starts as near as the prior and gains less from every temperature. So T grows until the gaps are near the
target, or one path is far ahead; what is left is extrapolated at the rate at which each path's own gap has fallen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bread.backends.base import Simulations
from bread.paths import schedules
from bread.running.path_choice import costs as path_choice
from bread.running.path_choice.costs import PathCost, Round
from bread.running.pilots.stage import Stage
from bread.running.pilots.tasks import RaceResult, RaceTask
from bread.running.pilots.tuning import Pilot
from bread.running.state.plan import FIRST_TEMPERATURES, PathRequest, Plan
from bread.running.state.results import RACE

SIMULATIONS = 4  # extra data sets on which the paths race
FIRST_ROUND = 64  # most temperatures of the first round
GROWTH = 4  # of the temperatures from round to round
NEAR = 4.0  # a gap of at most this times the target is near enough to extrapolate
MARGIN = 5.0  # paths predicted to cost more than this times the cheapest do not run
ENTRY = 2.0  # the same for a path that was left out of the first round
SHARE = 0.1  # most of the predicted cost of the check that a further round of a path may cost; or a first one, of
# a path that looks dear: what pilots predict of a reference whose chains are slow is off by factors of forty


@dataclass
class Candidate:
    """A path in the race.

    Attributes
    ----------
    cost : PathCost
        As predicted from pilots; after a round, as measured.
    request : PathRequest
        What is fitted to every data set.
    prepare : callable
        Returns pilots on the extra data sets of the choice; called before the first round, if there is one.
    pilots : list of Pilot
        Those pilots, once there.
    own : list of Pilot
        Along the path of each data set of the race, after the first round.
    rounds : list of Round
        What was measured.
    screened : list of Pilot
        Pilots in short steps along it, which are enough to race: the thorough ones then run where it wins.
    """

    cost: PathCost
    request: PathRequest
    prepare: Callable[[], list[Pilot]]
    pilots: list[Pilot] = field(default_factory=list)
    own: list[Pilot] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    screened: list[Pilot] = field(default_factory=list)


class Race:
    """Runs candidates round by round; their ``cost`` is what was measured in the end.

    The path predicted to be the cheapest runs at least once: pilots that all missed a mode predict too little. Where
    others have run elsewhere, up to ``known`` temperatures, it runs up to these while it looks cheaper, and twice to
    win: how fast the gap of one round falls is taken to be ideal.
    """

    def __init__(
        self, plan: Plan, stage: Stage, candidates: Sequence[Candidate], rivals: Sequence[PathCost] = (), known: int = 0
    ) -> None:
        self._plan = plan
        self._stage = stage
        self._candidates = [candidate for candidate in candidates if path_choice.may_serve(candidate.cost, plan.goal)]
        # paths whose cost is known
        self._rivals = [cost for cost in rivals if path_choice.may_serve(cost, plan.goal)]
        self._known = known
        self._extra: Simulations | None = None

    def run(self) -> None:
        """Run until the race is decided."""
        if len(self._candidates) + len(self._rivals) < 2:
            return
        while runners := [candidate for candidate in self._contenders() if self._runs_on(candidate)]:
            for candidate in runners:
                self._run_round(candidate, self._next(candidate))

    def try_out(self) -> None:
        """Run one round of every path: pilots that all missed a mode predict too little."""
        for candidate in self._candidates:
            self._run_round(candidate, self._next(candidate))

    def _cheapest(self) -> float:
        return min(cost.total for cost in [*self._rivals, *(candidate.cost for candidate in self._candidates)])

    def _contenders(self) -> list[Candidate]:
        cheapest, has_begun = self._cheapest(), any(candidate.rounds for candidate in self._candidates)
        return [
            candidate
            for candidate in self._candidates
            if candidate.cost.total <= cheapest * (MARGIN if candidate.rounds or not has_begun else ENTRY)
            or self._is_cheap_to_try(candidate)
        ]

    def _is_cheap_to_try(self, candidate: Candidate) -> bool:
        """Return whether a path that has not run, and whose pilots are there, costs little to try, however it looks."""
        cost = candidate.cost
        price = SIMULATIONS * (cost.per_data_set + 2 * self._next(candidate) * cost.per_transition)
        check = self._plan.check_simulations * self._cheapest()
        return bool(candidate.pilots) and not candidate.rounds and price < SHARE * check

    def _next(self, candidate: Candidate) -> int:
        if not candidate.rounds:
            return max(FIRST_TEMPERATURES, min(round(candidate.cost.n_temperatures), FIRST_ROUND))
        return min(GROWTH * candidate.rounds[-1].n_temperatures, self._plan.largest_temperatures)

    def _runs_on(self, candidate: Candidate) -> bool:
        """Return whether this path is undecided: it has a rival, its gap is far from the target, T may grow."""
        if not candidate.rounds:
            return True
        n_temperatures, last = self._next(candidate), candidate.rounds[-1]
        if n_temperatures <= self._known or (self._rivals and len(candidate.rounds) == 1):
            limit, is_open = self._plan.target, self._is_best(candidate)
        else:
            limit, is_open = NEAR * self._plan.target, self._has_rival(candidate)
        is_far = limit < last.gap < float("inf")
        check = self._plan.check_simulations * self._cheapest()
        price = 2 * SIMULATIONS * n_temperatures * candidate.cost.per_transition
        return is_open and is_far and n_temperatures > last.n_temperatures and price < SHARE * check

    def _has_rival(self, candidate: Candidate) -> bool:
        near = sum(cost.total < MARGIN * candidate.cost.total for cost in self._rivals)
        return len(self._contenders()) + near > 1

    def _is_best(self, candidate: Candidate) -> bool:
        costs = [candidate.cost, *self._rivals, *(other.cost for other in self._candidates if other is not candidate)]
        return path_choice.best(costs, self._plan.goal) is candidate.cost

    def _run_round(self, candidate: Candidate, n_temperatures: int) -> None:
        plan = self._plan
        extra = self._extra = self._extra or self._stage.draw_simulations(SIMULATIONS, RACE)
        if not (candidate.pilots or candidate.screened):
            candidate.pilots = candidate.prepare()
        pilots = candidate.pilots or candidate.screened
        betas = schedules.schedule("adaptive", n_temperatures, path_choice.path_length(pilots))
        is_first, shared = not candidate.own, [pilot.without_draws() for pilot in pilots]
        tasks = [
            RaceTask(
                RACE - index, extra.data_of(index), candidate.request, plan.root, plan.tune,
                shared[index % len(shared)] if is_first else candidate.own[index],
                is_first, plan.tune_each, betas, extra.states[index],
            )
            for index in range(len(extra))
        ]  # fmt: skip
        with self._stage.phase(f"try {candidate.cost.kind}, T = {n_temperatures}", "race", len(tasks)):
            runs: list[RaceResult] = [run for _, run in sorted(self._stage.run_tasks(tasks), key=lambda item: item[0])]
        self._stage.count("race", sum(run.n_gradients + run.n_other_gradients for run in runs))
        candidate.own = [run.pilot for run in runs]
        per_transition = sum(run.n_gradients for run in runs) / (2 * len(runs) * (n_temperatures - 1))
        gaps, errors = np.array([run.gap for run in runs]), np.array([run.error for run in runs])
        gap = path_choice.deciding_gap(gaps, errors, plan.goal, 1, plan.search_simulations, plan.chains)
        candidate.rounds.append(Round(n_temperatures, gap, per_transition))
        candidate.cost = path_choice.measured(candidate.cost, candidate.rounds, plan.target)
