"""The finite backend against the contract, and what it samples against exact values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread import exact
from bread.backends.base import AnnealRun, Failure, Kernel, OpenOptions
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.exact import FiniteChain, WeightLaw
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.schedules import linear
from bread.statistics.bounds.alarms import combined_p_value, rank_p_values, theory_alarm, weighted_ranks
from bread.statistics.bounds.betting import betting_upper_limit
from bread.statistics.bounds.bounds import simulation_gaps
from bread.statistics.bounds.certificate import (
    compare_forms,
    conditional_gaps,
    error_by_simulation,
    error_interval,
    raw_error_by_simulation,
)
from tests.models.finite import FiniteModel
from tests.support.annealed_pools import PATH
from tests.support.conformance import (
    assert_mean,
    check_bit_equal_batching,
    check_contract_shapes,
    check_forward_reverse_identities,
    check_frozen,
    check_simulate_is_exact,
    check_weighted_ranks,
)

PRIOR = np.array([0.5, 0.2, 0.3])
LIKELIHOOD = np.array([[0.7, 0.3], [0.1, 0.9], [0.45, 0.55]])
DATA = np.array([0, 1, 1])
METROPOLIS = exact.Lazy(exact.MetropolisHastings(exact.grid_neighbours((3,))), 0.3)
KERNEL = Kernel(betas=np.array([0.0, 1.0]), settings={})
BETAS = linear(4)
WIDE = np.random.default_rng(3)
SHAPE = (6, 7)
PAIRS = exact.HeatBath([np.array([0, 0, 1]), np.array([0, 1, 1])], "pairs")  # in fixed order: not reversible


class NotTurned(exact.HeatBath):
    """A defect: reverse chains run the same order of steps as forward chains."""

    def reversals(self, log_density: np.ndarray) -> np.ndarray:
        return self.matrices(log_density)


SMALL = FiniteModel(PRIOR, LIKELIHOOD, DATA, METROPOLIS)
LARGE = FiniteModel(
    WIDE.dirichlet(np.ones(42)),
    WIDE.dirichlet(np.ones(4), size=42),
    WIDE.integers(4, size=9),
    exact.gibbs_on_grid(SHAPE),
)
MODELS = {
    "metropolis": SMALL,
    "not reversible": FiniteModel(PRIOR, LIKELIHOOD, DATA, PAIRS),
    "gibbs": LARGE,
}


def over_data(model: FiniteModel, function: Callable[[FiniteChain], float]) -> float:
    """Return the mean of an exact number over all data sets."""
    rows, probability = model.data_sets()
    return float(probability @ [function(model.chain({"y": row})) for row in rows])


def law(chain: FiniteChain) -> WeightLaw:
    return exact.weight_law(chain, BETAS)


# ---- the contract ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LARGE], ids=["gibbs"])
def test_contract(model: FiniteModel) -> None:
    check_simulate_is_exact(model)
    check_contract_shapes(model, KERNEL)
    check_bit_equal_batching(model, KERNEL)
    check_frozen(model, KERNEL)


def test_simulations_follow_the_tables() -> None:
    """Joint frequencies of state and outcomes, 4 standard errors each."""
    n = 4000
    simulations = SMALL.simulate(n, fixed=None, seed=SeedSequence(1))
    state, y = simulations.parameters["state"], simulations.data["y"]
    for i in range(3):
        assert_mean((state == i).astype(float), PRIOR[i], 4, f"state {i}")
        for outcome in (0, 1):
            joint = ((state == i)[:, None] & (y == outcome)).mean(axis=1)
            assert_mean(joint, PRIOR[i] * LIKELIHOOD[i, outcome], 4, f"state {i}, outcome {outcome}")


def test_data_sets_and_evidence() -> None:
    rows, probability = SMALL.data_sets()
    assert rows.shape == (8, 3) and probability.sum() == pytest.approx(1.0)
    by_hand = PRIOR @ (LIKELIHOOD[:, 0] * LIKELIHOOD[:, 1] ** 2)
    assert SMALL.log_evidence({"y": DATA}) == pytest.approx(np.log(by_hand))
    assert probability[(rows == DATA).all(axis=1)] == pytest.approx(by_hand)


def test_replicates_and_fit() -> None:
    state = np.array([1.0])
    data = SMALL.replicate(state, "y", 2000, seed=SeedSequence(2))
    assert data.values.shape == (2001, 3) and (data.values[0] == DATA).all() and data.log_density is not None
    assert data.log_density[0] == pytest.approx(np.log(0.1 * 0.9**2))
    assert_mean(data.values[1:].mean(axis=1), 0.9, 4, "outcomes of state 1")
    states = SMALL.replicate(state, "state", 2000, seed=SeedSequence(3)).values
    assert states[0] == 1.0
    assert_mean((states[1:, 0] == 2).astype(float), 0.3, 4, "states from the prior")
    with pytest.raises(UnsupportedModelError, match="no such node"):
        SMALL.replicate(state, "z", 1, seed=SeedSequence(1))
    posterior = SMALL.chain({"y": DATA}).laws([1.0])[0]
    draws = SMALL.fit(seed=4, cores=1, progressbar=False).flat_draws()["state"]
    assert_mean((draws == 0).astype(float), posterior[0], 4, "posterior draws")


# ---- what is sampled against exact values ------------------------------------------------------------------------


class Chains(NamedTuple):
    """Log weights (simulation, chain) and products of ends, each centred, (simulation, chain, function)."""

    forward: np.ndarray
    reverse: np.ndarray
    forward_products: np.ndarray
    reverse_products: np.ndarray


def products_of_ends(run: AnnealRun) -> np.ndarray:
    return ((run.state_at_base[:, :, None] - 2) * (run.state_at_end[:, None, :] - 2)).reshape(len(run.log_weight), -1)


def sample(model: FiniteModel, betas: np.ndarray, *, n: int, n_chains: int, seed: int) -> Chains:
    """Anneal forward chains and one reverse chain from the exact draw; all simulations of a data set in one call."""
    simulations = model.simulate(n, fixed=None, seed=SeedSequence(seed))
    rows, which = np.unique(simulations.data["y"], axis=0, return_inverse=True)
    dim = model.info.layout.dim**2
    found = Chains(np.empty((n, n_chains)), np.empty((n, 1)), np.empty((n, n_chains, dim)), np.empty((n, 1, dim)))
    for index, row in enumerate(rows):
        place = np.flatnonzero(which.reshape(-1) == index)
        posterior = model.condition({"y": row})
        start, there, back = (one.spawn(len(place) * n_chains) for one in SeedSequence((seed, index)).spawn(3))
        base = posterior.draw_base(PATH, start)
        up = posterior.anneal(PATH, betas, KERNEL, direction="forward", initial=base, seeds=there)
        down = posterior.anneal(
            PATH, betas, KERNEL, direction="reverse", initial=simulations.states[place], seeds=back[: len(place)]
        )
        for values, run, shape in (
            (found.forward, up.log_weight, (len(place), n_chains)),
            (found.reverse, down.log_weight, (len(place), 1)),
            (found.forward_products, products_of_ends(up), (len(place), n_chains, dim)),
            (found.reverse_products, products_of_ends(down), (len(place), 1, dim)),
        ):
            values[place] = run.reshape(shape)
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["metropolis", "not reversible"])
def test_v_and_b_of_chains_are_the_exact_ones(name: str) -> None:
    """3000 data sets, 4 chains: both forms of V and of B within 4 standard errors; limits of V hold it."""
    model = MODELS[name]
    chains = sample(model, BETAS, n=3000, n_chains=4, seed=11)
    error = over_data(model, lambda chain: law(chain).expected_error(4))
    bound = over_data(model, lambda chain: exact.anneal(chain, BETAS).bound)
    assert_mean(error_by_simulation(chains.forward, chains.reverse), error, 4, "V")
    assert_mean(raw_error_by_simulation(chains.forward, chains.reverse), error, 4, "raw V")
    assert_mean(simulation_gaps(chains.forward, chains.reverse), bound, 4, "raw B")
    assert_mean(conditional_gaps(chains.forward, chains.reverse), bound, 4, "B")
    assert over_data(model, lambda chain: law(chain).error) < error
    alarm = theory_alarm(chains.forward, chains.reverse)
    assert alarm.p_value > 0.01 and compare_forms(chains.forward, chains.reverse).p_value > 0.01


@pytest.mark.statistical
def test_v_of_another_schedule_is_told_apart() -> None:
    """Negative control: one temperature fewer is not within the same 4 standard errors."""
    chains = sample(SMALL, linear(3), n=3000, n_chains=4, seed=11)
    error = over_data(SMALL, lambda chain: law(chain).expected_error(4))
    with pytest.raises(AssertionError, match="V: mean"):
        assert_mean(error_by_simulation(chains.forward, chains.reverse), error, 4, "V")


@pytest.mark.statistical
def test_how_often_limits_of_v_miss_it() -> None:
    """200 runs of 20 data sets. Nominal: 5 %; Student t and Hall may miss up to 7 %, and 3 binomial errors more."""
    chains = sample(SMALL, BETAS, n=4000, n_chains=4, seed=12)
    errors = error_by_simulation(chains.forward, chains.reverse).reshape(200, 20)
    truth = over_data(SMALL, lambda chain: law(chain).expected_error(4))
    limits = [error_interval(run, 0.95) for run in errors]
    below = np.mean([one.upper < truth for one in limits])
    above = np.mean([one.lower > truth for one in limits])
    spread = 3 * np.sqrt(0.07 * 0.93 / 200)
    assert below <= 0.07 + spread and above <= 0.07 + spread
    assert np.mean([betting_upper_limit(run, 0.95) < truth for run in errors]) <= 0.05 + spread
    halved = np.mean([error_interval(run / 2, 0.95).upper < truth for run in errors])  # negative control
    assert halved > 0.9


@pytest.mark.statistical
def test_final_states_follow_the_exact_law() -> None:
    """10,000 forward chains on one data set: every probability of q within 4 standard errors."""
    posterior, n = SMALL.condition({"y": DATA}), 10_000
    start = posterior.draw_base(PATH, SeedSequence(5).spawn(n))
    run = posterior.anneal(PATH, BETAS, KERNEL, direction="forward", initial=start, seeds=SeedSequence(6).spawn(n))
    final = exact.anneal(posterior.chain, BETAS).final_law
    for state in range(3):
        assert_mean((run.state_at_end[:, 0] == state).astype(float), final[state], 4, f"state {state}")


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["metropolis", "not reversible"])
def test_identities_and_ranks(name: str) -> None:
    check_forward_reverse_identities(MODELS[name], KERNEL, BETAS, n_simulations=200)
    check_weighted_ranks(MODELS[name], KERNEL, BETAS, n_simulations=200)


@pytest.mark.statistical
def test_a_kernel_that_is_not_turned_round_is_seen() -> None:
    """Negative control: Gibbs over two axes, run in the same order in reverse; nothing else is wrong.

    At T = 2 a forward path goes by one sweep. Its start's second axis leads the end's first one, and not the other way
    round: ranks of products of different axes see it. Those of one axis with itself are symmetric, and cannot.
    """
    distance = np.subtract.outer(np.arange(5), np.arange(5))
    prior = np.exp(-0.3 * distance**2) * np.linspace(1, 2, 5)
    success = 0.4 + 0.05 * np.add.outer(np.arange(5), np.zeros(5))
    table = np.stack([1 - success, success], axis=-1)
    right = exact.gibbs_on_grid((5, 5))
    kernels = (right, NotTurned(right.partitions))
    models = [FiniteModel(prior / prior.sum(), table, DATA, kernel) for kernel in kernels]
    p_values = []
    for model in models:
        chains = sample(model, linear(2), n=1000, n_chains=2, seed=3)
        h_forward, h_reverse = chains.forward_products, chains.reverse_products[:, 0]
        uniforms = np.random.default_rng(3).random(h_reverse.shape)
        ranks = weighted_ranks(chains.forward, chains.reverse[:, 0], h_forward, h_reverse, uniforms)
        p_values.append(combined_p_value(rank_p_values(ranks)))
    assert p_values[0] > 0.01 and p_values[1] < 1e-6


def test_zero_likelihoods_are_counted_failures() -> None:
    model = FiniteModel(PRIOR, np.array([[0.7, 0.3], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0]), METROPOLIS)
    posterior = model.condition({"y": np.array([0, 0])})
    start = np.array([[1.0], [0.0]])
    seeds = SeedSequence(1).spawn(2)
    run = posterior.anneal(PATH, BETAS, KERNEL, direction="forward", initial=start, seeds=seeds)
    assert run.failure[0] == Failure.ZERO_RATIO and run.log_weight[0] == -np.inf
    back = posterior.anneal(PATH, BETAS, KERNEL, direction="reverse", initial=start, seeds=seeds)
    assert back.failure[0] == Failure.ZERO_INITIAL and back.failure[1] == Failure.NONE
    with pytest.raises(InvalidArgumentError, match="no state at which"):
        certain = FiniteModel(np.array([0.0, 1.0]), np.eye(2), np.array([0]), exact.independent_draws(2))
        certain.condition({"y": np.array([0])})


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "likelihood", "data", "message"),
    [
        ([0.5, 0.6], [[1.0], [1.0]], [0], "prior must hold probabilities"),
        ([0.5, 0.5], [[0.5, 0.4], [1.0, 0.0]], [0], "likelihood must hold probabilities"),
        ([1.5, -0.5], [[1.0], [1.0]], [0], "prior must hold probabilities"),
        ([0.5, np.nan], [[1.0], [1.0]], [0], "prior must hold probabilities"),
        ([1.0], [[1.0], [1.0]], [0], "one number for each row"),
        ([0.5, 0.5], [[1.0], [1.0]], [1], "whole numbers from 0 to 0"),
        ([0.5, 0.5], [[1.0], [1.0]], [0.0], "whole numbers"),
        ([0.5, 0.5], [[1.0], [1.0]], [[0]], "must be a vector"),
    ],
)
def test_tables_are_checked(prior: list[float], likelihood: list[list[float]], data: list[int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        FiniteModel(np.array(prior), np.array(likelihood), np.array(data), exact.independent_draws(2))


def test_calls_are_checked() -> None:
    posterior = SMALL.condition({"y": DATA})

    class Reference:
        """A density, which a discrete state has not."""

    with pytest.raises(InvalidArgumentError, match="Use path='prior'"):
        posterior.log_ratio(ReferencePath(Reference()), np.zeros((1, 1)))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="the one parameter"):
        SMALL.simulate(1, fixed={"x": np.array(1)}, seed=SeedSequence(1))
    for data in ({}, {"y": np.array([0])}, {"y": np.array([0, 1, 2])}, {"y": np.array([0, -1, 1])}):
        with pytest.raises(InvalidArgumentError, match="must have 'y'"):
            SMALL.condition(data)
    assert SMALL.info.paths == (PriorPath.name,) and OpenOptions().kernel is None


def test_densities_are_zero_off_the_grid():
    posterior, path = SMALL.condition({"y": DATA}), PriorPath()
    states = np.array([[0.0], [-1.0], [len(PRIOR) - 0.5], [float(len(PRIOR))], [len(PRIOR) - 1.0]])
    is_state = [True, False, False, False, True]
    for density in (posterior.log_base, posterior.log_ratio, posterior.log_density):
        np.testing.assert_array_equal(np.isfinite(density(path, states)), is_state)
        np.testing.assert_array_equal(density(path, states[[4]]), density(path, states)[[4]])
