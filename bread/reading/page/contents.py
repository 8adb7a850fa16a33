"""Gather what a page says, from a report of either verb, whole or interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bread.reading.command_line import how_it_was_made
from bread.reading.other_verbs.debug import is_debug
from bread.reading.other_verbs.other_reports import refuse_other_reports
from bread.reading.page.banner import banner_of
from bread.reading.page.facts import loaded, provenance_of, settings_of
from bread.reading.page.figures import figures_of
from bread.reading.page.numbers import numbers_of_check, numbers_of_debug
from bread.reading.page.parts import Contents
from bread.reading.page.tables import tables_of_check, tables_of_debug
from bread.reading.verdict import verdict_of
from bread.report.compat import read_attributes

_NOTE = "Note"


def contents_of(report: Any, spell: Callable[[str], str] = str, *, with_figures: bool = True) -> Contents:
    """Return what a page says.

    Parameters
    ----------
    report : InferenceData or DataTree
    spell : callable
        Spells sentences and notes for a reader: `as_options` for those who use the command line.
    with_figures : bool
    """
    refuse_other_reports(report, "report", "bread.check or bread.debug")
    attributes, found = read_attributes(report), verdict_of(report, spell)
    kind, is_check = ("debug", False) if is_debug(report) else ("check", True)
    made = [(label, spell(words)) for label, words in how_it_was_made(report)] if is_check else []
    figures, not_drawn = figures_of(report, kind) if with_figures else ((), ())
    notes = [*loaded(attributes, "notes", "[]"), *loaded(attributes, "warnings", "[]")]
    is_interrupted = bool(attributes.get("is_interrupted", 0))
    return Contents(
        kind="check" if is_check else "debug",
        model=str(attributes.get("model", "")),
        banner=banner_of(found.status),
        lines=tuple(found.split("\n")),
        details=found.details,
        chips=("interrupted: this is what was finished",) if is_interrupted else (),
        numbers=numbers_of_check(report) if is_check else numbers_of_debug(report),
        figures=figures,
        not_drawn=not_drawn,
        tables=tables_of_check(report) if is_check else tables_of_debug(report),
        made=tuple(line for line in made if line[0] != _NOTE),
        notes=tuple(dict.fromkeys(spell(str(note)) for note in notes)),
        settings=settings_of(attributes),
        provenance=provenance_of(report, attributes),
    )
