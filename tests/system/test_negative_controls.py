"""Defects put in on purpose: each makes a named check fail that the sound version passes.

Not every check sees every defect. Chains that leave each f_t invariant but are not run by their true reversal keep both
bounds and both evidence identities, so only a joint function of both ends of a path shows it; a wrong start of
the reverse chains is forgotten at large T, so it shows at small T.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import log_expit, logsumexp

from bread.statistics.bounds.alarms import theory_alarm
from bread.statistics.bounds.bounds import log_evidence_lower, log_evidence_upper, simulation_gaps
from tests.models.reference import (
    AutoregressiveKernel,
    BetaBinomial,
    CompoundKernel,
    GibbsLabelKernel,
    HMCKernel,
    LabelMixture,
    LinearRegression,
    NormalMean,
    expected_work,
)
from tests.support.conformance import (
    anneal_pool,
    assert_mean,
    check_evidence,
    check_forward_reverse_identities,
    check_gap_rate,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.reference_models import CONJUGATE, NO_SETTINGS, X

pytestmark = pytest.mark.statistical
SHORT = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
FEW = np.array([0.0, 0.1, 0.4, 1.0])


# ---- reverse chains from a wrong draw -------------------------------------------------------------------------


def of_another_simulation(states):
    return np.roll(states, 1, axis=0)


@pytest.mark.parametrize("name", ["normal_mean", "regression", "label_mixture"])
def test_reverse_chains_from_a_wrong_draw_break_the_identities(name):
    check_forward_reverse_identities(CONJUGATE[name], NO_SETTINGS, SHORT)
    with pytest.raises(AssertionError, match=r"w_rev|Crooks"):
        check_forward_reverse_identities(CONJUGATE[name], NO_SETTINGS, SHORT, exact_starts=of_another_simulation)


@pytest.mark.parametrize("name", ["normal_mean", "regression", "label_mixture"])
def test_reverse_chains_from_a_wrong_draw_break_the_ranks(name):
    with pytest.raises(AssertionError, match="uniform"):
        check_weighted_ranks(CONJUGATE[name], NO_SETTINGS, FEW, exact_starts=of_another_simulation)


def test_reverse_chains_from_a_wrong_draw_ring_the_alarm():
    """Independent of y, the start has too small a likelihood: exp(-Delta) is above 1 on average."""
    model = NormalMean(np.zeros(3), prior_sd=3.0, kernel=AutoregressiveKernel(0.9))
    betas = np.linspace(0.0, 1.0, 6)
    sound = anneal_pool(model, NO_SETTINGS, betas, n_simulations=100, n_chains=4, seed=91)
    assert theory_alarm(sound.forward, sound.reverse).p_value > 0.01
    wrong = anneal_pool(
        model,
        NO_SETTINGS,
        betas,
        n_simulations=100,
        n_chains=4,
        seed=91,
        n_between=0,
        exact_starts=of_another_simulation,
    )
    assert theory_alarm(wrong.forward, wrong.reverse).p_value < 1e-6


# ---- kernels adapted in flight --------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateDependentHMC(HMCKernel):
    """Step size that grows with the distance from the origin, without a correction."""

    def step_sizes(self, settings, states):
        return super().step_sizes(settings, states) * (0.1 + np.abs(states).max(axis=1))


@pytest.mark.parametrize("name", ["normal_mean_hmc", "regression_hmc"])
def test_step_size_adapted_in_flight_breaks_the_evidence(name):
    model = replace(CONJUGATE[name], kernel=StateDependentHMC(n_leapfrog=2))
    sound = replace(CONJUGATE[name], kernel=HMCKernel(n_leapfrog=2))
    kernel = tuned_kernel(sound)
    check_evidence(sound, kernel, n_simulations=100)
    with pytest.raises(AssertionError, match="wrong side"):  # by 5 standard errors or more with three seeds
        check_evidence(model, kernel, n_simulations=100)


# ---- compound kernels not reversed ----------------------------------------------------------------------------


@dataclass(frozen=True)
class NotReversed(CompoundKernel):
    """Runs its parts in the forward order in both directions."""

    def transition(self, run):
        return super().transition(replace(run, direction="forward"))


PARTS = (GibbsLabelKernel(), AutoregressiveKernel(0.0))


def coupled(kernel):
    """Label and location are coupled by the prior, so that the order of the parts matters; weak data keep B small."""
    return LabelMixture(
        np.array([1.2]), shifts=(-1.0, 1.0), noise_sds=(2.0, 2.0), prior_sd=0.7, probability=0.4, kernel=kernel
    )


@pytest.mark.slow
def test_compound_kernel_not_reversed_breaks_the_ranks():
    betas = np.array([0.0, 1.0])
    check_weighted_ranks(coupled(CompoundKernel(PARTS)), NO_SETTINGS, betas, n_simulations=4000)
    with pytest.raises(AssertionError, match="uniform"):
        check_weighted_ranks(coupled(NotReversed(PARTS)), NO_SETTINGS, betas, n_simulations=4000)


def test_compound_kernel_not_reversed_keeps_the_identities():
    """Why the ranks are needed: every kernel is invariant, so both evidence estimators stay unbiased."""
    check_evidence(coupled(NotReversed(PARTS)), NO_SETTINGS)


# ---- prior and Jacobian ---------------------------------------------------------------------------------------


class JacobianDropped(BetaBinomial):
    """The Beta density as if the logit were the probability."""

    def log_prior(self, states):
        return super().log_prior(states) - self.log_jacobian(states)

    def log_jacobian(self, states):
        return log_expit(states[..., 0]) + log_expit(-states[..., 0])

    def gradient_log_density(self, beta, states, statistics):
        return super().gradient_log_density(beta, states, statistics) + np.tanh(states / 2.0)


class JacobianTempered(JacobianDropped):
    """The Jacobian counted with the likelihood instead of the prior, in density and gradient."""

    def log_likelihood(self, states, statistics):
        return super().log_likelihood(states, statistics) + self.log_jacobian(states)

    def gradient_log_density(self, beta, states, statistics):
        return super().gradient_log_density(beta, states, statistics) - beta * np.tanh(states / 2.0)


def beta_binomial(kind):
    return kind(np.array([3, 1]), np.array([4, 3]), alpha=2.0, beta=3.0, kernel=HMCKernel(n_leapfrog=5))


def test_jacobian_controls_have_the_right_gradient():
    """The defect is in the density, not in a gradient that disagrees with it (which HMC would correct)."""
    for kind in (BetaBinomial, JacobianDropped, JacobianTempered):
        model, states = beta_binomial(kind), np.array([[0.7]])
        statistics = model.summarise({"successes": np.array([[3, 1]])})

        def density(x, model=model, statistics=statistics):
            return (model.log_prior(x) + 0.4 * model.log_likelihood(x, statistics))[0]

        slope = (density(states + 1e-6) - density(states - 1e-6)) / 2e-6
        assert model.gradient_log_density(0.4, states, statistics)[0, 0] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("kind", [JacobianDropped, JacobianTempered])
def test_jacobian_defects_break_the_evidence(kind):
    kernel = tuned_kernel(beta_binomial(BetaBinomial))
    check_evidence(beta_binomial(BetaBinomial), kernel, n_simulations=400, n_temperatures=256)
    with pytest.raises(AssertionError, match="wrong side"):
        check_evidence(beta_binomial(kind), kernel, n_simulations=400, n_temperatures=256)


@pytest.mark.parametrize("kind", [JacobianDropped, JacobianTempered])
def test_jacobian_defects_break_the_identities(kind):
    kernel = tuned_kernel(beta_binomial(BetaBinomial))
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(beta_binomial(kind), kernel, SHORT)


# ---- weights averaged before the log --------------------------------------------------------------------------


def check_expected_ends(lower_of, upper_of):
    """Both ends of the gap of 1000 simulations against their closed forms given y, within 4 standard errors."""
    model = NormalMean(np.zeros(3), prior_sd=1.5, kernel=AutoregressiveKernel(0.0))
    betas = np.array([0.0, 0.3, 1.0])
    pool = anneal_pool(model, NO_SETTINGS, betas, n_simulations=1000, n_chains=4, seed=92)
    work = [expected_work(model, betas, pool.simulations.data_of(row)) for row in range(1000)]
    assert_mean(lower_of(pool.forward) - np.array([one.forward for one in work]), 0.0, 4.0, "lower end")
    assert_mean(upper_of(pool.reverse) - np.array([one.reverse for one in work]), 0.0, 4.0, "upper end")


def log_mean_exp(values):
    return logsumexp(values, axis=1) - np.log(values.shape[1])


def test_weights_averaged_before_the_log_break_the_expected_bound():
    check_expected_ends(log_evidence_lower, log_evidence_upper)
    with pytest.raises(AssertionError, match="lower end"):
        check_expected_ends(log_mean_exp, log_evidence_upper)
    with pytest.raises(AssertionError, match="upper end"):
        check_expected_ends(log_evidence_lower, lambda reverse: -log_mean_exp(-reverse))


def test_gap_is_made_of_both_ends():
    rng = np.random.default_rng(93)
    forward, reverse = rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
    expected = log_evidence_upper(reverse) - log_evidence_lower(forward)
    np.testing.assert_allclose(simulation_gaps(forward, reverse), expected, atol=1e-12)


# ---- a likelihood without one parameter -----------------------------------------------------------------------


class ColumnMissing(LinearRegression):
    """Data depend on both coefficients, the density's likelihood on the first alone."""

    def summarise(self, data):
        statistics = super().summarise(data)
        return statistics | {"linear": statistics["linear"] * np.array([1.0, 0.0])}

    @property
    def information(self):
        full = LinearRegression(self.y, self.x, self.prior_sd, self.noise_sd).information
        return full * np.array([[1.0, 0.0], [0.0, 0.0]])


