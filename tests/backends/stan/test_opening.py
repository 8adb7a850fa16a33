"""Opening Stan programs: the user's simulators, the checks that run every time, and one-line errors with places."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.stan import proof
from bread.backends.stan.native.build import ORIGINAL
from bread.backends.stan.opening import read_data, read_program
from bread.errors import BreadError, InvalidArgumentError, UnsupportedModelError
from tests.support.stan_conjugate import CONJUGATE, EIGHT_SCHOOLS, SCHOOLS, eight_schools, opened, toolchain

pytestmark = pytest.mark.stan

# ---- the user's simulators -----------------------------------------------------------------------------------

# bread derives no simulator: the variate is transformed.
TRANSFORMED = """data {
  int N;
  vector[N] y;
}
parameters {
  real<lower=0> s;
}
model {
  log(s) ~ normal(0, 1);
  target += -log(s);
  y ~ normal(0, s);
}
"""
LINES = {"data": {"N": 3, "y": [0.5, -1.0, 0.2]}, "likelihood": [11]}
OPTIONS: dict[str, Any] = {**LINES, "observed": "y"}


def lognormal(rng: Generator, data: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> Any:
    s = np.exp(rng.normal()) if fixed is None else fixed["s"]
    return {"s": s}, {"y": rng.normal(0, s, data["N"])}


def wrong(rng: Generator, data: Mapping[str, Any]) -> Any:
    """Draws s from another prior."""
    s = np.exp(0.5 + rng.normal())
    return {"s": s}, {"y": rng.normal(0, s, data["N"])}


def wrong_outcome(rng: Generator, data: Mapping[str, Any]) -> Any:
    """Draws y with twice the variance."""
    s = np.exp(rng.normal())
    return {"s": s}, {"y": rng.normal(0, np.sqrt(2) * s, data["N"])}


def test_what_cannot_be_derived_is_refused_with_its_line() -> None:
    with pytest.raises(UnsupportedModelError, match=r"'program.stan', line 9.*simulator="):
        opened(TRANSFORMED.replace("target += -log(s);", ""), {"N": 3, "y": [0.5, -1.0, 0.2]})


def test_a_callable_simulates() -> None:
    model = opened(TRANSFORMED, simulator=lognormal, simulate_from="fitted", **OPTIONS)
    assert "mean gradients" in model.info.identity.notes[-1]
    simulations = model.simulate(500, fixed=None, seed=SeedSequence(1))
    # log s is standard normal: 4 standard errors of its mean.
    assert abs(np.log(simulations.parameters["s"]).mean()) < 4 / np.sqrt(500)
    held = model.simulate(2, fixed={"s": np.array(2.0)}, seed=SeedSequence(1))
    np.testing.assert_allclose(held.parameters["s"], 2.0)
    fewer = model.simulate(2, fixed=None, seed=SeedSequence(1))
    np.testing.assert_array_equal(fewer.data["y"], simulations.data["y"][:2])


@pytest.mark.parametrize(("simulator", "part"), [(wrong, "prior"), (wrong_outcome, "likelihood")])
def test_a_wrong_simulator_is_found_by_gradients(simulator: Any, part: str) -> None:
    with pytest.raises(UnsupportedModelError, match=rf"mean gradient of the log {part} with respect to 's'"):
        opened(TRANSFORMED, simulator=simulator, **OPTIONS)


@pytest.mark.slow
def test_a_wrong_split_is_found_by_gradients() -> None:
    """The user's own word for it, that line 10 is the likelihood, does not stand."""
    with pytest.raises(UnsupportedModelError, match="The simulator and the program disagree"):
        opened(TRANSFORMED, simulator=lognormal, **{**OPTIONS, "likelihood": 10})


def test_a_callable_without_fixed_cannot_hold_hyperparameters() -> None:
    def simulator(rng: Generator, data: Mapping[str, Any]) -> Any:
        return lognormal(rng, data)

    assert opened(TRANSFORMED, simulator=simulator, simulate_from="prior", **OPTIONS)
    with pytest.raises(
        InvalidArgumentError, match=r"cannot hold the hyperparameter 's'.*simulator\(rng, data, fixed\)"
    ):
        opened(TRANSFORMED, simulator=simulator, simulate_from="fitted", **OPTIONS)


