"""The theory alarm and the weighted ranks: exact level, and power against planted defects."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.special import logsumexp
from scipy.stats import binom, kstest, norm

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.alarms import (
    combined_p_value,
    independent_share,
    rank_p_values,
    theory_alarm,
    weighted_ranks,
)

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True, database=None)
LEVEL = 0.01


def paths(rng, kind, shape, n_reverse):
    """Return log weights and end points of paths that obey p_reverse(w) / p_forward(w) = w / Z exactly.

    A path is one number x. "gaussian": x ~ N(0, 1) forward, N(1.2, 1) reverse. "gamma" (skewed): Gamma(2, 1)
    forward, Gamma(2, 1/2) reverse. "zeros": as Gaussian, with a forward weight of zero in 30 % of chains. Each
    simulation has its own evidence. Returns forward and reverse log weights, forward and reverse x.
    """
    n = shape[0]
    log_evidence = rng.normal(0, 20, size=(n, 1))
    if kind == "gamma":
        x_forward, x_reverse = rng.gamma(2, size=shape), rng.gamma(2, 0.5, size=(n, n_reverse))
        forward, reverse = 2 * np.log(2) - x_forward, 2 * np.log(2) - x_reverse
    else:
        x_forward, x_reverse = rng.normal(size=shape), rng.normal(1.2, 1, size=(n, n_reverse))
        forward, reverse = 1.2 * x_forward - 0.72, 1.2 * x_reverse - 0.72
    if kind == "zeros":
        forward = np.where(rng.random(shape) < 0.3, -np.inf, forward - np.log(0.7))
        reverse = reverse - np.log(0.7)
    return forward + log_evidence, reverse + log_evidence, x_forward, x_reverse


KINDS = ["gaussian", "gamma", "zeros"]


def alarm_count(rng, kind, n_repetitions, distort=lambda forward, reverse: (forward, reverse)):
    count = 0
    for _ in range(n_repetitions):
        forward, reverse, _, _ = paths(rng, kind, (10, 3), 3)
        count += theory_alarm(*distort(forward, reverse)).p_value <= LEVEL
    return count


# -- theory alarm -------------------------------------------------------------------------------------------------


def copied_chains(forward, reverse):
    """All chains of a simulation equal: the strongest dependence that a pair average must survive."""
    return np.repeat(forward[:, :1], 3, axis=1), np.repeat(reverse[:, :1], 3, axis=1)


@pytest.mark.statistical
@pytest.mark.parametrize("distort", [lambda f, r: (f, r), copied_chains], ids=["independent", "copied"])
@pytest.mark.parametrize("kind", KINDS)
def test_alarm_keeps_its_level(kind, distort):
    # The 99 % quantile of the number of alarms among 400 at level 0.01.
    assert alarm_count(np.random.default_rng(1), kind, 400, distort) <= binom.ppf(0.99, 400, LEVEL)


@pytest.mark.statistical
def test_level_check_rejects_chains_taken_as_simulations():
    def as_simulations(forward, reverse):
        forward, reverse = copied_chains(forward, reverse)
        forward, reverse = np.tile(forward, (1, 4)), np.tile(reverse, (1, 4))
        return forward.reshape(-1, 1), reverse.reshape(-1, 1)

    assert alarm_count(np.random.default_rng(1), "gaussian", 400, as_simulations) > binom.ppf(0.99, 400, LEVEL)


DEFECTS = {
    "start too good for the data": lambda f, r: (f, r - 3.0),
    "swapped sign": lambda f, r: (r, np.where(np.isfinite(f), f, -50.0)),
    "forward in place of reverse": lambda f, r: (f, np.where(np.isfinite(f), f, -50.0) - 2.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("kind", ["gaussian", "gamma"])
def test_alarm_rings_for_defects(kind, defect):
    assert alarm_count(np.random.default_rng(2), kind, 30, DEFECTS[defect]) >= 20


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_e_value_has_mean_one_for_a_single_simulation(kind):
    rng = np.random.default_rng(3)
    forward, reverse, _, _ = paths(rng, kind, (1000, 2), 2)
    e = np.exp([theory_alarm(forward[[r]], reverse[[r]]).log_e_value for r in range(1000)])
    tolerance = 4 * e.std(ddof=1) / np.sqrt(len(e))  # 4 standard errors
    if kind == "zeros":
        assert e.mean() < 1 - tolerance  # E[exp(-Delta)] = P(w_forward > 0)
    else:
        assert abs(e.mean() - 1) < tolerance
    wrong = np.exp([theory_alarm(forward[[r]], reverse[[r]] - 1.0).log_e_value for r in range(300)])
    assert wrong.mean() > 1 + tolerance


@pytest.mark.statistical
def test_crooks_slope_is_one():
    rng = np.random.default_rng(4)
    slopes, covered = [], []
    for _ in range(300):
        forward, reverse, _, _ = paths(rng, "gamma", (20, 4), 4)
        alarm = theory_alarm(forward, reverse)
        slopes.append(alarm.crooks_slope)
        covered.append(alarm.crooks_slope_lower <= 1 <= alarm.crooks_slope_upper)
    assert abs(np.median(slopes) - 1) < 0.1  # standard error of the median about 0.02, finite-sample bias 0.03
    assert np.mean(covered) > 0.90  # nominal 0.95, standard error 0.013
    forward, reverse, _, _ = paths(rng, "gamma", (200, 4), 4)
    assert theory_alarm(forward, reverse - 1.0).crooks_slope_upper < 1  # negative control
    assert theory_alarm(forward, reverse + 1.0).crooks_slope_lower > 1


def test_crooks_slope_maximises_the_likelihood():
    forward, reverse = np.array([[0.0, 1.0], [0.5, 2.0]]), np.array([[1.0], [1.5]])
    delta = np.array([1.0, 0.0, 1.0, -0.5])
    slope = theory_alarm(forward, reverse).crooks_slope
    grid = np.linspace(slope - 1, slope + 1, 201)
    likelihood = -np.logaddexp(0, -grid[:, None] * delta).sum(axis=1)
    assert grid[likelihood.argmax()] == pytest.approx(slope)


def test_alarm_matches_the_formula():
    forward, reverse = np.array([[0.0, 1.0], [0.5, -np.inf]]), np.array([[0.3], [0.7]])
    delta = reverse - forward
    mixture = []
    for stake in (0.1, 0.25, 0.5, 0.75, 0.9):
        mixture.append((1 + stake * (np.exp(-delta) - 1)).mean(axis=1).prod())
    for slope in (0.25, 0.5, 2.0, 4.0):
        mixture.append(((1 + np.exp(-delta)) / (1 + np.exp(-slope * delta))).mean(axis=1).prod())
    alarm = theory_alarm(forward, reverse)
    assert np.exp(alarm.log_e_value) == pytest.approx(np.mean(mixture))
    assert alarm.p_value == pytest.approx(min(1.0, 1 / np.mean(mixture)))


def test_alarm_special_cases():
    one = theory_alarm([[0.0, 1.0]], [[0.5, 0.7]])
    assert np.isfinite(one.log_e_value) and np.isfinite(one.crooks_slope) and np.isnan(one.crooks_slope_lower)
    all_positive = theory_alarm([[0.0], [0.0]], [[1.0], [2.0]])
    assert np.isnan(all_positive.crooks_slope) and np.isnan(all_positive.crooks_slope_upper)
    all_zero = theory_alarm(np.full((3, 2), -np.inf), np.zeros((3, 2)))
    assert np.isfinite(all_zero.log_e_value) and all_zero.p_value == 1.0
    equal = theory_alarm([[0.0], [0.0]], [[0.0], [0.0]])
    assert equal.log_e_value == pytest.approx(0.0) and equal.p_value == pytest.approx(1.0)
    enormous = theory_alarm(np.full((20, 2), 1e6), np.zeros((20, 2)))  # exp(-Delta) overflows: logs throughout
    assert np.isfinite(enormous.log_e_value) and enormous.log_e_value > 1e7 and enormous.p_value == 0.0
    with pytest.raises(InvalidArgumentError, match=r"forward log weight \[simulation 0, chain 0\]"):
        theory_alarm([[np.nan]], [[0.0]])
    with pytest.raises(InvalidArgumentError, match=r"reverse log weight \[simulation 0, chain 0\]"):
        theory_alarm([[0.0]], [[-np.inf]])
    with pytest.raises(InvalidArgumentError, match="same simulations"):
        theory_alarm([[0.0], [1.0]], [[0.0]])


@PROPERTY
@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.permutations(range(4)))
def test_alarm_ignores_evidence_and_the_order_of_chains(seed, kind, order):
    rng = np.random.default_rng(seed)
    forward, reverse, _, _ = paths(rng, kind, (6, 4), 4)
    constant = rng.normal(0, 100, size=(6, 1))
    expected = np.array(theory_alarm(forward, reverse))
    np.testing.assert_allclose(theory_alarm(forward[:, order], reverse[:, order[::-1]]), expected, rtol=1e-8)
    np.testing.assert_allclose(theory_alarm(forward + constant, reverse + constant), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(theory_alarm(forward[::-1], reverse[::-1]), expected, rtol=1e-8)


# -- weighted ranks -----------------------------------------------------------------------------------------------


def functions(x):
    """Functions of a path: monotone, not monotone, and discrete with many ties."""
    return np.stack([x, (x - 0.5) ** 2, np.round(x)], axis=-1)


def ranks_of(rng, kind, n, x_shift=0.0, rank=weighted_ranks):
    forward, reverse, x_forward, x_reverse = paths(rng, kind, (n, 4), 1)
    h_forward, h_reverse = functions(x_forward), functions(x_reverse[:, 0] + x_shift)
    return rank(forward, reverse[:, 0], h_forward, h_reverse, rng.random((n, 3)))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_weighted_ranks_are_uniform(kind):
    ranks = ranks_of(np.random.default_rng(5), kind, 5000)
    assert ((ranks >= 0) & (ranks <= 1)).all()
    assert rank_p_values(ranks).min() > 1e-3  # nine exact p-values in all: fails by chance in 1 % of seeds


def plain_ranks(log_weight_forward, log_weight_reverse, h_forward, h_reverse, uniforms):
    """Ranks without weights, as if forward end points were exact posterior draws."""
    equal = np.zeros_like(log_weight_forward), np.zeros_like(log_weight_reverse)
    return weighted_ranks(*equal, h_forward, h_reverse, uniforms)


def ranks_without_ties(log_weight_forward, log_weight_reverse, h_forward, h_reverse, uniforms):
    """Split only the reverse path's own weight, as if no other path had the same value."""
    log_total = logsumexp(np.column_stack([log_weight_forward, log_weight_reverse]), axis=1, keepdims=True)
    below = (np.exp(log_weight_forward - log_total)[:, :, None] * (h_forward < h_reverse[:, None])).sum(axis=1)
    return below + uniforms * np.exp(log_weight_reverse[:, None] - log_total)


