"""Exact joint draws from PyMC models: round trips, densities, seeds, restricted supports, fixed parameters."""

from __future__ import annotations

from functools import cache
from math import factorial, log
from unittest.mock import patch

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import integrate, stats

pm = pytest.importorskip("pymc")

from bread.backends.pymc.density.compiling import interpret_function, replace  # noqa: E402
from bread.backends.pymc.model.reading import (  # noqa: E402
    read_initial_point,
    read_layout,
    read_observed,
    usable_deterministics,
)
from bread.backends.pymc.simulation.prior_graph import PriorGraph  # noqa: E402
from bread.backends.pymc.simulation.simulation import Simulator, build_simulator  # noqa: E402
from bread.backends.pymc.simulation.streams import child_seeds  # noqa: E402
from bread.errors import InvalidArgumentError, UnsupportedModelError  # noqa: E402
from tests.support.pymc_models import MODELS, restricted_interval  # noqa: E402

pytestmark = pytest.mark.pymc


def simulator_of(model: pm.Model) -> Simulator:
    layout = read_layout(model, read_initial_point(model))
    return build_simulator(model, layout, read_observed(model), usable_deterministics(model)[0])


@cache
def opened(name: str) -> tuple[pm.Model, Simulator]:
    model = MODELS[name]()
    return model, simulator_of(model)


