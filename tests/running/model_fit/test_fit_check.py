"""The fit test on reference models and on PyMC's nodes: exact under the model, and misfits are found."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence
from scipy.stats import binom, kstest

from bread.running.model_fit import fit_check
from bread.running.model_fit.fit_check import check_fit
from tests.models.reference import BetaBinomial, HierarchicalNormal, NormalMean, NormalScale
from tests.support.borderline import BORDERLINE
from tests.support.misfits import ERRORS, MISFITS, MODELS, outlier
from tests.support.replicating import PyMCNodes, density, largest, mean, ranks

SCHOOLS = HierarchicalNormal(np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), ERRORS, prior_sd=5.0, group_sd=5.0)
REFERENCE = {
    "data": (SCHOOLS, "y", [mean, largest, density]),
    "latent": (SCHOOLS, "group_mean", [mean, largest, density]),
    "parameter": (SCHOOLS, "mu", [mean]),
    "given": (SCHOOLS, "y given mu", [mean, largest]),
    "prior": (SCHOOLS, "y from the prior", [mean, largest]),
    "counts": (BetaBinomial(np.array([2, 5, 0]), np.array([6, 6, 9])), "successes", [mean, density]),
    "scale": (NormalScale(np.zeros(5)), "y", [largest, density]),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", REFERENCE)
def test_a_node_is_exchangeable_with_its_replicates(name):
    model, node, functions = REFERENCE[name]
    found = ranks(model, node, n_sets=200, n_replicates=49, functions=functions)
    for column in found.T:
        assert kstest(column, "uniform").pvalue > 1e-3
    if name not in ("parameter", "prior"):  # they have no parents that could be another's
        wrong = ranks(model, node, n_sets=200, n_replicates=49, functions=functions[:1], parents_of_another=True)
        assert kstest(wrong[:, 0], "uniform").pvalue < 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("node", ["y", "theta", "tau", "y given mu, tau", "y from the prior"])
def test_a_variable_of_pymc_is_exchangeable_with_its_replicates(node):
    model = PyMCNodes(MODELS["schools"].model(np.zeros(8)))
    functions = [mean, largest, *([] if " " in node else [density])]
    for column in ranks(model, node, n_sets=200, n_replicates=49, functions=functions).T:
        assert kstest(column, "uniform").pvalue > 1e-3
    if node not in ("tau", "y from the prior"):
        wrong = ranks(model, node, n_sets=200, n_replicates=49, functions=functions[:1], parents_of_another=True)
        assert kstest(wrong[:, 0], "uniform").pvalue < 1e-3


def test_log_densities_of_pymc_are_those_of_the_parents_given():
    """A censored variable's density is a graph of copies of its parents, which must be those of the state."""
    with pm.Model() as model:
        b, scale = pm.Normal("b"), pm.Exponential("scale", 1.0)
        observed = np.array([0.3, 1.0, -0.2])
        pm.Censored("y", pm.Normal.dist(b, scale), lower=None, upper=1.0, observed=observed)
    nodes = PyMCNodes(model)
    state = np.array([0.4, np.log(0.7)])
    made = nodes.replicate(state, "y", 5, seed=SeedSequence(1))
    expected = pm.logp(pm.Censored.dist(pm.Normal.dist(0.4, 0.7), lower=None, upper=1.0, shape=3), observed).eval()
    np.testing.assert_allclose(made.pointwise[0], expected, rtol=1e-6)
    again = nodes.replicate(state, "y", 5, seed=SeedSequence(1))
    np.testing.assert_array_equal(made.values, again.values)
    assert (made.values <= 1.0).all() and not np.isnan(made.log_density).any()


def test_what_cannot_be_replicated_is_named():
    with pm.Model() as model:
        ordered = pm.Normal("ordered", shape=2, transform=pm.distributions.transforms.ordered, initval=[0.0, 1.0])
        pm.Normal("y", ordered, 1.0, observed=np.array([0.2, 0.5]))
    nodes = PyMCNodes(model)
    states = nodes.simulate(3, fixed=None, seed=SeedSequence(1)).states
    found = check_fit(nodes, states, 1)
    assert [one.node.name for one in found.tests] == ["y"]
    assert "transform" in found.left_out["y from the prior"]
    assert "transform" in found.left_out["ordered"]


def test_near_the_level_there_are_as_many_draws_as_the_work_allows(monkeypatch):
    """Their number depends on the replicates that the draws before needed, in elements, and on nothing else."""
    model = BORDERLINE["outlier at 4.0 sd"]
    states = model.draw_posterior(model.observed_data, 320, np.random.default_rng([3, 1]))
    made, replicate = [], type(model).replicate

    def counted(self, state, name, n, *, seed, data=None):
        made.append(n * next(node.size for node in self.nodes() if node.name == name))
        return replicate(self, state, name, n, seed=seed, data=data)

    monkeypatch.setattr(type(model), "replicate", counted)

    def draws(work):
        made.clear()
        monkeypatch.setattr(fit_check, "MOST_WORK", work)
        return len(check_fit(model, states).p_value_by_draw)

    assert draws(10**12) == 320  # the control: without a limit all are used
    everything = sum(made)
    assert draws(1) == 20
    first = sum(made)
    for work in (2 * first, 4 * first):
        n_draws = draws(work)
        assert 20 < n_draws < 320 and n_draws == draws(work)
        assert 0.5 * work < sum(made) < 2.0 * work < everything


