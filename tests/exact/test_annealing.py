"""Exact annealing on a finite state space, against all paths one by one and independently computed numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bread import exact
from bread.errors import InvalidArgumentError
from bread.exact import FiniteChain, Transition
from bread.exact.transitions import reverse_matrices
from bread.paths.schedules import linear
from tests.support.finite_annealing import FiniteAnnealing, lazy, metropolis_on_line, sweep_of_pairs

LOG_EVIDENCE = 1.4446134340800065
# T: (J, B, expected forward log weight, expected reverse log weight) of BARRIER, by an independent program
BARRIER = {
    2: (3.307491688349609, 4.712150515241456, -2.1020408163265305, 2.6101096989149255),
    10: (1.857878599178469, 2.625609697024812, -0.10283989476345899, 2.522769802261353),
    30: (1.7847455954996136, 2.1106837442880853, 0.3000671551644474, 2.4107508994525326),
    100: (1.6478626111882329, 1.8104326344722668, 0.4742327333359854, 2.2846653678082522),
    300: (1.4129980442101608, 1.5306427624247791, 0.6145060472652305, 2.1451488096900095),
    1000: (1.0846899675328476, 1.1843521730927118, 0.7915149724041459, 1.9758671454968577),
    3000: (0.8037710593358152, 0.8942882377250451, 0.9470574234909722, 1.8413456612160173),
    10000: (0.542485163549459, 0.6260025785556587, 1.095726604322916, 1.7217291828785746),
}
PRIOR = np.array([0.5, 0.2, 0.3])
LIKELIHOOD = np.array([[0.7, 0.3], [0.1, 0.9], [0.45, 0.55]])
WITH_ZEROS = np.array([[0.7, 0.3], [0.0, 1.0], [1.0, 0.0]])
BETAS = np.array([0.0, 0.3, 1.0])


def of_density(function: Callable[[np.ndarray], np.ndarray]) -> Transition:
    """Return the kernels that an oracle's function of a density makes."""
    return exact.MatrixTransition(lambda log_density: function(np.exp(log_density - log_density.max())))


def chain_of(oracle: FiniteAnnealing, data: int, transition: Transition | None = None) -> FiniteChain:
    """Return the chain of an oracle's data set."""
    with np.errstate(divide="ignore"):
        log_likelihood = np.log(oracle.likelihood[:, data])
    return FiniteChain(np.log(oracle.prior), log_likelihood, transition or of_density(oracle.transition))


@pytest.mark.parametrize("n_temperatures", sorted(BARRIER))
def test_barrier(n_temperatures: int) -> None:
    result = exact.anneal(exact.barrier(), linear(n_temperatures))
    received = (result.jeffreys, result.bound, result.expected_forward, result.expected_reverse)
    np.testing.assert_allclose(received, BARRIER[n_temperatures], rtol=0, atol=1e-9)
    assert result.log_evidence == pytest.approx(LOG_EVIDENCE, abs=1e-12)
    assert result.kl_approx_exact + result.kl_exact_approx == pytest.approx(result.jeffreys, abs=1e-12)


def test_barrier_agrees_with_the_paper() -> None:
    """Appendix B.1.1: J(100) = 1.65, J(1000) = 1.085, B(1000) = 1.184, and 87 % of the mass in one mode."""
    chain = exact.barrier()
    assert exact.anneal(chain, linear(100)).jeffreys == pytest.approx(1.65, abs=0.005)
    thousand = exact.anneal(chain, linear(1000))
    assert thousand.jeffreys == pytest.approx(1.085, abs=0.0005)
    assert thousand.bound == pytest.approx(1.184, abs=0.0005)
    assert thousand.target.reshape(chain.shape)[:3, 4:].sum() == pytest.approx(0.87, abs=0.005)


def test_barrier_has_another_answer_with_one_temperature_more() -> None:
    """Negative control: 1e-9 tells T from T + 1, and B with the kernel at beta = 1 from B without."""
    other = exact.anneal(exact.barrier(), linear(1001))
    assert abs(other.bound - BARRIER[1000][1]) > 1e-5 and abs(other.jeffreys - BARRIER[1000][0]) > 1e-5


