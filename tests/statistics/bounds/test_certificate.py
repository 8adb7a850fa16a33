"""The certificate's formulas: against brute force, against exact expectations over all paths, and its edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.betting import betting_upper_limit
from bread.statistics.bounds.bounds import simulation_gaps
from bread.statistics.bounds.certificate import (
    compare_forms,
    conditional_gaps,
    error_by_simulation,
    error_interval,
    raw_error_by_simulation,
)
from bread.statistics.bounds.intervals import mean_interval
from tests.support.finite_annealing import FiniteAnnealing, lazy, metropolis_on_line, sweep_of_pairs

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True, database=None)
FINITE = st.floats(-30, 30)
FORWARD = arrays(np.float64, (3, 4), elements=st.one_of(FINITE, st.just(-np.inf)))
REVERSE = arrays(np.float64, (3, 2), elements=FINITE)


def brute_force(forward, reverse):
    """Both forms from weights, one reverse chain at a time, by the definition."""
    conditional, raw = np.zeros(len(forward)), np.zeros(len(forward))
    for r, (fwd, rev) in enumerate(zip(np.exp(forward), np.exp(reverse), strict=True)):
        k = len(fwd)
        for w_reverse in rev:
            weights = np.append(fwd, w_reverse)
            raw[r] += max(0.0, 1 - fwd.mean() / w_reverse) / len(rev)
            for i in range(k + 1):  # if path i is the reverse one, the others make up Z_hat
                probability = weights[i] / weights.sum()
                if weights[i] > 0:
                    error = max(0.0, 1 - np.delete(weights, i).mean() / weights[i])
                    conditional[r] += probability * error / len(rev)
    return conditional, raw


@PROPERTY
@given(FORWARD, REVERSE)
def test_both_forms_match_the_definition(forward, reverse):
    conditional, raw = brute_force(forward, reverse)
    np.testing.assert_allclose(error_by_simulation(forward, reverse), conditional, atol=1e-12)
    np.testing.assert_allclose(raw_error_by_simulation(forward, reverse), raw, atol=1e-12)


@PROPERTY
@given(FORWARD, REVERSE)
def test_formula_in_normalised_weights(forward, reverse):
    """The two ways to write it: a sum over paths, and a total variation from equal probabilities."""
    k, one = forward.shape[1], reverse[:, :1]
    weights = np.exp(np.concatenate([forward, one], axis=1))
    share = weights / weights.sum(axis=1, keepdims=True)
    computed = error_by_simulation(forward, one)
    np.testing.assert_allclose(computed, np.maximum(0, share - (1 - share) / k).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(computed, (k + 1) / k * 0.5 * np.abs(share - 1 / (k + 1)).sum(axis=1), atol=1e-12)


@PROPERTY
@given(FORWARD, REVERSE, st.floats(-1e4, 1e4))
def test_invariances(forward, reverse, constant):
    for compute in (error_by_simulation, raw_error_by_simulation, conditional_gaps):
        value = compute(forward, reverse)
        np.testing.assert_allclose(compute(forward + constant, reverse + constant), value, atol=1e-9)
        np.testing.assert_allclose(compute(forward[:, ::-1], reverse[:, ::-1]), value, atol=1e-12)
        assert (value >= 0).all()
    assert (error_by_simulation(forward, reverse) <= 1).all()
    assert (raw_error_by_simulation(forward, reverse) <= 1).all()


def test_one_chain_each_way_is_a_hyperbolic_tangent():
    delta = np.array([-700.0, -3.0, -0.1, 0.0, 1e-9, 0.5, 4.0, 1e4])
    forward, reverse = np.zeros((8, 1)), delta[:, None]
    np.testing.assert_allclose(error_by_simulation(forward, reverse), np.tanh(np.abs(delta) / 2), rtol=1e-6)
    np.testing.assert_allclose(
        raw_error_by_simulation(forward, reverse), np.maximum(0, -np.expm1(-delta)), rtol=1e-9, atol=1e-15
    )
    np.testing.assert_allclose(conditional_gaps(forward, reverse), np.abs(delta) * np.tanh(np.abs(delta) / 2))


def test_extreme_weights():
    huge = np.array([[1e5, -1e5]])
    assert error_by_simulation(huge, [[0.0]]) == pytest.approx(1.0)
    assert raw_error_by_simulation(huge, [[0.0]]) == 0.0
    zeros = np.full((1, 4), -np.inf)  # every forward chain met a zero likelihood
    assert error_by_simulation(zeros, [[-1e4]]) == pytest.approx(1.0)
    assert raw_error_by_simulation(zeros, [[-1e4]]) == pytest.approx(1.0)
    assert conditional_gaps(zeros, [[0.0]]) == np.inf
    some = np.array([[0.0, -np.inf, 0.0, 0.0]])  # one of four: the share of lost paths
    assert error_by_simulation(some, [[0.0, 0.0]]) == pytest.approx(0.25)
    assert conditional_gaps(some, [[0.0]]) == np.inf
    equal = np.full((1, 4), -1234.5)
    assert error_by_simulation(equal, equal) == pytest.approx(0.0, abs=1e-12)


# ---- exact expectations: every path of a finite model ------------------------------------------------------------

PRIOR = np.array([0.5, 0.2, 0.3])
FULL = np.array([[0.7, 0.3], [0.1, 0.9], [0.45, 0.55]])
WITH_ZEROS = np.array([[0.7, 0.3], [0.0, 1.0], [1.0, 0.0]])
BETAS = np.array([0.0, 0.3, 1.0])
MODELS = {
    "metropolis": FiniteAnnealing(PRIOR, FULL, BETAS, metropolis_on_line),
    "hardly moves": FiniteAnnealing(PRIOR, FULL, BETAS, lazy(0.97)),
    "not reversible": FiniteAnnealing(PRIOR, FULL, BETAS, sweep_of_pairs),
    "zero likelihoods": FiniteAnnealing(PRIOR, WITH_ZEROS, BETAS, lazy(0.6)),
    "zero likelihoods, metropolis": FiniteAnnealing(PRIOR, WITH_ZEROS, BETAS, metropolis_on_line),
}
EVERY = [pytest.param(model, data, id=f"{name}, data {data}") for name, model in MODELS.items() for data in (0, 1)]


def exact_mean(statistic, model, data, n_forward):
    """Sum ``statistic`` over all forward paths and one reverse path, times their probability."""
    log_weight, forward, reverse = model.weight_laws(data)
    log_weight = np.round(log_weight, 12)
    weights, index = np.unique(log_weight, return_inverse=True)
    law_forward, law_reverse = np.bincount(index, forward), np.bincount(index, reverse)
    tuples = np.array(list(product(range(len(weights)), repeat=n_forward + 1)))
    probability = law_forward[tuples[:, :-1]].prod(axis=1) * law_reverse[tuples[:, -1]]
    tuples, probability = tuples[probability > 0], probability[probability > 0]
    values = statistic(weights[tuples[:, :-1]], weights[tuples[:, -1:]])
    return float(probability @ values)


@pytest.mark.parametrize(("model", "data"), EVERY)
def test_the_two_forms_have_one_mean_that_bounds_the_exact_error(model, data):
    ends, paths = model.end_error(data), model.path_error(data)
    assert ends <= paths + 1e-12
    previous = 1.0
    for n_forward in (1, 2, 3):
        conditional = exact_mean(error_by_simulation, model, data, n_forward)
        assert conditional == pytest.approx(exact_mean(raw_error_by_simulation, model, data, n_forward), abs=1e-12)
        assert paths - 1e-12 <= conditional <= previous + 1e-12  # more chains, a better estimate of Z
        previous = conditional


@pytest.mark.parametrize(("model", "data"), EVERY)
def test_conditional_gaps_have_the_mean_of_the_gaps(model, data):
    conditional, raw = (exact_mean(gap, model, data, 2) for gap in (conditional_gaps, simulation_gaps))
    assert conditional == pytest.approx(raw, abs=1e-12)  # infinite where a forward weight may be zero
    assert np.isinf(raw) == (model.likelihood[:, data] == 0).any()


@dataclass(frozen=True)
class FromThePrior(FiniteAnnealing):
    """Reverse chains start from the prior in place of the posterior."""

    def posterior(self, data):
        return self.prior


@pytest.mark.parametrize("data", [0, 1])
def test_wrong_starts_separate_the_forms(data):
    """Negative control: reverse chains from the wrong law, exactly."""
    wrong = FromThePrior(PRIOR, FULL, BETAS, lazy(0.97))
    for one, other in ((error_by_simulation, raw_error_by_simulation), (conditional_gaps, simulation_gaps)):
        assert abs(exact_mean(one, wrong, data, 2) - exact_mean(other, wrong, data, 2)) > 0.05


def test_fewer_paths_in_the_sum_bound_nothing():
    """Negative control: the same sum over forward paths alone, or over the reverse one, is below the exact error."""

    def without_forward(forward, reverse):
        weights = np.exp(np.concatenate([forward, reverse], axis=1))
        share = weights[:, -1] / weights.sum(axis=1)
        return np.maximum(0, share - (1 - share) / forward.shape[1])

    def without_reverse(forward, reverse):
        return error_by_simulation(forward, reverse) - without_forward(forward, reverse)

    tight = replace(MODELS["hardly moves"], transition=lazy(0.999))
    for statistic in (without_forward, without_reverse):
        assert exact_mean(statistic, tight, 0, 3) < tight.end_error(0) - 0.01


# ---- intervals and arguments --------------------------------------------------------------------------------------


def test_interval_is_one_sided_at_its_level_and_lies_in_the_unit_interval():
    errors = np.array([0.1, 0.2, 0.15, 0.4, 0.12])
    found, of_any_mean = error_interval(errors, 0.95), mean_interval(errors, 0.9)
    assert found[:2] == of_any_mean[:2]
    assert found.upper == betting_upper_limit(errors, 0.95) < of_any_mean.upper  # the one that holds for all is lower
    factors = np.geomspace(0.002, 0.2, 20)
    assert mean_interval(factors, 0.9).upper < error_interval(factors, 0.95).upper < betting_upper_limit(factors, 0.95)
    late = np.append(np.zeros(40), np.ones(10))  # bets that were made before: their limit may be below the mean
    assert error_interval(late, 0.6).upper >= late.mean()
    near_zero, near_one = error_interval([0.0, 0.0, 0.1]), error_interval([1.0, 1.0, 0.9])
    assert near_zero.lower == 0.0 and near_zero.upper < 1.0
    assert near_one.upper == 1.0 and near_one.lower > 0.0
    single = error_interval([0.25])
    assert single.estimate == 0.25 and np.isnan(single.lower) and np.isnan(single.upper)
    assert error_interval([1.0, 1.0, 1.0]) == (1.0, 1.0, 1.0)
    assert error_interval([0.0, 0.0]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("level", [0.5, 0.1, 1.0, np.nan])
def test_level_is_checked(level):
    with pytest.raises(InvalidArgumentError, match=r"level is one-sided.*0\.95"):
        error_interval([0.1, 0.2], level)


@pytest.mark.parametrize("errors", [[], [0.1, np.nan], [1.1]])
def test_errors_are_checked(errors):
    with pytest.raises(InvalidArgumentError, match="values must"):
        error_interval(errors)


@pytest.mark.parametrize(
    "compute", [error_by_simulation, raw_error_by_simulation, conditional_gaps, compare_forms], ids=lambda f: f.__name__
)
def test_log_weights_are_checked(compute):
    good = np.zeros((2, 3))
    for forward, reverse, message in (
        (good, np.zeros((3, 3)), r"same simulations.*\(2, 3\) and \(3, 3\)"),
        (np.full((2, 3), np.nan), good, r"forward log weight.*nan"),
        (np.full((2, 3), np.inf), good, r"forward log weight.*inf"),
        (good, np.full((2, 3), -np.inf), r"reverse log weight.*-inf"),
        (good[0], good, r"\(simulation, chain\)"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            compute(forward, reverse)