@pytest.mark.statistical
@pytest.mark.parametrize("name", MISFITS)
def test_misfits_are_found_on_pymc(name):
    which, data, node = MISFITS[name]
    rng = np.random.default_rng(3)
    y = data(rng)
    nodes = PyMCNodes(MODELS[which].model(y))
    found = check_fit(nodes, nodes.unconstrain(MODELS[which].draws(rng, y, 8)), 1)
    assert found.p_value <= 0.005
    by_node = {one.node.name: np.nanmin(np.median(one.p_values, axis=0)) for one in found.tests}
    assert by_node[node] <= 0.1


MISFITS_OF_REFERENCE = {
    "outlier": (NormalMean(outlier(np.sin(np.arange(20.0)), 12.0)), "y[19]"),
    "mean ten prior sd away": (NormalMean(10.0 + np.sin(np.arange(20.0))), "mean"),
    "constant": (NormalMean(np.full(20, 0.7)), None),
    "counts all 0 or 6": (BetaBinomial(6 * (np.arange(12) % 2), np.full(12, 6)), None),
    "one school at 60": (
        HierarchicalNormal(np.where(np.arange(8) == 4, 60.0, 0.0), ERRORS / 2, prior_sd=5.0, group_sd=5.0), "group_mean"
    ),
}  # fmt: skip


@pytest.mark.statistical
@pytest.mark.parametrize("name", MISFITS_OF_REFERENCE)
def test_misfits_are_found_on_the_reference_backend(name):
    model, _ = MISFITS_OF_REFERENCE[name]
    states = model.draw_posterior(model.observed_data, 8, np.random.default_rng(2))
    assert check_fit(model, states, 1).p_value <= 0.005


@pytest.mark.slow
@pytest.mark.statistical
def test_clean_data_are_called_poor_no_more_often_than_they_should():
    p_values = []
    for seed in range(100):
        y = NormalMean(np.zeros(12)).simulate(1, fixed=None, seed=SeedSequence([5, seed])).data["y"][0]
        model = NormalMean(y)
        states = model.draw_posterior({"y": y}, 6, np.random.default_rng(seed))
        p_values.append(check_fit(model, states, seed).p_value)
    for level in (0.005, 0.05, 0.2):
        assert (np.array(p_values) <= level).sum() <= binom.ppf(0.99, 100, level)


def test_results_depend_on_the_seed_alone_and_long_nodes_go_in_batches():
    model = NormalMean(np.random.default_rng(1).normal(size=3000))
    states = model.draw_posterior(model.observed_data, 2, np.random.default_rng(2))
    one, two, other = (check_fit(model, states, root) for root in (1, 1, 2))
    np.testing.assert_array_equal(one.tests[0].p_values, two.tests[0].p_values)
    assert (one.tests[0].p_values[:, 0] != other.tests[0].p_values[:, 0]).any()
    assert one.tests[0].effect.shape == (2,) and one.tests[0].deviation.shape == (3000,)


def long_data(seed, n=2500):
    return NormalMean(np.zeros(n)).simulate(1, fixed=None, seed=SeedSequence([6, seed])).data["y"][0]


@pytest.mark.statistical
def test_fewer_replicates_of_a_long_node_are_as_valid():
    p_values = []
    for seed in range(150):
        model = NormalMean(long_data(seed))
        states = model.draw_posterior(model.observed_data, 1, np.random.default_rng(seed))
        p_values.append(check_fit(model, states, seed).p_value)
    for level in (0.005, 0.05, 0.2, 0.5):
        assert (np.array(p_values) <= level).sum() <= binom.ppf(0.999, 150, level)


@pytest.mark.parametrize("has_pointwise", [True, False])
def test_a_long_node_has_fewer_replicates_and_its_misfit_is_still_seen(monkeypatch, has_pointwise):
    made, replicate = [], NormalMean.replicate

    def counted(self, state, name, n, *, seed, data=None):
        found = replicate(self, state, name, n, seed=seed, data=data)
        if name != "y":
            return found
        made.append(n)
        pointwise = -0.5 * (found.values - self.constrain(state[None])["mean"][0]) ** 2
        return replace(found, pointwise=pointwise) if has_pointwise else found

    monkeypatch.setattr(NormalMean, "replicate", counted)

    def checked(values, long=2000):
        monkeypatch.setattr(fit_check, "LONG", long)
        made.clear()
        model = NormalMean(values)
        states = model.draw_posterior(model.observed_data, 20, np.random.default_rng(2))
        return check_fit(model, states), sum(made)

    fewer, n_fewer = checked(long_data(1))
    every, n_every = checked(long_data(1), 10**9)
    # no draw comes to a second stage here; the scales of elements, 100 replicates, are asked for at 3 draws or at all
    assert n_every == 20 * (100 + 100)
    assert n_fewer == (3 if has_pointwise else 20) * 100 + 20 * 50
    assert fewer.p_value > 0.1 and every.p_value > 0.1
    y = long_data(1)
    y[7] = 9.0
    poor, _ = checked(y)
    assert poor.p_value < 0.005
    data = next(one for one in poor.tests if one.node.kind == "data")
    assert data.extremes[0] == 7 and data.deviation.shape == (2500,)
    # from 100 replicates a draw, whose scale is known to a tenth: within 5 standard errors of 9
    assert abs(data.deviation[7] - 9.0) < 5 * 9.0 * 0.1 / np.sqrt(3)
