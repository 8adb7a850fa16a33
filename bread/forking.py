"""Workers that are forked: they begin with all that this process has imported, and with its model.

A worker that starts anew imports PyMC for five CPU seconds, Stan's side of bread for three, and then loads the model. A
fork needs neither, but is safe only where no other thread of this process may hold a lock at that moment: in a script,
not in a notebook. ``BREAD_FORK=0`` in the environment switches it off.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, current_process, get_context
from typing import Any

import cloudpickle
import numpy as np
from threadpoolctl import threadpool_limits

ENDED = (BrokenProcessPool, CancelledError)  # of a call whose worker was killed, or whose pool was ended
_UNSAFE = {"jax", "tensorflow", "torch"}  # threads of their own, which a fork leaves behind with their locks
_HARMLESS = ("rich.", "tqdm.")  # threads that draw a progress bar: workers draw none
LIMIT = "bread-limit"  # the thread that waits for the end of ``max_seconds``
IDLE = "bread-idle"  # a thread that waits for a call, holds no lock, and is not missed in a fork
WATCH_SECONDS = 1.0  # how often a worker looks whether it is still wanted
_calls = {"running": 0, "last": 0.0}  # of this worker


def can_fork() -> bool:
    """Return whether workers may be forked from this process now."""
    if not sys.platform.startswith("linux") or os.environ.get("BREAD_FORK") == "0" or _UNSAFE & sys.modules.keys():
        return False
    if threading.current_thread() is not threading.main_thread() or current_process().daemon:
        return False
    known = {thread.ident for thread in threading.enumerate() if _is_harmless(thread)}
    return sys._current_frames().keys() <= known  # noqa: SLF001 - with those that `threading` does not know


def _is_harmless(thread: threading.Thread) -> bool:
    is_main = thread is threading.main_thread()
    return is_main or type(thread).__module__.startswith(_HARMLESS) or thread.name in (LIMIT, IDLE)


@dataclass(frozen=True)
class Packed:
    """The result of a call, pickled by cloudpickle."""

    pickled: bytes


def result_of(future: Future[Any]) -> Any:
    """Return the result of a call of any pool; its exception is raised."""
    found = future.result()
    return cloudpickle.loads(found.pickled) if isinstance(found, Packed) else found


class ForkedPool:
    """A pool of forked workers, in what bread uses of loky's.

    Parameters
    ----------
    cores : int
    idle_seconds : float
        A worker that was not called for so long ends, and the pool with it.
    prepare : callable
        Called with ``arguments`` in each worker, first.
    """

    def __init__(
        self, cores: int, idle_seconds: float, prepare: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        self._cores = cores
        before = active_children()
        self._pool = ProcessPoolExecutor(
            cores, mp_context=get_context("fork"), initializer=_prepare, initargs=(idle_seconds, prepare, arguments)
        )
        with warnings.catch_warnings():
            # Python 3.12 counts the threads of OpenBLAS, which prepares for a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pool.submit(int)  # all are forked at the first call, before the pool starts its own threads
        self._workers = [child for child in active_children() if child not in before]

    def is_usable(self, cores: int) -> bool:
        """Return whether it has so many workers, all of them alive."""
        return self._cores == cores and all(worker.is_alive() for worker in self._workers)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function on a worker; `result_of` returns its result.

        Raises
        ------
        concurrent.futures.process.BrokenProcessPool
            A worker was killed, or the pool was ended.
        """
        try:
            return self._pool.submit(_call, cloudpickle.dumps((function, arguments)))
        except RuntimeError as error:
            raise BrokenProcessPool(str(error)) from error

    def shutdown(self, wait: bool = True, kill_workers: bool = False) -> None:
        """End the workers."""
        for worker in self._workers if kill_workers else ():
            worker.kill()
        self._pool.shutdown(wait=wait, cancel_futures=kill_workers)


def _prepare(idle_seconds: float, prepare: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Leave to the parent what is its own: signals, a console that it draws on, objects, global random numbers."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    np.random.seed()  # noqa: NPY002 - what a user's own code may draw from; all forks would draw the same
    threadpool_limits(limits=1)
    gc.freeze()
    _calls["last"] = time.monotonic()
    prepare(*arguments)
    threading.Thread(target=_end_when_idle, args=(idle_seconds,), name="bread-watch", daemon=True).start()


def _call(pickled: bytes) -> Packed:
    _calls["running"] += 1
    try:
        function, arguments = cloudpickle.loads(pickled)
        return Packed(cloudpickle.dumps(function(*arguments)))
    finally:
        _calls["running"], _calls["last"] = _calls["running"] - 1, time.monotonic()


def _end_when_idle(seconds: float) -> None:
    while _calls["running"] or time.monotonic() - _calls["last"] < seconds:
        time.sleep(min(WATCH_SECONDS, seconds))
    os._exit(0)
