"""Long calls into C++ in another thread, so that this one hears interrupts; threads are used again."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from bread.forking import IDLE

_idle: list[_Helper] = []  # those that wait for a call; a thread costs more to start than a short call
os.register_at_fork(after_in_child=_idle.clear)  # a forked process has none of them


class _Helper:
    """A thread that makes one call after another, and lists itself as idle before it reports the end of each."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[WatchedCall] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="bread-stan", daemon=True)
        self._thread.start()

    def make(self, call: WatchedCall) -> None:
        self._thread.name = "bread-stan"
        self._calls.put(call)

    def _work(self) -> None:
        while True:
            self._calls.get().work(self._is_idle)

    def _is_idle(self) -> None:
        self._thread.name = IDLE
        _idle.append(self)


class WatchedCall:
    """A call in another thread that may be given up at any moment, even while it is being handed over.

    An interrupt may come when the call is handed over and does not run yet, or runs and is not yet known to: then it
    can neither be waited for nor left alone, because it will use memory of the caller's. So it asks for leave when it
    begins.

    Attributes
    ----------
    ended : threading.Event
        Set when the call has returned or raised.
    """

    def __init__(self, function: Callable[[], str]) -> None:
        self._function = function
        self._leave = threading.Lock()
        self._is_abandoned = False
        self._has_begun = False
        self._outcome: str | Exception | None = None
        self.ended = threading.Event()

    def start(self) -> None:
        """Hand the call to an idle thread, or to a new one."""
        try:
            helper = _idle.pop()
        except IndexError:
            helper = _Helper()
        helper.make(self)

    def work(self, is_idle: Callable[[], None]) -> None:
        """Make the call, unless it was given up; call ``is_idle`` before its end is reported."""
        with self._leave:
            if self._is_abandoned:
                is_idle()
                return
            self._has_begun = True
        try:
            self._outcome = self._function()
        except Exception as error:
            self._outcome = error
        finally:
            is_idle()
            self.ended.set()

    def abandon(self) -> None:
        """Keep the call from beginning, or wait for its end: it uses memory that is freed next, whoever interrupts."""
        with self._leave:
            self._is_abandoned = True
        while self._has_begun and not self.ended.is_set():
            with contextlib.suppress(KeyboardInterrupt):
                self.ended.wait()

    def result(self) -> str:
        """Return what the call returned, or raise what it raised."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome
