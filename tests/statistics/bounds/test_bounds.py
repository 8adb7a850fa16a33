"""Bounds, intervals and the tail index, against log weights whose law is known exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bread.errors import InvalidArgumentError
from bread.statistics.bounds import bounds, intervals
from tests.support.work import PROPERTY, gamma_work

LEVEL = 0.95


def gaussian_work(rng, shape, deviation, log_evidence=0.0):
    """Return forward and reverse log weights that obey p_reverse(w) / p_forward(w) = w / Z exactly.

    E[forward] = log Z - deviation**2 / 2 and E[reverse] = log Z + deviation**2 / 2, so B = deviation**2.
    """
    half = deviation**2 / 2
    return (
        log_evidence - half + deviation * rng.normal(size=shape),
        log_evidence + half + deviation * rng.normal(size=shape),
    )


def log_weights(allow_zero):
    finite = st.floats(-200, 200)
    values = st.one_of(finite, st.just(-np.inf)) if allow_zero else finite
    return arrays(np.float64, (3, 4), elements=values)


# -- gaps and intervals -------------------------------------------------------------------------------------------


def test_gaps_are_differences_of_mean_logs():
    forward, reverse = np.array([[0.0, -2.0], [1.0, 1.0]]), np.array([[3.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(bounds.simulation_gaps(forward, reverse), [3.0, -0.5])


def weights_averaged_before_the_log(forward, reverse):
    """Compute the gap the wrong way: logs of averaged weights (the defect of BREAD, footnote 3)."""
    lower = bounds.log_evidence_lower_many(forward)
    return -bounds.log_evidence_lower_many(-reverse) - lower


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("compute", "is_right"), [(bounds.simulation_gaps, True), (weights_averaged_before_the_log, False)]
)
@pytest.mark.parametrize("kind", ["gaussian", "gamma"])
def test_mean_gap_is_the_jeffreys_divergence(kind, compute, is_right):
    rng = np.random.default_rng(1)
    if kind == "gaussian":
        forward, reverse = gaussian_work(rng, (4000, 4), 1.5, log_evidence=-7.0)
        exact = 1.5**2
    else:
        forward, reverse = gamma_work(rng, (4000, 4))
        exact = 2.0 - 1.0  # tilt * (mean of gamma(2, 1) - mean of gamma(2, 1/2))
    gaps = compute(forward, reverse)
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    is_close = abs(gaps.mean() - exact) < 4 * error  # 4 standard errors
    assert is_close == is_right


SKEWED = {
    "gamma(2)": (lambda rng, shape: rng.gamma(2, size=shape), 2.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "lognormal(0.5)": (lambda rng, shape: np.exp(0.5 * rng.normal(size=shape)), np.exp(0.125)),
    "normal": (lambda rng, shape: rng.normal(1.0, 1.0, size=shape), 1.0),
}


def coverage(samples, exact, interval):
    limits = np.array([interval(row)[1:] for row in samples])
    return np.mean((limits[:, 0] <= exact) & (exact <= limits[:, 1]))


def normal_interval(values):
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return intervals.Interval(values.mean(), values.mean() - half, values.mean() + half)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", SKEWED)
@pytest.mark.parametrize(("n", "required"), [(5, 0.88), (10, 0.88), (20, 0.92)])
def test_interval_covers_the_mean_of_skewed_gaps(kind, n, required):
    draw, exact = SKEWED[kind]
    # 1500 repetitions: standard error at most 0.0085; true coverage is 0.93 to 0.96, at least 3 of them above.
    samples = draw(np.random.default_rng(n), (1500, n))
    assert coverage(samples, exact, lambda row: intervals.mean_interval(row, LEVEL)) >= required


@pytest.mark.statistical
def test_coverage_check_rejects_wrong_intervals():
    rng = np.random.default_rng(2)
    assert coverage(rng.exponential(size=(1500, 5)), 1.0, normal_interval) < 0.88
    # Chains of a simulation share its data set: taken as independent units they give an interval that is too short.
    shared = rng.exponential(size=(1500, 20, 1)) + 0.1 * rng.normal(size=(1500, 20, 4))
    chains = shared.reshape(1500, 80)
    assert coverage(chains, 1.0, lambda row: intervals.mean_interval(row, LEVEL)) < 0.92
    assert coverage(shared.mean(axis=2), 1.0, lambda row: intervals.mean_interval(row, LEVEL)) >= 0.92


def test_interval_special_cases():
    single = intervals.mean_interval([2.0], LEVEL)
    assert single.estimate == 2.0 and np.isnan(single.lower) and np.isnan(single.upper)
    assert intervals.mean_interval([3.0, 3.0, 3.0], LEVEL) == (3.0, 3.0, 3.0)
    huge = intervals.mean_interval([-1e200, 0.0, 1.0], LEVEL)  # no overflow warning
    assert -1e201 < huge.lower < huge.estimate < 0.0 < huge.upper < 1e201
    assert intervals.mean_interval([1.0, np.inf], LEVEL) == (np.inf, np.inf, np.inf)
    assert intervals.mean_interval([1.0, -np.inf], LEVEL) == (-np.inf, -np.inf, -np.inf)
    with pytest.raises(InvalidArgumentError, match="both inf and -inf"):
        intervals.mean_interval([np.inf, -np.inf], LEVEL)
    with pytest.raises(InvalidArgumentError, match="NaN"):
        intervals.mean_interval([1.0, np.nan], LEVEL)
    with pytest.raises(InvalidArgumentError, match=r"level.*1\.5"):
        intervals.mean_interval([1.0, 2.0], 1.5)


def test_interval_matches_the_formulas():
    x = np.array([0.1, 0.2, 0.3, 0.2, 4.0])
    n, s, t = 5, x.std(ddof=1), 2.7764451051977987  # Student quantile 0.975, 4 degrees of freedom
    g = np.mean((x - x.mean()) ** 3) / x.var() ** 1.5
    hall = x.mean() - 3 * s / g * (np.cbrt(1 + g * (-t / np.sqrt(n) - g / (6 * n))) - 1)
    interval = intervals.mean_interval(x, LEVEL)
    assert interval.lower == pytest.approx(x.mean() - t * s / np.sqrt(n))
    assert interval.upper == pytest.approx(hall)
    assert hall > x.mean() + t * s / np.sqrt(n)
    mirrored = intervals.mean_interval(-x, LEVEL)  # skewed to the left: Student's limit is the larger one
    assert mirrored.upper == pytest.approx(-x.mean() + t * s / np.sqrt(n))


@PROPERTY
@given(arrays(np.float64, st.integers(2, 12), elements=st.floats(-100, 100)), st.floats(-50, 50))
def test_interval_moves_with_the_data(values, shift):
    before, after = intervals.mean_interval(values, LEVEL), intervals.mean_interval(values + shift, LEVEL)
    assert before.lower <= before.estimate <= before.upper
    spread = np.ptp(values)
    if spread > 1e-3:
        np.testing.assert_allclose(np.array(after), np.array(before) + shift, rtol=1e-6, atol=1e-6 * (1 + spread))


def test_alpha_is_spent():
    errors = [(1 - intervals.alpha_level(k)) / 2 for k in range(30)]
    assert errors[0] == pytest.approx(0.025)
    np.testing.assert_allclose(errors[1:], np.array(errors[:-1]) / 2, rtol=1e-5)
    assert sum(errors) <= 0.05 + 1e-12
    with pytest.raises(InvalidArgumentError, match="attempt"):
        intervals.alpha_level(-1)


# -- evidence and divergences -------------------------------------------------------------------------------------


def test_many_chain_bounds_match_their_definition():
    rng = np.random.default_rng(3)
    forward, reverse = gaussian_work(rng, (3, 4), 1.0, log_evidence=-1000.0)  # exp underflows: logs throughout
    reverse = reverse[:, :2]
    for r in range(3):
        w, v = np.exp(forward[r] + 1000), np.exp(reverse[r] + 1000)
        logs = [np.log((v[j] + w.sum() - w[i]) / 4) for j in range(2) for i in range(4)]
        assert bounds.log_evidence_upper_many(forward, reverse)[r] == pytest.approx(np.mean(logs) - 1000)
        assert bounds.log_evidence_lower_many(forward)[r] == pytest.approx(np.log(w.mean()) - 1000)


def test_one_chain_is_the_plain_bound():
    forward, reverse = np.array([[1.0], [-np.inf]]), np.array([[2.0], [5.0]])
    np.testing.assert_allclose(bounds.log_evidence_upper_many(forward, reverse), [2.0, 5.0])
    np.testing.assert_allclose(bounds.log_evidence_lower_many(forward), [1.0, -np.inf])


def minimum_with_harmonic_mean(forward, reverse):
    harmonic = -bounds.log_evidence_lower_many(-reverse)
    return np.minimum(bounds.log_evidence_upper_many(forward, reverse), harmonic)


@pytest.mark.statistical
@pytest.mark.parametrize("deviation", [1.0, 2.5])
def test_many_chains_sandwich_the_evidence(deviation):
    rng = np.random.default_rng(4)
    forward, reverse = gaussian_work(rng, (20_000, 4), deviation, log_evidence=-3.0)
    lower, upper = bounds.log_evidence_lower_many(forward), bounds.log_evidence_upper_many(forward, reverse)
    tolerance = 4 * max(lower.std(), upper.std()) / np.sqrt(20_000)  # 4 standard errors
    assert bounds.log_evidence_lower(forward).mean() < lower.mean() - tolerance
    assert lower.mean() < -3.0 + tolerance
    assert upper.mean() > -3.0 - tolerance
    assert bounds.log_evidence_upper(reverse).mean() > upper.mean() + tolerance
    if deviation < 2.0:  # negative control: a minimum per simulation over two upper bounds is no upper bound
        assert minimum_with_harmonic_mean(forward, reverse).mean() < -3.0 - tolerance


@pytest.mark.statistical
def test_one_sided_bounds_lie_between_zero_and_jeffreys():
    forward, reverse = gamma_work(np.random.default_rng(5), (4000, 8))
    jeffreys = bounds.jeffreys_bound(forward, reverse, LEVEL)
    for compute in (bounds.kl_exact_approx, bounds.kl_approx_exact, bounds.jeffreys_resampled):
        interval = compute(forward, reverse, LEVEL)
        assert 0.0 < interval.lower < interval.upper < jeffreys.lower
    # KL(p||q) of gamma laws bounds what a long sum of chains would leave: mean reverse log weight with Z = 1.
    exact = 2 * np.log(2.0) - 1.0
    interval = bounds.kl_exact_approx(forward, reverse, LEVEL)
    assert interval.lower > exact > 0.3


@PROPERTY
@given(log_weights(True), log_weights(False), st.floats(-300, 300), st.permutations(range(4)))
def test_bounds_ignore_constants_and_the_order_of_chains(forward, reverse, constant, order):
    for compute in (
        bounds.jeffreys_bound,
        bounds.kl_exact_approx,
        bounds.kl_approx_exact,
        bounds.jeffreys_resampled,
    ):
        try:
            expected = np.array(compute(forward, reverse, LEVEL))
        except InvalidArgumentError as error:
            pytest.fail(f"legal log weights refused: {error}")
        spread = 1e-9 * (1 + np.ptp(reverse) + np.ptp(np.where(np.isfinite(forward), forward, 0.0)))
        permuted = compute(forward[:, order], reverse[:, order[::-1]], LEVEL)
        np.testing.assert_allclose(np.array(permuted), expected, rtol=1e-6, atol=100 * spread)
        shifted = compute(forward + constant, reverse + constant, LEVEL)
        np.testing.assert_allclose(np.array(shifted), expected, rtol=1e-6, atol=100 * spread)
    upper = bounds.log_evidence_upper_many(forward, reverse)
    assert np.isfinite(upper).all()
    assert (upper <= np.maximum(forward.max(axis=1), reverse.max(axis=1)) + 1e-9).all()
    np.testing.assert_allclose(bounds.log_evidence_upper_many(forward + constant, reverse + constant), upper + constant)


def test_zero_forward_weights_make_the_jeffreys_bound_infinite():
    forward = np.array([[0.0, -np.inf], [0.5, 0.0], [0.1, 0.3]])
    reverse = np.array([[1.0, 2.0], [1.0, 1.5], [0.4, 0.9]])
    assert bounds.simulation_gaps(forward, reverse)[0] == np.inf
    assert bounds.jeffreys_bound(forward, reverse, LEVEL) == (np.inf, np.inf, np.inf)
    assert bounds.kl_approx_exact(forward, reverse, LEVEL) == (np.inf, np.inf, np.inf)
    assert np.isfinite(bounds.kl_exact_approx(forward, reverse, LEVEL)).all()  # one finite chain of K is enough
    forward[0] = -np.inf
    assert bounds.kl_exact_approx(forward, reverse, LEVEL).estimate == np.inf


@pytest.mark.parametrize(
    ("forward", "reverse", "message"),
    [
        ([[0.0, np.nan]], [[0.0, 1.0]], r"forward log weight \[simulation 0, chain 1\].*nan"),
        ([[0.0, np.inf]], [[0.0, 1.0]], r"forward log weight .*inf"),
        ([[0.0, 1.0]], [[np.nan, 1.0]], r"reverse log weight \[simulation 0, chain 0\].*nan"),
        ([[0.0, 1.0]], [[0.0, -np.inf]], r"reverse log weight \[simulation 0, chain 1\].*-inf"),
        ([0.0, 1.0], [[0.0]], r"forward log weights must have shape \(simulation, chain\)"),
        ([[0.0], [1.0]], [[0.0]], r"same simulations.*\(2, 1\) and \(1, 1\)"),
    ],
)
def test_bad_log_weights_are_named(forward, reverse, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bounds.jeffreys_bound(forward, reverse, LEVEL)
    with pytest.raises(ValueError, match=message):
        bounds.kl_exact_approx(forward, reverse, LEVEL)


# -- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("jeffreys", "expected"), [(1.0, 0.479), (2.0, 0.648), (4.0, 0.834)])
def test_total_variation_of_known_bounds(jeffreys, expected):
    assert bounds.total_variation_from_jeffreys(jeffreys) == pytest.approx(expected, abs=5e-4)


def test_total_variation_from_jeffreys_is_tight_for_two_points():
    p, q = np.array([0.8, 0.2]), np.array([0.2, 0.8])
    jeffreys = np.sum((p - q) * np.log(p / q))
    assert bounds.total_variation_from_jeffreys(jeffreys) == pytest.approx(0.6)


@PROPERTY
@given(st.floats(1e-9, 1e4))
def test_total_variation_solves_its_equation(jeffreys):
    v = bounds.total_variation_from_jeffreys(jeffreys)
    assert 0.0 < v <= 1.0
    if v < 1 - 1e-9:
        assert 4 * v * np.arctanh(v) == pytest.approx(jeffreys, rel=1e-5)
    assert v <= bounds.total_variation_from_jeffreys(1.01 * jeffreys)


def test_total_variation_edges():
    for compute in (bounds.total_variation_from_jeffreys, bounds.total_variation_from_kl):
        assert compute(-0.3) == 0.0 and compute(0.0) == 0.0
        assert compute(np.inf) == 1.0 and np.isnan(compute(np.nan))
    assert bounds.total_variation_from_kl(0.08) == pytest.approx(0.2)  # Pinsker is the smaller one
    assert bounds.total_variation_from_kl(3.0) == pytest.approx(np.sqrt(1 - np.exp(-3.0)))


def test_what_simulations_cannot_see():
    assert bounds.unseen_failure_fraction(20) == pytest.approx(0.1391, abs=1e-4)
    assert bounds.unseen_failure_fraction(1) == pytest.approx(0.95)
    assert bounds.unseen_failure_fraction(20, 0.975) == pytest.approx(0.1684, abs=1e-4)
    with pytest.raises(InvalidArgumentError, match="n_simulations"):
        bounds.unseen_failure_fraction(0)


# -- tails --------------------------------------------------------------------------------------------------------
