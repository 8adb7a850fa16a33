"""A progress bar: the phase, chains done, the bound so far against its target, failures, time left."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Display:
    """Shows what a check is doing. Without ``is_visible`` it shows nothing and costs nothing."""

    def __init__(self, *, is_visible: bool) -> None:
        self._failures = 0
        self._task: TaskID | None = None
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[bound]}"),
            TextColumn("[red]{task.fields[failures]}"),
            TimeRemainingColumn(compact=True),
            disable=not is_visible,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def phase(self, name: str, n_chains: int | None = None) -> None:
        """Begin a phase, such as "compiling" or "T = 64", of ``n_chains`` chains (None: unknown length)."""
        if self._task is not None:
            self._progress.stop_task(self._task)
        self._task = self._progress.add_task(name, total=n_chains, bound="", failures=self._failure_text())

    def advance(self, n_chains: int, n_failures: int = 0) -> None:
        """Count chains that finished."""
        self._failures += n_failures
        if self._task is not None:
            self._progress.update(self._task, advance=n_chains, failures=self._failure_text())

    def bound(self, name: str, estimate: float, upper: float, limit: float) -> None:
        """Show the bound so far with its upper end, and what that must not exceed behind a slash."""
        if self._task is not None:
            text = f"{name} {estimate:.2f} (< {upper:.2f}) / {limit:.2g}"
            self._progress.update(self._task, bound=text)

    def done(self) -> None:
        """Mark the phase as finished."""
        if self._task is not None:
            task = self._progress.tasks[-1]
            self._progress.update(self._task, total=task.completed or 1, completed=task.completed or 1)

    def _failure_text(self) -> str:
        return f"{self._failures} failed" if self._failures else ""
