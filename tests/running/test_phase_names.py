"""Every word that the progress display shows is explained where docs/reading.md speaks of it, and fits its column."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bread.jobs.progress import NAME_COLUMNS, STAGE_OF, STAGES

ROOT = Path(__file__).resolve().parents[2]
SECTION = "## What the progress says"


def phase_names(source: str) -> set[str]:
    """Return texts that are handed to a method `phase`; of an f-string what it begins with."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "phase"):
            continue
        if not node.args:
            continue
        name = node.args[0]
        for choice in [name.body, name.orelse] if isinstance(name, ast.IfExp) else [name]:
            if isinstance(choice, ast.JoinedStr):
                choice = choice.values[0]
            if isinstance(choice, ast.Constant) and isinstance(choice.value, str):
                found.add(choice.value)
    return found


def explained() -> str:
    text = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    return " ".join(text.partition(SECTION)[2].partition("\n## ")[0].split())


def all_names() -> list[str]:
    return sorted(set().union(*(phase_names(file.read_text("utf-8")) for file in (ROOT / "bread").rglob("*.py"))))


def test_names_are_found_in_code() -> None:
    source = 'd.phase("one", 3)\ne.phase(f"two {n}", "a")\nf.phase("three" if n else "four")\ng.other("five")\n'
    assert phase_names(source) == {"one", "two ", "three", "four"}
    assert len(all_names()) >= 15


@pytest.mark.parametrize("name", all_names())
def test_each_is_explained_and_fits(name: str) -> None:
    assert name.strip() in explained()
    assert len(name) <= NAME_COLUMNS or name.startswith("testing simulator")


def report_names(source: str) -> set[str]:
    """Return what phases are called in the report, of calls that show them too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and len(node.args) > 1 and "phase" in ast.unparse(node.func):
            texts = [one.value for one in node.args[1:] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            found |= set(texts[-1:])
    return found


def test_every_phase_of_a_check_belongs_to_a_stage() -> None:
    """The names that stand in the code; those that are passed on are looked for in a check's own report."""
    files = [*(ROOT / "bread" / "running").rglob("*.py"), ROOT / "bread" / "verbs" / "look.py"]
    found = set().union(*(report_names(file.read_text("utf-8")) for file in files))
    assert {"simulate", "race", "replicate"} <= found and found <= set(STAGE_OF)
    assert all(stage in explained() for stage in STAGES)


@pytest.mark.parametrize("name", ["moving the reference", "reverse starts"])
def test_what_is_not_explained_is_noticed(name: str) -> None:
    """Negative control."""
    assert name not in explained()
