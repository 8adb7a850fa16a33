"""What a check is doing, on stderr: a live line in a terminal, plain lines elsewhere, text in a notebook.

A check has five stages, in a user's words; each that is over leaves one line, of at most 80 columns: its name, how long
it took and the bound that it gave. A stage has phases, which follow each other in no fixed order: a reference for one
more data set is fitted while the error is measured. What was reached is not left again. While a phase runs a terminal
shows its bar and count, failed chains, and, once it is known, the time left. Without a terminal a stage that lasts
leaves a line now and then: the first after ten seconds, later ones ever more rarely. A notebook shows the same lines in
one output that is replaced; it needs no ipywidgets. Verbs without these stages have a line for each phase.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bread.argument_rules import require_flag
from bread.jobs.views import Clock, View, open_view

STAGES = (
    "compiling", "looking at your draws", "learning the posterior's shape", "measuring the error",
    "annealing on your data",
)  # fmt: skip
_LEARNING, _MEASURING, _ANNEALING = STAGES[2:]
STAGE_OF = {  # phases as the report names them, where it counts their seconds
    "compile": STAGES[0],
    **dict.fromkeys(("fit", "look"), STAGES[1]),
    **dict.fromkeys(("simulate", "tune", "race", "start"), _LEARNING),
    **dict.fromkeys(("direct tests", "prior integrals", "search", "confirm", "curve"), _MEASURING),
    **dict.fromkeys(("consistency", "draws", "compare", "modes", "replicate"), _ANNEALING),
}
NAME_COLUMNS, COUNT_COLUMNS, TIME_COLUMNS = max(map(len, STAGES)), 9, 6
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
    to_come : float or None
        Units like these that the check has before it after this phase, at least; None where that is not known.
    """

    name: str
    total: int | None
    began: float
    to_come: float | None = None
    done: int = 0
    n_tasks: int = 0
    last: float = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.began

    @property
    def count(self) -> str:
        """Finished units of all: "12/96"."""
        return "" if self.total is None else f"{self.done}/{self.total}"

    def seconds_left(self, now: float, workers: int, to_come: float = 0.0) -> float | None:
        """Return the time that is left in this phase, and for ``to_come`` units more, as tasks so far took.

        None where that is not known. It is known when every worker can have finished a task: until then those in flight
        would count as not begun.
        """
        if self.total is None or self.n_tasks < workers or not 0 < self.done < self.total + to_come:
            return None
        left = (self.last - self.began) / self.done * (self.total + to_come - self.done) - (now - self.last)
        return left if left > 0.0 else None


