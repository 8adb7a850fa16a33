"""Which test files name a module: python -m tests.support.which_tests bread/running/check/runner.py

A test file names a module where it imports it, or what it imports of `tests/` does.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the modules that a file imports; what is imported from one may be a module too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def reached(path: Path) -> set[str]:
    """Return the modules that a test file imports, itself or through tools of `tests/`."""
    found: set[str] = set()
    left = [path]
    while left:
        new = imported(left.pop()) - found
        found |= new
        left += [file for name in new if name.startswith("tests.") and (file := file_of(name)).exists()]
    return found


def name_of(file: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(file.resolve().relative_to(ROOT).with_suffix("").parts)


def file_of(name: str) -> Path:
    """Return where a module is."""
    return ROOT.joinpath(*name.split(".")).with_suffix(".py")


def files_that_name(module: str) -> list[Path]:
    """Return the test files that name a module."""
    files = sorted(file for folder in ("tests", "plugins") for file in (ROOT / folder).rglob("test_*.py"))
    return [file for file in files if module in reached(file)]


if __name__ == "__main__":
    for test in files_that_name(name_of(Path(sys.argv[1]))):
        print(test.relative_to(ROOT))
