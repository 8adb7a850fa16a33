"""Draws of Bambi's own fit: intercepts that it moved are moved back, and what it leaves out is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pm = pytest.importorskip("pymc")
bambi = pytest.importorskip("bambi")
xr = pytest.importorskip("xarray")
pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:.*str. dtypes")]  # as in test_bambi.py

from bread.backends.pymc.own_draws import read_draws  # noqa: E402
from bread.errors import InvalidArgumentError  # noqa: E402
from tests.support.bambi_draws import draws_of  # noqa: E402

N = 24


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "x": rng.normal(3.0, 1.0, N), "z": rng.normal(-2.0, 1.0, N), "g": np.tile(list("abc"), N // 3),
            "two": np.tile(list("uuv"), N // 3), "h": np.repeat(list("de"), N // 2), "c": np.arange(N) % 5,
            "k": np.arange(N) % 2, "cat": np.tile(list("pqrs"), N // 4), "m1": np.arange(N) % 4, "m2": 2, "m3": 1,
        }
    )  # fmt: skip
    made["y"] = 1.0 + 0.5 * made["x"] + 0.3 * rng.normal(size=N)
    made["level"] = pd.Categorical(1 + np.arange(N) % 4, ordered=True)
    return made


HALF = bambi.Prior("HalfNormal", sigma=2)
CASES: dict[str, tuple[Any, dict[str, Any], set[str]]] = {  # formula, options, what the fit moves
    "two predictors": ("y ~ x + z", {}, {"Intercept"}),
    "groups": ("y ~ x + (1|g) + (x|h)", {}, {"Intercept"}),
    "groups and no predictor": ("y ~ 1 + (1|g)", {}, set()),
    "groups, centred": ("y ~ x + (1|g)", {"noncentered": False}, {"Intercept"}),
    "a scale with a scale": ("y ~ (1|g)", {"priors": {"1|g": bambi.Prior("Normal", mu=0, sigma=HALF)}}, set()),
    "factors": ("y ~ two + g", {}, {"Intercept"}),
    "interactions": ("y ~ x*g + two:z", {}, {"Intercept"}),
    "splines": ("y ~ bs(x, df=5) + z", {}, {"Intercept"}),
    "centred by the user": ("y ~ center(x) + scale(z)", {}, set()),
    "centring switched off": ("y ~ x + z", {"center_predictors": False}, set()),
    "no intercept": ("y ~ 0 + x + g", {}, set()),
    "no predictor": ("y ~ 1", {}, set()),
    "an offset": ("y ~ x + offset(z)", {}, {"Intercept"}),
    "a model of the scale": (bambi.Formula("y ~ x", "sigma ~ z + two"), {}, {"Intercept", "sigma_Intercept"}),
    "of the scale alone": (bambi.Formula("y ~ 0 + x", "sigma ~ z"), {}, {"sigma_Intercept"}),
    "hurdle": (bambi.Formula("c ~ x", "psi ~ z"), {"family": "hurdle_poisson"}, {"Intercept", "psi_Intercept"}),
    "logistic": ("k ~ x + g", {"family": "bernoulli"}, {"Intercept"}),
    "categorical": ("cat ~ x + g + two + (1|h)", {"family": "categorical"}, {"Intercept"}),
    "multinomial": ("counts(m1, m2, m3) ~ x + g", {"family": "multinomial"}, {"Intercept"}),
    "ordinal": ("level ~ 0 + x + g", {"family": "cumulative"}, set()),
    "a smooth": ("y ~ x + hsgp(z, m=4, c=1.5)", {}, {"Intercept"}),
}  # fmt: skip


def built(formula: Any, **options: Any) -> Any:
    model = bambi.Model(formula, frame(), **options)
    model.build()
    return model


@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_of_the_pymc_model_again(name: str) -> None:
    formula, options, moved = CASES[name]
    model = built(formula, **options)
    truth, fitted = draws_of(model)
    group = fitted["posterior"].to_dataset()
    dims = {one: model.backend.model.named_vars_to_dims.get(one) or () for one in truth}
    changed = {
        one for one, values in truth.items()
        if one in group and not np.allclose(group[one].transpose("chain", "draw", *dims[one]), values, atol=1e-9)
    }  # fmt: skip
    assert changed == moved  # the case is what it says
    fit = read_draws(model.backend.model, fitted)
    assert list(fit.draws) == [v.name for v in model.backend.model.free_RVs]
    for one, values in truth.items():
        np.testing.assert_allclose(fit.draws[one], values, rtol=1e-7, atol=1e-9, err_msg=one)
    notes = " ".join(fit.notes)
    assert all(repr(one) in notes for one in moved | {one for one in truth if one not in group})
    assert bool(fit.notes) == bool(moved or not truth.keys() <= {*map(str, group)})


def test_draws_of_the_pymc_model_are_left_alone_and_arrays_without_an_origin_refused() -> None:
    model = built("y ~ x")
    truth, fitted = draws_of(model)
    group, inner = fitted["posterior"].to_dataset(), model.backend.model
    by_pymc = group.assign(Intercept=(("chain", "draw"), truth["Intercept"])).drop_attrs()
    by_pymc = by_pymc.assign_attrs(inference_library="pymc")
    for draws, wanted in ((by_pymc, truth), (group, truth)):
        np.testing.assert_allclose(read_draws(inner, draws).draws["Intercept"], wanted["Intercept"])
    arrays = {name: group[name].values for name in group}
    with pytest.raises(InvalidArgumentError, match=r"does not say which 'Intercept' it holds.*attrs=\{'modeling_inter"):
        read_draws(inner, arrays)
    back = xr.Dataset({name: (("chain", "draw"), one) for name, one in arrays.items()})  # the way out that is named
    for attributes, shift in (({"modeling_interface": "bambi"}, 0.0), ({"inference_library": "pymc"}, 1.0)):
        found = read_draws(inner, back.assign_attrs(attributes)).draws["Intercept"]
        np.testing.assert_allclose(found, truth["Intercept"] - shift * frame()["x"].mean() * truth["x"], rtol=1e-7)
    assert not read_draws(built("y ~ center(x)").backend.model, arrays | {"center(x)": arrays["x"]}).notes


def test_without_the_bambi_model_the_means_are_unknown() -> None:
    """A copy stands for a PyMC model whose Bambi model is gone."""
    for formula, is_refused in (("y ~ x + z", True), ("y ~ 0 + x", False)):
        model = built(formula)
        truth, fitted = draws_of(model)
        inner = pm.do(model.backend.model, {})
        if is_refused:
            with pytest.raises(InvalidArgumentError, match="Pass the Bambi model itself"):
                read_draws(inner, fitted)
        else:
            np.testing.assert_array_equal(read_draws(inner, fitted).draws["x"], truth["x"])


def test_what_bambi_leaves_out_and_nothing_determines_is_missing_and_the_way_out_is_told() -> None:
    model = built("y ~ x + (1|g)")
    _, fitted = draws_of(model)
    fit = read_draws(model.backend.model, fitted["posterior"].to_dataset().drop_vars("1|g"))
    assert fit.missing == ("1|g_offset",) and fit.lacks().endswith("fit with omit_offsets=False.")
