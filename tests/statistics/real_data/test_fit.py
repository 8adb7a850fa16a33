"""Posterior p-values: exact levels on clean data, also with ties, and power for gross misfits."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from bread.errors import InvalidArgumentError
from bread.statistics.real_data.fit import (
    draw_p_value,
    fit_p_value,
    n_replicates,
    node_fit,
    rank_fit,
    ranked_fit_p_value,
    sequential_fit_p_value,
)
from tests.support.fit_models import MISFITS, MODELS, combined


def check_level(model, n_runs, m):
    rng = np.random.default_rng(1)
    p = np.array([combined(rng, model, model.simulate(rng), m=m) for _ in range(n_runs)])
    for level in (0.2, 0.05, 0.01, 0.005):
        assert (p <= level).sum() <= binom.ppf(0.99, n_runs, level)


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_clean_data_pass(name):
    check_level(MODELS[name], 30, 500)


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_level_over_400_runs(name):
    check_level(MODELS[name], 400, 4000)


@pytest.mark.statistical
def test_level_check_rejects_the_smallest_of_twenty_draws():
    rng, model = np.random.default_rng(2), MODELS["known scale"]
    smallest = []
    for _ in range(50):
        y = model.simulate(rng)
        smallest.append(min(model.draw(rng, y, 300) for _ in range(20)))
    assert (np.array(smallest) <= 0.2).sum() > binom.ppf(0.99, 50, 0.2)


@pytest.mark.statistical
@pytest.mark.parametrize("name", MISFITS)
def test_misfits_are_found(name):
    model, data, level = MISFITS[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        assert combined(rng, MODELS[model], data(rng)) <= level


@pytest.mark.statistical
def test_one_node_is_exact_without_ties_and_conservative_with_them():
    rng = np.random.default_rng(3)
    n, m = 4000, 99
    smooth = rng.gumbel(size=(n, m + 1))  # skewed
    p = np.array([node_fit(row[0], row[1:]).p_value_total for row in smooth])
    tied = np.round(smooth)
    p_tied = np.array([node_fit(row[0], row[1:]).p_value_total for row in tied])
    for level in (0.02, 0.1, 0.5):
        assert abs((p <= level).sum() - n * level) <= 4 * np.sqrt(n * level * (1 - level))  # 4 standard errors
        assert (p_tied <= level).sum() <= binom.ppf(0.99, n, level)
    # Negative control: ties that count on neither side.
    naive = np.minimum((tied[:, :1] < tied[:, 1:]).sum(axis=1), (tied[:, :1] > tied[:, 1:]).sum(axis=1))
    assert (2 * (1 + naive) / (m + 1) <= 0.1).sum() > binom.ppf(0.99, n, 0.1)


def test_node_fit_by_hand():
    replicated = np.array([-4.0, -2.0, -1.0, -3.0])
    fit = node_fit(-5.0, replicated, [[-1.0, -3.5], [-0.5, 0.0]], [-2.0, -1.0, -3.5, -4.0])
    assert fit.p_value_total == pytest.approx(2 / 5) and fit.p_value_extreme == pytest.approx(3 / 5)
    assert fit.effect == pytest.approx(2.5)
    np.testing.assert_array_equal(fit.extremes, [1, 0, 2, 3])
    assert node_fit(5.0, replicated).p_value_total == pytest.approx(2 / 5)  # more probable than any replicate
    assert node_fit(-2.0, replicated).p_value_total == 1.0
    impossible = node_fit(-np.inf, replicated)
    assert impossible.effect == np.inf and impossible.p_value_total == pytest.approx(2 / 5)
    assert np.isnan(impossible.p_value_extreme) and impossible.extremes.size == 0
    assert node_fit(-np.inf, [-np.inf, -np.inf]).effect == 0.0


def test_rank_fit_by_hand():
    replicated = np.column_stack([np.arange(99.0), np.zeros(99), np.arange(99.0)])
    fit = rank_fit([200.0, 0.0, 49.0], replicated)
    np.testing.assert_allclose(fit.p_values, [0.02, 1.0, 1.0])
    assert fit.p_value == pytest.approx(0.06)
    np.testing.assert_array_equal(fit.extremes, [0, 1, 2])
    empty = rank_fit(np.zeros(0), np.zeros((5, 0)))
    assert np.isnan(empty.p_value) and empty.extremes.size == 0


def test_combinations():
    assert draw_p_value([0.01, np.nan, 0.5]) == pytest.approx(0.02)
    assert fit_p_value([0.03] * 20) == pytest.approx(0.03)
    assert fit_p_value([1e-9, 0.4]) == pytest.approx(2e-9, rel=1e-3)
    assert fit_p_value([0.002] * 19 + [1.0]) < 0.005  # one draw that fits does not hide the others
    assert np.isnan(fit_p_value([np.nan])) and fit_p_value([np.nan, 0.2]) == pytest.approx(0.2)
    assert ranked_fit_p_value(0.01, [0.5, 0.01, 0.2]) == pytest.approx(0.5)
    assert n_replicates(1, 0.05) == 2000 and n_replicates(6, 0.005) == 9599
    assert 2 * 6 / (n_replicates(6, 0.005) + 1) == pytest.approx(0.005 / 4)


def test_looks_by_hand():
    gross = sequential_fit_p_value([0.001, 0.001, 0.0015])
    assert gross.is_clear and gross.p_value == pytest.approx(3 / (2 / 0.001 + 1 / 0.0015), rel=1e-3)
    # One or two such draws are chance: all three must be.
    assert not sequential_fit_p_value([0.001, 0.001, 0.01]).is_clear
    assert sequential_fit_p_value([0.001] * 3 + [0.9] * 17) == gross._replace(p_value=pytest.approx(0.001, rel=1e-3))
    clean = sequential_fit_p_value([0.5] * 20)
    assert clean.is_clear and clean.p_value == pytest.approx(0.5)
    near = [0.006] * 20
    assert not sequential_fit_p_value(near).is_clear
    more = sequential_fit_p_value([*near, *[0.9] * 140])
    assert more.is_clear and more.p_value == 0.02  # no further than a factor of 4
    nearer = [*near, *[0.004] * 140]
    assert not sequential_fit_p_value(nearer).is_clear and sequential_fit_p_value(nearer).p_value < 0.005
    third = sequential_fit_p_value([*nearer, *[0.9] * 160])
    assert third.is_clear and 0.0075 < third.p_value < 0.01  # further than a factor of 1.5
    nearest = [*nearer, *[0.006] * 160]
    assert not sequential_fit_p_value(nearest).is_clear and sequential_fit_p_value(nearest).p_value < 0.0055
    all_draws = sequential_fit_p_value([*nearest, *[0.9] * 1000])
    assert not all_draws.is_clear and all_draws.p_value == 0.0075  # no further than a factor of 1.5
    assert sequential_fit_p_value([*near, *[0.004] * 20]).p_value < 0.005  # no more draws were to be had
    # What comes after a clear look does not count.
    assert sequential_fit_p_value([0.5] * 20 + [0.0001] * 140) == clean
    assert sequential_fit_p_value([*near, *[0.9] * 140, *[0.0001] * 160]) == more


@pytest.mark.statistical
def test_looks_keep_the_level():
    """Draws of one data set share what makes them small. Cauchy's rule then exceeds its level by up to two fifths."""
    rng, n_sets = np.random.default_rng(4), 2000
    data = rng.normal(size=(n_sets, 1))
    z = np.sqrt(0.7) * data + np.sqrt(0.3) * rng.normal(size=(n_sets, 1000))
    p = np.array([sequential_fit_p_value(row).p_value for row in norm.sf(z)])
    for level in (0.005, 0.05):
        assert (p <= level).sum() <= binom.ppf(0.99, n_sets, 1.4 * level)
    # Negative control: the smallest of p-values looked at many times.
    loose = np.array([min(fit_p_value(row[:n]) for n in (1, 2, 3, 5, 10, 20, 160, 320)) for row in norm.sf(z)])
    assert (loose <= 0.05).sum() > binom.ppf(0.99, n_sets, 1.4 * 0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: node_fit(np.nan, [0.0]), "log_density"),
        (lambda: node_fit(0.0, []), "replicated must hold"),
        (lambda: node_fit(0.0, [0.0], [0.0]), "belong together"),
        (lambda: node_fit(0.0, [0.0, 1.0], [0.0], [0.0]), "one value a replicate, 2, but got 1"),
        (lambda: rank_fit([0.0], np.zeros((5, 2))), r"\(1,\), but got \(5, 2\)"),
        (lambda: rank_fit([np.nan], np.zeros((5, 1))), "NaN"),
        (lambda: fit_p_value([0.0, 0.5]), r"\(0, 1\]"),
        (lambda: ranked_fit_p_value(0.5, [np.nan]), "1 of them NaN"),
        (lambda: n_replicates(0, 0.05), "n_tests"),
    ],
)
def test_errors(call, message):
    with pytest.raises(InvalidArgumentError, match=message):
        call()