@pytest.mark.statistical
def test_uniformity_check_rejects_wrong_ranks():
    rng = np.random.default_rng(6)
    assert rank_p_values(ranks_of(rng, "gaussian", 5000, rank=plain_ranks))[0] < 1e-6
    tie_blind = rank_p_values(ranks_of(rng, "gaussian", 5000, rank=ranks_without_ties))
    assert tie_blind[2] < 1e-6 and tie_blind[0] > 1e-3  # wrong for the discrete function only
    # A reverse path from a wrong draw is seen with 40 simulations.
    assert rank_p_values(ranks_of(rng, "gaussian", 40, x_shift=1.5))[0] < 0.01


def test_weighted_rank_matches_the_formula():
    forward, reverse = np.log([[0.2, 0.3, 0.1]]), np.log([0.4])
    h_forward, h_reverse = np.array([[[1.0], [5.0], [2.0]]]), np.array([[3.0]])
    uniforms = np.array([[0.25]])
    rank = weighted_ranks(forward, reverse, h_forward, h_reverse, uniforms)
    assert rank[0, 0] == pytest.approx(0.2 + 0.1 + 0.25 * 0.4)
    h_forward[0, 1, 0] = 3.0  # a tie
    rank = weighted_ranks(forward - 2000, reverse - 2000, h_forward, h_reverse, uniforms)
    assert rank[0, 0] == pytest.approx(0.3 + 0.25 * 0.7)
    zero = weighted_ranks(np.full((1, 3), -np.inf), reverse, h_forward, h_reverse, uniforms)
    assert zero[0, 0] == pytest.approx(0.25)


