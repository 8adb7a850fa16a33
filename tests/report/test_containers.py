"""What a report is made of: ArviZ is imported only where its own container is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from bread.arviz_import import import_arviz, require_containers
from bread.errors import BreadError
from bread.report.compat import make_container


def test_trees_need_no_arviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)  # each import fails
    monkeypatch.setattr("bread.arviz_import.version", lambda name: "1.3.0")
    require_containers()
    made = make_container({"bounds": xr.Dataset({"x": 1.0})}, {"seed": 3})
    assert isinstance(made, xr.DataTree) and made.attrs["seed"] == 3 and float(made["bounds"]["x"]) == 1.0


def test_an_arviz_that_is_needed_and_fails_is_told_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    monkeypatch.setattr("bread.arviz_import.version", lambda name: "0.23.4")
    with pytest.raises(BreadError, match="Nothing was computed"):
        require_containers()


@pytest.mark.parametrize(("n_failures", "is_loaded"), [(0, True), (1, True), (2, False)])
def test_an_arviz_whose_note_of_the_day_another_process_took_is_imported_again(
    n_failures: int, is_loaded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arviz.py").write_text(
        "from pathlib import Path\n"
        "times = Path(__file__).with_name('times')\n"
        "times.write_text(times.read_text() + '1' if times.exists() else '1')\n"
        f"if len(times.read_text()) <= {n_failures}:\n"
        "    raise FileNotFoundError('daily_warning.tmp')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "arviz", raising=False)
    if is_loaded:
        assert Path(import_arviz().__file__) == tmp_path / "arviz.py"
    else:
        with pytest.raises(BreadError, match=r"daily_warning\.tmp"):
            import_arviz()
    assert len((tmp_path / "times").read_text()) == min(n_failures + 1, 2)


def test_workers_start_before_what_reports_are_made_of_is_imported() -> None:
    code = "import bread, sys; bread.check; print([name for name in ('scipy.stats', 'xarray') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
