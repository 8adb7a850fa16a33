"""Where the chains of a battery run: in this process, or on workers beside it, with the same result.

Each chain depends on its draw and its own seed, so that it does not matter where it runs. A kernel of which that is not
so is a finding (the test "history", which comes before all others), and stays in this process, where its chains run in
their order: what is found is then the same for any number of workers, too.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import Model
from bread.debugging.annealed import Annealed, AnnealedPairs, AnnealingSubject
from bread.debugging.subject import Draws, FloatArray, Moved, Subject
from bread.jobs.executors import PoolExecutor, available_cores
from bread.jobs.task import Task

WORTH = 15.0  # seconds that a round must take for workers to be started unasked: they import and compile for some
SHARES = 4  # of a call, for each worker: chains take unequal time
FEWEST = 2  # rows of a share


class Cargo(NamedTuple):
    """What travels to workers once."""

    model: Model | None
    subjects: tuple[Subject, ...]


@dataclass(frozen=True)
class SubjectTask:
    """A part of a call of one subject."""

    subject: int
    method: str
    arguments: tuple[Any, ...]
    n_chains: int = field(default=1, init=False)

    def run(self, cargo: Any) -> Any:
        """Return what the method returns."""
        return getattr(cargo.subjects[self.subject], self.method)(*self.arguments)


@dataclass(frozen=True)
class ModelTask:
    """A task on the model."""

    task: Task
    n_chains: int = field(default=1, init=False)

    def run(self, cargo: Any) -> Any:
        """Return what the task returns."""
        return self.task.run(cargo.model)


class WorkerPool:
    """Runs calls of subjects and tasks of a model, on workers once there are some.

    Parameters
    ----------
    cores : int, optional
        Number of workers; 1: none. None: one for each core, started as soon as `expect` is told of work that is worth
        it.
    """

    def __init__(self, cores: int | None = 1) -> None:
        self._n_workers = available_cores(cores)
        self._is_asked_for = cores is not None
        self._cargo = Cargo(None, ())
        self._open = contextlib.ExitStack()
        self._pool: PoolExecutor | None = None
        self._gave_up = False
        self._compared: set[int] = set()  # subjects

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def has_workers(self) -> bool:
        """Whether calls run on workers now."""
        return self._pool is not None

    def load(self, model: Model | None, subjects: Sequence[Subject]) -> None:
        """Say what calls and tasks are about."""
        self._cargo = Cargo(model, tuple(subjects))

    def expect(self, seconds: float) -> None:
        """Start workers if there are to be some and the work that comes, which takes so long here, is worth it."""
        is_worth_it = self._is_asked_for or seconds >= WORTH
        if self._n_workers == 1 or self._gave_up or self._pool is not None or not is_worth_it:
            return
        try:
            # A task of this pool runs on whatever was sent; the executor asks no more of it.
            self._pool = self._open.enter_context(PoolExecutor(cast(Model, self._cargo), self._n_workers))
        except Exception as error:  # whatever a kernel's pickling raises
            self._give_up(error)

    def draw(self, subject: int, seeds: Sequence[SeedSequence]) -> Draws:
        """Return `Subject.draw`."""
        inner = self._cargo.subjects[subject]
        parts = self._parts(subject, "draw", [(seeds[rows],) for rows in self._shares(len(seeds))])
        if parts is None:
            return inner.draw(seeds)
        draws: Draws = parts[0]
        for part in parts[1:]:
            draws = draws.joined(part)
        return draws

    def move(self, subject: int, draws: Draws, keep: Sequence[int], seeds: Sequence[SeedSequence]) -> Moved:
        """Return `Subject.move`."""
        calls = [(draws.rows(rows), keep, seeds[rows]) for rows in self._shares(len(draws))]
        parts = self._parts(subject, "move", calls)
        return self._cargo.subjects[subject].move(draws, keep, seeds) if parts is None else _joined(parts)

    def agrees(
        self, subject: int, draws: Draws, keep: Sequence[int], seeds: Sequence[SeedSequence], moved: Moved
    ) -> bool:
        """Return whether chains that were moved here would be those that workers moved; if not, workers are given up.

        What pickling leaves out of a kernel, NumPyro's compiled step for one, is missing there: its chains fail or end
        elsewhere, and a right kernel would be called wrong. The first chains of a subject's first call are compared.
        """
        if self._pool is None or subject in self._compared or len(self._shares(len(draws))) < 2:
            return True
        self._compared.add(subject)
        few = slice(FEWEST)
        here = self._cargo.subjects[subject].move(draws.rows(few), keep, seeds[few])
        if np.array_equal(here.states, moved.states[few], equal_nan=True):
            return True
        self._pool = None
        self._give_up(RuntimeError("a pickled copy of the kernel moves otherwise"))
        return False

    def anneal(
        self, subject: int, draws: Draws, betas: FloatArray, seeds: Sequence[Sequence[SeedSequence]]
    ) -> Annealed:
        """Return `bread.debugging.annealed.AnnealingSubject.anneal`."""
        calls = [(draws.rows(rows), betas, seeds[rows]) for rows in self._shares(len(draws))]
        parts = self._parts(subject, "anneal", calls)
        if parts is None:
            return cast(AnnealingSubject, self._cargo.subjects[subject]).anneal(draws, betas, seeds)
        pairs: AnnealedPairs = parts[0].pairs
        for part in parts[1:]:
            pairs = pairs.joined(part.pairs)
        return Annealed(pairs, sum(part.n_evaluations for part in parts), _each_once(parts))

    def of_rows(self, subject: int, method: Literal["log_density", "gradient"], draws: Draws) -> FloatArray:
        """Return `Subject.log_density` or `Subject.gradient`."""
        parts = self._parts(subject, method, [(draws.rows(rows),) for rows in self._shares(len(draws))])
        if parts is None:
            return np.asarray(getattr(self._cargo.subjects[subject], method)(draws), dtype=np.float64)
        return np.concatenate(parts)

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Run tasks on the model; return their results in order."""
        found = self._collect([ModelTask(task) for task in tasks])
        if found is None:
            assert self._cargo.model is not None
            return [task.run(self._cargo.model) for task in tasks]
        return found

    def _shares(self, n: int) -> list[slice]:
        n_shares = max(1, min(SHARES * self._n_workers, n // FEWEST))
        edges = np.linspace(0, n, n_shares + 1).astype(int).tolist()
        return [slice(low, high) for low, high in pairwise(edges)]

    def _parts(self, subject: int, method: str, calls: list[tuple[Any, ...]]) -> list[Any] | None:
        return self._collect([SubjectTask(subject, method, arguments) for arguments in calls])

    def _collect(self, tasks: Sequence[Any]) -> list[Any] | None:
        """Return results in order; None where they are to be had here."""
        if self._pool is None or len(tasks) < 2:
            return None
        found: dict[int, Any] = {}
        try:
            found.update(self._pool.run(tasks))
        except Exception as error:  # a call that is wrong itself is wrong here, too, and raises
            self._pool = None
            self._give_up(error)
            return None
        return [found[index] for index in range(len(tasks))]

    def _give_up(self, error: Exception) -> None:
        self._gave_up = True
        if self._is_asked_for:
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            warnings.warn(
                f"All chains run in this process, whatever cores= says: workers cannot run them ({why}). What is found "
                "is the same. A kernel that can be sent holds no locks, open files or compiled functions.",
                UserWarning,
                stacklevel=2,
            )


def _joined(parts: Sequence[Moved]) -> Moved:
    carried = [part.log_density for part in parts]
    shown = [values for values in carried if values is not None]
    return Moved(
        np.concatenate([part.states for part in parts]),
        np.concatenate(shown) if len(shown) == len(parts) else None,
        sum(part.n_evaluations for part in parts),
        _each_once(parts),
    )


def _each_once(parts: Sequence[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message for part in parts for message in part.failures))