def test_weighted_ranks_accept_no_function_and_infinite_values():
    nothing = np.zeros((2, 0))
    assert weighted_ranks(np.zeros((2, 3)), np.zeros(2), np.zeros((2, 3, 0)), nothing, nothing).shape == (2, 0)
    h_forward, h_reverse = np.array([[[-np.inf]]]), np.array([[-np.inf]])
    assert weighted_ranks([[0.0]], [0.0], h_forward, h_reverse, [[0.5]])[0, 0] == pytest.approx(0.5)


def test_weighted_rank_errors():
    good = [np.zeros((2, 3)), np.zeros(2), np.zeros((2, 3, 1)), np.zeros((2, 1)), np.full((2, 1), 0.5)]

    def with_bad(position, value):
        return weighted_ranks(*(value if i == position else array for i, array in enumerate(good)))

    with pytest.raises(InvalidArgumentError, match=r"h_forward must have shape \(2, 3, 1\), but got \(2, 2, 1\)"):
        with_bad(2, np.zeros((2, 2, 1)))
    with pytest.raises(InvalidArgumentError, match="h_reverse must not hold NaN, but function 0"):
        with_bad(3, np.full((2, 1), np.nan))
    with pytest.raises(InvalidArgumentError, match="uniforms"):
        with_bad(4, np.full((2, 1), 1.5))
    with pytest.raises(InvalidArgumentError, match="reverse log weight"):
        with_bad(1, np.array([0.0, -np.inf]))


