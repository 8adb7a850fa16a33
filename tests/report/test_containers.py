"""What a report is made of: ArviZ is imported only where its own container is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest
import xarray as xr

from bread.errors import BreadError
from bread.report.compat import make_container, require_containers


def test_trees_need_no_arviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)  # each import fails
    monkeypatch.setattr("bread.report.compat.version", lambda name: "1.3.0")
    require_containers()
    made = make_container({"bounds": xr.Dataset({"x": 1.0})}, {"seed": 3})
    assert isinstance(made, xr.DataTree) and made.attrs["seed"] == 3 and float(made["bounds"]["x"]) == 1.0


def test_an_arviz_that_is_needed_and_fails_is_told_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    monkeypatch.setattr("bread.report.compat.version", lambda name: "0.23.4")
    with pytest.raises(BreadError, match="Nothing was computed"):
        require_containers()


def test_workers_start_before_what_reports_are_made_of_is_imported() -> None:
    code = "import bread, sys; bread.check; print([name for name in ('scipy.stats', 'xarray') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