@pytest.mark.parametrize("name", MODELS)
def test_draws_are_in_the_models_own_form(name: str) -> None:
    model, simulator = opened(name)
    draws = simulator.simulate(8, fixed=None, seed=SeedSequence(11))
    assert draws.states.shape == (8, simulator.layout.dim)
    assert np.all(np.isfinite(draws.states))
    assert set(draws.parameters) == {v.name for v in (*model.free_RVs, *model.deterministics)}
    for variable in model.observed_RVs:
        real = read_observed(model)[variable.name]
        assert draws.data[variable.name].shape == (8, *real.shape)
        assert draws.data[variable.name].dtype == real.dtype == np.dtype(variable.type.dtype)
    for variable in model.free_RVs:
        assert draws.parameters[variable.name].dtype == np.dtype(variable.type.dtype)
    assert len(np.unique(draws.states, axis=0)) > 1


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_between_states_and_parameters(name: str) -> None:
    _, simulator = opened(name)
    draws = simulator.simulate(20, fixed=None, seed=SeedSequence(12))
    back = simulator.constrain(draws.states)
    for parameter, values in draws.parameters.items():
        np.testing.assert_allclose(back[parameter], values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(simulator.unconstrain(draws.parameters), draws.states, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_density_is_finite_at_simulated_states(name: str) -> None:
    model, simulator = opened(name)
    draws = simulator.simulate(20, fixed=None, seed=SeedSequence(13))
    terms = [model.logp(vars=list(model.free_RVs)), model.logp(vars=list(model.observed_RVs))]
    data = {model.rvs_to_values[v]: model.rvs_to_values[v].type(name=v.name) for v in model.observed_RVs}
    values = [model.rvs_to_values[v] for v in model.free_RVs]
    function = interpret_function([*values, *data.values()], replace(terms, data))
    for index, state in enumerate(draws.states):
        point = simulator.layout.unflatten(state)
        log_prior, log_likelihood = function(*point.values(), *draws.data_of(index).values())
        assert np.isfinite(log_prior)
        assert np.isfinite(log_likelihood)


@pytest.mark.parametrize("name", ["schools_centred", "ordered_different", "two_observed", "autoregression"])
def test_a_draw_depends_on_its_own_seed_alone(name: str) -> None:
    _, simulator = opened(name)
    seed = SeedSequence(14, spawn_key=(3,))
    many = simulator.simulate(6, fixed=None, seed=seed)
    few = simulator.simulate(2, fixed=None, seed=seed)
    again = simulator.simulate(6, fixed=None, seed=seed)
    assert seed.n_children_spawned == 0
    np.testing.assert_array_equal(many.states, again.states)
    np.testing.assert_array_equal(many.states[:2], few.states)
    for observed in many.data:
        np.testing.assert_array_equal(many.data[observed], again.data[observed])
        np.testing.assert_array_equal(many.data[observed][:2], few.data[observed])
    other = simulator.simulate(6, fixed=None, seed=SeedSequence(15))
    assert not np.any(np.all(many.states == other.states, axis=1))


def test_child_seeds_are_those_that_spawn_would_give() -> None:
    seed = SeedSequence(16, spawn_key=(1, 2))
    mine = [child.generate_state(2).tolist() for child in child_seeds(seed, 3)]
    assert mine == [child.generate_state(2).tolist() for child in SeedSequence(16, spawn_key=(1, 2)).spawn(3)]


@pytest.mark.parametrize("name", ["schools_centred", "mixture_with_label", "ordered_identical"])
def test_states_from_the_prior_are_those_of_the_joint_draws(name: str) -> None:
    _, simulator = opened(name)
    seed = SeedSequence(17)
    states = simulator.draw_states(child_seeds(seed, 5))
    np.testing.assert_array_equal(states, simulator.simulate(5, fixed=None, seed=seed).states)


def test_no_draws() -> None:
    _, simulator = opened("schools_centred")
    draws = simulator.simulate(0, fixed=None, seed=SeedSequence(1))
    assert draws.states.shape == (0, 10)
    assert draws.data["y"].shape == draws.parameters["theta"].shape == (0, 8)


@pytest.mark.statistical
def test_parameters_and_data_are_drawn_jointly() -> None:
    """Given y, mu ~ Normal(n ybar / (n + 1), 1 / (n + 1)): its probability transform is uniform."""
    _, simulator = opened("normal_mean")
    draws = simulator.simulate(400, fixed=None, seed=SeedSequence(18))
    n = draws.data["y"].shape[1]

    def p_value(total: np.ndarray) -> float:
        z = (draws.parameters["mu"] - total / (n + 1)) * np.sqrt(n + 1)
        return float(stats.kstest(z, "norm").pvalue)

    totals = draws.data["y"].sum(axis=1)
    assert p_value(totals) > 1e-3
    assert p_value(np.roll(totals, 1)) < 1e-12  # negative control: data of another draw


@pytest.mark.statistical
def test_sorted_draws_are_order_statistics() -> None:
    _, simulator = opened("ordered_identical")
    assert simulator.restrictions.ascending == {"cut": True}
    draws = simulator.simulate(600, fixed=None, seed=SeedSequence(19))
    assert draws.acceptance == 1.0
    cut = draws.parameters["cut"]
    assert np.all(np.diff(cut, axis=1) > 0)
    uniform = stats.norm.cdf(cut, 0, 2)
    for index in range(3):  # order statistic i of three uniforms is Beta(i + 1, 3 - i)
        assert stats.kstest(uniform[:, index], stats.beta(index + 1, 3 - index).cdf).pvalue > 1e-3
    assert stats.kstest(uniform[:, 0], "uniform").pvalue < 1e-12  # negative control: unsorted components
    (note,) = simulator.pilot()
    assert "'cut'" in note
    assert f"{log(factorial(3)):.3f} nats" in note


@pytest.mark.slow
@pytest.mark.statistical
def test_rejection_keeps_whole_joint_draws() -> None:
    """Density phi(mu) phi(x - mu) on 0 < x < 1: mu has no longer mean 0, as it would if x alone were redrawn."""
    simulator = simulator_of(restricted_interval())
    draws = simulator.simulate(1500, fixed=None, seed=SeedSequence(20))

    def density(mu: float) -> float:
        return float(stats.norm.pdf(mu) * (stats.norm.cdf(1 - mu) - stats.norm.cdf(-mu)))

    mass = integrate.quad(density, -8, 8)[0]
    mean = integrate.quad(lambda mu: mu * density(mu), -8, 8)[0] / mass
    mu = draws.parameters["mu"]
    standard_error = mu.std() / np.sqrt(len(mu))
    assert np.all((draws.parameters["x"] > 0) & (draws.parameters["x"] < 1))
    assert abs(mu.mean() - mean) < 4 * standard_error
    assert mean > 8 * standard_error  # negative control: the unrestricted mean 0 would be noticed
    # 4 standard errors of a proportion: n accepted draws of a geometric number of attempts each
    assert abs(draws.acceptance - mass) < 4 * mass * np.sqrt((1 - mass) / len(mu))
    (note,) = simulator.pilot()
    assert "'x'" in note
    assert "acceptance" in note


def test_fixed_parameters_are_held() -> None:
    _, simulator = opened("schools_centred")
    free = simulator.simulate(4, fixed=None, seed=SeedSequence(21))
    held = simulator.simulate(4, fixed={"mu": 3.0, "tau": 1e-6}, seed=SeedSequence(21))
    np.testing.assert_array_equal(held.parameters["mu"], np.full(4, 3.0))
    np.testing.assert_allclose(held.parameters["theta"], 3.0, atol=1e-4)
    np.testing.assert_allclose(held.states[:, 1], np.log(1e-6))
    # the same random numbers drive what is not fixed
    z = (free.parameters["theta"] - free.parameters["mu"][:, None]) / free.parameters["tau"][:, None]
    np.testing.assert_allclose((held.parameters["theta"] - 3.0) / 1e-6, z, rtol=1e-6)
    with patch.object(PriorGraph, "compile", autospec=True, side_effect=PriorGraph.compile) as compiling:
        simulator.simulate(1, fixed={"tau": 2.0, "mu": 0.0}, seed=SeedSequence(22))
        compiling.assert_not_called()  # compiled once for each set of names
        simulator.simulate(1, fixed={"tau": 2.0}, seed=SeedSequence(22))
        compiling.assert_called_once()


def test_all_parameters_fixed() -> None:
    _, simulator = opened("lkj_cholesky")
    one = simulator.simulate(1, fixed=None, seed=SeedSequence(23))
    held = simulator.simulate(3, fixed={"chol": one.parameters["chol"][0]}, seed=SeedSequence(24))
    np.testing.assert_allclose(held.states, np.repeat(one.states, 3, axis=0), rtol=1e-12)
    assert len(np.unique(held.data["y"][:, 0, 0])) == 3


@pytest.mark.parametrize(
    ("name", "fixed", "message"),
    [
        ("schools_centred", {"sigma": 1.0}, "'sigma'.*Valid names: mu, tau, theta"),
        ("schools_centred", {"theta": np.zeros(8)}, "'theta' without 'mu', 'tau'"),
        ("schools_centred", {"mu": np.zeros(2)}, r"fixed\['mu'\].*shape \(\)"),
        ("schools_centred", {"mu": np.nan}, r"fixed\['mu'\] must be finite"),
        ("ordered_different", {"scale": 1.0, "cut": np.array([1.0, -1.0])}, r"fixed\['cut'\].*outside the support"),
    ],
)
def test_impossible_fixed_parameters(name: str, fixed: dict[str, np.ndarray], message: str) -> None:
    _, simulator = opened(name)
    with pytest.raises(InvalidArgumentError, match=message):
        simulator.simulate(1, fixed=fixed, seed=SeedSequence(1))


def test_fixed_value_outside_the_support() -> None:
    _, simulator = opened("schools_centred")
    with pytest.raises(InvalidArgumentError, match=r"'tau'.*scale < 0.*inside the support"):
        simulator.simulate(1, fixed={"mu": 0.0, "tau": -1.0}, seed=SeedSequence(1))
    _, simulator = opened("beta_binomial")
    with pytest.raises(InvalidArgumentError, match=r"'p'.*1\.5 is not inside the support"):
        simulator.simulate(1, fixed={"p": 1.5}, seed=SeedSequence(1))


def test_data_that_cannot_be_drawn_are_an_error_that_says_so() -> None:
    with pm.Model() as model:
        rate = pm.Normal("rate", 0, 100)
        pm.Poisson("y", pm.math.exp(rate), observed=[1, 2])
    simulator = simulator_of(model)
    assert np.all(np.isfinite(simulator.draw_states(child_seeds(SeedSequence(1), 50))))
    with pytest.raises(UnsupportedModelError, match=r"'y'.*simulate_from=.fitted"):
        simulator.simulate(50, fixed=None, seed=SeedSequence(1))


def test_numbers_of_trials_may_be_stored_as_floats() -> None:
    with pm.Model() as model:
        trials = pm.Data("trials", np.array([10.0, 20.0]))
        p = pm.Beta("p", 1, 1)
        pm.Binomial("y", n=trials, p=p, observed=[3, 9])
        pm.BetaBinomial("z", n=trials, alpha=1 + p, beta=1, observed=[3, 9])
    draws = simulator_of(model).simulate(50, fixed=None, seed=SeedSequence(25))
    for name in ("y", "z"):
        assert np.all((draws.data[name] >= 0) & (draws.data[name] <= [10, 20]))
        assert draws.data[name].max() > 10
