"""Tasks on workers that somebody else manages: an executor, a client of a cluster, or a pool.

The worker's side is `run_remotely`; a worker needs bread, the packages of the model and nothing of the caller's files.
The model travels once to each worker: a call names it by a digest, a worker that lacks it says so, and the call is
made again with the model in it. Errors of a task come back as values; what the executor itself raises means that the
work was lost, and it is done again, with the same result: a task brings its own random numbers.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import pickle
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

import cloudpickle
from threadpoolctl import threadpool_limits

from bread._version import __version__
from bread.argument_rules import received
from bread.backends.base import Model
from bread.errors import BreadError, InvalidArgumentError
from bread.jobs.interrupts import raise_pending
from bread.jobs.task import Task

MOST_ATTEMPTS = 4  # of one task whose work is lost
FIRST_IN_FLIGHT = 256  # calls that wait or run at a time, before workers have the model; then one more a result
IN_FLIGHT = 4096  # at most: several for each of a thousand workers
IN_FLIGHT_BYTES = 250_000_000  # of all of them together
IN_MAP = 256  # items of one call of a pool's map
CARRYING = 8  # of them with the model
MOST_MISSES = 4  # then a call carries the model in any case
KEPT_MODELS = 2  # in a worker
_POLL_SECONDS = 0.2
_ASK_SECONDS = 0.01  # between questions to futures that cannot be waited for


class Result(NamedTuple):
    """What a task returned."""

    value: Any


class Failed(NamedTuple):
    """What a task raised."""

    error: BaseException


class Missing(NamedTuple):
    """The worker has not seen the model."""


_models: dict[str, Model] = {}
_lock = threading.Lock()  # kernels have a state: one task at a time in one process


def run_remotely(version: str, key: str, model: bytes | None, task: bytes) -> bytes:
    """Run one task in this process; return its pickled outcome.

    Parameters
    ----------
    version : str
        Of bread, in the caller.
    key : str
        The model's name.
    model : bytes or None
        The pickled model; None where this process is expected to have it.
    task : bytes
    """
    with _lock:
        if version != __version__:
            return _packed(
                Failed(BreadError(f"A worker has bread {__version__}, the caller {version}. Install the same version."))
            )
        try:
            with threadpool_limits(limits=1):
                if key not in _models:
                    if model is None:
                        return _packed(Missing())
                    _keep(key, cloudpickle.loads(model))
                return _packed(Result(pickle.loads(task).run(_models[key])))
        except Exception as error:
            return _packed(Failed(error))


def _keep(key: str, model: Model) -> None:
    while len(_models) >= KEPT_MODELS:
        del _models[next(iter(_models))]
    _models[key] = model


def _packed(outcome: Result | Failed | Missing) -> bytes:
    packed: bytes = cloudpickle.dumps(outcome)
    if isinstance(outcome, Failed):
        try:
            pickle.loads(packed)
        except Exception:  # an error that cannot be made again from its arguments
            packed = cloudpickle.dumps(Failed(BreadError(f"{type(outcome.error).__name__}: {outcome.error}")))
    return packed


def require_executor(executor: Any) -> None:
    """Raise InvalidArgumentError unless an object has ``submit`` or ``map``."""
    if isinstance(executor, type) or not any(callable(getattr(executor, name, None)) for name in ("submit", "map")):
        raise InvalidArgumentError(
            "executor must be a concurrent.futures.Executor, or an object with submit(function, *arguments) or "
            f"map(function, items), got {received(executor)}. For the cores of this machine leave it out."
        )


class RemoteExecutor:
    """Runs tasks on an executor of the caller's, which stays open.

    Parameters
    ----------
    model : Model
    executor : object
        With ``submit(function, *arguments)``, which returns a future with ``done()``, ``result()`` and ``cancel()``;
        or with ``imap_unordered(function, items)`` or ``map(function, items)``.
    """

    def __init__(self, model: Model, executor: Any) -> None:
        self._executor = executor
        self._model = cloudpickle.dumps(model)
        self._key = hashlib.sha256(self._model).hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the executor open: it is the caller's."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run ``tasks``, and yield (index, result) as they finish."""
        queue = _Queue(tasks, self._key, self._model)
        if callable(getattr(self._executor, "submit", None)):
            return self._submitted(queue)
        return self._mapped(queue)

    def _submitted(self, queue: _Queue) -> Iterator[tuple[int, Any]]:
        running, size, most = _Running(), 0, FIRST_IN_FLIGHT
        try:
            while queue.waiting or running.calls:
                while queue.waiting and len(running.calls) < most and size < IN_FLIGHT_BYTES:
                    call = queue.next()
                    running.add(self._submit(call), call)
                    size += call.size
                raise_pending()
                for future in running.finished():
                    call = running.calls.pop(future)
                    size -= call.size
                    try:
                        packed = future.result()
                    except Exception as error:
                        queue.lost(call, error)
                        continue
                    for found in queue.received(call, packed):
                        most = min(most + 1, IN_FLIGHT)
                        yield found
        finally:
            for future in running.calls:
                future.cancel()

    def _submit(self, call: _Call) -> Any:
        try:
            return self._executor.submit(run_remotely, *call.arguments)
        except Exception as error:
            raise BreadError(
                f"The executor takes no more work ({type(error).__name__}: {error}). Its workers may have ended: start "
                "a new one, and check again with the same random_seed. What was finished is in the `report` attribute "
                "of this error."
            ) from error

    def _mapped(self, queue: _Queue) -> Iterator[tuple[int, Any]]:
        function = getattr(self._executor, "imap_unordered", None) or self._executor.map
        while queue.waiting:
            calls = {n: queue.next() for n in range(min(IN_MAP, len(queue.waiting)))}
            for n, packed in function(_run_numbered, [(n, *call.arguments) for n, call in calls.items()]):
                raise_pending()
                yield from queue.received(calls.pop(n), packed)
            raise_pending()


