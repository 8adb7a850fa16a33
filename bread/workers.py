"""A pool of worker processes that ends with this process, and that outlives the death of a worker.

Workers are forked where that is safe (`bread.forking`), else they start anew (loky).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import multiprocessing.resource_tracker
import multiprocessing.util
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

import loky.backend.resource_tracker
import loky.process_executor
from loky import get_reusable_executor
from loky.process_executor import ShutdownExecutorError, TerminatedWorkerError

from bread import forking
from bread.errors import BreadError
from bread.forking import WATCH_SECONDS, ForkedPool, can_fork, result_of
from bread.scratch import scratch_folder

MOST_RESTARTS = 3  # of the pool, with no call finished in between
_POLL_SECONDS = 0.2
_IDLE_SECONDS = 300  # an idle worker ends after this long
_END_SECONDS = 5.0
_pools: list[Any] = []  # the one that is kept for later calls, where there is one
_is_worker = threading.Event()  # whether this process is one
_folder = contextlib.ExitStack()  # of this worker, where it compiles
# By a signal or a crash; by another check in this process.
_ENDED = (TerminatedWorkerError, ShutdownExecutorError, *forking.ENDED)


def call_on_workers(
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    cores: int,
    poll: Callable[[], None] = lambda: None,
    before_restart: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Any]]:
    """Call a function on workers, in the order given, and yield (index, result) as they finish.

    The pool is kept for later calls. When a worker is killed, the calls that had not finished are made again on fresh
    workers; so a call must always have the same result. When the iterator is closed or fails, the workers are stopped.

    Parameters
    ----------
    function : callable
    arguments : sequence of tuple
        Of each call.
    cores : int
        Number of workers.
    poll : callable
        Called a few times a second while the calls run; its exceptions pass through.
    before_restart : callable
        Called before fresh workers start: they have not inherited what those before them had.

    Raises
    ------
    BreadError
        Workers were killed again and again.

    Warns
    -----
    UserWarning
        A worker was killed.
    """
    left = dict(enumerate(arguments))
    n_restarts = 0
    while left:
        try:
            for index, result in _calls(function, dict(left), cores, poll):
                del left[index]
                n_restarts = 0
                yield index, result
        except _ENDED as error:
            time.sleep(_POLL_SECONDS)  # what killed the worker may be about to stop this process, too
            poll()
            n_restarts += 1
            if n_restarts > MOST_RESTARTS:
                raise _given_up(error) from error
            before_restart()
            warnings.warn(_restarted(len(left)), UserWarning, stacklevel=2)


def start_workers(function: Callable[..., Any], arguments: tuple[Any, ...], cores: int) -> None:
    """Start the workers, each with this call, whose result nobody waits for."""
    with _starting(), contextlib.suppress(*_ENDED):  # then the next call starts others
        pool = _pool(cores)
        for _ in range(cores):
            pool.submit(function, *arguments)


def fork_workers(cores: int) -> ForkedPool | None:
    """Fork fresh workers now, with what this process has; None where it may not be forked, or others are kept.

    They wait for calls until they are ended.
    """
    end_forked_workers()
    if _pools or not can_fork():
        return None
    with _starting():
        pool = ForkedPool(cores, math.inf, _prepare_worker, (os.getpid(),))
    _pools[:] = [pool]
    return pool


def serves(pool: ForkedPool, cores: int) -> bool:
    """Return whether the next call will go to this pool, all of whose workers are alive."""
    return pool in _pools and pool.is_usable(cores)


def end_forked_workers() -> None:
    """End workers that were forked, if there are any.

    Not kept longer than they work: a fork holds what this process had open. To fork again costs next to nothing.
    """
    if _pools and isinstance(_pools[0], ForkedPool):
        _end(_pools.pop())


def own_compile_folder() -> None:
    """Let PyTensor compile into a folder of this worker's, which ends with it; nothing in a process that is none.

    To be called before PyTensor is imported. Its folder has one lock. A worker would wait for it whenever another
    process compiles, a notebook beside this check too, and fail after two minutes. What the parent has compiled comes
    with the model.
    """
    if _is_worker.is_set() and "pytensor" not in sys.modules:
        flags = shlex.quote(f"compiledir={_folder.enter_context(scratch_folder())}/pytensor")
        atexit.register(_folder.close)
        os.environ["PYTENSOR_FLAGS"] = ",".join(filter(None, (os.environ.get("PYTENSOR_FLAGS"), flags)))


def stop_workers() -> None:
    """End the workers, if there are any, at whatever they are; the next call starts others."""
    if _pools:
        _end(_pools.pop())


def _calls(
    function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]], cores: int, poll: Callable[[], None]
) -> Iterator[tuple[int, Any]]:
    """Make calls on one pool."""
    with _starting():
        pool = _pool(cores)
        futures: dict[Future[Any], int] = {pool.submit(function, *values): index for index, values in arguments.items()}
    pending, is_finished = set(futures), False
    try:
        while pending:
            poll()
            done, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                yield futures[future], result_of(future)
        is_finished = True
    finally:
        if not is_finished:  # interrupted, failed or abandoned: what runs now has no reader
            _end(pool)


def _pool(cores: int) -> Any:
    """Return the pool that is kept, or a new one."""
    if _pools and isinstance(_pools[0], ForkedPool):
        if _pools[0].is_usable(cores):
            return _pools[0]
        end_forked_workers()
    pool: Any
    if not _pools and can_fork():
        pool = ForkedPool(cores, _IDLE_SECONDS, _prepare_worker, (os.getpid(),))
    else:
        pool = get_reusable_executor(
            max_workers=cores, timeout=_IDLE_SECONDS, initializer=_prepare_worker, initargs=(os.getpid(),)
        )
    _pools[:] = [pool]
    return pool


def _end(pool: Any) -> None:
    """Kill the workers, and wait until that is done.

    Loky may start a program to find a worker's own children. A fork inherits the open files of this process and, for
    a moment, the locks on them: a report that is written at that time would find its own file locked. The wait ends
    in any case: loky may wait for a full queue that nobody reads.
    """
    ending = threading.Thread(
        target=pool.shutdown, kwargs={"wait": True, "kill_workers": True}, name="bread-end", daemon=True
    )
    ending.start()
    ending.join(_END_SECONDS)


@contextlib.contextmanager
def _flushed() -> Iterator[None]:
    """Flush what a fork would write again; those who start processes flush too, and fail where that cannot be done."""
    for number in range(3):  # a pipe to a worker would take the place of a standard stream that is closed
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            try:
                getattr(sys, name).flush()
            except (OSError, ValueError, AttributeError):  # the reader has gone; it was closed; there is none
                setattr(sys, name, stack.enter_context(open(os.devnull, "w")))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Let workers that start inside the block ignore the keyboard interrupt from their first instruction.

    A worker that is still importing when a terminal interrupts the whole group would end with a traceback. Processes
    inherit the mask of the thread that starts them; this process receives the interrupt by another thread, or after
    the block.
    """
    _end_before_joined()
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        with _flushed():
            yield
        return
    for tracker in (multiprocessing.resource_tracker, loky.backend.resource_tracker):
        tracker.ensure_running()  # starting one would lift the mask (before Python 3.14)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _flushed():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@functools.cache
