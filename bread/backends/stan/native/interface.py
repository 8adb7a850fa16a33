"""The C interface of a compiled program: signatures of cpp/driver.cpp, and its errors."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.stan.language.messages import StanDataError, run_time_reason
from bread.backends.stan.native.structures import ControlStruct, require_layout
from bread.backends.stan.native.watching import WatchedCall
from bread.errors import BreadError, DensityError

MESSAGE_BYTES = 8192  # most of an error message of the driver
PROGRESS_SECONDS = 0.1  # between looks at how far a call is
Progress = Callable[[float], None]

_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_INT32, _UINT32, _INT64, _DOUBLE = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_double


class Status(IntEnum):
    """How a call ended (`Status` of driver.cpp)."""

    OK = 0
    REJECTED = 1  # std::domain_error: reject(), a failed check
    FAILED = 2  # another exception
    BAD_START = 3
    INTERRUPTED = 4
    UNKNOWN = 5


# Arguments between the instance and the message of each function that returns a status.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "bread_evaluate": (_POINTER, _INT64, _POINTER, _POINTER),
    "bread_rows": (_TEXT, _POINTER, _INT64, _POINTER, _INT64, _POINTER, _DOUBLE, _POINTER, _POINTER),
    "bread_move_rows": (
        _POINTER, _TEXT, _POINTER, _INT64, _POINTER, _POINTER, _DOUBLE, _DOUBLE, _POINTER, _INT64, _INT64, _POINTER,
        _POINTER, _POINTER,
    ),
    "bread_constrained_prior": (_INT64, _POINTER, _POINTER),
    "bread_gradient": (_POINTER, _DOUBLE, _POINTER, _POINTER, _POINTER),
    "bread_gradients": (_POINTER, _DOUBLE, _INT64, _POINTER, _POINTER, _POINTER),
    "bread_time_gradient": (_POINTER, _DOUBLE, _INT64, _POINTER, _INT64, _POINTER),
    "bread_constrain": (_INT64, _POINTER, _POINTER, _INT32, _INT32, _INT64, _POINTER),
    "bread_unconstrain": (_INT64, _INT64, _POINTER, _POINTER),
    "bread_anneal": (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER),
    "bread_evolve": (
        _POINTER, _POINTER, _POINTER, _DOUBLE, _DOUBLE, _POINTER, _POINTER, _POINTER, _POINTER, _INT64, _POINTER,
        _POINTER, _POINTER,
    ),
    "bread_adapt": (
        _POINTER, _POINTER, _POINTER, _DOUBLE, _INT64, _POINTER, _DOUBLE, _POINTER, _POINTER, _POINTER, _POINTER,
        _POINTER, _POINTER,
    ),
}  # fmt: skip


class Library:
    """A loaded library. One call at a time: Stan's automatic differentiation has one tape a library.

    Attributes
    ----------
    lock : threading.Lock
        Held during a call.
    garbage : deque of int
        Instances that were given up during a call, to be freed after it.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._functions = ctypes.CDLL(str(path))
        except OSError as error:
            raise BreadError(f"The compiled Stan program cannot be loaded: {error}. Build it again.") from error
        self.lock = threading.Lock()
        self.garbage: deque[int] = deque()
        for name, arguments in _ARGUMENTS.items():
            getattr(self._functions, name).argtypes = (_POINTER, *arguments, _TEXT, _INT64)
        self._functions.bread_new.argtypes = (_TEXT, _UINT32, _POINTER, _TEXT, _INT64)
        self._functions.bread_describe.argtypes = (_POINTER,)
        self._functions.bread_describe.restype = _TEXT
        self._functions.bread_delete.argtypes = (_POINTER,)
        self._functions.bread_layout.restype = _TEXT
        require_layout(self._functions.bread_layout().decode())

    def new(self, json: str, seed: int) -> int:
        """Return the handle of a new instance of the program with these data."""
        handle, message = ctypes.c_void_p(), ctypes.create_string_buffer(MESSAGE_BYTES)
        with self.lock:
            self._free()
            status = self._functions.bread_new(json.encode(), seed, ctypes.byref(handle), message, MESSAGE_BYTES)
        if status != Status.OK or handle.value is None:
            raise StanDataError(run_time_reason(message.value.decode(errors="replace")))
        return handle.value

    def delete(self, handle: int) -> None:
        """Free an instance at the next call.

        Python may collect an instance at any moment, also in a thread that is inside a call of this library: waiting
        for the call would be waiting for ever. Nor is the lock tried here: an interrupt just after it is taken would
        be dropped, as all exceptions of a finaliser are, and leave it taken.
        """
        self.garbage.append(handle)

    def _free(self) -> None:
        while self.garbage:
            self._functions.bread_delete(self.garbage.popleft())

    def describe(self, handle: int) -> str:
        """Return names and shapes as JSON."""
        return str(self._functions.bread_describe(handle).decode())

    def call(self, name: str, handle: int, *arguments: Any) -> str:
        """Call a function on an instance; return its message.

        Raises
        ------
        DensityError
            The function ended with an exception; the message is Stan's.
        """
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        with self.lock:
            self._free()
            status = getattr(self._functions, name)(handle, *arguments, message, MESSAGE_BYTES)
        text = run_time_reason(message.value.decode(errors="replace"))
        if status != Status.OK:
            raise DensityError(text)
        return text

    def call_watched(self, name: str, handle: int, progress: Progress | None, *arguments: Any) -> str:
        """Do the same for a long call, which any exception in this thread stops, such as KeyboardInterrupt.

        The call runs in another thread: Python handles signals in the main thread, and only between its own
        instructions.

        Parameters
        ----------
        progress : callable, optional
            Told now and then the share of the work that is done. Its exceptions stop the call and pass through.
        """
        control = ControlStruct()
        call = WatchedCall(lambda: self.call(name, handle, ctypes.addressof(control), *arguments))
        try:
            call.start()
            while not call.ended.wait(None if progress is None else PROGRESS_SECONDS):
                if progress is not None:
                    progress(control.done)
            if progress is not None:
                progress(control.done)
        except BaseException:
            control.stop = 1
            call.abandon()
            raise
        return call.result()


@functools.cache
def load(path: Path) -> Library:
    """Return the library at ``path``, loaded once a process."""
    return Library(path)


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    """Return the address of a C-contiguous array."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def doubles(values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a C-contiguous copy in double precision, of this shape."""
    return np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), shape), order="C")
