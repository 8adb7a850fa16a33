"""`bread.debug` on PyMC models: any step method, and defects of distributions and kernels."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from pymc.distributions.transforms import ordered

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.debugging.model_tests import run_model_tests

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]


class AcceptsAll(pm.Metropolis):
    """Proposes as Metropolis does, and accepts whatever the density says."""

    def astep(self, q0):
        """Move by a normal step."""
        _, statistics = super().astep(q0)
        return type(q0)(q0.data + self.rng.normal(size=q0.data.shape), q0.point_map_info), statistics


class Raises(pm.Metropolis):
    """Has a mistake in its code."""

    def astep(self, q0):
        """Raise an error."""
        raise AttributeError("no attribute 'proposal'")


def small():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", mu, 1.0, observed=np.array([0.3, 1.2]))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, pm.Slice, pm.Metropolis])
def test_sound_kernels_have_no_bug(kernel):
    report = bread.debug(small(), kernel=kernel, random_seed=1, progressbar=False)
    assert bread.verdict(report).status == "no bug found"


def test_a_step_method_that_accepts_everything_is_a_bug_of_the_kernel():
    report = bread.debug(small(), kernel=AcceptsAll, only="kernel", budget=0.02, random_seed=1, progressbar=False)
    assert bread.verdict(report).status == "bug"
    table = bread.summary(report)
    assert "history" not in set(table[table["fails"]]["test"])


def test_a_kernel_that_cannot_run_is_never_called_right():
    report = bread.debug(small(), kernel=Raises, only="kernel", budget=0.02, random_seed=1, progressbar=False)
    found = bread.verdict(report)
    assert found.status == "inconclusive" and not found and "no attribute 'proposal'" in found


@pytest.mark.slow
def test_a_kernel_that_uses_its_history_is_told():
    report = bread.debug(small(), kernel=pm.DEMetropolisZ, only="kernel", random_seed=1, progressbar=False)
    assert bread.verdict(report).status == "bug" and "uses its own past" in bread.verdict(report).details


def test_a_density_without_its_constant_is_named():
    def half(value, scale):
        return -0.5 * (value / scale) ** 2

    def draw(scale, rng=None, size=None):
        return rng.normal(0.0, scale, size=size)

    with pm.Model() as model:
        x = pm.CustomDist("x", 2.0, logp=half, random=draw)
        pm.Normal("y", x, 1.0, observed=np.array([0.3]))
    report = bread.debug(model, only="simulator", random_seed=1, progressbar=False, budget=0.3)
    found = bread.verdict(report)
    assert found.status == "bug" and "'prior's integral' of model" in found and "log integral of x" in found


def whole_numbers_and_orders():
    """Priors whose integral over the line says nothing: masses of whole numbers, and one of two orders."""
    with pm.Model() as model:
        level = pm.DiscreteUniform("level", 1, 4, shape=2)
        count = pm.Poisson("count", 3.0)
        ends = pm.Normal("ends", 0.0, 1.0, shape=2, transform=ordered, initval=[-1.0, 1.0])
        pm.Normal("y", level[0] * level[1] + count + ends[1], 2.0, observed=np.array([5.0]))
    return model


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.slow
def test_masses_and_orders_are_no_defect_of_a_density(seed):
    """Bridge sampling over the line calls a mass function no density at p = 1e-15."""
    opened = open_model(whole_numbers_and_orders(), OpenOptions())
    found = run_model_tests(opened, None, level=0.01, budget=0.1, root=seed)
    assert not any(result.fails for result in found.results)
    for name in ("level", "count"):
        assert found.left_out[f"prior's integral of {name}"] == "discrete: sums over values are not looked at"


def test_a_continuous_density_beside_masses_is_still_integrated():
    with pm.Model() as model:
        level = pm.DiscreteUniform("level", 1, 4)
        mu = pm.CustomDist("mu", logp=lambda value: -0.5 * value**2, random=lambda rng, size: rng.normal(size=size))
        pm.Normal("y", level + mu, 2.0, observed=np.array([5.0]))
    found = run_model_tests(open_model(model, OpenOptions()), None, level=0.01, budget=0.1, root=1)
    (integral,) = (result for result in found.results if result.test.name == "prior's integral")
    assert integral.fails and integral.finding.labels[0].quantity == "mu"
    assert integral.finding.effect[0] == pytest.approx(0.5 * np.log(2 * np.pi), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("proposal", [pm.step_methods.PoissonProposal, pm.step_methods.NormalProposal])
def test_pymcs_poisson_proposal_is_not_symmetric(proposal):
    with pm.Model() as model:
        x = pm.Poisson("x", 3.0)
        pm.Normal("y", x, 1.5, observed=np.array([4.0]))

    def step(model):
        return pm.Metropolis(proposal_dist=proposal, model=model)

    report = bread.debug(model, kernel=step, only="kernel", budget=0.3, random_seed=1, progressbar=False)
    found = bread.verdict(report)
    assert found.status == ("bug" if proposal is pm.step_methods.PoissonProposal else "no bug found"), found
    assert proposal is pm.step_methods.NormalProposal or "discrete coordinates" in found


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.95, 0.0])
def test_pymcs_metropolis_accepts_coordinates_of_one_correlated_step_one_by_one(correlation):
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Normal("y", x, 3.0, observed=np.array([0.5, -1.0]))

    def step(model):
        return pm.Metropolis(S=np.array([[1.0, correlation], [correlation, 1.0]]), model=model)

    report = bread.debug(model, kernel=step, only="kernel", budget=0.1, random_seed=1, progressbar=False)
    found = bread.verdict(report)
    assert found.status == ("bug" if correlation else "no bug found"), found


class Forgetful(pm.Metropolis):
    """Keeps a permutation from step to step, as `pm.Metropolis` does of three coordinates: ``pm.sample`` resets it."""


class Hoards(pm.Metropolis):
    """Keeps a count that no sampling state holds, and moves by it."""

    n_moves = 0

    def astep(self, q0):
        """Widen the step with every move."""
        self.n_moves += 1
        self.scaling = np.full_like(self.scaling, 1.0 + 0.01 * self.n_moves)
        return super().astep(q0)


@pytest.mark.parametrize(
    ("kernel", "is_told"),
    [(Forgetful, False), (Hoards, True)],
)
@pytest.mark.slow
def test_what_pm_sample_resets_before_each_chain_is_no_memory(kernel, is_told):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0, shape=3)
        pm.Normal("y", mu, 1.0, observed=np.array([0.3, 1.2, -0.4]))
    report = bread.debug(model, kernel=kernel, only="kernel", budget=0.02, random_seed=1, progressbar=False)
    table = bread.summary(report)
    assert ("history" in set(table[table["fails"]]["test"])) == is_told
    assert (bread.verdict(report).status == "bug") == is_told