def regression(kind):
    return kind(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), X, noise_sd=0.7, kernel=AutoregressiveKernel(0.5))


def exact_log_evidence(data):
    return regression(LinearRegression).log_evidence(data)


def test_likelihood_without_one_parameter_breaks_the_evidence():
    check_evidence(regression(LinearRegression), NO_SETTINGS, log_evidence=exact_log_evidence, n_simulations=100)
    with pytest.raises(AssertionError, match="wrong side"):
        check_evidence(regression(ColumnMissing), NO_SETTINGS, log_evidence=exact_log_evidence, n_simulations=100)


def test_likelihood_without_one_parameter_breaks_the_ranks():
    """Seen without any exact evidence: the true parameters have a smaller likelihood than the density expects."""
    with pytest.raises(AssertionError, match="uniform"):
        check_weighted_ranks(regression(ColumnMissing), NO_SETTINGS, FEW)


# ---- off by one -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TemperatureLate(AutoregressiveKernel):
    """Uses the kernel of the temperature before: the move at beta_t leaves f_(t-1) invariant."""

    def transition(self, run):
        betas = np.concatenate([run.betas[1:], [0.0]]) if run.direction == "reverse" else run.betas
        shifted = np.concatenate([[0.0], betas[:-1]]) if run.direction == "forward" else betas
        return super().transition(replace(run, betas=shifted))


def test_kernel_one_temperature_late_breaks_the_identities():
    model = replace(CONJUGATE["normal_mean"], kernel=TemperatureLate())
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(model, NO_SETTINGS, FEW)


@dataclass(frozen=True)
class Stuck(AutoregressiveKernel):
    """Never moves: invariant and reversible, but not ergodic."""

    def transition(self, run):
        return lambda i, states: states.copy()


def test_kernel_that_never_moves_breaks_the_rate():
    with pytest.raises(AssertionError, match="gap falls as"):
        check_gap_rate(replace(CONJUGATE["normal_mean"], kernel=Stuck()), NO_SETTINGS)
