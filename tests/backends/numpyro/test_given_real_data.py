"""NumPyro models with their posterior given the real data as their prior: what need not be drawn may be improper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

import bread
import bread.numpyro
from bread.backends import open_model
from bread.backends.base import Fit, OpenOptions
from bread.errors import UnsupportedModelError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import Component, MixtureReference, diagonal
from bread.report.compat import read_attributes
from bread.running.model_fit.replicated import ReplicatedModel
from tests.support import conformance

pytest.importorskip("jax")
pytest.importorskip("numpyro")
import numpyro
import numpyro.distributions as dist

from tests.support import numpyro_models as models

POSTERIOR = OpenOptions(simulate_from="posterior")
SILENT: dict[str, Any] = {"cores": 1, "random_seed": 1, "progressbar": False}
TIE = 0.7
REFERENCE = ReferencePath(MixtureReference((Component(np.array([0.8]), np.array([0.9])),), np.ones(1), "fixed"))


def improper(y: Any = None) -> None:
    """Flat, with a factor: together the prior is Normal(0, 1 / sqrt(2 TIE))."""
    mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.real, (), ()))
    numpyro.factor("tie", -TIE * mu**2)
    numpyro.sample("y", dist.Normal(mu, models.NOISE).expand([3]), obs=y)


def factor_of_data(y: Any = None) -> None:
    mu = numpyro.sample("mu", dist.Normal())
    drawn = numpyro.sample("y", dist.Normal(mu, 1.0).expand([3]), obs=y)
    numpyro.factor("more", -((drawn - mu) ** 2).sum())


def opened(function: Any = improper, **options: Any) -> Any:
    return open_model(bread.numpyro.Model(function, (models.Y,)), OpenOptions(**options))


def moments(*data: np.ndarray) -> tuple[float, float]:
    """Exact mean and standard deviation of mu given data sets, under the prior of `improper`."""
    precision = 2.0 * TIE + 3 * len(data) / models.NOISE**2
    return sum(one.sum() for one in data) / models.NOISE**2 / precision, precision**-0.5


def draws(factor: float = 1.0) -> dict[str, Any]:
    mean, sd = moments(models.Y)
    return {"mu": mean + factor * sd * default_rng(2).standard_normal((4, 500))}


def test_the_density_is_that_of_both_data_sets() -> None:
    model = ReplicatedModel(opened(simulate_from="posterior"), Fit(draws(), "draws"))
    drawn = model.simulate(3, fixed=None, seed=SeedSequence(1))
    data = drawn.data_of(1)
    assert np.isin(drawn.states[:, 0], draws()["mu"]).all() and not np.array_equal(data["y"], models.Y)
    posterior, states, path = model.condition(data), drawn.states, PriorPath()
    (mean, sd), (both_mean, both_sd) = moments(models.Y), moments(models.Y, data["y"])
    for beta, where, width in ((0.0, mean, sd), (1.0, both_mean, both_sd)):
        value, gradient = posterior.density_gradient(beta, states)
        z = (states[:, 0] - where) / width
        np.testing.assert_allclose(np.diff(value), -0.5 * np.diff(z**2), rtol=1e-9)
        np.testing.assert_allclose(gradient[:, 0], -z / width, rtol=1e-9)
    likelihood = -0.5 * (((data["y"] - states) / models.NOISE) ** 2).sum(axis=1)
    np.testing.assert_allclose(np.diff(posterior.log_ratio(path, states)), np.diff(likelihood), rtol=1e-9)
    assert list(model.info.paths) == ["reference"]


def test_chains_from_a_base_obey_the_contract_and_know_the_evidence() -> None:
    """E[w_fwd] = Z, E[1 / w_rev] = 1 / Z and Crooks' relation over 200 data sets, within 5 standard errors."""
    model = opened(models.normal_mean, simulate_from="posterior")
    kernel = conformance.tuned_kernel(model, path=REFERENCE)
    conformance.check_contract_shapes(model, kernel, path=REFERENCE)
    conformance.check_bit_equal_batching(model, kernel, path=REFERENCE)
    conformance.check_forward_reverse_identities(
        model, kernel, np.linspace(0.0, 1.0, 5), log_evidence=models.log_evidence, n_simulations=200, n_errors=5.0,
        path=REFERENCE,
    )  # fmt: skip


def test_a_reference_of_another_formula_is_none_that_chains_could_follow() -> None:
    posterior = opened(simulate_from="posterior").condition({"y": models.Y})
    assert posterior.takes_reference(diagonal(np.zeros(1), np.ones(1))) and not posterior.takes_reference(object())


@pytest.mark.parametrize(
    ("factor", "status"), [(1.0, "converged"), pytest.param(0.6, "disagreement", marks=pytest.mark.slow)]
)
def test_a_flat_prior_is_checked_by_default(factor: float, status: str) -> None:
    made = bread.check(bread.numpyro.Model(improper, (models.Y,)), posterior=draws(factor), simulations=20, **SILENT)
    assert read_attributes(made)["simulate_from"] == "posterior"
    assert bread.verdict(made).status == status


@pytest.mark.parametrize("protocol", ["fitted", "prior"])
def test_elsewhere_it_is_refused_with_the_way_out(protocol: str) -> None:
    with pytest.raises(UnsupportedModelError, match="simulate_from='posterior'"):
        opened(simulate_from=protocol)


def test_a_factor_of_the_data_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="factor 'more' depends on the observed site 'y'"):
        opened(factor_of_data, simulate_from="posterior")
