"""PyMC models that the user simulates: potentials and what else has a density but no draws of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.errors import InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from tests.support.conformance import (
    check_contract_shapes,
    check_frozen,
    check_simulate_is_exact,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.marks import slow_but
from tests.support.pymc_conjugate import SHORT

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

Y = np.array([0.4, 1.9, 1.1])
PATH = ReferencePath(diagonal(np.array([0.7, -0.1]), np.array([0.7, 0.6])))


def with_potential() -> pm.Model:
    """N(0, 1) times a potential that makes it N(0.5, 1/2) up to a constant, a flat prior with a potential, data."""
    with pm.Model() as model:
        x = pm.Data("x", np.array([1.0, 0.5, 2.0]))
        mu = pm.Normal("mu", 0, 1)
        sigma = pm.HalfFlat("sigma")
        pm.Potential("shift", -0.5 * (mu - 1) ** 2)
        pm.Potential("law", pm.logp(pm.LogNormal.dist(0, 0.5), sigma))
        pm.Normal("y", mu * x, sigma, observed=Y)
    return model


def simulate(rng: np.random.Generator, data: Any, fixed: Any = None, *, shift: float = 0.0) -> Any:
    fixed = fixed or {}
    mu = fixed.get("mu", rng.normal(0.5 + shift, np.sqrt(0.5)))
    sigma = fixed.get("sigma", np.exp(rng.normal(0, 0.5)))
    return {"mu": mu, "sigma": sigma}, {"y": rng.normal(mu * data["x"], sigma)}


def wrong(rng: np.random.Generator, data: Any) -> Any:
    return simulate(rng, data, shift=1.0)


def opened_with(function: Any, **options: Any) -> Any:
    return open_model(with_potential(), OpenOptions(simulator=function, **options))


@pytest.fixture(scope="module")
def opened() -> Any:
    return opened_with(simulate)


def test_refused_without_a_simulator_and_the_way_out() -> None:
    with pytest.raises(UnsupportedModelError, match=r"pm.Potential 'shift', 'law'.*simulator= with a function"):
        open_model(with_potential(), OpenOptions())


def test_only_the_reference_path_is_left(opened: Any) -> None:
    assert opened.info.paths == ("reference",)
    assert set(opened.info.path_refusals) == {"prior"}
    assert "pm.Potential 'shift'" in opened.info.path_refusals["prior"]
    assert any("simulator=" in note for note in opened.info.identity.notes)
    posterior = opened.condition({"y": Y})
    with pytest.raises(InvalidArgumentError, match="pm.Potential 'shift'"):
        posterior.log_ratio(PriorPath(), np.zeros((1, 2)))
    seeds = SeedSequence(3).spawn(2)
    assert np.array_equal(posterior.draw_base(PriorPath(), seeds), opened.simulate(
        2, fixed=None, seed=SeedSequence(3)).states)  # fmt: skip
    with pytest.raises(UnsupportedKernelError, match=r"No path is left.*'shift'.*Slice"):
        opened_with(simulate, kernel=pm.Slice)


def test_joint_density_and_contract(opened: Any) -> None:
    states = np.array([[0.3, -0.2], [1.4, 0.6]])
    mu, sigma = states[:, 0], np.exp(states[:, 1])
    expected = stats.norm.logpdf(mu) - 0.5 * (mu - 1) ** 2 + stats.lognorm.logpdf(sigma, 0.5) + states[:, 1]
    expected += stats.norm.logpdf(Y, mu[:, None] * [1.0, 0.5, 2.0], sigma[:, None]).sum(axis=1)
    ratio = opened.condition({"y": Y}).log_ratio(PATH, states)
    np.testing.assert_allclose(ratio, expected - PATH.reference.log_density(states), rtol=1e-8)
    check_simulate_is_exact(opened)
    kernel = tuned_kernel(opened, path=PATH)
    check_contract_shapes(opened, kernel, path=PATH)
    check_frozen(opened, kernel, path=PATH)


@pytest.mark.statistical
@pytest.mark.parametrize("function", slow_but([], [simulate, wrong]), ids=["right", "wrong"])
def test_ranks_tell_whether_the_simulator_agrees(function: Any) -> None:
    """Weighted ranks at level 0.001; the negative control draws mu from a prior shifted by 1.4 deviations."""
    model = opened_with(function)
    kernel = tuned_kernel(model, path=PATH)
    if function is simulate:
        check_weighted_ranks(model, kernel, SHORT, n_simulations=150, path=PATH)
    else:
        with pytest.raises(AssertionError, match="not uniform"):
            check_weighted_ranks(model, kernel, SHORT, n_simulations=150, path=PATH)


def custom(value: Any, mu: Any) -> Any:
    return pm.logp(pm.Normal.dist(mu, 1), value)


def test_a_distribution_without_draws_keeps_all_paths() -> None:
    with pm.Model() as model:
        pm.CustomDist("y", pm.Normal("mu"), logp=custom, observed=Y)
    with pytest.raises(UnsupportedModelError, match=r"'y' is or depends on.*simulator= with"):
        open_model(model, OpenOptions())

    def function(rng: np.random.Generator, data: Any) -> Any:
        mu = rng.normal()
        return {"mu": mu}, {"y": rng.normal(mu, size=data["y"].shape)}

    opened = open_model(model, OpenOptions(simulator=function))
    assert opened.info.paths == ("prior", "reference")
    check_contract_shapes(opened, tuned_kernel(opened, n_steps=30))
    with pytest.raises(InvalidArgumentError, match="cannot hold 'mu' at a draw"):
        open_model(model, OpenOptions(simulator=function, simulate_from="fitted"))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("a program", "must be a function"),
        (lambda rng, data: 1 / 0, "failed: ZeroDivisionError"),
        (lambda rng, data: ({"mu": 0.0}, {"y": Y}), "returned no parameter 'sigma'"),
        (
            lambda rng, data: ({"mu": 0.0, "sigma": 1.0}, {"y": Y[:2]}),
            r"'y' of shape \(2,\); the model declares \(3,\)",
        ),
        (lambda rng, data: ({"mu": np.nan, "sigma": 1.0}, {"y": Y}), "'mu' as float 'nan'; it must be finite"),
        (lambda rng, data: ({"mu": "a", "sigma": 1.0}, {"y": Y}), "'mu' as str 'a'; it must be numbers"),
        (lambda rng, data: ({"mu": 0.0, "sigma": 0.0}, {"y": Y}), "sigma_log__ outside its support"),
    ],
)
def test_wrong_simulators_are_refused(function: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        opened_with(function)
