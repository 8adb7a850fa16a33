"""What a check is doing, on stderr: a live line in a terminal, plain lines elsewhere, text in a notebook.

Each phase that is over leaves one line, of at most 80 columns: its name, what was done, how long it took and the
bound that it gave. While a phase runs a terminal shows its bar and count, failed chains, and, once it is known, the
time left in the phase. Without a terminal a phase that lasts leaves a line now and then: the first after ten seconds,
later ones ever more rarely. A notebook shows the same lines in one output that is replaced; it needs no ipywidgets.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bread.argument_rules import require_flag
from bread.running.views import Clock, View, open_view

NAME_COLUMNS, COUNT_COLUMNS, TIME_COLUMNS = 23, 9, 6
LINE_COLUMNS = 80
WIDEST_BAR = 20
SHORTEST_SECONDS = 0.05  # of a phase without a count that leaves a line


@dataclass
class Phase:
    """A phase and how far it is.

    Attributes
    ----------
    name : str
    total : int or None
        Chains, or other units of work; None where the length is not known.
    done, n_tasks : int
        Units and tasks that are finished.
    began, last : float
        When it began and when its last task finished, in seconds of the clock.
    bound : str
        The bound so far, with its interval.
    n_failed : int
        Chains that failed.
    """

    name: str
    total: int | None
    began: float
    done: int = 0
    n_tasks: int = 0
    n_failed: int = 0
    last: float = field(init=False)
    bound: str = ""

    def __post_init__(self) -> None:
        self.last = self.began

    def resumed(self, total: int, pause: float) -> Self:
        """Go on with ``total`` more units after a pause of so many seconds, which do not count."""
        self.total = (self.total or 0) + total
        self.began += pause
        self.last += pause
        return self

    @property
    def count(self) -> str:
        """Finished units of all: "12/96"."""
        return "" if self.total is None else f"{self.done}/{self.total}"

    @property
    def failed(self) -> str:
        """How many chains failed; "" for none."""
        return f"{self.n_failed} chain{'' if self.n_failed == 1 else 's'} failed" if self.n_failed else ""

    def seconds_left(self, now: float, workers: int) -> float | None:
        """Return the time that is left in this phase, as tasks so far took; None where that is not known.

        It is known when every worker can have finished a task: until then those in flight would count as not begun.
        """
        if self.total is None or self.n_tasks < workers or not 0 < self.done < self.total:
            return None
        left = (self.last - self.began) / self.done * (self.total - self.done) - (now - self.last)
        return left if left > 0.0 else None

    def line(self, now: float, limit: str = "") -> str:
        """Return name, count, time and bound as columns; ``limit`` is put behind a bound where there is room."""
        spent = duration(now - self.began)
        columns = f"{self.name:<{NAME_COLUMNS}} {self.count:>{COUNT_COLUMNS}} {spent:>{TIME_COLUMNS}}"
        whole = f"{columns}  {self.bound}" if self.bound else columns
        return f"{whole}{limit}" if self.bound and len(whole) + len(limit) <= LINE_COLUMNS else whole


class Display:
    """Shows what a check is doing. Without ``is_visible`` it shows nothing and costs nothing.

    Parameters
    ----------
    is_visible : bool
    workers : int
        Processes that run tasks.
    clock : callable
        Seconds, for tests.
    """

    def __init__(self, *, is_visible: bool, workers: int = 1, clock: Clock = time.perf_counter) -> None:
        require_flag("progressbar", is_visible)
        self._limit = ""
        self._workers, self._clock = workers, clock
        self._phase: Phase | None = None
        self._over: tuple[Phase, float] | None = None  # the phase before, whose line is not shown yet, and its end
        self._view: View | None = open_view(clock) if is_visible else None

    def __enter__(self) -> Self:
        if self._view is not None:
            self._view.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._view is not None:
            is_running = self._phase is not None
            self._close()
            self._keep(" (stopped)" if is_running else "")
            self._view.stop()

    def phase(self, name: str, n_chains: int | None = None) -> None:
        """Begin a phase, such as "compiling" or "T = 64", of ``n_chains`` chains (None: unknown length).

        A phase of the name of the one before goes on with it: they leave one line.
        """
        self._close()
        if self._over is not None and self._over[0].name == name and self._over[0].total is not None and n_chains:
            phase, end = self._over
            self._phase, self._over = phase.resumed(n_chains, self._clock() - end), None
        else:
            self._keep()
            self._phase = Phase(name, n_chains, self._clock())
        self._show()

    def advance(self, n_chains: int, n_failures: int = 0) -> None:
        """Count chains that finished."""
        if self._phase is not None:
            self._phase.done += n_chains
            self._phase.n_failed += n_failures
            self._phase.n_tasks += 1
            self._phase.last = self._clock()
            self._show()

    def bound(self, name: str, estimate: float, upper: float, limit: float) -> None:
        """Show the bound so far with its upper end, and what that must not exceed; nothing where it is not known."""
        if self._phase is not None and not math.isnan(estimate):
            self._phase.bound = f"{name} {_number(estimate)} (below {_number(upper)})"
            self._limit = f", limit {limit:.2g}"

    def note(self, line: str) -> None:
        """Show a line that stays, after the phases that are over."""
        self._close()
        self._keep()
        if self._view is not None:
            self._view.keep(line)

    def done(self) -> None:
        """Mark the phase as finished."""
        self._close()

    def _close(self) -> None:
        if self._phase is not None:
            self._keep()
            self._over, self._phase = (self._phase, self._clock()), None
        self._show()

    def _keep(self, remark: str = "") -> None:
        """Show the line of the phase that is over."""
        if self._over is None:
            return
        (phase, end), self._over = self._over, None
        if self._view is not None and phase.total != 0 and (phase.count or end - phase.began >= SHORTEST_SECONDS):
            self._view.keep(f"{phase.line(end, self._limit)}{remark}")
            if phase.n_failed:
                self._view.keep(f"  {phase.failed}")

    def _show(self) -> None:
        if self._view is not None:
            self._view.show(self._running_text, None if self._phase is None else self._running_row)

    def _running_text(self) -> str:
        """Return the running phase as one line."""
        phase, now = self._phase, self._clock()
        if phase is None:
            return ""
        left = self._left(phase, now)
        return f"{phase.line(now)}, {left or 'so far'}"

    def _running_row(self) -> RenderableType:
        """Return the running phase with its bar."""
        phase, now = self._phase, self._clock()
        return Text("") if phase is None else running_row(phase, now, self._left(phase, now))

    def _left(self, phase: Phase, now: float) -> str:
        seconds = phase.seconds_left(now, self._workers)
        return "" if seconds is None else f"{duration(seconds)} left"


def running_row(phase: Phase, now: float, left: str) -> RenderableType:
    """Return name, bar, count, time left and bound as a row that keeps its numbers at 80 columns."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, min_width=NAME_COLUMNS)
    table.add_column(max_width=WIDEST_BAR)  # the only one that may shrink
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right", min_width=len("10 min left"))
    table.add_column(no_wrap=True)
    total = phase.total if phase.total else None
    bar = ProgressBar(total=total, completed=phase.done, pulse=total is None, animation_time=now)
    table.add_row(
        Text(phase.name, style="bold"), bar, phase.count, left or duration(now - phase.began), phase.bound
    )  # fmt: skip
    return Group(table, Text(phase.failed, style="red")) if phase.n_failed else table


def duration(seconds: float) -> str:
    """Return a time in at most six characters: "0.4 s", "12 s", "3 min", "2.5 h"."""
    for size, unit in ((1.0, "s"), (60.0, "min"), (3600.0, "h")):
        value = seconds / size
        if value < 9.95 and unit != "min":
            return f"{value:.1f} {unit}"
        if value < 99.5:
            return f"{value:.0f} {unit}"
    return f"{seconds / 3600.0:.0f} h"


def _number(value: float) -> str:
    """Return a bound: two significant digits, whole from 10 up; no bound is below 0."""
    value = max(value, 0.0)
    return f"{value:.0f}" if 10.0 <= value < 1e5 else f"{value:.2g}"
