"""Regions of a posterior weighed against the share of draws in them, against exact probabilities."""

import numpy as np
import pytest
from scipy import stats

from bread.errors import InvalidArgumentError
from bread.statistics.real_data.modes import (
    LIMIT_LEVEL,
    PROPOSED,
    Proposal,
    bulk_evidence,
    bulk_proposal,
    mode_proposal,
    region_evidence,
    share_of,
    weigh_mode,
)

COVARIANCE = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, -0.3], [0.0, -0.3, 0.5]])
CENTRE = np.array([1.0, -2.0, 0.5])
LAW = stats.multivariate_normal(CENTRE, COVARIANCE)
LOG_EVIDENCE = 3.7


def at_mode(floor_scale=100.0):
    return mode_proposal(CENTRE, np.linalg.inv(COVARIANCE), np.full(3, floor_scale))


def log_f(states):
    return LAW.logpdf(states) + LOG_EVIDENCE


def test_proposal_is_the_multivariate_t_and_its_region_holds_95_percent():
    proposal = at_mode()
    states = proposal.sample(20_000, np.random.default_rng(0))
    exact = stats.multivariate_t(CENTRE, COVARIANCE, df=5).logpdf(states)
    np.testing.assert_allclose(proposal.log_density(states), exact, rtol=1e-9)
    assert abs(proposal.holds(states).mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 20_000)


def test_evidence_of_a_region_is_exact():
    proposal = at_mode()
    states = proposal.sample(PROPOSED, np.random.default_rng(1))
    found = region_evidence(proposal, states, log_f(states))
    exact = LOG_EVIDENCE + stats.chi2(3).logcdf(proposal.radius**2)
    assert abs(found.value - exact) < 4 * found.standard_error < 0.1
    assert 1000 < found.n_effective < PROPOSED and found.doubt == 0.0
    # The part above a level is an ellipsoid too.
    level = log_f(CENTRE[None, :])[()] - 0.5 * stats.chi2(3).ppf(0.2)
    peak = region_evidence(proposal, states, log_f(states), float(level))
    assert abs(peak.value - (LOG_EVIDENCE + np.log(0.2))) < 4 * peak.standard_error < 0.3
    # Without the density of the proposal, as a plain mean of f, it is far off.
    assert abs(np.log(np.exp(log_f(states)).mean()) - exact) > 20 * found.standard_error


def test_standard_error_is_that_of_repetitions():
    proposal = at_mode()
    values, errors = [], []
    for seed in range(200):
        states = proposal.sample(400, np.random.default_rng(seed))
        found = region_evidence(proposal, states, log_f(states))
        values.append(found.value)
        errors.append(found.standard_error)
    # The sd of 200 values is known to 5%; 4 of these.
    assert abs(np.std(values) / np.mean(errors) - 1) < 0.2


def test_zero_and_undefined_densities():
    proposal = at_mode()
    states = proposal.sample(100, np.random.default_rng(2))
    for values in (np.full(100, -np.inf), np.full(100, np.nan)):
        found = region_evidence(proposal, states, values)
        assert found.value == -np.inf and found.doubt > 0
    half = np.where(states[:, 0] > 1.0, log_f(states), np.nan)
    assert region_evidence(proposal, states, half).value > 0.0


def test_precision_is_floored_at_that_of_the_prior():
    scale = np.array([2.0, 0.5])
    proposal = mode_proposal([0.0, 0.0], [[4.0, 0.0], [0.0, -3.0]], scale)
    np.testing.assert_allclose(proposal.factor @ proposal.factor.T, np.diag([0.25, 0.25]), atol=1e-12)
    with pytest.raises(InvalidArgumentError, match="finite precision"):
        mode_proposal([0.0], [[np.nan]], [1.0])


