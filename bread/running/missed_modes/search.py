"""Are there modes on the real data that the annealed draws miss? The search, as tasks.

Simulated data near the estimate cannot show a mode that the fit never saw. The density is looked at on prior draws and
draws of the fit, optimised from the best few, and what is found is weighed (`bread.statistics.real_data.modes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bread.backends.base import FloatArray, Model
from bread.jobs.task import Task
from bread.running.missed_modes import optimise
from bread.running.missed_modes.label_switching import aligned
from bread.running.missed_modes.optimise import Found
from bread.running.missed_modes.tasks import (
    DRAWN,
    WEIGHED,
    ClimbTask,
    Evaluated,
    EvaluateTask,
    PriorDrawTask,
    ProposalTask,
    WeighTask,
)
from bread.running.state.ledger import in_order
from bread.running.state.mode_results import FoundMode, ModeResults
from bread.running.state.results import OBSERVED
from bread.seeds import Purpose, seed_sequence
from bread.statistics.agreement.agreement import effective_sample_size
from bread.statistics.real_data import modes as statistics
from bread.statistics.real_data.modes import Proposal

MOST_PRIOR_DRAWS, FEWEST_PRIOR_DRAWS = 10_000, 1000  # from which optimisations start
BATCH = 500  # prior draws a task
DRAW_COST = 80  # gradients of the check for each prior draw: a PyMC draw takes as long as six gradients
MOST_MODES, FEWEST_MODES = 8, 3  # that are weighed
MODE_COST = 32_000  # gradients of the check for each mode that is weighed
FEWEST_DRAWS = 50  # draws under test: with fewer a missed half would not be seen
SPREAD = 3.0  # standard deviations of the draws: scale of where one begins without a prior, with Cauchy tails
LARGEST_DIM = 200  # coordinates: more make the Hessian dear and the weights of 4000 draws useless

RunTasks = Callable[[Sequence[Task]], Iterator[tuple[int, Any]]]


def why_not(model: Model, draws: str, n_draws: int) -> str | None:
    """Return why modes cannot be looked for, as a sentence; None where they can. ``draws``: "certified draws"."""
    info, reason = model.info, ""
    if np.any(info.layout.discrete):
        reason = "the model has discrete variables, along which nothing can be optimised"
    elif "reference" not in info.paths:
        reason = "this kernel or model has no gradient of the whole density"
    elif info.layout.dim > LARGEST_DIM:
        reason = f"the model has {info.layout.dim} unconstrained coordinates, and more than {LARGEST_DIM} are too many"
    elif n_draws < FEWEST_DRAWS:
        reason = f"there are {n_draws} {draws} on the real data, and fewer than {FEWEST_DRAWS} are too few"
    return f"Modes on the real data were not looked for: {reason}." if reason else None


class ModeSearch:
    """One search on the real data.

    Parameters
    ----------
    model : Model
        To map states to parameters; densities are evaluated by tasks.
    run_tasks : callable
        Runs tasks and yields (position, result).
    root : int
        Of the random seeds.
    n_spent : int
        Gradients that the check has spent: the search takes a share of that.
    """

    def __init__(self, model: Model, run_tasks: RunTasks, root: int, n_spent: int) -> None:
        self._model = model
        self._run_tasks = run_tasks
        self._root = root
        self._data = dict(model.info.data.observed)
        self._n_prior = int(np.clip(n_spent // DRAW_COST, FEWEST_PRIOR_DRAWS, MOST_PRIOR_DRAWS)) // BATCH * BATCH
        self._is_dear = n_spent < 4 * MODE_COST  # to weigh the bulk and a mode would be a large part of the check
        self._most_modes = int(np.clip(n_spent // MODE_COST, FEWEST_MODES, MOST_MODES))
        self.has_prior = True
        self.n_gradients = 0
        self.n_evaluations = 0

    def run(
        self, draws: FloatArray, log_lower: float, own: FloatArray | None, nearby: FloatArray | None = None
    ) -> ModeResults | None:
        """Look for modes that draws miss; None where the density at the draws is zero, or what they hold is unknown.

        Parameters
        ----------
        draws : ndarray, shape (n, dim)
            Independent draws on the real data, which are under test.
        log_lower : float
            A lower bound (nats) of the log evidence, as the density here has it; -inf where none is known.
        own : ndarray, shape (chain, draw, dim), or None
            Draws of the fit.
        nearby : ndarray, shape (n, dim), or None
            Draws of a law near the posterior, where one may begin too.
        """
        levels, exchanges = self._evaluate(EvaluateTask(self._data, draws, True))
        draws, levels = draws[np.isfinite(levels)], levels[np.isfinite(levels)]
        if len(draws) < FEWEST_DRAWS:
            return None
        prior = self._draw_prior(draws)
        scale = optimise.prior_scales(prior.states)
        starts = [
            optimise.starts(*prior, optimise.BEST, optimise.FAR),
            optimise.starts(draws, levels, 1, 0),
        ]
        if nearby is not None and len(nearby):
            starts.append(self._starts_among(nearby)[0])
        own_levels = None
        if own is not None:
            flat = own.reshape(-1, own.shape[-1])
            found_there, own_levels = self._starts_among(flat)
            starts.append(found_there)
        every = np.concatenate(starts)
        ends = self._climb(every, scale)
        centre = draws[int(np.argmax(levels))]
        gathered = aligned(self._model, exchanges, draws, centre)
        kept = [
            (end, proposal)
            for end, proposal in self._shapes(
                ends, scale, lambda states: aligned(self._model, exchanges, states, centre)
            )
        ]
        bulk = statistics.bulk_proposal(gathered)
        weighed = self._weigh(
            [bulk, *(proposal for _, proposal in kept)],
            [gathered[:0], *(aligned(self._model, exchanges, draws, end.state) for end, _ in kept)],
        )
        held = statistics.bulk_evidence(bulk, *weighed[0][0], gathered)
        copies = sum(one.log_copies for one in exchanges)
        denominator = max(log_lower - copies, held)
        if not denominator > -np.inf:  # nothing to compare with
            return None
        found = []
        for (end, proposal), (proposed, there, moved) in zip(kept, weighed[1:], strict=True):
            result = statistics.weigh_mode(proposal, *proposed, moved, there, denominator)
            share = None
            if own is not None and own_levels is not None:
                inside = proposal.holds(aligned(self._model, exchanges, own.reshape(-1, own.shape[-1]), end.state))
                if result.is_peak:
                    inside = inside & (own_levels > there.max())
                share = statistics.share_of(inside, _effective(own_levels.reshape(own.shape[:2])))
            found.append(FoundMode(end.state, end.log_density, result, share))
        found.sort(key=lambda mode: (not mode.weighed.missed, -mode.weighed.mass))
        return ModeResults(
            tuple(found), denominator, len(draws), len(prior.states), len(every), self.n_gradients,
            self.n_evaluations, exchanges, self.has_prior,
        )  # fmt: skip

    def _run(self, tasks: Sequence[Task]) -> list[Any]:
        return in_order(self._run_tasks, tasks)

    def _seed(self, number: int) -> np.random.SeedSequence:
        return seed_sequence(self._root, Purpose.MODES, OBSERVED, WEIGHED, number)

    def _evaluate(self, task: EvaluateTask) -> tuple[FloatArray, tuple[Any, ...]]:
        self.n_evaluations += len(task.states)
        result: tuple[FloatArray, tuple[Any, ...]] = self._run([task])[0]
        return result

    def _starts_among(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where to begin among draws of a fit, and the log density (nats) at each of them."""
        levels, _ = self._evaluate(EvaluateTask(self._data, states))
        return optimise.starts(states, levels, optimise.FIT_BEST, optimise.FIT_FAR), levels

    def _draw_prior(self, draws: FloatArray) -> Evaluated:
        """Return draws of the prior; where it cannot be drawn, as a flat one, draws spread far around ``draws``."""
        try:
            return self._of_prior()
        except Exception:  # flat, or a user's simulator that raises what it likes
            self.has_prior = False
        rng = np.random.default_rng(seed_sequence(self._root, Purpose.MODES, OBSERVED, DRAWN, 0))
        n, dim = self._n_prior, draws.shape[1]
        far = rng.standard_cauchy((n, 1)) * rng.standard_normal((n, dim))
        far[::2] *= np.eye(dim)[rng.integers(dim, size=(n + 1) // 2)]  # half of them in one coordinate alone
        states = draws[rng.integers(len(draws), size=n)] + SPREAD * draws.std(axis=0) * far
        return Evaluated(states, self._evaluate(EvaluateTask(self._data, states))[0])

    def _of_prior(self) -> Evaluated:
        starts = range(0, self._n_prior, BATCH)
        tasks = [PriorDrawTask(self._data, self._root, low, low + BATCH) for low in starts]
        parts = self._run(tasks)
        self.n_evaluations += self._n_prior
        return Evaluated(
            np.concatenate([part.states for part in parts]), np.concatenate([part.log_density for part in parts])
        )

    def _climb(self, starts: FloatArray, scale: FloatArray) -> list[Found]:
        """Optimise from every start; the ends that have a density, the largest first."""
        ends: list[Found] = self._run([ClimbTask(self._data, start, optimise.MOST_STEPS, scale) for start in starts])
        self.n_gradients += sum(end.n_gradients for end in ends)
        found = [end for end in ends if np.isfinite(end.log_density) and np.isfinite(end.state).all()]
        return sorted(found, key=lambda end: -end.log_density)

    def _shapes(
        self, ends: Sequence[Found], scale: FloatArray, align: Callable[[FloatArray], FloatArray]
    ) -> list[tuple[Found, Proposal]]:
        """Return the modes that are not the same as a higher one, nor copies of it, each with its proposal."""
        left = [Found(align(end.state[None, :])[0], end.log_density, 0) for end in ends]
        kept: list[tuple[Found, Proposal]] = []
        while left and len(kept) < self._most_modes:
            end = left.pop(0)
            proposal, n_gradients = self._run([ProposalTask(self._data, end.state, scale)])[0]
            self.n_gradients += n_gradients
            if proposal is None:
                continue
            kept.append((end, proposal))
            left = [one for one in left if proposal.distance(one.state[None, :])[0] >= optimise.SAME_MODE]
        return kept

    def _weigh(
        self, proposals: Sequence[Proposal], draws: Sequence[FloatArray]
    ) -> list[tuple[Evaluated, FloatArray, FloatArray]]:
        """Draw from each proposal; also return the log density at some draws, and these."""
        pairs = zip(proposals, draws, strict=True)
        tasks = [
            WeighTask(self._data, proposal, statistics.PROPOSED, self._seed(number), some, self._is_dear)
            for number, (proposal, some) in enumerate(pairs)
        ]
        weighed = self._run(tasks)
        self.n_evaluations += sum(len(proposed.states) + len(there) for proposed, there in weighed)
        return [(*result, some) for result, some in zip(weighed, draws, strict=True)]


def _effective(levels: FloatArray) -> float:
    """Return the effective number of draws by their log density, shape (chain, draw)."""
    if not np.isfinite(levels).all():
        return float(levels.shape[0])
    return float(effective_sample_size(levels[:, :, None])[0])
