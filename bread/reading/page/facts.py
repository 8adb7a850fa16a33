"""What a reviewer or an auditor asks for: settings, versions, seed, commit, digest of the data."""

from __future__ import annotations

import json
from typing import Any

from bread._version import __version__
from bread.reading.page.data_digest import data_digest

_LIBRARIES = {"pymc": "PyMC", "stan": "Stan", "numpy": "NumPy"}


def loaded(attributes: dict[str, Any], name: str, empty: str) -> Any:
    """Return an attribute that holds JSON; ``empty`` where the report lacks it, or where it holds none."""
    try:
        return json.loads(str(attributes.get(name, empty)))
    except ValueError:
        return json.loads(empty)


def settings_of(attributes: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the arguments of the call by name, as text."""
    settings = loaded(attributes, "settings", "{}")
    return tuple((str(name), _as_text(value)) for name, value in sorted(settings.items()))


def provenance_of(report: Any, attributes: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what was run where, with what: each with its label; what the report does not hold is left out."""
    made_by = str(attributes.get("bread_version", ""))
    written_by = "" if made_by == __version__ else f"{made_by} (this page: {__version__})"
    versions = loaded(attributes, "versions", "{}")
    rows = [
        ("Made at", _date(str(attributes.get("created_at", "")))),
        ("Model", str(attributes.get("model", ""))),
        ("Kernel", str(attributes.get("kernel", ""))),
        ("Seed", str(attributes.get("seed", ""))),
        ("bread", written_by or made_by),
        *((_LIBRARIES.get(name, name), str(version)) for name, version in sorted(versions.items())),
        ("Python", str(attributes.get("python_version", ""))),
        ("Platform", str(attributes.get("platform", ""))),
        ("Git commit", _commit(attributes)),
        ("SHA-256 of the data", data_digest(report)),
    ]
    return tuple((label, value) for label, value in rows if value)


def _commit(attributes: dict[str, Any]) -> str:
    commit = str(attributes.get("git_commit", ""))
    if not commit:
        return ""
    changed = {0: "no tracked file changed", 1: "with changes that are not committed"}
    return f"{commit} ({changed.get(int(attributes.get('git_is_changed', -1)), 'changes not known')})"


def _date(stamp: str) -> str:
    """Return a time as people read it, without fractions of seconds."""
    head, _, rest = stamp.partition("T")
    return f"{head} {rest[:8]} UTC" if rest and stamp.endswith("+00:00") else stamp


def _as_text(value: Any) -> str:
    if value is None:
        return "by default"
    if isinstance(value, str):
        return value or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(map(str, value)) or "none"
    return json.dumps(value)
