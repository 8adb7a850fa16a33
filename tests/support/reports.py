"""Comparing reports."""

import xarray as xr

from bread.report.compat import group_names, read_group


def assert_same_report(one, two) -> None:
    """Assert that two reports hold the same values to the last bit, but for wall times."""
    assert set(group_names(one)) == set(group_names(two))
    for name in group_names(one):
        left, right = read_group(one, name), read_group(two, name)
        assert set(left.data_vars) == set(right.data_vars)
        for variable in left.data_vars:
            if variable != "seconds":
                xr.testing.assert_identical(left[variable].drop_attrs(), right[variable].drop_attrs())
