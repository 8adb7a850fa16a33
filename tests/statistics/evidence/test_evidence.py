"""Estimators of the log evidence on Habeck's Gaussian path and on Gaussian work, where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_expit

from bread.errors import InvalidArgumentError
from bread.statistics.evidence import evidence
from bread.statistics.evidence.evidence_posterior import histogram_posterior
from tests.support.habeck_gaussian import LOG_EVIDENCE, expected_log_weight, log_weights
from tests.support.work_laws import gaussian_work

RUNS, CHAINS = 400, 100
STEPS, TAU = 25, 0.3  # so few that forward and reverse work differ in shape


@pytest.fixture(scope="module")
def habeck():
    """400 runs of 100 chains each way with 25 steps."""
    return log_weights(np.random.default_rng(1), (RUNS, CHAINS), n_steps=STEPS, tau=TAU)


def assert_unbiased(values, truth=LOG_EVIDENCE, allowed=0.0) -> None:
    """Within 4 standard errors, and what is left of the bias of finite samples."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - truth) < 4 * error + allowed


def each(estimator, *directions):
    return np.array([estimator(*rows) for rows in zip(*directions, strict=True)])


def test_mean_log_weight_has_its_closed_form(habeck):
    values = each(evidence.mean_log_weight, habeck[0])[:, 0]
    assert_unbiased(values, expected_log_weight(STEPS, TAU))
    assert values.mean() < LOG_EVIDENCE < each(evidence.mean_log_weight, habeck[1])[:, 0].mean()


@pytest.mark.parametrize("name", ["bennett", "cumulant_combined"])
def test_both_directions_hit_the_log_evidence(habeck, name):
    forward, reverse = habeck
    estimator = getattr(evidence, name)
    allowed = 0.1 if name == "cumulant_combined" else 0.0  # the fourth cumulant is left
    assert_unbiased(each(estimator, forward, reverse)[:, 0], allowed=allowed)
    if name == "cumulant_combined":  # Bennett's equation is the same for exchanged directions of equally many chains
        with pytest.raises(AssertionError):
            assert_unbiased(each(estimator, reverse, forward)[:, 0], allowed=allowed)
    with pytest.raises(AssertionError):  # a sign of one direction
        assert_unbiased(each(estimator, forward, -reverse)[:, 0], allowed=allowed)


@pytest.mark.parametrize(("name", "side"), [("average_weight", 0), ("harmonic_weight", 1)])
def test_one_direction_is_unbiased_in_weights_and_bounds_in_logs(habeck, name, side):
    """The pool of all 40,000 chains hits it within 0.1 nats; 100 chains lie on their own side."""
    estimator = getattr(evidence, name)
    assert estimator(habeck[side].ravel()).value == pytest.approx(LOG_EVIDENCE, abs=0.1)
    values = each(estimator, habeck[side])[:, 0]
    assert (values.mean() - LOG_EVIDENCE) * (1 if side else -1) > 0.0
    wrong = estimator(habeck[1 - side].ravel()).value  # the other direction's chains
    assert abs(wrong - LOG_EVIDENCE) > 0.5


def test_cumulants_are_exact_for_gaussian_work():
    rng = np.random.default_rng(2)
    forward, reverse = gaussian_work(rng, np.full(RUNS, 1.3), CHAINS, CHAINS)
    found = {
        "forward": each(evidence.cumulant_forward, forward),
        "reverse": each(evidence.cumulant_reverse, reverse),
        "combined": each(evidence.cumulant_combined, forward, reverse),
    }
    for values in found.values():
        assert_unbiased(values[:, 0], 0.0)
        assert values[:, 1].mean() == pytest.approx(values[:, 0].std(), rel=0.12)  # sd of a sd: 3.5 %
    with pytest.raises(AssertionError):
        assert_unbiased(each(evidence.cumulant_reverse, forward)[:, 0], 0.0)


@pytest.mark.parametrize("counts", [(100, 100), (30, 200), (200, 5), (1, 1)])
def test_bennett_is_the_maximum_likelihood_of_which_way_a_chain_ran(counts):
    """The oracle: logistic regression of the direction on the log weight, slope 1, by its intercept alone."""
    forward, reverse = (part[0] for part in gaussian_work(np.random.default_rng(3), np.array([1.1]), *counts))
    ratio = np.log(counts[1] / counts[0])

    def minus_log_likelihood(value):
        return -(log_expit(value - ratio - forward).sum() + log_expit(reverse - value + ratio).sum())

    best = minimize_scalar(minus_log_likelihood, bounds=(-30, 30), method="bounded", options={"xatol": 1e-10})
    assert evidence.bennett(forward, reverse).value == pytest.approx(best.x, abs=1e-6)
    assert evidence.bennett(forward + 700.0, reverse + 700.0).value == pytest.approx(best.x + 700.0, abs=1e-6)