def test_evidence_of_what_draws_hold():
    rng = np.random.default_rng(3)
    draws = LAW.rvs(500, random_state=rng)
    proposal = bulk_proposal(draws)
    states = proposal.sample(PROPOSED, rng)
    error = region_evidence(proposal, states, log_f(states)).standard_error + np.sqrt(0.05 / 500)
    assert abs(bulk_evidence(proposal, states, log_f(states), draws) - LOG_EVIDENCE) < 4 * error < 0.2
    # A tenth of the draws elsewhere: what they hold is a tenth more than the region.
    mixed = np.concatenate([draws, draws[:56] + 1000.0])
    value = bulk_evidence(proposal, states, log_f(states), mixed)
    assert abs(value - LOG_EVIDENCE - np.log(556 / 500)) < 4 * error
    assert bulk_evidence(proposal, states, log_f(states), draws + 1e6) == -np.inf


def test_few_draws_in_many_dimensions_make_a_proposal():
    draws = np.random.default_rng(4).standard_normal((20, 40))
    draws[:, 3] = 7.0  # a coordinate that does not move
    proposal = bulk_proposal(draws)
    assert np.isfinite(proposal.log_density(draws)).all() and proposal.holds(draws).all()


@pytest.mark.parametrize(("count", "n"), [(0, 100), (3, 100), (100, 100)])
def test_limits_of_a_share_are_those_of_clopper_and_pearson(count, n):
    share = share_of(np.arange(n) < count)
    exact = stats.binomtest(count, n).proportion_ci(1 - 2 * (1 - LIMIT_LEVEL), method="exact")
    assert share.estimate == count / n
    np.testing.assert_allclose([share.lower, share.upper], [exact.low, exact.high], atol=1e-10)
    fewer = share_of(np.arange(n) < count, n / 10)
    assert fewer.upper >= share.upper and fewer.lower <= share.lower


def weigh(draws, log_denominator, *, at=None, factor=1.0):
    proposal = at_mode() if at is None else at
    states = proposal.sample(PROPOSED, np.random.default_rng(5))
    return weigh_mode(proposal, states, log_f(states) * factor, draws, log_f(draws), log_denominator)


def test_a_mode_without_draws_is_missed_from_a_tenth_of_the_mass():
    far = LAW.rvs(200, random_state=6) + 50.0
    heavy = weigh(far, LOG_EVIDENCE)
    assert heavy.missed and not heavy.is_peak and heavy.annealed.estimate == 0.0
    assert abs(heavy.mass - 0.95 / 1.95) < 0.02 and heavy.mass_lower < heavy.mass
    assert not weigh(far, LOG_EVIDENCE + np.log(9.5)).missed
    assert weigh(far, LOG_EVIDENCE + np.log(8.0)).missed
    # The same share, of too few draws to tell.
    assert not weigh(far[:10], LOG_EVIDENCE).missed


def test_draws_in_a_mode_do_not_miss_it():
    for seed in range(20):
        draws = LAW.rvs(100, random_state=seed)
        assert not weigh(draws, LOG_EVIDENCE).missed
        assert not weigh(draws, LOG_EVIDENCE - 0.5).missed
    half = np.concatenate([draws[:50], draws[50:] + 50.0])
    assert not weigh(half, LOG_EVIDENCE).missed
    few = np.concatenate([draws[:5], draws[5:] + 50.0])
    assert weigh(few, LOG_EVIDENCE).missed  # 5% of the draws, half of the mass


def test_a_narrow_mode_among_the_draws_is_seen_as_a_peak():
    wide = Proposal(CENTRE, 3.0 * np.linalg.cholesky(COVARIANCE))
    draws = wide.sample(300, np.random.default_rng(7))
    draws = draws[log_f(draws) < LOG_EVIDENCE - 14.0][:100]  # in the region of the proposal, far below its mode
    found = weigh(draws, LOG_EVIDENCE, at=wide)
    assert found.missed and found.is_peak and found.annealed.estimate == 0.0


def test_three_nats_of_doubt_where_few_draws_carry_the_evidence():
    narrow = Proposal(CENTRE, 20.0 * np.linalg.cholesky(COVARIANCE))
    states = narrow.sample(PROPOSED, np.random.default_rng(8))
    far = LAW.rvs(200, random_state=9) + 500.0
    found = weigh_mode(narrow, states, log_f(states), far, log_f(far), LOG_EVIDENCE)
    assert found.evidence.n_effective < 100 and found.evidence.doubt == 3.0
    assert found.mass < 0.1 and not found.missed