@pytest.mark.parametrize(
    ("simulator", "match"),
    [
        (lambda rng, data: {"s": 1.0}, r"must return two dicts"),
        (lambda rng, data: ({}, {"y": np.zeros(3)}), "returned no parameter 's'"),
        (lambda rng, data: ({"s": 1.0}, {"y": np.zeros(2)}), r"'y' of shape \(2,\); the model declares \(3,\)"),
        (lambda rng, data: 1 / 0, "ZeroDivisionError"),
        (lambda rng, data: ({"s": -1.0}, {"y": np.zeros(3)}), "outside its declared support.*line 6"),
        (3, "must be a function"),
    ],
)
def test_broken_simulators(simulator: Any, match: str) -> None:
    with pytest.raises(BreadError, match=match):
        opened(TRANSFORMED, simulator=simulator, **OPTIONS)


@pytest.mark.slow
def test_a_stan_program_simulates() -> None:
    simulator = """data { int N; }
generated quantities {
  real s = exp(std_normal_rng());
  vector[N] y = to_vector(normal_rng(rep_vector(0, N), s));
}
"""
    model = opened(TRANSFORMED, simulator=simulator, simulate_from="prior", **OPTIONS)
    assert model.simulate(3, fixed=None, seed=SeedSequence(1)).data["y"].shape == (3, 3)


# ---- the checks that run every time --------------------------------------------------------------------------


def test_another_density_is_refused() -> None:
    """Negative control of the proof of the rewrite: an original program whose errors are a little larger."""
    model, library = eight_schools(), eight_schools().library
    other = {**model.data, ORIGINAL: 1, "sigma": 1.001 * np.array(SCHOOLS["sigma"])}
    states = model.simulate(10, fixed=None, seed=SeedSequence(1)).states
    assert proof.prove_rewrite(library.instance(model.data), library.instance({**model.data, ORIGINAL: 1}), states)
    with pytest.raises(UnsupportedModelError, match="another density: the log densities differ by"):
        proof.prove_rewrite(library.instance(model.data), library.instance(other), states)


def test_gradient_test_has_level_and_power() -> None:
    """Of 400 sets of scores of a gamma law none is rejected twice; a mean of a fifth of a deviation always is."""
    rng = np.random.default_rng(1)
    scores = rng.gamma(2.0, size=(400, 200, 6)) - 2.0
    assert np.mean([(proof.gradient_p_values(one) < proof.LEVEL).any() for one in scores]) < 0.02
    shifted = rng.normal(0.5, 1.0, (20, 200, 6))
    assert all((proof.gradient_p_values(one) < proof.LEVEL).all() for one in shifted)
    assert (proof.gradient_p_values(np.zeros((20, 2))) == 1).all()


# ---- input; what is wrong with it: test_stan_bad_input.py ----------------------------------------------------------


@pytest.mark.slow
def test_program_by_object_path_and_text(tmp_path: Path) -> None:
    case, folder = CONJUGATE["normal mean"], tmp_path / "parts"
    folder.mkdir()
    (folder / "priors.stan").write_text("mu ~ normal(0.5, 1.5);\n")
    program = tmp_path / "mean.stan"
    program.write_text(case.text.replace("mu ~ normal(0.5, 1.5);", "#include priors.stan"))
    model = SimpleNamespace(stan_file=str(program), stanc_options={"include-paths": [str(folder)]})
    assert opened(model, case.data).info.identity.name == "mean"
    with pytest.raises(UnsupportedModelError, match=r"'mean.stan', line 9: #include priors.stan was not found"):
        opened(program, case.data)


def test_numbers_that_json_writes_as_text(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps({**SCHOOLS, "unused": ["Inf", "-Inf"]}))
    assert opened(EIGHT_SCHOOLS, path, observed="y").info.data.observed["y"].tolist() == SCHOOLS["y"]


def test_options_of_another_backend_and_other_objects() -> None:
    toolchain()
    with pytest.raises(InvalidArgumentError, match="engine='blackjax' is unknown for a Stan program"):
        open_model(EIGHT_SCHOOLS, OpenOptions(engine="blackjax"))
    with pytest.raises(InvalidArgumentError, match="or a Stan program"):
        bread.check(3, progressbar=False)
    with pytest.raises(InvalidArgumentError, match="bread reads the program's text"):
        open_model(SimpleNamespace(stan_file=None), OpenOptions())


@pytest.mark.pymc
def test_stan_arguments_with_a_pymc_model() -> None:
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, observed=1.0)
    with pytest.raises(InvalidArgumentError, match="data= is for Stan programs"):
        bread.check(model, data={"y": 1}, progressbar=False)


def test_files_are_found_at_home(tmp_path, monkeypatch):
    """A tilde is the user's folder, in the program's path as in that of its data."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "one.stan").write_text("parameters { real mu; } model { mu ~ normal(0, 1); }", encoding="utf-8")
    (tmp_path / "one.json").write_text('{"n": 3}', encoding="utf-8")
    assert read_program("~/one.stan")[1] == "one"
    assert read_data("~/one.json") == {"n": 3}
