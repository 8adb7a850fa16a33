"""Where tasks run: in this process, or in a local pool of processes (loky)."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any, Protocol, Self

import cloudpickle
from loky import cpu_count, get_reusable_executor
from threadpoolctl import threadpool_limits

from bread.backends.base import Model
from bread.errors import InvalidArgumentError
from bread.running.tasks import Task

_POLL_SECONDS = 0.2
_IDLE_SECONDS = 300  # an idle worker ends after this long


class Executor(Protocol):
    """Runs tasks on one model and yields (index, result) as they finish."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run ``tasks``; abandoned (not waited for) when the iterator is closed."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def available_cores(cores: int | None) -> int:
    """Return the number of worker processes: ``cores``, or every core this process may use for None.

    Raises
    ------
    InvalidArgumentError
        ``cores`` is below 1 or no whole number.
    """
    if cores is None:
        return int(cpu_count())
    if isinstance(cores, bool) or not hasattr(cores, "__index__") or int(cores) < 1:
        raise InvalidArgumentError(f"cores must be None or a whole number >= 1, got {cores!r}.")
    return int(cores)


def open_executor(model: Model, cores: int) -> Executor:
    """Return an executor for ``model``: this process for one core, else a pool."""
    return SerialExecutor(model) if cores == 1 else PoolExecutor(model, cores)


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
        for index, task in enumerate(tasks):
            yield index, task.run(self._model)


class PoolExecutor:
    """Runs tasks in a pool of loky processes that outlives the check, so that a second check starts at once.

    The model travels once, in a file that each worker reads at its first task. Workers ignore the keyboard
    interrupt: the parent handles it and stops them.
    """

    def __init__(self, model: Model, cores: int) -> None:
        self._model = model
        self._cores = cores
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._file = ""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="bread-", ignore_cleanup_errors=True)
        self._file = str(FilePath(self._folder.name) / "model.pkl")
        FilePath(self._file).write_bytes(cloudpickle.dumps(self._model))
        pool = self._pool()
        for _ in range(self._cores):  # workers start and read the model while this process goes on
            pool.submit(_load_in_worker, self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _pool(self) -> Any:
        return get_reusable_executor(max_workers=self._cores, timeout=_IDLE_SECONDS, initializer=_prepare_worker)

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run ``tasks`` on all workers, in the order given."""
        pool = self._pool()
        futures: dict[Future[Any], int] = {
            pool.submit(_run_in_worker, self._file, task): index for index, task in enumerate(tasks)
        }
        pending = set(futures)
        finished = False
        try:
            while pending:
                done, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    yield futures[future], future.result()
            finished = True
        finally:
            if not finished:  # interrupted, failed or abandoned: what runs now has no reader
                pool.shutdown(wait=False, kill_workers=True)


_models: dict[str, Model] = {}


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def _load_in_worker(file: str) -> None:
    _models.clear()
    gc.unfreeze()
    model: Model = cloudpickle.loads(FilePath(file).read_bytes())
    threadpool_limits(limits=1)
    # A worker of loky collects garbage about once a second. It would each time walk through all objects of the model
    # and of its language (PyMC: 0.2 s and more); what is loaded now stays, and is left out.
    gc.collect()
    gc.freeze()
    _models[file] = model


def _run_in_worker(file: str, task: Task) -> Any:
    if file not in _models:
        _load_in_worker(file)
    return task.run(_models[file])
