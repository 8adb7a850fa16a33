"""`bread.to_html`: a report as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from markupsafe import Markup

from bread.reading.page.contents import contents_of
from bread.reading.page.environment import environment
from bread.reading.page.writing import require_writable, write_page
from bread.report.opening import opened_report


@overload
def to_html(report: Any, path: None = None) -> str: ...


@overload
def to_html(report: Any, path: str | os.PathLike[str]) -> Path: ...


def to_html(report: Any, path: str | os.PathLike[str] | None = None) -> str | Path:
    """Write a report as one HTML file that needs no network: for a reviewer, an auditor, or a colleague.

    The verdict in a word and a colour; three numbers with a line each; the plots (with matplotlib, the extra `plots`);
    tables of temperatures, draws and tests; what was held and what inferred; notes, settings, versions, seed, git
    commit and a digest of the data. It is readable in light and dark, on a phone, on paper and by screen readers. The
    same report gives the same file.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check` or `bread.debug`, whole or interrupted, or the path of its file.
    path : str or PathLike, optional
        Where to write. A page that is there is replaced at once, by a whole one; another file is not replaced.

    Returns
    -------
    Path or str
        ``path``; without one, the page as text.

    Raises
    ------
    InvalidArgumentError
        It is no report of bread; or ``path`` cannot be written, or is a file that is no page.
    """
    if path is None:
        with opened_report(report) as found:
            return page_of(found)
    require_writable(Path(path))
    with opened_report(report) as found:
        write_page(page_of(found), Path(path))
    return Path(path)


def page_of(report: Any, spell: Callable[[str], str] = str) -> str:
    """Return the page of a report; see `contents_of`."""
    contents = contents_of(report, spell)
    svgs = {figure.name: Markup(figure.svg) for figure in contents.figures}
    return environment().get_template("page.html.jinja").render(contents=contents, svgs=svgs)
