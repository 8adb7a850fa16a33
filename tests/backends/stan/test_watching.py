"""Long calls in another thread: which thread, what passes through, and calls that are given up."""

from __future__ import annotations

import os
import threading
import time

import pytest

from bread.backends.stan.native.watching import WatchedCall
from tests.support.builds import wait_for


def made(function) -> str:
    call = WatchedCall(function)
    call.start()
    assert call.ended.wait(30)
    return call.result()


def test_calls_one_after_another_share_a_thread() -> None:
    threads = []

    def note() -> str:
        threads.append(threading.get_ident())
        return "done"

    assert [made(note) for _ in range(50)] == ["done"] * 50
    assert len(set(threads)) == 1 and threads[0] != threading.get_ident()


def test_calls_at_once_have_threads_of_their_own() -> None:
    meeting = threading.Barrier(3)  # nobody passes alone
    calls = [WatchedCall(lambda: str(meeting.wait(30))) for _ in range(3)]
    for call in calls:
        call.start()
    assert all(call.ended.wait(30) for call in calls)
    assert {call.result() for call in calls} == {"0", "1", "2"}


def test_an_exception_passes_and_the_thread_goes_on() -> None:
    def fail() -> str:
        raise ArithmeticError("of the call")

    with pytest.raises(ArithmeticError, match="of the call"):
        made(fail)
    assert made(lambda: "after it") == "after it"


def test_a_call_that_is_given_up_before_it_begins_never_runs() -> None:
    ran = []
    call = WatchedCall(lambda: ran.append(1) or "")
    call.abandon()
    call.start()
    assert made(lambda: "next") == "next"
    assert not ran and not call.ended.is_set()


def test_giving_up_waits_for_a_call_that_runs() -> None:
    begun, over = threading.Event(), []

    def work() -> str:
        begun.set()
        time.sleep(0.3)
        over.append(1)
        return ""

    call = WatchedCall(work)
    call.start()
    assert begun.wait(30)
    call.abandon()
    assert over and call.ended.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking a process that has threads
def test_a_forked_process_makes_threads_of_its_own() -> None:
    assert made(lambda: "parent") == "parent"  # now one is idle
    child = os.fork()
    if not child:
        try:
            os._exit(0 if made(lambda: "child") == "child" else 1)
        finally:
            os._exit(2)
    status = []
    wait_for(lambda: bool(status) or bool(status.extend([one[1]] if (one := os.waitpid(child, os.WNOHANG))[0] else [])))
    assert os.waitstatus_to_exitcode(status[0]) == 0
