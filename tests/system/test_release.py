"""What stands beside the package agrees with it: version, exit statuses, commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bread.cli.output import EXIT_STATUS

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_names_the_version_and_the_licence() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    cited = dict(line.split(": ", 1) for line in text("CITATION.cff").splitlines() if re.match(r"[a-z-]+: ", line))
    assert cited["version"] == project["version"] and cited["license"] == project["license"]


def test_the_skill_gives_every_status_its_exit_status() -> None:
    rows = re.findall(r"^\| ([a-z][a-z ,]*) \| (\d+) \|", text("SKILL.md"), flags=re.MULTILINE)
    found = {status: int(number) for statuses, number in rows for status in statuses.split(", ")}
    assert {status: found.get(status) for status in EXIT_STATUS} == dict(EXIT_STATUS)


def test_what_a_release_runs_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), flags=re.MULTILINE))
    asked = set(re.findall(r"`make ([a-z-]+)`", text("RELEASING.md") + text(".github/PULL_REQUEST_TEMPLATE.md")))
    assert asked and asked <= targets


def test_the_paper_cites_what_it_lists() -> None:
    listed = re.findall(r"^@\w+\{([a-z-]+),", text("paper/paper.bib"), flags=re.MULTILINE)
    assert len(listed) > 10 and set(listed) == set(re.findall(r"@([a-z-]+)", text("paper/paper.md")))
