"""Tasks that are not run twice: an executor that looks into a store first, and writes down each result.

A task is known by a digest of all that it is made of: data, path, kernel, seeds. So its place in the check does not
matter, and a task that an option has changed is not mistaken for another.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from bread.digests import digest
from bread.errors import CheckpointWarning
from bread.jobs.executors import Executor
from bread.jobs.interrupts import raise_pending
from bread.jobs.store import Store
from bread.jobs.task import Task

TASK = "task "  # how the names of their entries begin

_Value = TypeVar("_Value")


class Keeper:
    """Gives what was computed before, and keeps what is computed now.

    Parameters
    ----------
    store : Store or None
        Without one everything is computed, and nothing kept.
    """

    def __init__(self, store: Store | None = None) -> None:
        self.store = store
        self._unused = {name for name in store.names() if name.startswith(TASK)} if store is not None else set()

    def kept(self, name: str, compute: Callable[[], _Value]) -> _Value:
        """Return ``compute()``, or what it returned in an earlier call of this name."""
        if self.store is None:
            return compute()
        found = self.store.get(name)
        if found is not None:
            value: _Value = found.value
            return value
        value = compute()
        self.store.put(name, value)
        return value

    def executor(self, open_executor: Callable[[], Executor]) -> Executor:
        """Return an executor whose results are kept."""
        return open_executor() if self.store is None else KeepingExecutor(self.store, open_executor, self._unused)

    def finish(self) -> None:
        """Say so if results were left over: then the check was not the one that they were made for."""
        if self.store is not None and self._unused:
            warnings.warn(
                f"{len(self._unused)} results of the checkpoint '{self.store.folder}' were not asked for: something "
                "has changed that bread does not see, such as code that the model calls. The report holds; what was "
                "changed was computed anew.",
                CheckpointWarning,
                stacklevel=3,
            )


class KeepingExecutor:
    """Runs tasks whose results are not in the store, on an executor that is opened at the first of them."""

    def __init__(self, store: Store, open_executor: Callable[[], Executor], unused: set[str] | None = None) -> None:
        self._store = store
        self._open_executor = open_executor
        self._unused = set() if unused is None else unused
        self._stack = contextlib.ExitStack()
        self._executor: Executor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Yield (index, result): first those in the store, then the others, each once it is on disk."""
        names = [task_name(task) for task in tasks]
        left = []
        for index, name in enumerate(names):
            raise_pending()
            self._unused.discard(name)
            found = self._store.get(name)
            if found is None:
                left.append(index)
            else:
                yield index, found.value
        if not left:
            return
        if self._executor is None:
            self._executor = self._stack.enter_context(self._open_executor())
        with contextlib.closing(self._executor.run([tasks[index] for index in left])) as finished:  # type: ignore[type-var]
            for place, result in finished:
                self._store.put(names[left[place]], result)
                yield left[place], result


def task_name(task: Task) -> str:
    """Return the name of a task's result: its kind, and a digest of what it is made of."""
    return f"{TASK}{type(task).__name__} {digest(task)}"
