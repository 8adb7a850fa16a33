"""Draws that a user hands over for a PyMC model: read before anything is compiled, missing variables computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
pytestmark = pytest.mark.pymc

import pytensor.tensor as pt  # noqa: E402
import xarray as xr  # noqa: E402

import bread  # noqa: E402
from bread.backends.pymc.own_draws import read_draws  # noqa: E402
from bread.errors import InvalidArgumentError  # noqa: E402

CHAINS, DRAWS = 2, 20
Draws = dict[str, np.ndarray]
Derive = Callable[[Any, Any, Any], Any]
DIMS = {"z": ("chain", "draw", "group", "effect"), "theta": ("chain", "draw", "group", "effect")}
L = np.array([[1.0, 0.0], [0.6, 0.8]])


def model(of: Derive = lambda mu, tau, z: mu + tau * z) -> Any:
    with pm.Model(coords={"group": list("abc"), "effect": [0, 1]}) as built:
        mu = pm.Normal("mu")
        tau = pm.HalfNormal("tau")
        z = pm.Normal("z", dims=("group", "effect"))
        count = pm.Poisson("count", 3)
        theta = pm.Deterministic("theta", of(mu, tau, z), dims=("group", "effect"))
        pm.Normal("y", theta.sum() + count, 1.0, observed=0.3)
    return built


def draws(built: Any, **change: Any) -> Draws:
    rng = np.random.default_rng(0)
    free = {
        "mu": rng.normal(10.0, 1.0, (CHAINS, DRAWS)), "tau": rng.exponential(size=(CHAINS, DRAWS)),
        "z": rng.normal(size=(CHAINS, DRAWS, 3, 2)), "count": rng.poisson(3, (CHAINS, DRAWS)),
    }  # fmt: skip
    theta = built.compile_fn(built["theta"], inputs=built.free_RVs, mode="FAST_COMPILE", on_unused_input="ignore")
    rows = [[theta({name: values[c, d] for name, values in free.items()}) for d in range(DRAWS)] for c in range(CHAINS)]
    return {**free, "theta": np.array(rows), **change}


def dataset(given: Draws) -> xr.Dataset:
    coords = {"group": list("abc"), "effect": [0, 1]}
    return xr.Dataset({name: (DIMS.get(name, ("chain", "draw")), one) for name, one in given.items()}, coords=coords)


def without(given: Draws, *names: str) -> Draws:
    return {name: values for name, values in given.items() if name not in names}


WRONG: dict[str, tuple[Callable[[Draws], Any], str]] = {
    "no variable": (lambda d: {"m": d["mu"]}, "no variable of the model.*mu, tau, z, count.*'m'"),
    "one axis more": (lambda d: dataset(d).assign(z=dataset(d)["z"].expand_dims(q=2)), r"'z' of shape \(2, 20, 3, 2, "),
    "one axis less": (lambda d: d | {"z": d["z"][..., 0]}, r"'z' of shape \(2, 20, 3\).*\(chain, draw, 3, 2\)"),
    "another length": (lambda d: dataset(d).isel(group=[0, 1]), r"'z' of shape \(2, 20, 2, 2\)"),
    "axes in another order": (lambda d: d | {"z": np.swapaxes(d["z"], 2, 3)}, r"'z' of shape \(2, 20, 2, 3\)"),
    "draws before chains": (lambda d: {n: np.swapaxes(v, 0, 1) for n, v in d.items()}, "first axis counts chains"),
    "a number": (lambda d: d | {"mu": 1.0}, r"'mu' of shape \(\)"),
    "chains of other lengths": (lambda d: d | {"mu": [[1.0, 2.0], [3.0]]}, "'mu' that make no array.*one length"),
    "chains of another run": (lambda d: d | {"mu": d["mu"][:1]}, r"\(2, 20\) chains and draws of 'tau'"),
    "objects": (lambda d: d | {"mu": d["mu"].astype(object)}, "'mu' that are no finite numbers.*type is object"),
    "text": (lambda d: d | {"mu": d["mu"].astype(str)}, "'mu' that are no finite numbers"),
    "NaN": (lambda d: d | {"mu": np.where(d["mu"] == d["mu"][1, 7], np.nan, d["mu"])}, "nan in chain 1, draw 7"),
    "masked": (lambda d: d | {"mu": np.ma.masked_array(d["mu"], d["mu"] > d["mu"].mean())}, "'mu'.*nan in chain"),
    "no draws": (lambda d: dataset(d).isel(draw=slice(0)), r"'mu' of shape \(2, 0\).*one draw at least"),
    "fractions of a count": (lambda d: d | {"count": d["count"] + 0.5}, "'count' that are no whole numbers"),
    "no group of draws": (lambda d: [d], "must be an InferenceData.*list"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_draws_are_refused_before_anything_is_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, message = WRONG[name]
    built = model()
    given = change(draws(built))

    def compiled(*_: Any, **__: Any) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr("bread.backends.pymc.opened.build_simulator", compiled)
    for argument in ("posterior", "path"):
        with pytest.raises(InvalidArgumentError, match=message) as refused:
            bread.check(built, progressbar=False, cores=1, **{argument: given})
        assert "\n" not in str(refused.value) and f"{argument}=" in str(refused.value)


DERIVED: dict[str, Derive] = {
    "scaled and shifted": lambda mu, tau, z: mu + tau * z,
    "scaled": lambda mu, tau, z: tau * z,
    "by a matrix of correlations": lambda mu, tau, z: mu + tau * (z @ L.T),
    "by a matrix that is a parameter's": lambda mu, tau, z: (z.T @ (pt.eye(3) + tau * pt.tri(3))).T,
}


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("form", [dict, dataset, lambda d: dataset(d).transpose("effect", "draw", ...)])
def test_a_missing_variable_is_what_a_deterministic_says(name: str, form: Any) -> None:
    built = model(DERIVED[name])
    given = draws(built)
    fit = read_draws(built, form(without(given, "z")))
    assert list(fit.draws) == ["mu", "tau", "z", "count"]
    np.testing.assert_allclose(fit.draws["z"], given["z"], rtol=1e-8, atol=1e-10)
    assert len(fit.notes) == 1 and "no 'z'" in fit.notes[0] and "'theta'" in fit.notes[0]
    assert not read_draws(built, form(given)).notes


NOT_DETERMINED: dict[str, Derive] = {
    "signs are lost": lambda mu, tau, z: tau * pt.abs(z),
    "squared": lambda mu, tau, z: mu + tau * z**2,
    "cut off": lambda mu, tau, z: mu + tau * pt.maximum(z, 0.0),
    "cut off far out": lambda mu, tau, z: mu + tau * pt.clip(z, -50.0, 50.0),
    "bent": lambda mu, tau, z: mu + tau * pt.sinh(z),
    "averaged": lambda mu, tau, z: mu + tau * (z - z.mean(axis=0)),
    "lost in rounding": lambda mu, tau, z: 1e12 * mu + tau * z,
    "not there": lambda mu, tau, z: mu + 0.0 * z,
}


@pytest.mark.parametrize("name", NOT_DETERMINED)
def test_what_a_deterministic_leaves_open_is_missing(name: str) -> None:
    built = model(NOT_DETERMINED[name])
    fit = read_draws(built, without(draws(built), "z"))
    assert fit.missing == ("z",) and "no variable 'z', and" in fit.lacks()
    assert list(fit.draws) == ["mu", "tau", "count", "theta"]  # the deterministic can be compared


def test_one_derived_variable_lets_another_be_found_and_two_at_once_do_not() -> None:
    with pm.Model() as built:
        first, second = pm.Normal("first"), pm.Normal("second")
        third = pm.Normal("third", pt.exp(second), 1.0)
        pm.Deterministic("sum", first + 2.0 * second + third)
        pm.Deterministic("scaled", 3.0 * first)
        pm.Normal("y", first, 1.0, observed=0.1)
    rng = np.random.default_rng(1)
    first, second, third = rng.normal(size=(3, CHAINS, DRAWS))
    given = {"third": third, "sum": first + 2.0 * second + third, "scaled": 3.0 * first}
    fit = read_draws(built, given)
    np.testing.assert_allclose(fit.draws["second"], second, rtol=1e-9, atol=1e-12)
    assert list(fit.draws) == ["first", "second", "third"] and len(fit.notes) == 2
    assert read_draws(built, without(given, "scaled")).missing == ("first", "second")


def test_draws_given_as_a_path_must_have_all_variables() -> None:
    built = model(NOT_DETERMINED["squared"])
    with pytest.raises(InvalidArgumentError, match="path= has no variable 'z', and.*Pass draws of all free variables"):
        bread.check(built, progressbar=False, cores=1, path=without(draws(built), "z"))


def test_decimals_that_a_file_kept_count_as_rounding() -> None:
    """Six digits of theta = 10 + tau * z leave z to 1e-2 where tau is of order 1, and nothing where it is 1e-4."""
    built = model()
    rng = np.random.default_rng(5)
    for scale, is_derived in ((1.0, True), (1e-4, False)):
        given = draws(built, tau=scale * rng.uniform(0.5, 1.5, (CHAINS, DRAWS)))
        given["theta"] = given["mu"][..., None, None] + given["tau"][..., None, None] * given["z"]
        rounded = {name: np.vectorize(lambda one: float(f"{one:.6g}"))(values) for name, values in given.items()}
        fit = read_draws(built, without(rounded, "z"))  # with counts as decimals, which are exact
        assert (fit.missing == ()) is is_derived


def test_single_precision_is_enough_where_rounding_is_small() -> None:
    built = model()
    given = draws(built)
    narrow = without({name: one.astype(np.float32) if name != "count" else one for name, one in given.items()}, "z")
    error = np.abs(read_draws(built, narrow).draws["z"] - given["z"])
    assert 1e-9 < error.max() < 1e-2 * given["z"].std()  # 1e-7 of mu = 10 in units of the smallest tau, 0.01