# -- p-values -----------------------------------------------------------------------------------------------------


def test_rank_p_values_agree_with_scipy():
    ranks = np.random.default_rng(7).beta(1, 1.3, size=(25, 4))
    expected = [kstest(ranks[:, f], "uniform", method="exact").pvalue for f in range(4)]
    np.testing.assert_allclose(rank_p_values(ranks), expected, rtol=1e-8)
    assert 0 <= rank_p_values(np.array([[0.3]]))[0] <= 1
    with pytest.raises(InvalidArgumentError, match=r"\[0, 1\]"):
        rank_p_values(np.array([[np.nan]]))


def test_combined_p_value():
    assert combined_p_value([0.01, 0.5, 0.9]) == pytest.approx(0.03)
    assert combined_p_value([0.01, np.nan]) == pytest.approx(0.01)
    assert combined_p_value([0.5, 0.9]) == 1.0
    assert np.isnan(combined_p_value([])) and np.isnan(combined_p_value([np.nan]))
    with pytest.raises(InvalidArgumentError, match="range from -1"):
        combined_p_value([-1.0, 0.5])


@pytest.mark.statistical
def test_combined_p_value_keeps_its_level_under_dependence():
    rng = np.random.default_rng(8)
    shared = rng.random((2000, 1))
    p_values = np.where(rng.random((2000, 5)) < 0.5, shared, rng.random((2000, 5)))
    combined = np.array([combined_p_value(row) for row in p_values])
    limit = binom.ppf(0.99, 2000, 0.05)
    assert (combined <= 0.05).sum() <= limit
    assert (p_values.min(axis=1) <= 0.05).sum() > limit  # negative control: the smallest, not adjusted


@pytest.mark.statistical
def test_ranks_of_draws_from_slow_chains_count_as_independent_ones_of_their_share():
    """300 runs: 100 draws from chains that are worth 103 (4 of 1000, correlation 0.95): at most 0.01 + 3 errors.

    The control takes them for independent.
    """
    rng, slow, n = np.random.default_rng(5), 0.95, 100
    share = independent_share(n, 4000 * (1 - slow) / (1 + slow))
    false_alarms = np.zeros(2)
    for _ in range(300):
        noise = rng.normal(size=(4, 1000))
        noise[:, 1:] *= np.sqrt(1 - slow**2)
        draws = lfilter([1.0], [1.0, -slow], noise, axis=1).ravel()
        ranks = norm.cdf(draws[rng.integers(len(draws), size=n)])[:, None]
        false_alarms += [rank_p_values(ranks, one)[0] <= LEVEL for one in (share, 1.0)]
    limit = binom.isf(0.00135, 300, LEVEL)
    assert false_alarms[0] <= limit < false_alarms[1]
    assert independent_share(1, 50.0) == 1.0
