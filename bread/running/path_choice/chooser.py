"""Choose the path: pilots along the candidates on extra simulated data sets, and a race between those of like cost.

The data sets serve for the choice (and for what pilots freeze) alone; the measured simulations are others. Whether a
reference is found is a matter of the data set too: where none was, and what is left would need more temperatures than
may run, two others are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from bread.backends.base import FloatArray, ModelInfo, Simulations
from bread.errors import DensityError
from bread.fitting.gaussian.families import FAMILIES
from bread.fitting.search.found_references import (
    N_CHAINS,
    SHORT_CHAINS,
    SHORT_SELECTION_DRAWS,
    FitRequest,
    Found,
)
from bread.fitting.symmetries.find_rotations import rotatable
from bread.paths.kinds import PriorPath, ReferencePath
from bread.running.path_choice import costs as path_choice
from bread.running.path_choice.costs import PathCost
from bread.running.path_choice.proposing import with_proposals
from bread.running.path_choice.race import Candidate, Race
from bread.running.path_choice.tails import BaseDrawsTask, with_decided_tails
from bread.running.pilots.stage import Stage
from bread.running.pilots.tasks import LookTask, PilotTask
from bread.running.pilots.tuning import Pilot
from bread.running.state.ledger import in_order
from bread.running.state.plan import AUTO, FIRST_TEMPERATURES, PathRequest, Plan
from bread.running.state.results import OTHERS, SHARED
from bread.statistics.bounds.bounds import log_mean_exp

SCREENING = 2  # a first walk along the prior path takes the steps of a pilot divided by this
CHEAP = 2.0  # a check that costs less than this many looks at another path looks at none
FEWEST_STEPS = 10  # of an adaptation that is cut short
BEYOND = 4  # times the T that was raced, from which on a search looks at the other path again
OVERLAP_DRAWS = 400  # of the prior: where it overlaps the posterior by 0.1 they show that to half of it
USUAL_KNOTS = 10  # of a walk along a path that has not been walked


class _Extra(NamedTuple):
    """Extra simulated data sets; ``first`` names the random numbers of the first one.

    ``looked``: what a look found on that one.
    """

    first: int
    simulations: Simulations
    looked: Found | None = None


class PathChooser:
    """Chooses a path and returns its pilots; ``costs`` are the predicted gradient evaluations per data set."""

    def __init__(self, info: ModelInfo, plan: Plan, stage: Stage) -> None:
        self.costs: dict[str, float] = {}
        self.chosen: PathCost | None = None  # of the path whose pilots were returned
        self._info = info
        self._plan = plan
        self._stage = stage
        self._errors: list[DensityError] = []
        self._extra: _Extra | None = None
        self._others = list(OTHERS)  # data sets that have not been looked at
        self._skipped: str | None = None  # the kind of path that was not looked at
        self._left: Candidate | None = None  # the path that lost
        self._raced_temperatures = 0.0  # T up to which is known what the path that won costs

    def request(self, kind: str) -> PathRequest:
        """Return what a pilot is asked to fit for this kind of path."""
        if kind != ReferencePath.name:
            return PathRequest(kind)
        if self._plan.path.reference is not None:
            return self._plan.path
        layout = self._info.layout
        is_shared = not self._plan.tune_each
        fit = FitRequest(
            layout.dim, layout.may_be_scale, self._plan.tune, is_shared=is_shared, rotatable=rotatable(layout),
        )  # fmt: skip
        return PathRequest(kind, None, fit)

    def quick(self, request: PathRequest) -> PathRequest:
        """Return the request with a fit short enough to be made for every data set."""
        if request.fit is None:
            return request
        steps = max(FEWEST_STEPS, self._plan.tune // 2)
        fit = replace(
            request.fit, n_steps=steps, n_chains=SHORT_CHAINS, n_selection_draws=SHORT_SELECTION_DRAWS, is_shared=False
        )
        return replace(request, fit=fit)

    def choose(self, extra: Simulations) -> list[Pilot]:
        """Return the pilots, one a data set of ``extra``, along the path asked for or the cheapest one.

        Raises
        ------
        DensityError
            No pilot could run along any path.
        """
        asked = self._plan.path.kind
        self._extra = _Extra(SHARED, extra)
        if asked != AUTO or len(self._info.paths) == 1:
            return self._required(self._info.paths[0] if asked == AUTO else asked)
        reference = self._first_reference()  # the model has both paths
        if reference is not None and (
            self._is_cheaper_than_looking(self._with_proposals(reference)) or self._is_cheaper_than_any(reference)
        ):
            self.costs, self.chosen = {reference.cost.kind: reference.cost.total}, reference.cost
            self._skipped = PriorPath.name
            return reference.pilots
        prior = self._screened_prior()
        if reference is None:
            if prior is not None and self._is_cheap(prior.cost):
                self._skipped = ReferencePath.name
                return self._required(PriorPath.name)
            reference = self._fitted_reference()
        if reference is None:
            return self._required(PriorPath.name)
        return self._cheapest([reference] if prior is None else [reference, prior])

    def _cheapest(self, candidates: list[Candidate]) -> list[Pilot]:
        """Return the pilots of the path that wins the race.

        Where it is out of reach, and no reference that optimisation found, one that is found on other data sets enters
        the race, in the place of another reference.
        """
        chosen = self._winner(candidates)
        if not _is_found(chosen) and self._is_out_of_reach(chosen.cost):
            another = None
            while another is None and self._others:
                another = self._reference_elsewhere()
            if another is not None:
                prior = [candidate for candidate in candidates if candidate.cost.kind == PriorPath.name]
                is_prior = chosen.cost.kind == PriorPath.name
                candidates = [another if is_prior else self._best([another, chosen]), *prior]
                chosen = self._winner(candidates)
        self.costs = {candidate.cost.kind: candidate.cost.total for candidate in candidates}
        self._left = next((candidate for candidate in candidates if candidate is not chosen), None)
        raced = chosen.rounds[-1].n_temperatures if chosen.rounds else chosen.cost.n_temperatures
        self._raced_temperatures = float(raced)
        pilots, self.chosen = chosen.pilots or chosen.prepare(), chosen.cost
        return pilots

    def _winner(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the path that wins the race."""
        Race(self._plan, self._stage, candidates).run()
        return self._best(candidates)

    def _best(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the path that is the cheapest, as far as is known."""
        best = path_choice.best([candidate.cost for candidate in candidates], self._plan.goal)
        return next(candidate for candidate in candidates if candidate.cost is best)

    def _is_out_of_reach(self, cost: PathCost) -> bool:
        """Return whether a path is predicted to need more temperatures than may run; the prior's, to have no mean of B.

        A reference that was fitted to draws may be good where tails of a few draws look heavy.
        """
        has_no_mean = cost.kind == PriorPath.name and not cost.is_reliable
        return has_no_mean or cost.n_temperatures > self._plan.largest_temperatures

    def may_race_again(self, n_temperatures: int) -> bool:
        """Return whether a search has gone so far beyond the T at which paths raced that the other may be cheaper."""
        return self._left is not None and n_temperatures >= BEYOND * self._raced_temperatures

    def may_look_again(self, n_gradients: int, per_transition: float) -> bool:
        """Return whether a path that looked cheap has cost more than looking for another would."""
        if self._skipped is None:
            return False
        fit = 2 * N_CHAINS * self._plan.tune
        return n_gradients > per_transition * (fit if self._skipped == ReferencePath.name else CHEAP * self._walks())

    def look_again(self, current: PathCost, n_temperatures: int) -> list[Pilot] | None:
        """Return pilots along the other path if it is cheaper than the one that was taken; it changes once at most.

        Parameters
        ----------
        current : PathCost
            Of the present path, as measured by the search so far.
        n_temperatures : int
            Up to which the search has gone.
        """
        candidate = self._left
        if self._skipped is not None:
            candidate = self._fitted_reference() if self._skipped == ReferencePath.name else self._screened_prior()
        self._skipped = None
        if candidate is None:
            return None
        Race(self._plan, self._stage, [candidate], [current], n_temperatures).run()
        self.costs = {cost.kind: cost.total for cost in (current, candidate.cost)}
        if path_choice.best([current, candidate.cost], self._plan.goal) is not candidate.cost:
            self._left, self._raced_temperatures = candidate, BEYOND * self._raced_temperatures
            return None
        self._left = None
        pilots, self.chosen = candidate.pilots or candidate.prepare(), candidate.cost
        return pilots

    def _first_reference(self) -> Candidate | None:
        """Return the reference path, fitted and tried out before any other, where optimisation finds one."""
        assert self._extra is not None
        return self._reference_found_on(self._extra)

    def _reference_elsewhere(self) -> Candidate | None:
        """Return the reference path where optimisation finds one on the next of the other extra data sets."""
        assert self._extra is not None
        first = self._others.pop(0)
        drawn = self._stage.draw_simulations(len(self._extra.simulations), first)
        return self._reference_found_on(_Extra(first, drawn))

    def _reference_found_on(self, extra: _Extra) -> Candidate | None:
        """Return the reference path where optimisation finds one on the first of these, which then serve for all."""
        request = self.request(ReferencePath.name).fit
        assert request is not None  # a user's reference is never one of several paths
        task = LookTask(extra.first, extra.simulations.data_of(0), request, self._plan.root)
        with self._stage.phase("looking for a reference", "tune"):
            ((_, look),) = self._stage.run_tasks([task])
        self._stage.count("tune", look.n_gradients)
        if not look.is_found:
            return None
        before, self._extra = self._extra, extra._replace(looked=look.found)
        candidate = self._fitted_reference()
        if candidate is None:
            self._extra = before
            return None
        Race(self._plan, self._stage, [candidate]).try_out()
        return candidate

    def _screened_prior(self) -> Candidate | None:
        """Return the prior path, walked in short steps; None where a pilot fails."""
        n_steps = self._short_steps()
        pilots = self._pilots(PriorPath.name, n_steps)
        if pilots is None:
            return None
        candidate = self._candidate(self._predict(PriorPath.name, pilots, n_steps))
        candidate.screened = pilots
        return candidate

    def _with_proposals(self, candidate: Candidate) -> PathCost:
        """Return what the path costs with the draws that will be proposed along it."""
        return with_proposals(self._info, candidate.pilots, candidate.cost)

    def _short_steps(self) -> int:
        return max(FEWEST_STEPS, self._plan.tune // SCREENING)

    def _is_cheaper_than_looking(self, cost: PathCost) -> bool:
        """Return whether another path can save less than it costs to walk along it, in short steps and thoroughly.

        The most that it could save is all but the chains at the fewest temperatures.
        """
        saving = cost.total - cost.n_chains * FIRST_TEMPERATURES * cost.per_temperature
        return cost.is_reliable and self._plan.check_simulations * saving < CHEAP * self._walks() * cost.per_transition

    def _is_cheaper_than_any(self, candidate: Candidate) -> bool:
        """Return whether ideal kernels would cost more on the prior path, were it the shortest from the prior."""
        assert self._extra is not None
        cost, data = self._with_proposals(candidate), self._extra.simulations.data_of(0)
        task = BaseDrawsTask(self._extra.first, data, PriorPath(), self._plan.root, 0, OVERLAP_DRAWS)
        with self._stage.phase("tuning, start of path", "tune"):
            ((_, at_prior),) = self._stage.run_tasks([task])
        log_evidence = float(log_mean_exp(candidate.pilots[0].base_log_ratio))
        least = path_choice.shortest_length(at_prior, log_evidence) ** 2 / self._plan.target
        return cost.is_reliable and cost.total < cost.n_chains * least * cost.per_transition

    def _walks(self) -> int:
        """Return the transitions of two walks along a path, in short steps and thoroughly, on the extra data sets."""
        assert self._extra is not None
        return USUAL_KNOTS * len(self._extra.simulations) * (self._short_steps() + self._plan.tune)

    def _fitted_reference(self) -> Candidate | None:
        """Return the reference path with its pilots; None where a reference cannot be fitted."""
        fitted = self._pilots(ReferencePath.name, self._plan.tune)
        if fitted is None:
            return None
        return self._candidate(self._predict(fitted[0].path.name, fitted, self._plan.tune), fitted)

    def _candidate(self, cost: PathCost, pilots: Sequence[Pilot] = ()) -> Candidate:
        """Return a path for the race, whose pilots run when they are wanted."""

        def prepare() -> list[Pilot]:
            return self._required(cost.kind)

        return Candidate(cost, self.quick(self.request(cost.kind)), prepare, list(pilots))

    def _required(self, kind: str) -> list[Pilot]:
        """Return pilots that must succeed."""
        pilots = self._pilots(kind, self._plan.tune)
        if pilots is None:
            raise self._errors[-1]
        self.chosen = self._predict(kind, pilots, self._plan.tune)
        self.costs.setdefault(kind, self.chosen.total)
        return pilots

    def _pilots(self, kind: str, n_steps: int) -> list[Pilot] | None:
        """Run a pilot on each extra data set; None where one of them fails."""
        assert self._extra is not None
        source, first, extra = "an extra simulated data set", self._extra.first, self._extra.simulations
        asked = [self.request(kind)] * len(extra)
        fit, root = asked[0].fit, self._plan.root
        if fit is not None:
            asked[0] = replace(asked[0], fit=replace(fit, looked=self._extra.looked))
        tasks = [
            PilotTask(first - i, extra.data_of(i), request, root, n_steps, True, source, may_fail=True)
            for i, request in enumerate(asked)
        ]
        found = self._stage.run_pilots(tasks)
        self._errors += [item for item in found if isinstance(item, DensityError)]
        pilots = [item for item in found if isinstance(item, Pilot)]
        if len(pilots) < len(found):
            return None
        if self._plan.goal.target is None:  # V decides, which asks for no mean of B
            return pilots

        def more(first: int, last: int) -> list[FloatArray]:
            """Return log ratios of more draws from the bases of all pilots' paths."""
            batches = [
                BaseDrawsTask(task.simulation, task.data, pilot.path, task.root, first, last).in_batches()
                for task, pilot in zip(tasks, pilots, strict=True)
            ]
            with self._stage.phase("tuning, start of path", "tune", sum(map(len, batches))):
                drawn = iter(in_order(self._stage.run_tasks, [batch for of_one in batches for batch in of_one]))
            return [np.concatenate(list(islice(drawn, len(of_one)))) for of_one in batches]

        return with_decided_tails(pilots, more)

    def _is_cheap(self, cost: PathCost) -> bool:
        """Return whether the whole check along a path costs less than looking for a better one."""
        fit = CHEAP * 2 * N_CHAINS * self._plan.tune * cost.per_transition
        return cost.is_reliable and self._plan.check_simulations * cost.total < fit

    def _predict(self, kind: str, pilots: list[Pilot], n_steps: int) -> PathCost:
        plan, fit = self._plan, pilots[0].fit
        if fit is None:
            share = plan.tune / n_steps
            per_data_set = float(np.mean([pilot.n_gradients for pilot in pilots])) * share if plan.tune_each else 0.0
        else:
            quick = self.quick(self.request(kind)).fit
            assert quick is not None
            per_transition = path_choice.gradients_per_transition(pilots[:1], n_steps)
            per_data_set = fit.move_gradients(per_transition)
            if plan.tune_each:
                n_transitions = (2 * quick.n_chains + len(pilots[0].kernel.betas)) * quick.n_steps
                per_data_set = per_transition * n_transitions
        return path_choice.predicted_cost(
            kind, pilots, target=plan.target, n_chains=2 * plan.chains, n_steps=n_steps, per_data_set=per_data_set
        )


def _is_found(candidate: Candidate) -> bool:
    """Return whether this is a reference that optimisation found, rather than one fitted to draws, or the prior."""
    fit = candidate.pilots[0].fit if candidate.pilots else None
    return fit is not None and fit.family not in FAMILIES
