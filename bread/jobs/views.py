"""Where progress is shown: a terminal, plain lines on stderr, or the output of a notebook's cell."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Protocol, cast

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

FIRST_LINE_SECONDS = 10.0  # between lines of one phase without a terminal,
LINE_SHARE = 0.1  # and this share of the time since the check began where that is longer
NOTEBOOK_SECONDS = 0.5  # between changes of a notebook's output

Clock = Callable[[], float]


class Stderr:
    """Standard error as it is when something is written; where nothing can be, nothing is, and the check goes on."""

    def write(self, text: str) -> int:
        """Write, if somebody reads."""
        self._call("write", text)
        return len(text)

    def flush(self) -> None:
        """Let what was written out."""
        self._call("flush")

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    @staticmethod
    def _call(name: str, *arguments: Any) -> None:
        with suppress(OSError, ValueError, AttributeError):  # the reader has gone; it was closed; there is none
            getattr(sys.stderr, name)(*arguments)


class View(Protocol):
    """Where progress is shown."""

    def show(self, text: Callable[[], str], row: Callable[[], RenderableType] | None) -> None:
        """Show the running phase; ``row`` is None where none runs."""
        ...

    def keep(self, line: str) -> None:
        """Show a line that stays."""
        ...

    def start(self) -> None: ...  # noqa: D102

    def stop(self) -> None: ...  # noqa: D102


def open_view(clock: Clock) -> View:
    """Return the view that fits where stderr goes."""
    console = Console(file=cast(IO[str], Stderr()))
    if console.is_jupyter:
        return NotebookView()
    return TerminalView(console) if console.is_terminal and not console.is_dumb_terminal else LineView(clock)


class TerminalView:
    """A live row under the lines of the phases that are over."""

    def __init__(self, console: Console) -> None:
        self._row: Callable[[], RenderableType] | None = None
        self._live = Live(
            console=console, refresh_per_second=4, transient=True, redirect_stdout=False, get_renderable=self._render,
        )  # fmt: skip

    def _render(self) -> RenderableType:
        row = self._row
        return Text("") if row is None else row()

    def show(self, text: Callable[[], str], row: Callable[[], RenderableType] | None) -> None:
        """Show the running phase."""
        self._row = row

    def keep(self, line: str) -> None:
        """Show a line that stays."""
        self._live.console.print(Text(line), soft_wrap=True)

    def start(self) -> None:
        """Begin to show."""
        self._live.start()

    def stop(self) -> None:
        """Leave what stays."""
        self._live.stop()


class Ticking:
    """Does something again and again, in a thread of its own, until it is stopped."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bread-progress", daemon=True)

    def tick(self) -> None:
        """Do it once."""

    def _run(self) -> None:
        while not self._is_over.wait(self._seconds):
            self.tick()

    def start(self) -> None:
        """Begin to show."""
        self._thread.start()

    def stop(self) -> None:
        """Leave what stays."""
        self._is_over.set()
        self._thread.join()


class LineView(Ticking):
    """A line for each phase, and one now and then while it lasts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(min(1.0, FIRST_LINE_SECONDS / 4))
        self._clock = clock
        self._text: Callable[[], str] | None = None
        self._began = self._written = clock()
        self._lock = threading.Lock()

    def show(self, text: Callable[[], str], row: Callable[[], RenderableType] | None) -> None:
        """Show the running phase."""
        self._text = text if row is not None else None

    def keep(self, line: str) -> None:
        """Show a line that stays."""
        with self._lock:
            self._write(line)

    def tick(self) -> None:
        """Write the running phase if nothing was written for long enough."""
        with self._lock:
            now, text = self._clock(), self._text
            pause = max(FIRST_LINE_SECONDS, LINE_SHARE * (now - self._began))
            if text is not None and now - self._written >= pause:
                self._write(text())

    def _write(self, line: str) -> None:
        self._written = self._clock()
        if line:
            print(line.rstrip(), file=Stderr(), flush=True)


class NotebookView(Ticking):
    """One output of text under the cell, replaced as the check goes on."""

    def __init__(self) -> None:
        super().__init__(NOTEBOOK_SECONDS)
        self._lines: list[str] = []
        self._text: Callable[[], str] | None = None
        self._handle: Any = None

    def show(self, text: Callable[[], str], row: Callable[[], RenderableType] | None) -> None:
        """Show the running phase."""
        self._text = text if row is not None else None

    def keep(self, line: str) -> None:
        """Show a line that stays."""
        self._lines.append(line)

    def tick(self) -> None:
        """Replace the output."""
        text = self._text
        self._handle.update(self._bundle([*self._lines, *([text()] if text is not None else [])]), raw=True)

    def _bundle(self, lines: list[str]) -> dict[str, str]:
        return {"text/plain": "\n".join(line.rstrip() for line in lines)}

    def start(self) -> None:
        """Begin to show."""
        from IPython.display import display

        self._handle = display(self._bundle([]), raw=True, display_id=True)
        super().start()

    def stop(self) -> None:
        """Leave what stays."""
        super().stop()
        self.tick()
