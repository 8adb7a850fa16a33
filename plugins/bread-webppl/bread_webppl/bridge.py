"""A Node.js process that runs one WebPPL program: requests and answers, a line of JSON each."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from bread.backends.base import FloatArray
from bread.errors import BreadError, MissingDependencyError, UnsupportedModelError

DRIVER = Path(__file__).with_name("js") / "driver.js"
END_SECONDS = 5.0
LAST_WORDS = 2000  # bytes of what a process that died had written
Opening = tuple[tuple[str, dict[str, Any]], ...]


class Bridge:
    """A process that starts at the first request, again after an interrupt or in a copy, and ends with this object.

    Parameters
    ----------
    node : str
        Node.js itself.
    opening : tuple of (str, dict)
        Requests that every new process gets first.
    """

    def __init__(self, node: str, opening: Opening) -> None:
        self.node, self.opening = node, opening
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # the process of Python that started it: a forked one must not use it
        self._lock = threading.Lock()
        self._words: Any = None  # the file of its standard error
        self._end: Callable[[], Any] = lambda: None

    def __getstate__(self) -> dict[str, Any]:
        return {"node": self.node, "opening": self.opening}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def ask(self, request: str, **fields: Any) -> dict[str, Any]:
        """Send a request, and return the result.

        Raises
        ------
        UnsupportedModelError
            The program is refused, or raises.
        MissingDependencyError
            Node.js, or the npm package ``webppl``, is not there.
        BreadError
            Node.js ended.
        """
        with self._lock:
            try:
                if self._process is None or self._owner != os.getpid():
                    self._start()
                    for name, values in self.opening:
                        self._exchange(name, values)
                return self._exchange(request, fields)
            except (UnsupportedModelError, MissingDependencyError):
                raise  # answers: the process is ready for the next request
            except BaseException:
                self._stop()  # an interrupt may have left an answer unread
                raise

    def keep(self, request: str, **fields: Any) -> dict[str, Any]:
        """Send a request, and send it to every later process too."""
        result = self.ask(request, **fields)
        self.opening = (*self.opening, (request, fields))
        return result

    def close(self) -> None:
        """End the process; the next request starts another."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            process = subprocess.Popen(
                [self.node, str(DRIVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                start_new_session=True,  # an interrupt is for Python, which ends the process if it gives up an answer
            )
        except OSError as error:
            self._words.close()
            raise MissingDependencyError(
                f"WebPPL programs need Node.js, and {self.node!r} cannot be started ({error}). Install Node.js, or "
                "pass bread_webppl.Model(..., node=path)."
            ) from error
        self._process, self._owner = process, os.getpid()
        self._end = weakref.finalize(self, _end, process, os.getpid(), self._words)

    def _stop(self) -> None:
        self._process = None
        self._end()

    def _exchange(self, request: str, fields: dict[str, Any]) -> dict[str, Any]:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        line = json.dumps({"request": request, **fields}).encode() + b"\n"
        text = b""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()
            text = self._process.stdout.readline()
        if not text.endswith(b"\n"):
            raise BreadError(
                f"Node.js ended during the request {request!r}, with status {self._process.wait()}: "
                f"{self._last_words()} Where memory ran out, start it with NODE_OPTIONS=--max-old-space-size=8000 in "
                "the environment."
            )
        answer = json.loads(text)
        if "result" in answer:
            return dict(answer["result"]) if isinstance(answer["result"], dict) else {"rows": answer["result"]}
        if "missing" in answer:
            raise MissingDependencyError(
                f"WebPPL programs need the npm package 'webppl' ({answer['missing']}). Run `npm install webppl`, and "
                "pass bread_webppl.Model(..., node_modules=folder) or set NODE_PATH to its node_modules."
            )
        if "refusal" in answer:
            raise UnsupportedModelError(f"This WebPPL program is refused: {answer['refusal']}.")
        raise UnsupportedModelError(f"The WebPPL program does not run: {answer['error']}")

    def _last_words(self) -> str:
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, self._words.tell() - LAST_WORDS))
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return next((line for line in lines if "rror" in line), lines[-1] if lines else "it said nothing.")


def _end(process: subprocess.Popen[bytes], owner: int, words: IO[bytes]) -> None:
    """End a process that this one started."""
    if os.getpid() != owner:
        return
    for stream in (process.stdin, process.stdout, words):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)


def pack(values: Any) -> str:
    """Return numbers as the driver reads them, bit by bit."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def unpack(text: str) -> FloatArray:
    """Return the numbers that the driver wrote, as a vector."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").astype(np.float64)
