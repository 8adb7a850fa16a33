"""What a user sees of a mistake: one line that says what is wrong, the rule, the value received and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bread
from bread.errors import BreadError, InvalidArgumentError
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result

RULE = r"a report of bread\.check \(InferenceData or DataTree\), or the path of its file \(netCDF or zarr\)"
READERS = (
    bread.verdict, bread.summary, bread.plot_bounds, bread.plot_consistency, bread.plot_work, bread.plot_path
)  # fmt: skip


def require_one_line(call: Callable[[], Any], message: str, kind: type[BreadError] = InvalidArgumentError) -> None:
    """Require that a call raises an error of bread whose whole message is one line that matches."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and re.search(message, text), text


def draws() -> xr.Dataset:
    return xr.Dataset({"mu": (("chain", "draw"), np.zeros((4, 10)))})


def tree_of_draws(_: Path) -> Any:
    return xr.DataTree.from_dict({"posterior": draws(), "sample_stats": draws()})


def inference_data(_: Path) -> Any:
    """What `pm.sample` returns, of the installed ArviZ."""
    import arviz

    if arviz.__version__.startswith("0."):
        return arviz.InferenceData(posterior=draws(), sample_stats=draws())
    return tree_of_draws(_)


def file_of_draws(folder: Path) -> Path:
    tree_of_draws(folder).to_netcdf(folder / "draws.nc")
    return folder / "draws.nc"


def file_with(content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "report.nc").write_bytes(content)
        return folder / "report.nc"

    return write


def cut_report(folder: Path) -> Path:
    path = folder / "report.nc"
    report.to_container(fake_result(), constrain).to_netcdf(str(path))
    path.write_bytes(path.read_bytes()[:20_000])
    return path


FOREIGN = {
    "None": (lambda _: None, rf"^report must be {RULE}, got None\.$"),
    "a dict": (lambda _: {"mu": 1}, rf"^report must be {RULE}, got \{{'mu': 1\}}\.$"),
    "a number": (lambda _: 3, rf"^report must be {RULE}, got 3\.$"),
    "a Dataset": (lambda _: draws(), rf"^report must be {RULE}, got an object of type Dataset\.$"),
    "a class": (lambda _: xr.DataTree, rf"^report must be {RULE}, got <class '.*DataTree'>\.$"),
    "draws as a DataTree": (
        tree_of_draws,
        rf"^report was not made by bread\.check: an object of type DataTree \(groups: posterior, sample_stats\) "
        rf"without the attribute 'bread_version', .* Pass {RULE}\. Draws of your own go to .*posterior=\)\.$",
    ),
    "draws of pm.sample": (inference_data, r"^report was not made by bread\.check: .* go to .*posterior=\)\.$"),
    "draws in a file": (file_of_draws, r"^'.*draws\.nc' was not made by bread\.check: .* go to .*posterior=\)\.$"),
    "a missing file": (lambda folder: folder / "none.nc", rf"^There is no report at '.*none\.nc'\. Pass {RULE}\.$"),
    "an empty file": (file_with(b""), rf"report\.nc' cannot be read as a report: it is empty\. Pass {RULE}\.$"),
    "text": (file_with(b"no report\n" * 9), r"cannot be read as a report: it is no netCDF file \(version 4\)\. Pass "),
    "an old netCDF": (file_with(b"CDF\x01" + b"\x00" * 99), r"as a report: it is no netCDF file \(version 4\)\. Pass "),
    "garbage in HDF5": (file_with(b"\x89HDF\r\n\x1a\n" + b"x" * 99), r"as a report: it is damaged \(.*\)\. Pass "),
    "half a report": (cut_report, r"cannot be read as a report: it is damaged \(.*truncated.*\)\. Pass "),
    "a directory": (lambda folder: folder, r"as a report: it is a directory, and no zarr store\. Pass "),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_report(name: str, tmp_path: Path) -> None:
    build, message = FOREIGN[name]
    value = build(tmp_path)
    for read in READERS:
        require_one_line(lambda read=read: read(value), message)  # type: ignore[misc]


@pytest.mark.parametrize("name", [name for name in FOREIGN if "file" in name or name in ("text", "a directory")])
def test_the_command_line_on_what_is_no_report(name: str, tmp_path: Path) -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from bread.cli import app

    build, message = FOREIGN[name]
    done = CliRunner().invoke(app, ["show", str(build(tmp_path))])
    assert done.exit_code == (2 if name == "a missing file" else 1)
    if done.exit_code == 1:
        assert done.stdout == "" and done.stderr.count("\n") == 1
        assert re.search(message.removeprefix("^"), done.stderr.strip()), done.stderr
