"""Text of a report as a terminal may show it: names in a stranger's report may hold anything."""

from __future__ import annotations

import re

# Controls (line ends and the escape that begins commands to a terminal among them), what ends a line or paragraph
# elsewhere, what turns the direction of writing, and halves of a pair of UTF-16, which cannot be printed.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return text on one line, with what is no letter to a terminal spelt out, such as ``\x1b``."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
