"""What the tests of one subject look at: exact draws, two chains from each, and their densities. It grows by rounds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from typing import Literal, cast

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from bread.debugging.annealed import Annealed, AnnealedSample, AnnealingSubject
from bread.debugging.between import StepsBetween, SubjectBetween
from bread.debugging.subject import Draws, FloatArray, Moved, Subject
from bread.debugging.worker_pool import WorkerPool
from bread.errors import DensityError
from bread.seeds import Purpose, seed_sequence
from bread.statistics.exactness.exchange import balanced_flow, perturbations
from bread.statistics.exactness.functions import StateFunctions

N_PILOT = 400  # draws that set functions, sizes and lengths, and on which nothing is tested
N_PILOT_CHAINS = 50
PILOT_STEPS = (5, 10, 20, 50)
LENGTHS = (20, 50, 200)  # steps of a chain, whichever forgets enough
FORGOTTEN = 0.3  # correlation with the start
N_SPACED = 10  # equally spaced states of a chain
N_EARLY = 20  # steps at the beginning of the first chain, all of which are kept
N_RESTARTED = 5
RESTARTED = slice(N_SPACED - 1 - N_RESTARTED, N_SPACED - 1)  # which of the spaced states new chains begin at
N_FRESH = 8  # further exact draws beside each draw, to compare averages of chains with
N_COMPARED = 4  # of these, how many are compared with the density
EVALUATIONS = 5  # of a density, about as dear as a step
LOG_DENSITY = "log density"
MOST_NUMBERS = 2_000_000  # states and data of one call of the density
DECIMALS = 9  # of log densities as functions of a state: states of one density are tied, whatever the rounding


class Stream(IntEnum):
    """What random numbers are for."""

    PILOT = 0
    PILOT_CHAIN = 1
    DRAW = 2
    FIRST = 3
    SECOND = 4
    FRESH = 5
    PERTURB = 6
    RANK = 7
    HISTORY = 8
    OTHERS = 9
    SEEDS = 10
    RESTART = 11
    RESTART_SECOND = 12
    ANNEAL = 13  # and five more: base, forward and reverse, then those of the pilot
    ANNEAL_RANK = 19
    BETWEEN = 20  # and one more: the pilot's


class Sample:
    """Draws and chains of one subject.

    Parameters
    ----------
    subject : Subject
    root, index : int
        Root of all random numbers, and which subject this is.
    longest : int
        Largest number of steps a chain that the budget allows for.
    pool : WorkerPool, optional
        What runs chains, loaded with the subject in this place; they run in this process by default.

    Attributes
    ----------
    spreads : bool
        Whether chains may run anywhere, in any order; False at first.
    draws : Draws
    functions : StateFunctions
        Of the columns of a table: coordinates, then the log density.
    keep : tuple of int
        Numbers of steps after which states are kept; ``spaced`` are the columns of equally spaced ones.
    table, fresh : ndarray, shapes (n, C) and (n, 8, C)
        Of the draws, and of further exact ones that no chain starts from.
    exact : Draws
        The draws and four of the others each, 5 n in all; ``exact_table``, shape (5 n, C).
    first, second : ndarray, shapes (n, len(keep), C) and (n, 10, C)
        Of two independent chains from each draw; of the second only equally spaced states.
    going_on : ndarray, shape (n, 3, 10, C)
        Ten states of both chains, where the chain is after one step more, and where a new one is that begins there.
    carried : ndarray, shape (n, len(keep)), or None
        What the kernel says the log density of the first chain is.
    flow : ndarray, shape (5 n, F)
        Balanced flow of the smooth functions, then of the indicators.
    annealed : AnnealedSample or None
        Annealed chains of some of the draws; None where the subject has none.
    between : StepsBetween or None
        Steps of annealed chains from the draws, where the subject is between the ends of a path.
    failures : tuple of str
        What the kernel raised.
    cost_of_draw : float
        About what a draw more costs, from the pilot.
    spent : float
        Steps so far (or evaluations by the kernel, where the subject counts them); five evaluations of the density
        count as one step.

    Raises
    ------
    DensityError
        No draw of the pilot has a density that is a number: nothing can be tested.
    """

    def __init__(self, subject: Subject, root: int, index: int, longest: int, pool: WorkerPool | None = None) -> None:
        self.subject = subject
        self.spreads = False
        self._pool = pool
        self._root, self._index = root, index
        self.spent = 0.0
        self.pilot = subject.draw(self.seeds(Stream.PILOT, 0, N_PILOT))
        self._pilot_table = self._with_density(self.pilot)
        usable = ~np.isnan(self._pilot_table).any(axis=1)
        if not usable.any():
            raise DensityError(
                f"all {N_PILOT} pilot draws of '{subject.name}' are NaN or have a log density of NaN; nothing can be "
                "tested. Check simulate and log_density on one draw."
            )
        names = (*subject.coordinates, LOG_DENSITY)
        self._pilot_table = self._pilot_table[usable]
        self.functions = StateFunctions(names, self._pilot_table, len(subject.coordinates))
        self.has_kernel = "kernel" not in subject.missing
        self._cost_of_step = 0.0
        self.n_steps = self._length(longest) if self.has_kernel else 0
        spacing = max(1, self.n_steps // N_SPACED)
        spaced = tuple(spacing * k for k in range(1, N_SPACED + 1))
        self.spacing = spacing
        self.n_early = min(N_EARLY, self.n_steps)
        later = {*spaced, *(k + 1 for k in spaced[RESTARTED])} if self.has_kernel else set()
        self.keep: tuple[int, ...] = tuple(sorted({*range(1, self.n_early + 1), *later}))
        self._keep_second = tuple(sorted(later))
        self.spaced = np.array([self.keep.index(k) for k in spaced] if self.has_kernel else [], dtype=np.int64)
        d, columns = len(subject.coordinates), len(names)
        self.draws = self.exact = self.pilot.rows(slice(0, 0))
        self.exact_table = np.empty((0, columns))
        self.table, self.fresh = np.empty((0, columns)), np.empty((0, N_FRESH, columns))
        self.first = np.empty((0, len(self.keep), columns))
        self.second = np.empty((0, N_SPACED if self.has_kernel else 0, columns))
        self.going_on = np.empty((0, 3, 2 * N_RESTARTED, columns))
        self.carried: FloatArray | None = None
        n_functions = len(self.functions.smooth_labels) + len(self.functions.indicator_labels)
        self.flow = np.empty((0, n_functions))
        self._gradient = np.empty((0, d))
        self.failures: tuple[str, ...] = ()
        looked_at = len(self.keep) + len(self._keep_second) + 2 * N_RESTARTED + N_FRESH + (1 + N_COMPARED) * (3 * d + 3)
        self.cost_of_draw = (2 * self.n_steps + 2 * N_RESTARTED) * self._cost_of_step + looked_at / EVALUATIONS
        self.annealed: AnnealedSample | None = None
        if subject.anneals and "annealing" not in subject.missing:
            seeds = partial(self._further_seeds, Stream.ANNEAL)
            self.annealed = AnnealedSample(self, self.pilot, seeds, longest, self.cost_of_draw)
            self.spent += self.annealed.spent
            self.cost_of_draw += self.annealed.cost_of_draw
        self.between: StepsBetween | None = None
        if subject.is_between:
            seeds = partial(self._further_seeds, Stream.BETWEEN)
            self.between = StepsBetween(cast(SubjectBetween, subject), self.pilot, seeds)
            self.spent += self.between.spent

    def __len__(self) -> int:
        return len(self.draws)

    def seeds(self, stream: Stream, low: int, high: int) -> list[SeedSequence]:
        """Return one seed a draw or chain; fresh objects, so that a backend may spawn from them."""
        return [seed_sequence(self._root, Purpose.BATTERY, self._index, int(stream), k) for k in range(low, high)]

    def _further_seeds(self, stream: Stream, part: int, low: int, high: int) -> list[SeedSequence]:
        return [seed_sequence(self._root, Purpose.BATTERY, self._index, stream + part, k) for k in range(low, high)]

    def grow(self, n: int) -> None:
        """Draw and move until there are ``n`` draws; what was there stays."""
        low = len(self)
        draws = self._draw(self.seeds(Stream.DRAW, low, n))
        fresh = self._draw(self.seeds(Stream.FRESH, N_FRESH * low, N_FRESH * n))
        table, fresh_table = self._with_density(draws), self._with_density(fresh)
        some = slice(0, N_COMPARED * (n - low))
        compared, compared_table = draws.joined(fresh.rows(some)), np.concatenate([table, fresh_table[some]])
        self.draws, self.exact = self.draws.joined(draws), self.exact.joined(compared)
        self.exact_table = np.concatenate([self.exact_table, compared_table])
        self.table = np.concatenate([self.table, table])
        self.fresh = np.concatenate([self.fresh, fresh_table.reshape(n - low, N_FRESH, -1)])
        self.flow = np.concatenate([self.flow, self._flow(compared, compared_table, low)])
        if not self.has_kernel:
            return
        first = self.move(draws, self.keep, self.seeds(Stream.FIRST, low, n))
        second = self.move(draws, self._keep_second, self.seeds(Stream.SECOND, low, n))
        tables = self._moved_table(draws, first), self._moved_table(draws, second)
        steps = [self.keep[column] for column in self.spaced]
        self.first = np.concatenate([self.first, tables[0]])
        self.second = np.concatenate([self.second, tables[1][:, [self._keep_second.index(k) for k in steps]]])
        going_on = [
            self._going_on(draws, table, [keep.index(k) for k in steps[RESTARTED]], stream, low)
            for table, keep, stream in zip(
                tables, (self.keep, self._keep_second), (Stream.RESTART, Stream.RESTART_SECOND), strict=True
            )
        ]
        self.going_on = np.concatenate([self.going_on, np.concatenate(going_on, axis=2)])
        if first.log_density is not None:
            before = first.log_density[:0] if self.carried is None else self.carried
            self.carried = np.concatenate([before, first.log_density])
        self.failures = tuple(dict.fromkeys([*self.failures, *first.failures, *second.failures]))
        for further in (self.annealed, self.between):
            if further is not None:
                before_that = further.spent
                further.grow(draws)
                self.spent += further.spent - before_that

    def _going_on(self, draws: Draws, table: FloatArray, places: list[int], stream: Stream, low: int) -> FloatArray:
        """Return states of chains, the next ones, and those of new chains that begin there; NaN where a chain failed.

        Shape (n, 3, len(places), C).
        """
        begin, n = table[:, places], len(draws)
        starts = draws.at(begin[..., :-1])
        rows = np.flatnonzero(~np.isnan(starts.states).any(axis=1))
        new = np.full((n * len(places), begin.shape[2]), np.nan)
        if rows.size:
            seeds = self.seeds(stream, low * len(places), (low + n) * len(places))
            moved = self.move(starts.rows(rows), (1,), [seeds[row] for row in rows])
            new[rows] = self._moved_table(starts.rows(rows), moved)[:, 0]
        after = table[:, [place + 1 for place in places]]
        return np.stack([begin, after, new.reshape(begin.shape)], axis=1)

    def move(self, draws: Draws, keep: Sequence[int], seeds: Sequence[SeedSequence]) -> Moved:
        """Move chains of the subject and count what it costs."""
        pool = self._pool_for("move")
        moved = self.subject.move(draws, keep, seeds) if pool is None else pool.move(self._index, draws, keep, seeds)
        if pool is not None and not pool.agrees(self._index, draws, keep, seeds, moved):
            moved = self.subject.move(draws, keep, seeds)
        self.spent += moved.n_evaluations
        return moved

    def anneal(self, draws: Draws, betas: FloatArray, seeds: Sequence[Sequence[SeedSequence]]) -> Annealed:
        """Anneal chains of the subject, which `AnnealedSample` counts."""
        pool = self._pool_for("anneal")
        if pool is None:
            return cast(AnnealingSubject, self.subject).anneal(draws, betas, seeds)
        return pool.anneal(self._index, draws, betas, seeds)

    def _draw(self, seeds: Sequence[SeedSequence]) -> Draws:
        pool = self._pool_for("draw")
        return self.subject.draw(seeds) if pool is None else pool.draw(self._index, seeds)

    def _of_rows(self, method: Literal["log_density", "gradient"], draws: Draws) -> FloatArray:
        pool = self._pool_for(method)
        of_rows = getattr(self.subject, method)
        return np.asarray(
            of_rows(draws) if pool is None else pool.of_rows(self._index, method, draws), dtype=np.float64
        )

    def _pool_for(self, method: str) -> WorkerPool | None:
        return self._pool if self.spreads and method in self.subject.may_spread else None

    def log_density(self, draws: Draws) -> FloatArray:
        """Return log densities and count what they cost."""
        self.spent += len(draws) / EVALUATIONS
        return self._of_rows("log_density", draws)

    def gradient(self) -> FloatArray:
        """Return the gradient at all exact draws, shape (5 n, d); only that of new ones is computed."""
        done = len(self._gradient)
        if done < len(self.exact):
            new = self.exact.rows(slice(done, len(self.exact)))
            self.spent += len(new) / EVALUATIONS
            self._gradient = np.concatenate([self._gradient, self._of_rows("gradient", new)])
        return self._gradient

    def sound_rows(self) -> NDArray[np.bool_]:
        """Return which draws and chains are numbers throughout, shape (n,)."""
        is_sound = ~np.isnan(self.table).any(axis=1)
        if self.has_kernel:
            for values in (self.first, self.second, self.fresh):
                is_sound &= ~np.isnan(values).any(axis=(1, 2))
        return np.asarray(is_sound, dtype=np.bool_)

    def _with_density(self, draws: Draws) -> FloatArray:
        return np.column_stack([draws.states, np.round(self.log_density(draws), DECIMALS)])

    def _moved_table(self, draws: Draws, moved: Moved) -> FloatArray:
        density = np.round(self._densities(draws, moved.states), DECIMALS)
        return np.concatenate([moved.states, density[:, :, None]], axis=2)

    def _densities(self, draws: Draws, states: FloatArray) -> FloatArray:
        """Return log densities of states (n, m, d) under the data of each draw, shape (n, m); NaN where a state is.

        Some draws at a time: data are repeated for every state.
        """
        n, m, d = states.shape
        numbers = d + sum(values[0].size for values in draws.data.values()) if n else d
        batch = max(1, MOST_NUMBERS // (m * numbers))
        density = np.full((n, m), np.nan)
        for low in range(0, n, batch):
            rows = slice(low, low + batch)
            flat = draws.rows(rows).at(states[rows])
            is_number: NDArray[np.bool_] = ~np.asarray(np.isnan(flat.states).any(axis=1))
            values = np.full(len(flat), np.nan)
            values[is_number] = self.log_density(flat.rows(is_number))
            density[rows] = values.reshape(-1, m)
        return density

    def _flow(self, draws: Draws, table: FloatArray, low: int) -> FloatArray:
        rng = default_rng(self.seeds(Stream.PERTURB, low, low + 1)[0])
        d = draws.states.shape[1]
        moved = perturbations(self._pilot_table[:, :d], draws.states, self.subject.is_continuous, rng)
        density = self._densities(draws, moved)
        rounded = np.round(np.where(np.isnan(density), -np.inf, density), DECIMALS)
        with_density = np.concatenate([moved, rounded[:, :, None]], axis=2)
        functions = self.functions
        before = np.concatenate([functions.smooth(table), functions.indicators(table)], axis=-1)
        after = np.concatenate([functions.smooth(with_density), functions.indicators(with_density)], axis=-1)
        return balanced_flow(table[:, d], density, before, after)

    def _length(self, longest: int) -> int:
        """Return how many steps a chain takes: until most of its start is forgotten, within the budget."""
        draws = self.pilot.rows(slice(0, N_PILOT_CHAINS))
        moved = self.move(draws, PILOT_STEPS, self.seeds(Stream.PILOT_CHAIN, 0, N_PILOT_CHAINS))
        self._cost_of_step = max(1.0, moved.n_evaluations / (N_PILOT_CHAINS * PILOT_STEPS[-1]))
        d = draws.states.shape[1]
        is_number = ~np.isnan(moved.states).any(axis=(1, 2))
        allowed = [length for length in LENGTHS if length <= longest] or [N_SPACED]
        if is_number.sum() < N_PILOT_CHAINS // 2:
            return allowed[0]
        padded = np.pad(moved.states[is_number], ((0, 0), (0, 0), (0, 1)))  # only the scores of coordinates are read
        start = np.pad(draws.states[is_number], ((0, 0), (0, 1)))
        later, before = self.functions.scores(padded)[:, :, :d], self.functions.scores(start)[:, :d]
        used = self.functions.is_used[:d]
        centred = before - before.mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            covariance = np.einsum("nd,ntd->td", centred, later - later.mean(axis=0)) / len(before)
            correlation = covariance / (before.std(axis=0) * later.std(axis=0))
        largest = np.nan_to_num(np.abs(correlation[:, used]), nan=1.0).max(axis=1, initial=0.0)
        forgotten = [steps for steps, value in zip(PILOT_STEPS, largest, strict=True) if value < FORGOTTEN]
        needed = 2 * forgotten[0] if forgotten else 200
        return next((length for length in allowed if length >= needed), allowed[-1])
