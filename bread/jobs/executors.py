"""Where tasks run: in this process, in a local pool of processes (loky), or on workers of the caller's."""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import current_process
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import cloudpickle
from loky import cpu_count
from threadpoolctl import threadpool_limits

from bread.argument_rules import require_count
from bread.backends.base import Model
from bread.forking import ForkedPool, can_fork
from bread.jobs.groups import TaskGroup, group, runs_together, spread
from bread.jobs.interrupts import interruptible, raise_pending
from bread.jobs.remote import RemoteExecutor
from bread.jobs.task import Task
from bread.scratch import scratch_folder
from bread.workers import (
    call_on_workers,
    end_forked_workers,
    fork_workers,
    own_compile_folder,
    serves,
    start_workers,
    stop_workers,
)


class Executor(Protocol):
    """Runs tasks on one model and yields (index, result) as they finish."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run ``tasks``; abandoned (not waited for) when the iterator is closed."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Workers(NamedTuple):
    """Where the check runs."""

    cores: int
    executor: Any


def available_cores(cores: int | None) -> int:
    """Return the number of worker processes: ``cores``, or every core this process may use for None.

    A daemonic process, such as a worker of `multiprocessing.Pool` or of dask, may have none of its own: 1, so that all
    runs in it, with the same results.

    Raises
    ------
    InvalidArgumentError
        ``cores`` is below 1 or no whole number.
    """
    if cores is None:
        return 1 if current_process().daemon else int(cpu_count())
    require_count("cores", cores, 1, also="None or ")
    return 1 if current_process().daemon else int(cores)


def open_executor(model: Model, cores: int, executor: Any = None) -> Executor:
    """Return an executor for ``model``: the caller's, if there is one; this process for one core, else a pool."""
    if executor is not None:
        return RemoteExecutor(model, executor)
    return SerialExecutor(model) if cores == 1 else PoolExecutor(model, cores)


@contextlib.contextmanager
def started_early(module: str | None, cores: int, executor: Any = None, others: Sequence[str] = ()) -> Iterator[None]:
    """Start the workers that `open_executor` will use, if they are bread's own, and let them import a module.

    ``others``: what tasks import at their first call, when the parent often waits for them.

    That takes them seconds of processor time, which are free while the parent does what only one process can. Where
    the block ends in an error, such as the refusal of a model, they end too: they would wait for minutes for nothing.
    Workers that can be forked are not started early: this process imports the same once, for all of them.
    """
    if module is None or executor is not None or cores == 1:
        yield
        return
    if can_fork():
        _import_in_worker(*others)
        yield
        return
    start_workers(_import_in_worker, (module, *others), cores)
    try:
        yield
    except BaseException:
        stop_workers()
        raise


def one_thread() -> threadpool_limits:
    """Limit the threads of linear algebra to one, as in workers, while a verb runs; a context.

    More of them wait for each other at small matrices, above all where other processes use the cores: the gradient of a
    vector autoregression (3 series, 150 steps) took 0.5 ms with one and 35 ms with two. And sums of products depend on
    their number.
    """
    return threadpool_limits(limits=1)


class SerialExecutor:
    """Runs tasks one after another in this process, with one thread, as a worker would."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> Self:
        self._limits = threadpool_limits(limits=1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._limits is not None:
            self._limits.restore_original_limits()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Any]]:
        """Run ``tasks`` in order."""
        if runs_together(self._model):
            yield from self._run_groups(list(tasks))
            return
        for index, task in enumerate(tasks):
            with interruptible():
                result = task.run(self._model)
            yield index, result

    def _run_groups(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        for places in group(self._model, tasks):
            with interruptible():
                results = TaskGroup(tuple(tasks[index] for index in places)).run(self._model)
            yield from zip(places, results, strict=True)


class PoolExecutor:
    """Runs tasks in a pool of processes.

    Workers that can be forked are, for this executor alone, and inherit the model. Others outlive the check, so that a
    second one starts at once; the model travels once, in a file that each worker reads at its first task. Workers
    ignore the keyboard interrupt: the parent handles it and stops them. They end with the parent. When one of them is
    killed, the tasks that had not finished run again on fresh workers, with the same result: a task brings its own
    random numbers.
    """

    def __init__(self, model: Model, cores: int) -> None:
        self._model = model
        self._cores = cores
        self._open = contextlib.ExitStack()
        self._file = ""
        self._heirs: ForkedPool | None = None  # workers that have inherited the model

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._file = str(stack.enter_context(scratch_folder()) / "model.pkl")
            self._heirs = self._fork()
            if self._heirs is None:
                self._write()
                start_workers(_load_in_worker, (self._file,), self._cores)  # they read it while this one goes on
            self._open = stack.pop_all()
        return self

    def _fork(self) -> ForkedPool | None:
        """Fork workers, where that is possible, and return them if they have the model."""
        may_inherit = getattr(self._model, "may_be_inherited", False)
        if may_inherit:
            _models[self._file] = self._model
        try:
            pool = fork_workers(self._cores)
        finally:
            _models.clear()
        return pool if may_inherit else None

    def _write(self) -> None:
        """Write the model for workers that have not inherited it."""
        if not FilePath(self._file).exists():
            FilePath(self._file).write_bytes(cloudpickle.dumps(self._model))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_forked_workers()
        self._open.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run ``tasks`` on all workers, in the order given."""
        if runs_together(self._model):
            return self._run_groups(tasks)
        return self._call([(self._file, task) for task in tasks])

    def _run_groups(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        groups = group(self._model, tasks, self._cores)
        calls = [(self._file, TaskGroup(tuple(tasks[index] for index in places))) for places in groups]
        with contextlib.closing(self._call(calls)) as finished:  # type: ignore[type-var]
            yield from spread(groups, finished)

    def _call(self, calls: Sequence[tuple[str, Task | TaskGroup]]) -> Iterator[tuple[int, Any]]:
        if self._heirs is not None and not serves(self._heirs, self._cores):
            self._write()
        return call_on_workers(_run_in_worker, calls, self._cores, raise_pending, self._write)


_models: dict[str, Model] = {}


def _import_in_worker(*modules: str) -> None:
    for module in modules:
        if "pymc" in module:
            own_compile_folder()
        with contextlib.suppress(Exception):  # what is not installed, the parent says
            importlib.import_module(module)


def _load_in_worker(file: str) -> None:
    _models.clear()
    gc.unfreeze()
    pickled = FilePath(file).read_bytes()
    if b"pymc" in pickled:  # its modules are imported while it is read
        own_compile_folder()
    model: Model = cloudpickle.loads(pickled)
    threadpool_limits(limits=1)
    # A worker of loky collects garbage about once a second. It would each time walk through all objects of the model
    # and of its language (PyMC: 0.2 s and more); what is loaded now stays, and is left out.
    gc.collect()
    gc.freeze()
    _models[file] = model


def _run_in_worker(file: str, task: Task | TaskGroup) -> Any:
    if file not in _models:
        _load_in_worker(file)
    return task.run(_models[file])
