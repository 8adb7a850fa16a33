"""Names and values that files and xarray can hold without changing them by accident."""

import numpy as np

from bread.report.labels import model_dataset, safe_name, storable


def test_clashing_names_are_renamed_never_turned_into_coordinates():
    made = model_dataset(
        {"simulation": np.ones((2, 3)), "day": np.ones((2, 4)), "a/b": np.ones(2), "x": np.ones((2, 5))},
        {"simulation": ("chain",), "day": ("day",), "x": ("knot",)},
        {"chain": ["p", "q", "r"], "knot": range(5)},
        {"simulation": np.arange(2)},
    )
    assert set(made.data_vars) == {"simulation_", "day_", "a|b", "x"}
    assert made["simulation_"].dims == ("simulation", "chain_")
    assert made["day_"].dims == ("simulation", "day")
    assert made["x"].dims == ("simulation", "knot_")
    assert list(made["chain_"].values) == ["p", "q", "r"]
    assert set(made.coords) == {"simulation", "chain_", "knot_"}


def test_one_dimension_name_with_two_lengths():
    made = model_dataset({"a": np.ones(3), "b": np.ones(4)}, {"a": ("x",), "b": ("x",)}, {"x": list("klmn")}, {})
    assert made["b"].dims == ("x",) and made["a"].dims == ("a_dim_0",)
    square = model_dataset({"cov": np.eye(3)}, {"cov": ("x", "x")}, {}, {})
    assert square["cov"].dims == ("x", "cov_dim_1")


def test_storable_values():
    assert storable(np.array([1.5, 2.0], dtype=np.float16)).dtype == np.float32
    assert storable(np.array([True, False], dtype=object)).dtype == bool
    assert storable([b"a", b"bc"]).tolist() == ["a", "bc"]
    assert storable(np.array([[None, "a"]], dtype=object)).tolist() == [["None", "a"]]
    assert storable([1 + 2j]).tolist() == ["(1+2j)"]
    assert storable(np.array([], dtype=object)).shape == (0,)
    assert safe_name("draw") == "draw_"
    assert safe_name("mu") == "mu"