@pytest.mark.parametrize("data", [0, 1])
@pytest.mark.parametrize("transition", [metropolis_on_line, lazy(0.97), sweep_of_pairs])
def test_all_paths_one_by_one(transition: Callable[[np.ndarray], np.ndarray], data: int) -> None:
    """Three states, T = 3: 27 paths and their probabilities, forward and in reverse."""
    oracle = FiniteAnnealing(PRIOR, LIKELIHOOD, BETAS, transition)
    log_weight, forward, reverse = oracle.weight_laws(data)
    result = exact.anneal(chain_of(oracle, data), BETAS)
    assert result.expected_forward == pytest.approx(forward @ log_weight, abs=1e-12)
    assert result.expected_reverse == pytest.approx(reverse @ log_weight, abs=1e-12)
    assert result.log_evidence == pytest.approx(np.log(oracle.evidence[data]), abs=1e-12)
    both = (forward > 0) & (reverse > 0)
    log_odds = np.log(forward[both] / reverse[both])
    assert result.bound == pytest.approx((forward - reverse)[both] @ log_odds, abs=1e-12)
    assert result.path_kl_forward == pytest.approx(forward[both] @ log_odds, abs=1e-12)
    assert result.path_kl_reverse == pytest.approx(-reverse[both] @ log_odds, abs=1e-12)
    last = np.arange(len(forward)) % 3  # the last state runs fastest
    q, p = np.bincount(last, forward), oracle.posterior(data)
    np.testing.assert_allclose(result.final_law, q, atol=1e-14)
    np.testing.assert_allclose(result.target, p, atol=1e-14)
    np.testing.assert_allclose(result.reverse_law, np.bincount(np.arange(len(reverse)) // 9, reverse), atol=1e-14)
    assert result.kl_approx_exact == pytest.approx(q @ np.log(q / p), abs=1e-12)
    assert result.kl_exact_approx == pytest.approx(p @ np.log(p / q), abs=1e-12)
    assert result.total_variation == pytest.approx(oracle.end_error(data), abs=1e-12)
    lower, upper = result.error_limits
    assert lower - 1e-12 <= oracle.path_error(data) <= upper + 1e-12
    assert 0 < result.jeffreys < result.bound


def test_a_kernel_that_is_not_turned_round_breaks_the_identities() -> None:
    """Negative control: a sweep in fixed order, run in the same order in reverse."""

    class NotTurned(exact.MatrixTransition):
        def reversals(self, log_density: np.ndarray) -> np.ndarray:
            return self.matrices(log_density)

    oracle = FiniteAnnealing(PRIOR, LIKELIHOOD, BETAS, sweep_of_pairs)
    right = of_density(sweep_of_pairs)
    assert isinstance(right, exact.MatrixTransition)
    truth = exact.anneal(chain_of(oracle, 0, right), BETAS)
    wrong = exact.anneal(chain_of(oracle, 0, NotTurned(right.function)), BETAS)
    assert abs(wrong.bound - truth.bound) > 1e-3


def test_zero_likelihoods() -> None:
    """A start without likelihood: B is infinite, and the law of the last state is still exact."""
    oracle = FiniteAnnealing(PRIOR, WITH_ZEROS, BETAS, lazy(0.6))
    result = exact.anneal(chain_of(oracle, 0), BETAS)
    assert result.expected_forward == -np.inf and result.bound == np.inf
    log_weight, _, reverse = oracle.weight_laws(0)
    assert result.expected_reverse == pytest.approx(reverse[reverse > 0] @ log_weight[reverse > 0], abs=1e-12)
    assert result.total_variation == pytest.approx(oracle.end_error(0), abs=1e-12)
    assert result.jeffreys == np.inf  # idle chains stay where the target has no mass
    assert result.kl_exact_approx < np.inf
    lower, upper = result.error_limits
    assert lower <= oracle.path_error(0) <= upper <= 1.0


def test_independent_draws_leave_no_error() -> None:
    log_ratio = np.array([0.0, 1.0, -2.0])
    chain = FiniteChain(np.zeros(3), log_ratio, exact.independent_draws(3))
    result = exact.anneal(chain, [0.0, 1.0])
    assert result.jeffreys == pytest.approx(0.0, abs=1e-12)
    assert result.bound == pytest.approx(result.target @ log_ratio - log_ratio.mean(), abs=1e-12)


def test_deep_wells_do_not_underflow() -> None:
    """Densities that differ by e^4000: nothing is divided by a probability that is zero."""
    chain = FiniteChain(np.zeros(4), [0.0, -4000.0, -3990.0, 1.0], exact.gibbs_on_grid((4,)))
    result = exact.anneal(chain, linear(11))
    assert np.isfinite(result.bound) and result.jeffreys == pytest.approx(0.0, abs=1e-9)
    stuck = FiniteChain([0.0, 0.0, 0.0], [0.0, -2000.0, 1.0], exact.MetropolisHastings(exact.grid_neighbours((3,))))
    split = exact.anneal(stuck, linear(5))
    # The two ends exchange nothing once the well is deep: the start's law decides between them.
    assert np.isfinite(split.bound) and 0.1 < split.total_variation < split.error_limits[1] < 1.0


def test_marginals_have_the_base_and_the_target_at_their_ends() -> None:
    chain = exact.easy_random(3)
    betas = linear(20)
    forward, reverse = exact.marginals(chain, betas)
    np.testing.assert_allclose(forward[0], 1 / 49)
    np.testing.assert_allclose(reverse[-1], chain.laws([1.0])[0])
    np.testing.assert_allclose(forward.sum(axis=1), 1.0)
    np.testing.assert_allclose(reverse.sum(axis=1), 1.0)
    matrix = chain.transition.matrices(chain.log_densities([betas[7]]))[0]
    np.testing.assert_allclose(forward[7], forward[6] @ matrix, atol=1e-15)
    np.testing.assert_allclose(reverse[6], reverse[7] @ matrix, atol=1e-15)  # this kernel is reversible


class Counting:
    """A kernel that counts how many densities it was asked for."""

    name = "counting"

    def __init__(self, inner: Transition) -> None:
        self.inner, self.forward, self.backward, self.largest = inner, 0, 0, 0

    def matrices(self, log_density: np.ndarray) -> np.ndarray:
        self.forward += len(log_density)
        self.largest = max(self.largest, len(log_density))
        return self.inner.matrices(log_density)

    def reversals(self, log_density: np.ndarray) -> np.ndarray:
        self.backward += len(log_density)
        return self.inner.reversals(log_density)


@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (exact.barrier, 0.4),
        pytest.param(exact.easy_random, 0.002, marks=pytest.mark.slow),
        pytest.param(exact.hard_random, 1.0, marks=pytest.mark.slow),
    ],
)
def test_a_hundred_thousand_temperatures(make: Callable[[], FiniteChain], bound: float) -> None:
    """One kernel each way for each temperature but the first, in blocks of bounded memory; B keeps falling."""
    chain = make()
    counting = Counting(chain.transition)
    same = FiniteChain(chain.log_base, chain.log_ratio, counting)
    result = exact.anneal(same, linear(100_000))
    assert counting.forward == counting.backward == 99_999
    assert counting.largest <= 500_000 // 49**2
    assert 0 < result.jeffreys < result.bound < bound
    assert result.final_law.sum() == pytest.approx(1.0, abs=1e-10)
    assert result.expected_forward < result.log_evidence < result.expected_reverse