def test_bennett_is_the_fixed_point_of_algorithm_1(habeck):
    """Habeck (2017), algorithm 1: iterate Z by Z * LHS / RHS from the mean weight, equally many chains each way."""
    forward, reverse = habeck[0][0], habeck[1][0]
    z = np.exp(forward).mean()
    for _ in range(5000):
        z *= (1 / (1 + z * np.exp(-forward))).sum() / (1 / (1 + np.exp(reverse) / z)).sum()
    assert evidence.bennett(forward, reverse).value == pytest.approx(np.log(z), abs=1e-8)


@pytest.mark.parametrize("counts", [(100, 100), (40, 160)])
def test_the_standard_error_of_bennett_is_what_runs_scatter(counts):
    forward, reverse = gaussian_work(np.random.default_rng(4), np.full(RUNS, 1.5), *counts)
    values = each(evidence.bennett, forward, reverse)
    assert values[:, 1].mean() == pytest.approx(values[:, 0].std(), rel=0.12)
    assert_unbiased(values[:, 0], 0.0, allowed=0.01)


def covered(pairs, level):
    """Count posterior intervals that hold 0, the log evidence."""
    rng = np.random.default_rng(5)
    found = [histogram_posterior(up, down, rng, level=level, n_draws=400) for up, down in pairs]
    return np.mean([one.lower < 0.0 < one.upper for one in found])


def test_the_posterior_of_the_log_evidence_covers_it():
    """200 runs at 90 %: within 4 standard errors (0.085), and exchanged directions must not."""
    pairs = list(zip(*gaussian_work(np.random.default_rng(6), np.full(200, 1.2), 60, 40), strict=True))
    assert abs(covered(pairs, 0.9) - 0.9) < 0.085
    assert covered([(down, up) for up, down in pairs], 0.9) < 0.5


def test_the_posterior_agrees_with_bennett(habeck):
    forward, reverse = habeck[0][0], habeck[1][0]
    bar, posterior = evidence.bennett(forward, reverse), histogram_posterior(forward, reverse, np.random.default_rng(7))
    assert posterior.mean == pytest.approx(bar.value, abs=0.3 * bar.standard_error)
    assert posterior.standard_deviation == pytest.approx(bar.standard_error, rel=0.25)
    assert posterior.lower < posterior.mean < posterior.upper


def test_the_posterior_survives_chains_without_overlap_and_zero_weights():
    rng = np.random.default_rng(8)
    far = histogram_posterior(rng.normal(-900, 1, 4), rng.normal(100, 1, 4), rng)
    assert -900 < far.mean < 100 and far.standard_deviation > 50  # nobody knows
    some = histogram_posterior(np.array([-np.inf, 0.1, -0.2]), np.array([0.1, 0.3]), rng)
    assert np.isfinite(some.draws).all() and some.mean < 0.1
    none = histogram_posterior(np.array([-np.inf]), np.array([0.1]), rng)
    assert np.isnan(none.mean)


def test_zero_weights_count():
    values = np.array([-np.inf, 0.0, 0.0, 0.0])
    assert evidence.average_weight(values).value == pytest.approx(np.log(0.75))
    assert evidence.mean_log_weight(values).value == -np.inf
    assert np.isnan(evidence.cumulant_forward(values).value)
    assert evidence.average_weight(np.array([-np.inf])).value == -np.inf
    assert evidence.n_effective(values) == pytest.approx(3.0)
    assert evidence.n_effective(np.array([-np.inf])) == 0.0
    assert np.isnan(evidence.bennett(np.array([-np.inf]), np.array([1.0])).value)


def test_thermodynamic_integral_of_a_line():
    betas = np.array([0.0, 0.2, 1.0])
    found = evidence.thermodynamic_integral(betas, np.array([2 * betas + 1, 2 * betas - 1]))
    assert found.value == pytest.approx(1.0)
    assert found.standard_error == pytest.approx(1.0)
    assert evidence.thermodynamic_integral(betas, np.array([[-np.inf, 1.0, 1.0]])).value == -np.inf


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [np.nan], [np.inf]])
def test_what_is_no_row_of_log_weights_is_refused(values):
    with pytest.raises(InvalidArgumentError, match="log weight"):
        evidence.average_weight(np.array(values))


def test_a_reverse_weight_of_zero_is_refused():
    with pytest.raises(InvalidArgumentError, match="reverse"):
        evidence.bennett(np.array([0.0]), np.array([-np.inf]))