def _run_numbered(call: tuple[int, str, str, bytes | None, bytes]) -> tuple[int, bytes]:
    return call[0], run_remotely(*call[1:])


class _Call(NamedTuple):
    """A task on its way."""

    task: int
    arguments: tuple[str, str, bytes | None, bytes]

    @property
    def carries(self) -> bool:
        """Whether the model is in it."""
        return self.arguments[2] is not None

    @property
    def size(self) -> int:
        """Bytes that are sent."""
        return sum(len(part) for part in self.arguments if part is not None)


class _Running:
    """Calls by future, and which of them are done: told by the futures, or asked for where these cannot tell."""

    def __init__(self) -> None:
        self.calls: dict[Any, _Call] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._asked: dict[Any, None] = {}  # in the order in which they were made

    def add(self, future: Any, call: _Call) -> None:
        self.calls[future] = call
        if isinstance(future, concurrent.futures.Future):
            future.add_done_callback(self._done.put)
        else:
            self._asked[future] = None

    def finished(self) -> list[Any]:
        """Wait a moment for futures; return those that are done."""
        found = [future for future in self._asked if future.done()]
        for future in found:
            del self._asked[future]
        with contextlib.suppress(Empty):
            if not found:
                found.append(self._done.get(timeout=_ASK_SECONDS if self._asked else _POLL_SECONDS))
            while True:
                found.append(self._done.get_nowait())
        return found


class _Queue:
    """Tasks that are left, and what to send for each of them."""

    def __init__(self, tasks: Sequence[Task], key: str, model: bytes) -> None:
        self._tasks, self._key, self._model = tasks, key, model
        self.waiting = deque(range(len(tasks)))
        self._misses = [0] * len(tasks)
        self._attempts = [1] * len(tasks)
        self._n_carrying = 0

    def next(self) -> _Call:
        """Take the next task: with the model, where a worker was without it."""
        index = self.waiting.popleft()
        misses = self._misses[index]
        carries = misses >= MOST_MISSES or (misses > 0 and self._n_carrying < CARRYING)
        self._n_carrying += carries
        model = self._model if carries else None
        return _Call(index, (__version__, self._key, model, pickle.dumps(self._tasks[index])))

    def received(self, call: _Call, packed: bytes) -> Iterator[tuple[int, Any]]:
        """Give the result; or put the task back in front, for a worker that lacks the model.

        Raises
        ------
        Exception
            What the task raised.
        """
        self._n_carrying -= call.carries
        outcome = pickle.loads(packed)
        if isinstance(outcome, Missing):
            self._misses[call.task] += 1
            self.waiting.appendleft(call.task)
        elif isinstance(outcome, Failed):
            raise outcome.error
        else:
            yield call.task, outcome.value

    def lost(self, call: _Call, error: Exception) -> None:
        """Put a task back whose work was lost.

        Raises
        ------
        BreadError
            It was lost again and again, or the executor is broken.
        """
        self._n_carrying -= call.carries
        self._attempts[call.task] += 1
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, concurrent.futures.BrokenExecutor) or self._attempts[call.task] > MOST_ATTEMPTS:
            raise BreadError(
                f"The executor lost a task{self._how_often(error)} ({said}). bread must be installed on its workers, "
                "with the packages of the model, and they need memory for it. What was finished is in the `report` "
                "attribute of this error."
            ) from error
        warnings.warn(
            f"The executor lost a task ({said}). It is run again, with the same result.", UserWarning, stacklevel=2
        )
        self.waiting.append(call.task)

    @staticmethod
    def _how_often(error: Exception) -> str:
        return "" if isinstance(error, concurrent.futures.BrokenExecutor) else f" {MOST_ATTEMPTS} times"
