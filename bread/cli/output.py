"""What the command line prints and leaves with: tables and a verdict, or one JSON object; errors in the same form."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import bread
from bread.errors import BreadError
from bread.jobs import interrupts
from bread.reading.as_json import as_json
from bread.reading.command_line import as_options, how_it_was_made
from bread.reading.other_verbs.debug import is_debug
from bread.reading.other_verbs.other_reports import refuse_other_reports
from bread.reading.page.html import page_of
from bread.reading.page.markdown import markdown_of
from bread.reading.page.writing import write_page
from bread.reading.sentences.agreement import agreement_table
from bread.reading.sentences.printable import printable
from bread.reading.verdict import verdict_of
from bread.report.compat import read_attributes

EXIT_STATUS = {
    "converged": 0,
    "not converged": 3,
    "inconclusive": 3,
    "mismatch": 4,
    "bug": 5,
    "disagreement": 6,
    "no bug found": 0,
    "no difference seen": 3,  # of draws that were looked at, where nothing can be certified
}
ERROR_STATUS = 1  # refused or failed: there is no report
INTERRUPTED_STATUS = 130  # as a shell reports a program that Ctrl-C ended

STATUSES = (
    "Exit status: 0 converged, the bound is below the target, or no bug found; 1 error; 2 wrong usage; 3 not "
    "converged, inconclusive, or no difference seen; 4 mismatch, your data anneal unlike simulated data; 5 a bug in "
    "model, simulator or sampler; 6 your draws disagree; 130 interrupted before there was anything to report."
)

_CAPTION = (
    "T: number of temperatures. V: bound of the error of any probability computed from one annealed draw, on average "
    "over data sets, with the limit that decides, if these are typical, and one that holds whatever others are like "
    "(exact). B: bound of the Jeffreys divergence in nats, with its interval; - where it has no finite mean. diverged: "
    "transitions."
)

_MOST_PARAMETERS = 8  # rows of the table of draws
_DRAWS_CAPTION = (
    "holds: share of certified draws that the 90% interval of your draws (or of the fit's) holds, with limits; shift "
    "of the mean and ratio of standard deviations; error: of any P(parameter <= x), at most, V included; "
    "effective draws, of which 100 are needed."
)


@dataclass(frozen=True)
class Output:
    """How results and errors leave.

    Attributes
    ----------
    is_json : bool
        One JSON object on stdout, in place of tables on stdout and an error on stderr.
    is_markdown : bool
        The report as Markdown on stdout.
    """

    is_json: bool
    is_markdown: bool = False

    def __post_init__(self) -> None:
        if self.is_json and self.is_markdown:
            raise typer.BadParameter("stdout is one of them: give --json or --markdown", param_hint="--markdown")

    def show(
        self, report: Any, file: Path | None = None, page: Path | None = None, *, is_where_asked: bool = True
    ) -> NoReturn:
        """Print a report, written to ``file`` or None and as a page to ``page`` or None.

        Leaves with the verdict's exit status; with that of an error where report or page are not where they should be.
        """
        is_page = self.write_page(report, page)
        page, is_written = page if is_page else None, is_page and is_where_asked
        if self.is_json:
            found = as_json(report)
            status = found["status"]
            written = {"report": None if file is None else str(file), "page": None if page is None else str(page)}
            found |= {"exit_status": EXIT_STATUS[status] if is_written else ERROR_STATUS, **written}
            typer.echo(json.dumps(found, allow_nan=False))
        elif self.is_markdown:
            status = bread.verdict(report).status
            typer.echo(markdown_of(report, spelling(report)), nl=False)
        else:
            status = _show(report, file)
            if page is not None:
                Console().print(Text(printable(f"Page: {page}")), soft_wrap=True)
        raise typer.Exit(EXIT_STATUS[status] if is_written else ERROR_STATUS)

    def write_page(self, report: Any, page: Path | None) -> bool:
        """Write the page, if one is wanted, whatever signal comes meanwhile; say why where it cannot be written."""
        if page is None:
            return True
        try:
            with interrupts.handled():
                interrupts.defer()
                write_page(page_of(report, spelling(report)), page)
        except Exception as error:  # also of what draws the plots: the verdict is still to be printed
            text = str(error) if isinstance(error, BreadError) else f"The page cannot be made: {error!r}"
            typer.echo(f"error: {text}", err=True)
            return False
        return True

    def fail(self, message: str, exit_status: int = ERROR_STATUS) -> NoReturn:
        """Print an error, and leave with ``exit_status``."""
        if self.is_json:
            typer.echo(json.dumps({"status": "error", "error": message, "exit_status": exit_status}))
        else:
            typer.secho("error: ", fg=typer.colors.RED, err=True, nl=False)
            typer.echo(printable(message), err=True)
        raise typer.Exit(exit_status)


def spelling(report: Any) -> Callable[[str], str]:
    """Return how messages are spelt: as options of the command line for Stan; PyMC has none here."""
    return as_options if str(read_attributes(report).get("inference_library", "")) == "stan" else str


def _show(report: Any, output: Path | None) -> str:
    """Print tables and verdict; return the verdict's status."""
    console = Console(markup=False, emoji=False)  # names are text, whatever stands in brackets or between colons
    if is_debug(report):
        return _show_debug(report, console)
    refuse_other_reports(report, "report", "bread.check or bread.debug")
    verdict = _show_verdict(report, console)
    frame = bread.summary(report, kind="bounds")
    # Other rows served the consistency test alone; where there is no such column, nothing was annealed.
    frame = frame[frame["n_simulations"] > 0] if "n_simulations" in frame else frame.iloc[:0]
    table = Table(
        title="Bounds", title_justify="left", caption=_CAPTION, caption_justify="left", box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for name in ("T", "V", "limit", "exact", "B", "interval", "data sets", "diverged"):
        table.add_column(name, no_wrap=True, justify="right")
    for n_temperatures, row in frame.iterrows():
        jeffreys = _number(row["jeffreys"]) if row["reliable"] else "-"
        interval = f"{_number(row['lower'])} to {_number(row['upper'])}" if row["reliable"] else "-"
        data_sets = printable(f"{row['n_simulations']} {row['role']}")
        table.add_row(
            str(n_temperatures), _number(row["error"]), _number(row["error_limit"]), _number(row["error_limit_exact"]),
            jeffreys, interval, data_sets, str(row["n_divergences"]),
        )  # fmt: skip
    if len(frame):
        console.print(table)
        console.print()
    _show_draws(report, console)
    spell = spelling(report)
    for label, words in how_it_was_made(report):
        console.print(Text.assemble((f"{label}:", "dim"), " ", printable(spell(words))), highlight=False)
    if output is not None:
        console.print(Text(printable(f"Report: {output}")), soft_wrap=True)
    return verdict.status


def _show_debug(report: Any, console: Console) -> str:
    """Print the tests of `bread.debug`, worst first, and the verdict."""
    verdict = _show_verdict(report, console)
    frame = bread.summary(report)
    table = Table(title="Tests", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("test", "of"):
        table.add_column(name, overflow="fold")
    for name in ("p", "draws", ""):
        table.add_column(name, no_wrap=True, justify="right")
    for _, row in frame[frame["left_out"] == ""].iterrows():
        p_value = "-" if math.isnan(row["p_value"]) else f"{row['p_value']:.2g}"
        table.add_row(
            printable(row["test"]),
            printable(row["subject"]),
            p_value,
            str(row["n"]),
            "fails" if row["fails"] else "passes",
        )
    console.print(table)
    return verdict.status


def _show_verdict(report: Any, console: Console) -> bread.Verdict:
    """Print the lines of the verdict, and return it."""
    verdict = verdict_of(report, spelling(report))
    status, *lines = verdict.split("\n")
    console.print(Text(status, "bold"), soft_wrap=True)
    console.print(Text("\n".join(lines)), soft_wrap=True)
    console.print()
    return verdict


def _show_draws(report: Any, console: Console) -> None:
    """Print the comparison of draws, the worst parameters first."""
    frame = agreement_table(report)
    if frame is None:
        return
    shown = frame.head(_MOST_PARAMETERS)
    left = f", worst {len(shown)} of {len(frame)}" if len(frame) > len(shown) else ""
    table = Table(
        title=f"Draws{left}", title_justify="left", caption=_DRAWS_CAPTION, caption_justify="left", box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    table.add_column("parameter", overflow="fold")
    for name in ("holds", "limits", "shift", "sd ratio", "error", "effective"):
        table.add_column(name, no_wrap=True, justify="right")
    for parameter, row in shown.iterrows():
        table.add_row(
            printable(str(parameter)), f"{row['content']:.2f}", f"{row['lower']:.2f} to {row['upper']:.2f}",
            f"{row['mean_shift']:z.2f}", f"{row['sd_ratio']:.2f}", f"{row['error_limit']:.2f}",
            f"{row['n_effective']:.0f}",
        )  # fmt: skip
    console.print(table)
    console.print()


def _number(value: Any) -> str:
    return f"{max(float(value), 0.0):.3g}"