def _end_before_joined() -> None:
    """Let a process of `multiprocessing` end its workers when it ends: it waits for them first, and they for work."""
    if multiprocessing.parent_process() is not None:
        multiprocessing.util.Finalize(None, stop_workers, exitpriority=0)


def _prepare_worker(parent: int) -> None:
    """Leave the keyboard interrupt to the parent, and end with it.

    A thread asks now and then who the parent is. Linux could send a signal at the parent's death, but sends it when
    the *thread* ends that started the worker.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _pools.clear()  # a fork inherits them
    # Where psutil is installed, loky ends a worker that has grown by 300 MB since its first call, with a warning of a
    # leak. A compiled model takes as much (XLA does), and would be compiled again.
    vars(loky.process_executor)["_USE_PSUTIL"] = False
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _is_worker.set()
    threading.Thread(target=_end_with, args=(parent,), name="bread-watch", daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    _folder.close()
    os._exit(1)


def _restarted(n_calls: int) -> str:
    return (
        f"A worker process was killed. What it ran is run again on fresh workers ({n_calls} tasks are left), with the "
        "same results. Where memory is short, use fewer cores."
    )


def _given_up(error: Exception) -> BreadError:
    return BreadError(
        f"Worker processes were killed {MOST_RESTARTS + 1} times before any of them finished a task "
        f"({str(error).splitlines()[0]}). Often memory is short, or the model's own code crashes: use fewer cores, or "
        "cores=1 to see the crash. What was finished is in the `report` attribute of this error."
    )
