"""Exact laws of log weights and V: against all paths one by one, and limits of V against exact V."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bread import exact
from bread.errors import InvalidArgumentError
from bread.exact import FiniteChain
from bread.paths.schedules import linear
from bread.statistics.bounds.certificate import raw_error_by_simulation
from tests.support.finite_annealing import FiniteAnnealing, lazy, metropolis_on_line, sweep_of_pairs

PRIOR = np.array([0.5, 0.2, 0.3])
FULL = np.array([[0.7, 0.3], [0.1, 0.9], [0.45, 0.55]])
WITH_ZEROS = np.array([[0.7, 0.3], [0.0, 1.0], [1.0, 0.0]])
UNEVEN = np.array([0.0, 0.1, 0.3, 1.0])
MODELS = {
    "metropolis": FiniteAnnealing(PRIOR, FULL, linear(4), metropolis_on_line),
    "hardly moves": FiniteAnnealing(PRIOR, FULL, UNEVEN, lazy(0.97)),
    "not reversible": FiniteAnnealing(PRIOR, FULL, UNEVEN, sweep_of_pairs),
    "zero likelihoods": FiniteAnnealing(PRIOR, WITH_ZEROS, linear(4), lazy(0.6)),
}


def chain_of(oracle: FiniteAnnealing, data: int) -> FiniteChain:
    kernels = exact.MatrixTransition(lambda log_density: oracle.transition(np.exp(log_density)))
    with np.errstate(divide="ignore"):
        return FiniteChain(np.log(oracle.prior), np.log(oracle.likelihood[:, data]), kernels)


@pytest.mark.parametrize("name", MODELS)
def test_all_paths_one_by_one(name: str) -> None:
    oracle = MODELS[name]
    law = exact.weight_law(chain_of(oracle, 0), oracle.betas)
    log_weight, forward, reverse = oracle.weight_laws(0)
    for threshold in np.concatenate([[-np.inf], law.forward_log_weight + 1e-9, law.reverse_log_weight + 1e-9]):
        below = log_weight <= threshold
        assert law.forward[law.forward_log_weight <= threshold].sum() == pytest.approx(forward[below].sum(), abs=1e-12)
        assert law.reverse[law.reverse_log_weight <= threshold].sum() == pytest.approx(reverse[below].sum(), abs=1e-12)
    assert law.error == pytest.approx(oracle.path_error(0), abs=1e-12)
    assert law.log_evidence == pytest.approx(np.log(oracle.evidence[0]), abs=1e-12)


@pytest.mark.parametrize("n_chains", [1, 2, 3])
def test_what_the_certificate_expects(n_chains: int) -> None:
    """By its definition, over all tuples of forward paths and a reverse path."""
    oracle = MODELS["metropolis"]
    law = exact.weight_law(chain_of(oracle, 1), oracle.betas)
    total = 0.0
    for places in product(range(len(law.forward)), repeat=n_chains):
        weights, share = law.forward_log_weight[list(places)], law.forward[list(places)].prod()
        for log_weight, probability in zip(law.reverse_log_weight, law.reverse, strict=True):
            total += share * probability * raw_error_by_simulation(weights[None], [[log_weight]])[0]
    assert law.expected_error(n_chains) == pytest.approx(total, abs=1e-12)
    assert law.error < law.expected_error(n_chains) < 1
    assert law.expected_error(n_chains + 1) < law.expected_error(n_chains)


@pytest.mark.parametrize("make", [exact.barrier, exact.easy_random, exact.hard_random])
def test_means_of_the_weights_are_the_marginals(make) -> None:
    chain, betas = make(), linear(3)
    law, result = exact.weight_law(chain, betas), exact.anneal(chain, betas)
    assert law.forward @ law.forward_log_weight == pytest.approx(result.expected_forward, abs=1e-12)
    assert law.reverse @ law.reverse_log_weight == pytest.approx(result.expected_reverse, abs=1e-12)
    assert law.forward @ np.exp(law.forward_log_weight) == pytest.approx(np.exp(law.log_evidence), rel=1e-12)
    lower, upper = result.error_limits
    assert lower < law.error < upper


@pytest.mark.parametrize("make", [exact.barrier, exact.easy_random, exact.hard_random])
@pytest.mark.parametrize("width", [0.3, 0.05, None])
def test_limits_hold_exact_v(make, width: float | None) -> None:
    chain = make()
    betas = linear(30 if chain.name == "BARRIER" else 3)
    truth = exact.weight_law(chain, betas).error
    limits = exact.path_error(chain, betas, width=width)
    assert limits.lower - 1e-12 <= truth <= limits.upper + 1e-12
    assert limits.upper - limits.lower < (0.02 if width == 0.3 else 1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_limits_hold_v_of_all_paths(name: str) -> None:
    oracle = MODELS[name]
    for data in (0, 1):
        limits = exact.path_error(chain_of(oracle, data), oracle.betas, width=0.04)
        assert limits.lower - 1e-12 <= oracle.path_error(data) <= limits.upper + 1e-12
        assert limits.upper - limits.lower < 1e-3


@pytest.mark.slow
def test_limits_meet_where_weights_lie_on_the_grid() -> None:
    """BARRIER's log ratios are whole numbers: multiples of the step, at any T."""
    chain = exact.barrier()
    for number in (30, 100):
        limits = exact.path_error(chain, linear(number), width=1 / (number - 1))
        truth = exact.weight_law(chain, linear(number)).error
        np.testing.assert_allclose(limits, truth, atol=1e-9)


def test_a_wrong_v_would_be_seen() -> None:
    """Negative control: one temperature more is outside the limits, and so is the error of the last state alone."""
    chain = exact.barrier()
    limits = exact.path_error(chain, linear(30))
    assert exact.weight_law(chain, linear(31)).error < limits.lower
    assert exact.anneal(chain, linear(30)).total_variation < limits.lower


def test_independent_kernels_leave_only_the_path() -> None:
    """Two states: V by hand. With one step the weight is the ratio at the start."""
    chain = FiniteChain([0.0, 0.0], [0.0, np.log(3.0)], exact.independent_draws(2))
    law = exact.weight_law(chain, [0.0, 1.0])
    assert law.error == pytest.approx(0.25)  # laws (1/2, 1/2) and (1/4, 3/4)
    assert law.expected_error(1) == pytest.approx(0.5 * 0.75 * (1 - 1 / 3))
    assert exact.anneal(chain, [0.0, 1.0]).total_variation == pytest.approx(0.0, abs=1e-15)


def test_too_many_atoms_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="max_atoms=100 different"):
        exact.weight_law(exact.easy_random(), linear(5), max_atoms=100)
    law = exact.weight_law(exact.easy_random(), linear(3))
    for n_chains in (0, 9):
        with pytest.raises(InvalidArgumentError, match="combinations"):
            law.expected_error(n_chains)


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, 11.0])
def test_width_is_checked(width: float) -> None:
    with pytest.raises(InvalidArgumentError, match="width is a number"):
        exact.path_error(exact.barrier(), linear(3), width=width)
