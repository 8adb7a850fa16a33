"""Reports that go through files."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

from bread.report import container as report
from tests.support.fake_results import awkward_coords, constrain, fake_result, model_info
from tests.support.marks import slow_but

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

IS_TREE = int(arviz.__version__.split(".")[0]) >= 1


def container(**changes):
    return report.to_container(fake_result(**changes), constrain)


def assert_equal_reports(first, second):
    assert set(report.group_names(first)) == set(report.group_names(second))
    for name in report.group_names(first):
        xr.testing.assert_equal(report.read_group(first, name), report.read_group(second, name).load())
    mine, theirs = report.read_attributes(first), report.read_attributes(second)
    assert set(mine) == set(theirs)
    assert all(mine[key] == theirs[key] for key in mine)


def test_round_trip_through_netcdf(tmp_path):
    made = container(posterior_shift=0.0)
    file = tmp_path / "report.nc"
    made.to_netcdf(str(file))
    again = arviz.from_netcdf(str(file))
    assert_equal_reports(made, again)
    with xr.open_datatree(file) as tree:
        assert_equal_reports(made, tree)


@pytest.mark.slow
def test_round_trip_through_zarr(tmp_path):
    made = container(posterior_shift=0.0)
    tree = made if IS_TREE else made.to_datatree()
    tree.to_zarr(tmp_path / "report.zarr", zarr_format=2, consolidated=True)
    with xr.open_datatree(tmp_path / "report.zarr", engine="zarr") as again:
        assert_equal_reports(made, again)


@pytest.mark.parametrize("name", slow_but(("dates",), sorted(awkward_coords())))
def test_coordinates_that_files_refuse_are_converted(name, tmp_path):
    values = awkward_coords()[name]
    info = model_info(coords={"school": values, "day": np.array([1, 2])})
    made = report.to_container(fake_result(info=info, n_forward=0, n_search=0, temperatures=(8,)), constrain)
    labels = report.read_group(made, "truth")["school"].values
    assert labels.dtype.kind in "iufUM"
    assert len(set(labels.tolist())) == 3
    made.to_netcdf(str(tmp_path / "report.nc"))
    with xr.open_datatree(tmp_path / "report.nc") as again:
        assert_equal_reports(made, again)


def test_attributes_hold_strings_and_numbers_only():
    made = container(seed=2)
    attributes = report.read_attributes(made)
    assert all(type(value) in (str, int, float) for value in attributes.values())
    assert attributes["inference_library"] == "pymc"
    assert attributes["inference_library_version"] == "9.9.9"
    assert attributes["simulate_from"] == "prior"
    assert attributes["seed"] == 2
    assert attributes["is_interrupted"] == 0
    assert json.loads(attributes["settings"])["kernel"] is None
    assert {"bread_version", "created_at"} <= set(attributes)


def test_a_seed_beyond_64_bits_is_kept_as_text(tmp_path):
    result = fake_result(temperatures=(8,), n_search=0, n_forward=0, n_confirm=2)
    result.seed = 2**127 + 1
    made = report.to_container(result, constrain)
    assert report.read_attributes(made)["seed"] == str(2**127 + 1)
    made.to_netcdf(str(tmp_path / "report.nc"))


def test_nothing_finished_is_a_valid_report(tmp_path):
    result = fake_result()
    result.runs.clear()
    result.roles.clear()
    result.schedules.clear()
    result.fit_check = None
    result.observed_draws = None
    result.kernels.clear()
    result.base_log_ratio.clear()
    result.n_temperatures = 0
    result.is_interrupted = True
    made = report.to_container(result, constrain)
    assert set(report.group_names(made)) == {"observed_data", "constant_data", "cost"}
    assert report.read_attributes(made)["is_interrupted"] == 1
    made.to_netcdf(str(tmp_path / "report.nc"))
