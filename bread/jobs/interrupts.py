"""Ctrl-C and SIGTERM during a check: one way to stop, at moments where nothing is torn.

Python raises KeyboardInterrupt between any two instructions: in the middle of book-keeping, while a library holds a
lock, in a callback whose exceptions are dropped; and some samplers catch it and return what they have. SIGTERM ends a
process without a word. So a check handles both signals itself: it notes that one came, raises KeyboardInterrupt at
once only where that is safe, and raises it later where it was noted or swallowed. Ctrl-C stops the check. SIGTERM
means the process: once the check has stopped, and let go of workers, files and locks, the signal ends it.
"""

from __future__ import annotations

import _thread
import gc
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from bread.forking import LIMIT

AGAIN_SECONDS = 1.0  # a second signal after this long means "now"; before, a wrapper has passed the same one on twice
REPORT_SECONDS = 10.0  # the same where the clock has stopped the check: what was finished is being put into a report
_SOON_SECONDS = 0.01
_NOTHING_DONE = "Interrupted while the model was read and compiled: nothing was computed."
_NOW = "Interrupted twice: what was computed is lost."
_AFTER_THE_END = "Interrupted when the check had finished: its report is complete."


class _Signals:
    """The signals of one check."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.has_come = False
        self.is_raised = False  # it was seen as a KeyboardInterrupt
        self.raises_after = 0.0  # later signals raise from this time on
        self.is_deferred = False
        self.has_begun = False  # there is something to keep
        self.began = time.monotonic()  # when the check was called: what it may take counts from there
        self.deadline = math.inf  # of the clock, from which on a signal counts as come
        self.is_over = False  # the deadline has passed before any signal came
        self.is_end = False  # SIGTERM came, which ends the process

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if os.getpid() != self.process:  # a fork of this process, which a library started: not ours to stop
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        if _drops_exceptions(frame):
            _thread.start_new_thread(_send_soon, (self.process, number))  # takes no lock that is taken here
            return
        if not self.has_come and time.monotonic() >= self.deadline:
            self.is_over = True  # it is the clock's own
        self.is_end |= number == signal.SIGTERM
        if self.has_come:
            if time.monotonic() >= self.raises_after:
                if number == signal.SIGTERM:
                    end_process()
                self.raise_it()
            return
        self.has_come, self.raises_after = True, time.monotonic() + AGAIN_SECONDS
        if not self.is_deferred:
            self.raise_it()

    def look_at_the_clock(self) -> None:
        """Note that a signal came where the deadline has passed."""
        if not self.has_come and time.monotonic() >= self.deadline:
            self.has_come = self.is_over = True

    def raise_it(self) -> None:
        """Raise KeyboardInterrupt."""
        pause = REPORT_SECONDS if self.is_over else AGAIN_SECONDS
        self.is_raised, self.raises_after = True, time.monotonic() + pause
        raise KeyboardInterrupt


def _send_soon(process: int, number: int) -> None:
    time.sleep(_SOON_SECONDS)
    os.kill(process, number)


def _drops_exceptions(frame: FrameType | None) -> bool:
    """Return whether this is in a finaliser, or a callback of the garbage collector (JAX and hypothesis have some).

    Python drops what is raised there, and says so on standard error.
    """
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code in callbacks:
            return True
        frame = frame.f_back
    return False


_handled: list[_Signals] = []  # of the check that runs in the main thread, if one does
_ends: list[bool] = []  # of blocks at whose end the process ends, whether it is to


def end_process() -> None:
    """End this process by SIGTERM, as one that does not handle it; in a block of `ends_later` at its end."""
    if _ends:
        _ends[-1] = True
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def ends_later() -> Iterator[None]:
    """Let SIGTERM, where it has stopped a check, end the process after the block, in which its report is written."""
    _ends.append(False)
    try:
        yield
    finally:
        if _ends.pop():
            with suppress(Exception):  # of a stream that is closed, or whose reader has gone
                sys.stdout.flush()
            end_process()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _signals() -> _Signals | None:
    """Return the signals of the check that runs in this thread; only the main thread has any."""
    return _handled[-1] if _handled and _is_main() else None


@contextmanager
def handled() -> Iterator[None]:
    """Handle SIGINT and SIGTERM in the block: both raise KeyboardInterrupt, after `defer` only where that is safe.

    After the block SIGTERM ends the process. Only in the main thread, as Python asks; only where a signal still has
    Python's own handler (SIGINT) or none (SIGTERM), so that a handler of the user's stays in charge; put back
    afterwards. A KeyboardInterrupt that leaves the block says what was computed. Blocks inside others do nothing.
    """
    if _handled or not _is_main():
        yield
        return
    signals = _Signals()
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: handler for number, handler in usual.items() if signal.getsignal(number) is handler}
    try:
        _handled.append(signals)
        for number in before:
            signal.signal(number, signals.receive)
        yield
    except KeyboardInterrupt as interrupt:
        if interrupt.args:
            raise
        raise KeyboardInterrupt(_NOW if signals.has_begun else _NOTHING_DONE) from None
    finally:
        signals.is_deferred = True
        for number, handler in before.items():
            signal.signal(number, handler)
        _handled.clear()
        if signals.is_end:
            end_process()
    if signals.has_come and not signals.is_raised:
        warnings.warn(_AFTER_THE_END, UserWarning, stacklevel=4)


def defer() -> None:
    """Note signals from now on to the end of `handled`, without raising, but for `interruptible` and `raise_pending`.

    Raises for a signal that came before and that someone swallowed. A second signal, not too soon after the first,
    raises at once: the way out where something hangs.
    """
    signals = _signals()
    if signals is not None:
        signals.is_deferred = True
        raise_pending()
        signals.has_begun = True


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at once in the block, for long calls that hold nothing; and at its end if it was lost.

    What a library makes of the exception does not matter: that a signal came is known here.
    """
    signals = _signals()
    if signals is None:
        yield
        return
    was = signals.is_deferred
    try:
        signals.is_deferred = False
        raise_pending()
        yield
        raise_pending()
    except Exception:
        raise_pending()
        raise
    finally:
        signals.is_deferred = was


def raise_pending() -> None:
    """Raise KeyboardInterrupt if a signal has come, or the time of `limited` is over."""
    signals = _signals()
    if signals is None:
        return
    signals.look_at_the_clock()
    if signals.has_come:
        signals.raise_it()


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Stop the block so many seconds after `handled` began as a signal would, where that is safe; None for no limit.

    Where they are over already, the first `raise_pending` stops it. Long calls of libraries are stopped too where
    SIGINT is handled here: then a signal is sent at the deadline.
    """
    signals = _signals()
    if seconds is None or signals is None:
        yield
        return
    signals.deadline = signals.began + seconds
    timer: threading.Timer | None = None
    if signal.getsignal(signal.SIGINT) == signals.receive:
        timer = threading.Timer(max(seconds_left(), 0.0), os.kill, (signals.process, signal.SIGINT))
        timer.name, timer.daemon = LIMIT, True
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        signals.deadline = math.inf


def is_over() -> bool:
    """Return whether what stopped the check was the end of its time (`limited`), not a signal."""
    signals = _signals()
    return signals is not None and signals.is_over


def seconds_left() -> float:
    """Return the seconds until the deadline of `limited`; infinity where there is none."""
    signals = _signals()
    return math.inf if signals is None else signals.deadline - time.monotonic()


def can_limit() -> bool:
    """Return whether `limited` can stop this thread: signals are handled in the main one alone."""
    return _is_main()