@dataclass
class Stage:
    """A line that stays: one of `STAGES` with all of its phases, or phases of one name in a row.

    Attributes
    ----------
    name : str
    seconds : float
        Of the phases that are over.
    done, total : int
        Units of work of these.
    is_counted : bool
        Whether these are shown: where the phases have one name, and count the same.
    n_failed : int
        Chains that failed.
    bound : str
        The bound so far, with its interval.
    """

    name: str
    seconds: float = 0.0
    done: int = 0
    total: int = 0
    is_counted: bool = True
    n_failed: int = 0
    bound: str = ""

    def add(self, phase: Phase, now: float) -> None:
        """Count a phase that is over."""
        self.seconds += now - phase.began
        self.done += phase.done
        self.total += phase.total or 0

    @property
    def count(self) -> str:
        """Finished units of all: "12/96"."""
        return f"{self.done}/{self.total}" if self.total and self.is_counted else ""

    @property
    def failed(self) -> str:
        """How many chains failed; "" for none."""
        return f"{self.n_failed} chain{'' if self.n_failed == 1 else 's'} failed" if self.n_failed else ""

    def line(self, limit: str = "") -> str:
        """Return name, count, time and bound as columns; ``limit`` is put behind a bound where there is room."""
        count = f"{self.count:>{COUNT_COLUMNS}} " if self.count else ""
        columns = f"{self.name:<{NAME_COLUMNS}} {count}{duration(self.seconds):>{TIME_COLUMNS}}"
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
        self._end = math.inf
        self._phase: Phase | None = None
        self._stage: Stage | None = None
        self._group: str | None = None
        self._to_come: dict[str, float] = {}
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

    def phase(self, name: str, n_chains: int | None = None, phase: str = "") -> None:
        """Begin a phase, such as "compiling" or "T = 64", of ``n_chains`` chains (None: unknown length).

        ``phase`` is what the report calls it, where it counts its seconds: then it is part of one of the `STAGES`, of
        that which has begun where it belongs to an earlier one.
        """
        self._close()
        if n_chains == 0:
            return
        line = self._line_of(name, phase)
        if self._stage is None or self._stage.name != line:
            self._keep()
            self._stage = Stage(line, is_counted=line == name and line not in STAGES)
        self._phase = Phase(name, n_chains, self._clock(), self._to_come.get(phase))
        self._show()

    def _line_of(self, name: str, phase: str) -> str:
        """Return the name of the line that a phase is part of."""
        if self._group is not None:
            return self._group
        stage = name if name in STAGES else STAGE_OF.get(phase)
        now = None if self._stage is None or self._stage.name not in STAGES else self._stage.name
        if stage is None:
            return now if phase and now is not None else name
        return stage if now is None else STAGES[max(STAGES.index(stage), STAGES.index(now))]

    @contextmanager
    def together(self, line: str) -> Iterator[None]:
        """Show all phases as one line of this name; the stages after them begin anew."""
        self._close()
        self._keep()
        self._group = line
        try:
            yield
        finally:
            self._group = None
            self._close()
            self._keep()

    def expect(self, phase: str, n_chains: float) -> None:
        """Say that after phases of this name so many chains like theirs are to come, at least."""
        self._to_come[phase] = n_chains

    def ends_in(self, seconds: float) -> None:
        """Say that the check stops after so many seconds, whatever it has come to."""
        self._end = self._clock() + seconds

    def advance(self, n_chains: int, n_failures: int = 0) -> None:
        """Count chains that finished."""
        if self._phase is not None and self._stage is not None:
            self._phase.done += n_chains
            self._stage.n_failed += n_failures
            self._phase.n_tasks += 1
            self._phase.last = self._clock()
            self._show()

    def bound(self, name: str, estimate: float, upper: float, limit: float) -> None:
        """Show the bound so far with its upper end, and what that must not exceed; nothing where it is not known."""
        if self._stage is not None and not math.isnan(estimate):
            self._stage.bound = f"{name} {_number(estimate)} (below {_number(upper)})"
            self._limit = f", limit {limit:.2g}"

    def note(self, line: str) -> None:
        """Show a line that stays, after the stages that are over; a stage that has begun goes on."""
        self._close()
        if self._view is not None:
            self._view.keep(line)

    def done(self) -> None:
        """Mark the phase as finished."""
        self._close()

    def _close(self) -> None:
        if self._phase is not None and self._stage is not None:
            self._stage.add(self._phase, self._clock())
            self._phase = None
        self._show()

    def _keep(self, remark: str = "") -> None:
        """Show the line of the stage that is over."""
        stage, self._stage = self._stage, None
        if self._view is not None and stage is not None and (stage.total or stage.seconds >= SHORTEST_SECONDS):
            self._view.keep(f"{stage.line(self._limit)}{remark}")
            if stage.n_failed:
                self._view.keep(f"  {stage.failed}")

    def _show(self) -> None:
        if self._view is not None:
            self._view.show(self._running_text, None if self._phase is None else self._running_row)

    def _running_text(self) -> str:
        """Return the running stage as one line, with its phase and how far that is."""
        running = self._now()
        if running is None:
            return ""
        stage, phase, now = running
        doing = "" if phase.name == stage.name else f", {phase.name}"
        count = f", {phase.count}" if phase.count else ""
        return f"{stage.line()}{doing}{count}, {self._left(phase, now) or 'so far'}"

    def _running_row(self) -> RenderableType:
        """Return the running stage with the bar of its phase."""
        running = self._now()
        if running is None:
            return Text("")
        stage, phase, now = running
        return running_row(stage, phase, now, self._left(phase, now))

    def _now(self) -> tuple[Stage, Phase, float] | None:
        """Return the stage with the phase that runs counted, that phase, and the time."""
        stage, phase, now = self._stage, self._phase, self._clock()
        if stage is None or phase is None:
            return None
        counted = replace(stage)
        counted.add(phase, now)
        return counted, phase, now

    def _left(self, phase: Phase, now: float) -> str:
        """Return the time left: of the whole check, at least or at most, where that is known; else of the phase."""
        if phase.to_come is not None:
            seconds = phase.seconds_left(now, self._workers, phase.to_come)
            return "" if seconds is None else f"at least {duration(seconds)} left"
        if math.isfinite(self._end):
            return f"at most {duration(max(self._end - now, 0.0))} left"
        seconds = phase.seconds_left(now, self._workers)
        return "" if seconds is None else f"{duration(seconds)} left in this step"


def running_row(stage: Stage, phase: Phase, now: float, left: str) -> RenderableType:
    """Return name, bar, count and time left as a row that keeps its numbers at 80 columns; bound and failures below."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, min_width=NAME_COLUMNS)
    table.add_column(max_width=WIDEST_BAR)  # the only one that may shrink
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    total = phase.total if phase.total else None
    bar = ProgressBar(total=total, completed=phase.done, pulse=total is None, animation_time=now)
    table.add_row(Text(stage.name, style="bold"), bar, phase.count, left or duration(stage.seconds))
    below = [Text(stage.bound)] if stage.bound else []
    below += [Text(stage.failed, style="red")] if stage.n_failed else []
    return Group(table, *below)


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
