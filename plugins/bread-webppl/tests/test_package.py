"""The package as bread meets it: by its entry point, and by the version that both share; needs no Node.js."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points, version

import pytest

import bread_webppl
from bread.backends import GROUP, Backend, open_model
from bread.backends.base import OpenOptions
from bread.errors import MissingDependencyError
from bread_webppl import opened

SCRIPT = """
import json, sys
import bread, bread.backends, bread.errors
before = sorted(name for name in sys.modules if name.startswith("bread_webppl"))
import bread_webppl
wrapped = sorted(name for name in sys.modules if name.startswith("bread_webppl"))
model = bread_webppl.Model("", {"y": [1.0]}, "y", node="no-such-node")
try:
    bread.backends.open_model(model, bread.backends.base.OpenOptions())
except bread.errors.MissingDependencyError as error:
    json.dump([before, wrapped, str(error)], sys.stdout)
"""


def test_bread_finds_it_by_its_entry_point_and_knows_no_name_of_it() -> None:
    """In a fresh interpreter: it is loaded when a model comes that nobody before it reads."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, wrapped, message = json.loads(done.stdout)
    assert before == [] and wrapped == ["bread_webppl", "bread_webppl.wrapper"]
    assert "Node.js" in message and "no-such-node" in message


def test_the_entry_point_is_a_backend() -> None:
    (entry,) = (entry for entry in entry_points(group=GROUP) if entry.name == "webppl")
    assert entry.load() is opened and isinstance(opened, Backend)


def test_only_its_own_models_are_read() -> None:
    model = bread_webppl.Model("", {"y": [1.0]}, "y", node="no-such-node")
    assert opened.reads(model)
    assert not any(opened.reads(other) for other in ("model.wppl", bread_webppl.Model, None, object()))
    with pytest.raises(MissingDependencyError, match=r"Node\.js"):
        open_model(model, OpenOptions())


def test_one_version_stands_for_both() -> None:
    """A checkpoint compares bread's version alone, so that this package must not change without it."""
    assert version("bread-webppl") == version("bread-mcmc")
