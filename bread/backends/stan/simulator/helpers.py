"""Stan functions that derived simulators call: `helpers.stan`, cut up by name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("helpers.stan")
_DECLARED = re.compile(r"\b(bread_\w+)\(")


@cache
def helpers() -> dict[str, str]:
    """Return the functions of each name, on one line without comments."""
    text = re.sub(r"//[^\n]*", "", _FILE.read_text(encoding="utf-8"))
    body = text[text.index("{") + 1 : text.rindex("}")]
    groups = [" ".join(group.split()) for group in re.split(r"\n\s*\n", body) if group.strip()]
    return {_DECLARED.findall(group)[0]: group for group in groups}


def functions_for(code: str) -> str:
    """Return the functions that a piece of Stan code calls, on one line; "" for none."""
    return " ".join(text for name, text in helpers().items() if f"{name}(" in code)
