"""`bread.to_markdown`: a report as Markdown, for pipelines and pull requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from bread.reading.page.contents import contents_of
from bread.reading.page.parts import Contents, Table
from bread.reading.sentences.lines import LABEL
from bread.reading.sentences.printable import printable
from bread.report.opening import takes_report

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+|~$!])")


@takes_report
def to_markdown(report: Any) -> str:
    """Return a report as Markdown (GitHub's): the page of `bread.to_html` without its plots.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check` or `bread.debug`, or the path of its file.

    Returns
    -------
    str
        Names and messages are escaped, so that they stay text.

    Raises
    ------
    InvalidArgumentError
        It is no report of bread.
    """
    return markdown_of(report)


def markdown_of(report: Any, spell: Callable[[str], str] = str) -> str:
    """Return a report as Markdown; see `contents_of`."""
    return "\n".join(_lines(contents_of(report, spell, with_figures=False)))


def escaped(text: str) -> str:
    """Return text on one line whose letters mean nothing to Markdown or HTML."""
    line = printable(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _SPECIAL.sub(r"\\\1", line)
    line = line.replace("://", r"\://").replace("www.", r"www\.")  # no links made of bare addresses
    return line.replace("@", "@\u200b")  # nobody is called by the name of a variable


def _lines(contents: Contents) -> Iterable[str]:
    model = f": {escaped(contents.model)}" if contents.model else ""
    yield f"# {escaped(contents.banner.word)}{model}"
    yield ""
    for chip in contents.chips:
        yield f"**{escaped(chip.capitalize())}.**"
        yield ""
    yield "\\\n".join([f"**{escaped(contents.lines[0])}**", *map(_labelled, contents.lines[1:])])
    yield ""
    rows = tuple((number.name, number.value, number.line) for number in contents.numbers)
    yield from _table(Table("Numbers", ("number", "value", "meaning"), rows, (True, False, True)))
    for table in contents.tables:
        yield from _table(table)
    for title, facts in (("How it was made", contents.made), ("Settings", contents.settings),
                         ("Provenance", contents.provenance)):  # fmt: skip
        if facts:
            yield from _table(Table(title, ("", ""), facts, (True, True)))
    if contents.details:
        yield "## Details"
        yield ""
        yield escaped(contents.details)
        yield ""
    if contents.notes:
        yield "## Notes"
        yield ""
        yield from (f"- {escaped(note)}" for note in contents.notes)
        yield ""


def _labelled(line: str) -> str:
    """Return a line of the verdict, its label in bold."""
    label, text = (escaped(part) for part in (line[:LABEL], line[LABEL:]))
    return f"**{label}** {text}" if label else text


def _table(table: Table) -> Iterable[str]:
    yield f"## {escaped(table.title)}"
    yield ""
    yield _row(table.columns)
    yield _row(("---" if text else "---:" for text in table.is_text), plain=True)
    yield from (_row(row) for row in table.rows)
    yield ""
    if table.caption:
        yield escaped(table.caption)
        yield ""


def _row(cells: Iterable[str], *, plain: bool = False) -> str:
    return f"| {' | '.join(cell if plain else escaped(cell) for cell in cells)} |"
