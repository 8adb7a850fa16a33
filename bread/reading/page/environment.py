"""The templates, and the rule that everything they are given is escaped."""

from __future__ import annotations

import functools
import unicodedata

import jinja2
from markupsafe import Markup

from bread.reading.page.palette import DARK, LIGHT, variables


@functools.cache
def environment() -> jinja2.Environment:
    """Return the environment of the templates: what is undefined is an error, what is given is escaped."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("bread.reading.page", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(light=Markup(variables(LIGHT)), dark=Markup(variables(DARK)))
    return made


def _printable(value: object) -> object:
    """Take out what no page may hold, or what turns the direction of the text around it; keep markup of our own."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "".join(letter if _is_printable(letter) else "\ufffd" for letter in value)


def _is_printable(letter: str) -> bool:
    if letter in "\n\t":
        return True
    return unicodedata.category(letter) not in ("Cc", "Cs", "Cn", "Co") and letter not in _TURNING


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
