"""A path is taken wherever a report is; what is no report is refused by `tests/system/test_faults.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import pytest
import xarray as xr

import bread
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result
from tests.support.marks import slow_but

matplotlib.use("Agg")

PLOTS = (bread.plot_bounds, bread.plot_consistency, bread.plot_work, bread.plot_path)


@pytest.fixture(params=slow_but(["netcdf"], ["netcdf", "zarr"]))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = report.to_container(fake_result(gap=0.4, posterior_shift=0.0), constrain)
    path = tmp_path / "a report.nc"
    if request.param == "netcdf":
        made.to_netcdf(str(path))
    else:
        pytest.importorskip("zarr")
        tree = made if isinstance(made, xr.DataTree) else made.to_datatree()
        tree.to_zarr(path, zarr_format=2, consolidated=True)
    return path


@pytest.mark.parametrize("kind", [pytest.param(str, marks=pytest.mark.slow), Path])
def test_a_path_is_read_as_the_report_itself(written: Path, kind: Any) -> None:
    made = report.to_container(fake_result(gap=0.4, posterior_shift=0.0), constrain)
    path = kind(written)
    there, here = bread.verdict(path), bread.verdict(made)
    assert there == here and there.__dict__ == here.__dict__
    assert bread.summary(path, kind="bounds").equals(bread.summary(made, kind="bounds"))


def test_plots_take_a_path(written: Path) -> None:
    from matplotlib import pyplot

    for plot in PLOTS:
        axes = plot(written)
        assert plot(report=str(written), ax=axes) is axes
        pyplot.close(axes.figure)


@pytest.mark.slow
def test_a_file_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "report.nc"
    for gap in (0.02, 6.0):  # h5py refuses to write a file that is open
        report.to_container(fake_result(gap=gap), constrain).to_netcdf(str(path))
        assert bread.verdict(path).status == {0.02: "converged", 6.0: "not converged"}[gap]


def test_names_and_documentation_are_those_of_the_function() -> None:
    assert bread.verdict.__name__ == "verdict" and "report" in (bread.verdict.__doc__ or "")
