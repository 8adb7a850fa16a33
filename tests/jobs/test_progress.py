"""Progress: on stderr, whole at 80 columns, never long silent, and an honest time left."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from bread.jobs import progress, views
from bread.jobs.progress import Display

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal(io.StringIO):
    """Takes what is written to a terminal of 80 columns and 24 rows."""

    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        """Every row that was ever on the screen, without colours."""
        return [row.rstrip() for row in re.split(r"[\r\n]+", CONTROL.sub("", self.getvalue())) if row.strip()]


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in (("COLUMNS", "80"), ("LINES", "24"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def run_phases(display: Any, n_phases: int = 3) -> None:
    """Show the longest that a check shows: large T, long counts, wide bounds, failures."""
    with display:
        display.phase("compiling")
        for index in range(n_phases):
            display.phase(f"T = {1024 + index}, confirm", 1280)
            for _ in range(20):
                display.advance(32, 0)
                time.sleep(0.03)
                display.bound("KL", 12345.6, 123456.7, 0.1)
            time.sleep(0.3)  # a live display is drawn four times a second
            for _ in range(20):
                display.advance(32, 1)
            display.done()


def test_a_terminal_of_80_columns_shows_counts_times_and_bounds_whole(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.redirect_stderr(terminal):
        run_phases(Display(is_visible=True))
    rows = terminal.rows()
    assert capsys.readouterr().out == ""  # a report may be piped on
    assert rows and max(len(row) for row in rows) <= 80
    running = [row for row in rows if "640/1280" in row]
    assert running and any(" left in this step" in row for row in running)
    assert "KL 12346 (below 1.2e+05)" in rows[rows.index(running[-1]) + 1]
    assert any(re.match(r"T = 1024, confirm +1280/1280 +\d\S* \w+  KL 12346 \(below 1.2e\+05\)", row) for row in rows)
    assert any("20 chains failed" in row for row in rows)


def test_a_terminal_of_24_rows_shows_the_phase_that_runs(terminal: Terminal) -> None:
    with contextlib.redirect_stderr(terminal), Display(is_visible=True) as display:
        for index in range(40):
            display.phase(f"T = {index}", 10)
            display.advance(10)
            display.done()
        display.phase("draws, your data", 100)
        display.advance(50)
        time.sleep(0.4)
        assert any(re.match(r"draws, your data .* 50/100 ", row) for row in terminal.rows())


def test_without_a_terminal_every_phase_leaves_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(is_visible=True) as display:
        display.phase("tuning", 2)
        display.advance(2)
        display.done()
        display.phase("T = 64", 8)
        display.advance(8)
        display.bound("V", -0.0016, 0.031, 0.1)
        display.done()
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == "" and len(lines) == 2 and "\x1b" not in captured.err
    assert re.fullmatch(r"tuning +2/2 +0\.0 s", lines[0])
    assert re.fullmatch(r"T = 64 +8/8 +0\.0 s  V 0 \(below 0\.031\), limit 0\.1", lines[1])


def test_phases_of_one_name_in_a_row_leave_one_line_and_empty_ones_none(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Display(is_visible=True, clock=clock) as display:
        for name, total in (("testing", 2), ("testing", 3), ("consistency", 0), ("other", 1), ("testing", 4)):
            display.phase(name, total)
            clock.now += 1.0
            display.advance(total)
            display.done()
            clock.now += 10.0  # between phases nothing is counted
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert lines == [["testing", "5/5", "2.0", "s"], ["other", "1/1", "1.0", "s"], ["testing", "4/4", "1.0", "s"]]


CHECK = (  # phases of a check as they follow each other: name, chains, what the report calls them, seconds
    ("compiling", None, "", 2.0), ("fitting", None, "fit", 3.0), ("simulating", None, "simulate", 1.0),
    ("tuning", 2, "tune", 1.0), ("testing the density", 9, "direct tests", 1.0), ("T = 16", 8, "search", 1.0),
    ("tuning", 4, "tune", 1.0), ("T = 16, confirm", 8, "confirm", 4.0), ("simulating", None, "simulate", 1.0),
    ("consistency, T = 16", 4, "consistency", 1.0), ("reference, by data set", 4, "tune", 1.0),
    ("draws, your data", 9, "draws", 1.0), ("something new", 9, "not known", 1.0),
)  # fmt: skip


def show_phases(display: Display, clock: Clock) -> None:
    for name, total, phase, seconds in CHECK:
        display.phase(name, total, phase)
        clock.now += seconds
        display.advance(total or 0)
        if name.startswith("T ="):
            display.bound("V", 0.02 * total, 0.3, 0.1)
        display.done()


def test_a_check_leaves_a_line_for_each_of_five_stages(capsys: pytest.CaptureFixture[str]) -> None:
    """What was reached is not left again: a reference for one more data set is part of measuring."""
    clock = Clock()
    with Display(is_visible=True, clock=clock) as display:
        show_phases(display, clock)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "compiling                       2.0 s",
        "looking at your draws           3.0 s",
        "learning the posterior's shape  2.0 s",
        "measuring the error             8.0 s  V 0.16 (below 0.3), limit 0.1",
        "annealing on your data          4.0 s",
    ]
    assert [line[:30].strip() for line in lines] == list(progress.STAGES)


def test_what_stands_together_is_one_line_and_stages_begin_anew(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Display(is_visible=True, clock=clock) as display:
        display.phase("compiling")
        clock.now += 1.0
        with display.together("centred"):
            show_phases(display, clock)
        show_phases(display, clock)
    lines = capsys.readouterr().err.splitlines()
    assert [line[:30].strip() for line in lines] == ["compiling", "centred", *progress.STAGES]
    assert re.fullmatch(r"centred +19 s  V 0\.16 \(below 0\.3\), limit 0\.1", lines[1])


def test_a_note_does_not_end_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Display(is_visible=True, clock=clock) as display:
        for _ in range(2):
            display.phase("T = 16", 8, "search")
            clock.now += 1.0
            display.note("This will take ten minutes.")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["This will take ten minutes."] * 2 and lines[2].split()[-2:] == ["2.0", "s"]


def test_without_a_terminal_a_long_phase_is_not_silent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "FIRST_LINE_SECONDS", 0.05)
    with Display(is_visible=True) as display:
        display.phase("compiling")
        deadline, text = time.monotonic() + 60.0, ""
        while "so far" not in text and time.monotonic() < deadline:
            time.sleep(0.02)
            text += capsys.readouterr().err
        display.done()
    assert re.search(r"compiling +\d+\.\d s, so far", text)


def test_lines_become_rarer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    view = views.LineView(clock)
    written = []
    for second in range(3600):
        clock.now = float(second)
        view.show(lambda: "compiling", lambda: "compiling")
        view.tick()
        if capsys.readouterr().err:
            written.append(second)
    assert written[:3] == [10, 20, 30]
    assert 20 < len(written) < 60  # one line each ten seconds would be 359
    assert all(later - earlier <= max(10, 0.1 * later + 1) for earlier, later in itertools.pairwise(written))


def test_stopped_phases_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), Display(is_visible=True) as display:
        display.phase("T = 64", 8)
        display.advance(3)
        raise KeyboardInterrupt
    assert re.search(r"T = 64 +3/8 .*\(stopped\)\n$", capsys.readouterr().err)


def test_nothing_is_shown_when_it_is_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    run_phases(Display(is_visible=False), 1)
    assert capsys.readouterr() == ("", "")


class TestTimeLeft:
    """Time left in a phase, from its finished tasks alone; of the whole check, where that is known."""

    @pytest.fixture
    def shown(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
        """Return what is shown of a phase after 10 of 20 chains have taken 30 s, and so many seconds later."""
        seen: list[Callable[[], str]] = []
        view = types.SimpleNamespace(show=lambda text, row: seen.append(text), keep=lambda line: None)
        monkeypatch.setattr(progress, "open_view", lambda clock: view)

        def show(phase: str, expect: float | None = None, ends_in: float | None = None, later: float = 0.0) -> str:
            clock = Clock()
            display = Display(is_visible=True, clock=clock)
            if expect is not None:
                display.expect("confirm", expect)
            if ends_in is not None:
                display.ends_in(ends_in)
            display.phase("T = 64", 20, phase)
            clock.now += 30.0
            display.advance(10)
            clock.now += later
            return seen[-1]()

        return show

    def test_it_is_at_least_what_the_chains_to_come_take(self, shown: Callable[..., str]) -> None:
        assert shown("confirm", expect=50).endswith("T = 64, 10/20, at least 3 min left")  # 60 chains, 3 s each
        assert shown("search", expect=50).endswith("10/20, 30 s left in this step")

    def test_it_is_at_most_what_the_user_allows(self, shown: Callable[..., str]) -> None:
        assert shown("search", ends_in=100.0).endswith("10/20, at most 70 s left")
        assert shown("search", ends_in=100.0, later=90.0).endswith("10/20, at most 0.0 s left")

    def phase(self, *finished: float, workers: int = 1, now: float | None = None) -> float | None:
        """Return the time left of 20 units in tasks of two, of which some finished at these times."""
        phase = progress.Phase("T = 64", 20, began=100.0)
        for at in finished:
            phase.done, phase.n_tasks, phase.last = phase.done + 2, phase.n_tasks + 1, 100.0 + at
        return phase.seconds_left(100.0 + (finished[-1] if now is None else now), workers)

    def test_it_is_what_finished_tasks_took(self) -> None:
        assert self.phase(3.0) == pytest.approx(27.0)
        assert self.phase(3.0, 6.0, 9.0, 12.0) == pytest.approx(18.0)
        assert self.phase(3.0, 6.0, now=8.0) == pytest.approx(22.0)  # counts down between tasks

    def test_unknown_before_every_worker_finished_a_task(self) -> None:
        assert self.phase(workers=1, now=5.0) is None
        assert self.phase(10.0, workers=2) is None  # 90 s by this task alone: twice the truth with two workers
        assert self.phase(10.0, 10.0, workers=2) == pytest.approx(40.0)

    def test_unknown_when_the_guess_has_passed_and_at_the_end(self) -> None:
        assert self.phase(3.0, now=31.0) is None
        assert self.phase(*[3.0] * 10) is None
        assert progress.Phase("compiling", None, began=0.0).seconds_left(5.0, 1) is None


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A Jupyter kernel as far as rich and IPython show it: its displays, each a list of the texts it had."""
    displays: list[list[str]] = []

    class Handle:
        def __init__(self, bundle: dict[str, str]) -> None:
            self.texts = [bundle["text/plain"]]
            displays.append(self.texts)

        def update(self, bundle: dict[str, str], raw: bool) -> None:
            assert raw
            self.texts.append(bundle["text/plain"])

    def display(bundle: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw and display_id
        return Handle(bundle)

    module = types.ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    parent = types.ModuleType("IPython")
    parent.display = module  # type: ignore[attr-defined]
    monkeypatch.setattr(views, "NOTEBOOK_SECONDS", 0.05)
    monkeypatch.setitem(sys.modules, "IPython", parent)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # not installed
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    return displays


def test_a_notebook_without_ipywidgets_shows_one_text(notebook: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_phases(Display(is_visible=True), 2)
    assert capsys.readouterr() == ("", "")
    assert len(notebook) == 1
    assert any("640/1280" in text for text in notebook[0][:-1])
    final = notebook[0][-1].splitlines()
    assert [line.split(",")[0] for line in final] == [
        "T = 1024",
        "  20 chains failed",
        "T = 1025",
        "  20 chains failed",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.6, "60 s"), (99.4, "99 s"), (100.0, "2 min"), (5940.0, "99 min"),
     (5990.0, "1.7 h"), (360000.0, "100 h")],
)  # fmt: skip
def test_durations_have_six_characters_at_most(seconds: float, text: str) -> None:
    duration: Callable[[float], str] = progress.duration
    assert duration(seconds) == text and len(text) <= progress.TIME_COLUMNS
