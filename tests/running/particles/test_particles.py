"""Particle filters over blocks on finite states: expectations of both estimates, against sums over all states."""

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.base import Kernel
from bread.exact.transitions import HeatBath
from bread.running.particles import particles
from bread.running.particles.particles import Filter, Targets, conditional, forward, harmonic
from tests.models.finite import FiniteModel

MOST_ERRORS = 4.5  # standard errors on either side: a right estimator is farther off with probability 7e-6
CAUGHT = 6.5  # standard errors by which a broken one must be off, which was 9 or more
PRIOR = np.array([0.37, 0.08, 0.33, 0.22])
LIKELIHOOD = np.array([[0.04, 0.13, 0.83], [0.43, 0.21, 0.36], [0.58, 0.40, 0.02], [0.77, 0.21, 0.02]])
OUTCOMES = np.array([1, 2, 0, 1])
ONE_WAY = HeatBath([np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]), np.array([0, 1, 2, 2])])  # not reversible


class NotTurned(HeatBath):
    """The same steps, in the same order in both directions."""

    def reversals(self, log_density):
        return self.matrices(log_density)


class NotInvariant(HeatBath):
    """Reversals of the kernel of another density."""

    def reversals(self, log_density):
        return super().reversals(0.3 * log_density)


def targets_of(transition=ONE_WAY):
    model = FiniteModel(PRIOR, LIKELIHOOD, OUTCOMES, transition)
    posteriors = [model.condition_first({"y": OUTCOMES}, end) for end in range(1, len(OUTCOMES) + 1)]
    return Targets(posteriors, [Kernel(np.array([1.0]), {})] * len(posteriors))


def exact_law():
    joint = PRIOR * LIKELIHOOD[:, OUTCOMES].prod(axis=1)
    return joint / joint.sum(), np.log(joint.sum())


def summed_reciprocal(transition):
    """Return E[Z / estimate] of two particles, multinomial resampling, by sums over the kept state and the other."""
    law, log_evidence = exact_law()
    log_density = np.log(PRIOR) + np.cumsum(np.log(LIKELIHOOD[:, OUTCOMES].T), axis=0)
    moves, back = transition.matrices(log_density), transition.reversals(log_density)
    table = np.tile(
        PRIOR, (len(PRIOR), 1)
    )  # kept state by other state; the kept path's law is multiplied in at its end
    for t, outcome in enumerate(OUTCOMES):
        weight = LIKELIHOOD[:, outcome]
        both = weight[:, None] + weight
        table = table / (both / 2.0)
        share = weight[:, None] / both  # of the kept particle, as the other one's ancestor
        other = (table * share).sum(axis=1)[:, None] * moves[t] + (table * (1.0 - share)) @ moves[t]
        table = back[t] @ other
    return np.exp(log_evidence) * float(law @ table.sum(axis=1))


def seeds(n, stream):
    return [SeedSequence(20151, spawn_key=(stream, run)) for run in range(n)]


def reciprocal(estimator, how, transition, runs):
    """Return mean and standard error of Z / estimate over runs and over all exact draws."""
    law, log_evidence = exact_law()
    mean, variance = 0.0, 0.0
    for state, probability in enumerate(law):
        n = max(20, int(runs * probability))
        found = estimator(targets_of(transition), how, np.array([float(state)]), seeds(n, 100 + state))
        values = np.exp(log_evidence - found.log_evidence)
        mean += probability * values.mean()
        variance += probability**2 * values.var(ddof=1) / n
    return mean, np.sqrt(variance)


def errors_of_mean(how, runs):
    """Return how many standard errors the mean of estimate / Z is from 1."""
    values = np.exp(forward(targets_of(), how, seeds(runs, 1)).log_evidence - exact_law()[1])
    return (values.mean() - 1.0) * np.sqrt(runs) / values.std(ddof=1)


def errors_of_reciprocal(estimator, how, transition, runs):
    mean, error = reciprocal(estimator, how, transition, runs)
    return (mean - 1.0) / error


def test_a_kept_path_needs_the_reversals():
    assert summed_reciprocal(ONE_WAY) == pytest.approx(1.0, abs=1e-12)
    assert summed_reciprocal(NotTurned(ONE_WAY.partitions)) == pytest.approx(0.83483, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [Filter(2, "multinomial"), Filter(3), Filter(3, resample_every=2, moves=2)],
    ids=["multinomial", "systematic", "every second block, two moves"],
)
def test_expectations(how):
    assert abs(errors_of_mean(how, 3000)) < MOST_ERRORS
    assert abs(errors_of_reciprocal(conditional, how, ONE_WAY, 3000)) < MOST_ERRORS
    assert abs(errors_of_reciprocal(harmonic, how, ONE_WAY, 3000)) < MOST_ERRORS


@pytest.mark.slow
def test_control_path_by_forward_kernels():
    """The filter has the bias that the sums have, and the test above rejects it."""
    how, broken = Filter(2, "multinomial"), NotTurned(ONE_WAY.partitions)
    mean, error = reciprocal(conditional, how, broken, 6000)
    assert abs(mean - summed_reciprocal(broken)) < MOST_ERRORS * error
    assert abs(mean - 1.0) > CAUGHT * error


@pytest.mark.slow
def test_control_kernels_of_another_density():
    """The harmonic mean needs invariance alone, and is biased without it."""
    assert abs(errors_of_reciprocal(harmonic, Filter(3), NotInvariant(ONE_WAY.partitions), 3000)) > CAUGHT


@pytest.mark.slow
def test_control_resampling_without_weights(monkeypatch):
    monkeypatch.setattr(
        particles, "ancestors", lambda weights, scheme, rng: rng.integers(0, len(weights), len(weights))
    )
    assert abs(errors_of_mean(Filter(3), 3000)) > CAUGHT


def test_runs_do_not_know_each_other():
    together = conditional(targets_of(), Filter(4), np.array([1.0]), seeds(3, 7))
    alone = conditional(targets_of(), Filter(4), np.array([1.0]), seeds(3, 7)[2:])
    assert alone.log_evidence[0] == together.log_evidence[2]


def test_all_weights_lost():
    """A first outcome that no particle allows is an estimate of zero, not a failure."""
    impossible = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    prior = np.array([0.4, 0.3, 0.3 - 1e-6, 1e-6])
    model = FiniteModel(prior, impossible, np.array([1, 1]), ONE_WAY)
    posteriors = [model.condition_first({"y": model.data}, end) for end in (1, 2)]
    targets = Targets(posteriors, [Kernel(np.array([1.0]), {})] * 2)
    assert (forward(targets, Filter(3), seeds(2, 8)).log_evidence == -np.inf).all()
    assert np.isfinite(conditional(targets, Filter(3), np.array([3.0]), seeds(2, 9)).log_evidence).all()
