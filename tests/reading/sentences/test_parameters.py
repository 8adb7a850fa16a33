"""The table of parameters: your draws in one row each, what the first look and certified draws say of them beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import bread
from bread.errors import InvalidArgumentError
from bread.report import container as report
from bread.report.compat import group_names, make_container, read_attributes, read_group, require_group
from tests.support.fake_results import constrain, fake_result

NAMES = ["mu", "tau", "theta[Choate]", "theta[Deerfield]", "theta[Exeter]", "kind"]
NUMBERED = ["mu", "tau", "theta[0]", "theta[1]", "theta[2]", "kind"]


def compared() -> tuple[Any, Any]:
    """Return a check's result with the user's draws, and its report."""
    result = fake_result(gap=0.01, posterior_shift=1.5)
    return result, report.to_container(result, constrain)


def first_look(names: list[str]) -> xr.Dataset:
    """Return a group whose numbers say which row they are of; 100 times as precise as a table is."""
    rows = np.arange(len(names))
    columns = {
        "mean": 10.0 + rows, "sd": 1.0 + rows, "shift": 0.123456 + rows, "shift_se": 0.0123456 * 3.0**rows,
        "sd_ratio": 1.0 + 0.1 * rows, "sd_ratio_se": 0.01 * (1 + rows), "detectable_shift": 0.2 + rows,
        "detectable_sd_ratio": 0.3 + rows,
    }  # fmt: skip
    values = {name: ("parameter", one) for name, one in columns.items()}
    return xr.Dataset({"p_value": ((), 0.5), **values}, coords={"parameter": np.array(names)})


def with_groups(made: Any, **groups: Any) -> Any:
    """Return a report with other groups; None takes one away."""
    known = {name: read_group(made, name) for name in group_names(made)} | groups
    return make_container({name: one for name, one in known.items() if one is not None}, read_attributes(made))


def test_a_row_a_parameter_of_the_users_draws_and_certified_ones() -> None:
    result, made = compared()
    table = bread.summary(made)
    assert table.index.name == "parameter" and table.index.tolist() == NAMES  # not the log density
    assert list(table.columns) == ["mean", "sd", "in_90", "error_limit"]
    mu, certified = result.fit.draws["mu"], constrain(result.observed_draws)["mu"]
    low, high = np.quantile(mu, (0.05, 0.95))
    assert table.loc["mu", "mean"] == pytest.approx(mu.mean(), abs=0.005)
    assert table.loc["mu", "sd"] == pytest.approx(mu.std(), rel=0.005)
    assert table.loc["mu", "in_90"] == pytest.approx(((certified > low) & (certified <= high)).mean(), abs=0.02)
    group = require_group(made, "agreement").isel(parameter=slice(-1))
    np.testing.assert_allclose(table["in_90"], group["central_content"], rtol=0.005)
    np.testing.assert_allclose(table["error_limit"], group["error_limit"], rtol=0.005)


def test_the_first_look_stands_beside_them_whatever_components_are_called() -> None:
    table = bread.summary(with_groups(compared()[1], first_look=first_look(NUMBERED)))
    assert table.index.tolist() == NAMES and len(table.columns) <= 9
    assert list(table.columns) == ["mean", "sd", "in_90", "shift", "shift_se", "sd_ratio", "sd_ratio_se", "error_limit"]
    assert table["shift"].tolist() == [0.1235, 1.1235, 2.123, 3.123, 4.123, 5.12]
    assert table.notna().all(axis=None)


def test_components_that_cannot_be_told_apart_are_not_put_in_one_row() -> None:
    """The first look left one of three out, and does not say which by the model's names."""
    table = bread.summary(with_groups(compared()[1], first_look=first_look(["mu", "theta[1]", "theta[2]"])))
    assert set(table.index) == {*NAMES, "theta[1]", "theta[2]"}
    assert table.loc["theta[1]", "shift"] == 1.1235 and np.isnan(table.loc["theta[1]", "in_90"])
    assert np.isnan(table.loc["theta[Deerfield]", "shift"]) and table.loc["mu", "shift"] == 0.1235


def test_the_first_look_alone_says_what_it_would_have_seen() -> None:
    _, made = compared()
    table = bread.summary(with_groups(made, first_look=first_look(NUMBERED), agreement=None))
    assert table.index.tolist() == NUMBERED and len(table.columns) == 8
    assert list(table.columns)[-2:] == ["detectable_shift", "detectable_sd_ratio"]


def test_means_have_the_digits_of_their_standard_deviation() -> None:
    look = first_look(["a", "b", "c"]).assign(mean=("parameter", [1234.56789, 0.00123456, 5.5555]))
    look = look.assign(sd=("parameter", [0.0123456, 1.23456, 0.0]))  # the last is a constant
    table = bread.summary(with_groups(compared()[1], first_look=look, agreement=None))
    assert table["mean"].tolist() == [1234.5679, 0.0, 5.56] and table["sd"].tolist() == [0.0123, 1.23, 0.0]


def test_reports_of_older_versions_lack_means() -> None:
    _, made = compared()
    older = require_group(made, "agreement").drop_vars(["fit_mean", "fit_sd"])
    table = bread.summary(with_groups(made, agreement=older))
    assert table["mean"].isna().all() and table["in_90"].notna().all()


def test_without_own_draws_it_is_the_table_of_bounds() -> None:
    made = report.to_container(fake_result(), constrain)
    assert bread.summary(made).equals(bread.summary(made, kind="bounds"))
    assert bread.summary(made).index.name == "n_temperatures"


def test_other_kinds_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="kind must be one of 'parameters', 'bounds', got 'stats'"):
        bread.summary(compared()[1], kind="stats")  # type: ignore[arg-type]
