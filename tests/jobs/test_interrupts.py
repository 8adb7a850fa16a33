"""Signals during a check: raised where it is safe, never lost, and a user's own handler stays in charge."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

from bread.jobs import interrupts

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)


@pytest.fixture(autouse=True)
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note where the process would have ended."""
    found: list[str] = []
    monkeypatch.setattr(interrupts, "end_process", lambda: found.append("ended"))
    return found


@pytest.fixture(autouse=True)
def usual_handlers() -> Iterator[None]:
    """Begin with Python's own handlers, and leave none of ours."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Move the clock on."""
    now = time.monotonic()
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: now + seconds)


@BOTH
def test_a_signal_before_anything_was_computed_says_so(number: int, ended: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt, match="nothing was computed"), interrupts.handled():
        send(number)
        raise AssertionError("went on")
    assert len(ended) == (number == signal.SIGTERM)


@BOTH
def test_book_keeping_is_finished_first(number: int, ended: list[str]) -> None:
    done = []
    with interrupts.handled():
        interrupts.defer()
        send(number)
        done.append("book-keeping")
        with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
            done.append("the next long call")
        assert not ended
    assert done == ["book-keeping"]
    assert len(ended) == (number == signal.SIGTERM)


@BOTH
def test_a_long_call_is_stopped_at_once(number: int) -> None:
    with interrupts.handled():
        interrupts.defer()
        with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
            send(number)
            raise AssertionError("went on")


def test_an_interrupt_that_a_library_swallows_is_raised_after_it() -> None:
    done = []
    with interrupts.handled():
        interrupts.defer()
        with pytest.raises(KeyboardInterrupt):
            with interrupts.interruptible():
                try:
                    send(signal.SIGINT)
                except KeyboardInterrupt:
                    done.append("swallowed")
            done.append("as if nothing had come")
    assert done == ["swallowed"]


class Collected:
    """Sends the interrupt while it is collected, where Python drops exceptions and prints them."""

    def __del__(self) -> None:
        send(signal.SIGINT)


def test_an_interrupt_inside_a_finaliser_is_raised_just_after_it() -> None:
    with pytest.raises(KeyboardInterrupt, match="nothing was computed"), interrupts.handled():
        Collected()
        time.sleep(60)
        raise AssertionError("went on")


def test_an_interrupt_inside_a_callback_of_the_garbage_collector_is_raised_just_after_it() -> None:
    phases = []

    def callback(phase: str, info: dict[str, int]) -> None:
        if not phases:
            phases.append(phase)
            send(signal.SIGINT)

    gc.callbacks.append(callback)
    try:
        with pytest.raises(KeyboardInterrupt, match="nothing was computed"), interrupts.handled():
            gc.collect()
            time.sleep(60)
            raise AssertionError("went on")
    finally:
        gc.callbacks.remove(callback)
    assert phases == ["start"]


def test_an_interrupt_that_a_library_turns_into_its_own_error_is_one() -> None:
    with interrupts.handled():
        interrupts.defer()
        with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
            try:
                send(signal.SIGINT)
            except KeyboardInterrupt:
                raise RuntimeError("the sampler failed") from None
    with pytest.raises(RuntimeError, match="the sampler failed"), interrupts.handled():  # without a signal it stays
        interrupts.defer()
        with interrupts.interruptible():
            raise RuntimeError("the sampler failed")


def test_one_that_was_swallowed_while_the_model_was_opened_is_raised_before_the_first_phase() -> None:
    with pytest.raises(KeyboardInterrupt, match="nothing was computed"), interrupts.handled():
        with contextlib.suppress(KeyboardInterrupt):
            send(signal.SIGINT)
        interrupts.defer()
        raise AssertionError("went on")


def test_one_signal_passed_on_twice_is_one_and_a_second_one_is_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with interrupts.handled():
        interrupts.defer()
        send(signal.SIGINT)
        send(signal.SIGINT)  # a wrapper passes the same one on
        later(monkeypatch, interrupts.AGAIN_SECONDS)
        with pytest.raises(KeyboardInterrupt):  # the check stops, as by the first one
            send(signal.SIGINT)


def test_a_second_signal_ends_it_while_the_report_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt, match="what was computed is lost"), interrupts.handled():
        interrupts.defer()
        with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
            send(signal.SIGINT)
        send(signal.SIGINT)  # the same one, passed on
        later(monkeypatch, interrupts.AGAIN_SECONDS)
        send(signal.SIGINT)
        raise AssertionError("went on")


def test_the_first_signal_after_the_end_of_the_time_leaves_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt, match="what was computed is lost"), interrupts.handled():
        interrupts.defer()
        with interrupts.limited(0.0), pytest.raises(KeyboardInterrupt), interrupts.interruptible():
            time.sleep(60)
        later(monkeypatch, interrupts.AGAIN_SECONDS)
        send(signal.SIGINT)  # while the report is made
        later(monkeypatch, interrupts.REPORT_SECONDS)
        send(signal.SIGINT)  # it hangs
        raise AssertionError("went on")


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_second_sigterm_ends_the_process_at_once(
    first: int, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.suppress(KeyboardInterrupt), interrupts.handled():
        interrupts.defer()
        send(first)
        send(signal.SIGTERM)
        assert not ended
        later(monkeypatch, interrupts.AGAIN_SECONDS)
        with contextlib.suppress(KeyboardInterrupt):
            send(signal.SIGTERM)
        assert ended


def test_a_signal_after_the_last_phase_leaves_the_report_and_says_so() -> None:
    with pytest.warns(UserWarning, match="its report is complete"), interrupts.handled():
        interrupts.defer()
        send(signal.SIGINT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with interrupts.handled():
            interrupts.defer()


def test_a_handler_of_the_user_stays_in_charge() -> None:
    seen = []
    signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with interrupts.handled():
            interrupts.defer()
            send(signal.SIGTERM)
            with interrupts.interruptible():
                seen.append("the next long call")
        assert seen == [signal.SIGTERM, "the next long call"]
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_other_threads_have_no_signals() -> None:
    seen = []

    def work() -> None:
        with interrupts.handled():
            interrupts.defer()
            seen.append(signal.getsignal(signal.SIGTERM))
            with interrupts.interruptible():
                interrupts.raise_pending()
                seen.append("ran")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL, "ran"]
    with interrupts.handled():  # nor do they take part in those of the main thread
        interrupts.defer()
        send(signal.SIGINT)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        with pytest.raises(KeyboardInterrupt):
            interrupts.raise_pending()
    assert seen[-1] == "ran" and len(seen) == 4


FORK = """
import os, signal, time
from bread.jobs import interrupts

with interrupts.handled():
    interrupts.defer()
    child = os.fork()
    if not child:
        time.sleep(600)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM)
"""


def test_a_fork_of_the_process_ends_as_if_it_had_no_handler() -> None:
    """A library's own worker, which the library ends by SIGTERM and waits for."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "True"