def test_random_toys_are_reproducible_and_of_their_scale() -> None:
    easy, hard = exact.easy_random(5), exact.hard_random(5)
    np.testing.assert_array_equal(easy.log_ratio, exact.easy_random(5).log_ratio)
    np.testing.assert_allclose(hard.log_ratio, 5 * easy.log_ratio)
    assert not np.array_equal(easy.log_ratio, exact.easy_random(6).log_ratio)
    many = np.array([exact.easy_random(seed).log_ratio for seed in range(100)])
    assert many.std() == pytest.approx(2.0, abs=4 * 2.0 / np.sqrt(2 * many.size))  # four standard errors


def test_reversal_of_a_reversal() -> None:
    rng = np.random.default_rng(1)
    log_density = rng.normal(size=(2, 3))
    matrices = of_density(sweep_of_pairs).matrices(log_density)
    twice = reverse_matrices(reverse_matrices(matrices, log_density), log_density)
    np.testing.assert_allclose(twice, matrices, atol=1e-14)


@pytest.mark.parametrize("betas", [[0.0], [0.0, 0.5], [0.1, 1.0], [0.0, 0.5, 0.5, 1.0], [0.0, np.nan, 1.0]])
def test_betas_are_checked(betas: list[float]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"schedule must"):
        exact.anneal(exact.barrier(), betas)


@pytest.mark.parametrize(
    ("base", "ratio", "message"),
    [
        ([0.0, 0.0], [0.0], "one shape"),
        ([], [], "one shape"),
        ([0.0, np.nan], [0.0, 0.0], "log_base must be finite"),
        ([0.0, 0.0], [0.0, np.inf], "log_ratio must be finite"),
        ([0.0, -np.inf], [-np.inf, 0.0], "no state at which"),
    ],
)
def test_densities_are_checked(base: list[float], ratio: list[float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        FiniteChain(base, ratio, exact.independent_draws(2))
