"""Sizes and bounds that outcomes decide, codes of missing outcomes, tables of log densities: read, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.language.source import Source
from tests.support.stan_corpus_table import SUPPORTED, analyse_text, analysed, stanc
from tests.support.stan_mutants import interpreter, is_constant, simulate

NAMES = ["irt_partial_credit", "graded_with_missing", "hidden_regression", "hidden_marginal"]


def text_of(name: str) -> str:
    return next(case for case in SUPPORTED if case.name == name).source.text


def data_of(name: str) -> dict[str, Any]:
    return next(case for case in SUPPORTED if case.name == name).data


@pytest.mark.parametrize(
    "name", [*NAMES[1:2], *(pytest.param(n, marks=pytest.mark.slow) for n in (NAMES[0], *NAMES[2:]))]
)
def test_simulator_has_the_density_that_scipy_finds(name: str) -> None:
    """Log prior and log likelihood are those of the simulator at every draw, but for a constant each."""
    program = analysed(name)
    run = interpreter(program, data_of(name))
    draws, _ = simulate(program, run, 6, default_rng(5))
    difference = np.array([np.subtract(run.log_density(one.values), one.own) for one in draws])
    assert len(draws) == 6 and is_constant(difference, draws)
    # negative control: the same outcomes at another parameter
    first = program.parameters[-1].name
    moved = [run.log_density({**one.values, first: np.multiply(one.values[first], 0.9)}) for one in draws]
    assert not is_constant(np.array([np.subtract(a, one.own) for a, one in zip(moved, draws, strict=True)]), draws)


def changed(name: str, old: str, new: str) -> str:
    text = text_of(name)
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("graded_with_missing", "!= -1", "!= 1"),  # a category that the law gives: drawn outcomes decide
        ("graded_with_missing", "!= -1", "== -1"),
        ("graded_with_missing", "!= -1", "< 3"),
        ("graded_with_missing", "if (grade[c, i] != -1)", "if (grade[1, i] != -1)"),
        ("graded_with_missing", "target += log(p[c, i, grade[c, i]])", "target += 2 * log(p[c, i, grade[c, i]])"),
        ("graded_with_missing", "target += log(p[c, i, grade[c, i]])", "target += -log(p[c, i, grade[c, i]])"),
        ("hidden_marginal", "n in 1 : N) {", "n in 2 : N) {"),  # an element of the table is never filled
        ("hidden_marginal", "hmm_marginal(seen, move, rho)", "2 * hmm_marginal(seen, move, rho)"),
        ("hidden_regression", "seen[n][k];", "seen[n - 1][k];"),
        ("hidden_regression", "table[n - 1, j]", "table[n - 1, k]"),
    ],
)
def test_mutants_have_no_simulator(name: str, old: str, new: str) -> None:
    observed = ["grade"] if name == "graded_with_missing" else ["y"]
    program = analyse_text(changed(name, old, new), observed)
    assert not program.is_automatic


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("irt_partial_credit", "theta - beta)", "theta + beta)"),
        ("irt_partial_credit", "alpha[item[n]] * theta[person[n]]", "alpha[item[n]] + theta[person[n]]"),
        ("irt_partial_credit", "first[item[n]], m[item[n]]", "1, m[item[n]]"),
        ("graded_with_missing", "slope[i] * (theta[c] - cut[i, k])", "(theta[c] - slope[i] * cut[i, k])"),
        ("hidden_regression", "log_move[n][k]", "log_move[n - 1][k]"),
        ("hidden_regression", "dot_product(u[n], b[k]), sigma[k]", "dot_product(u[n], b[k]), square(sigma[k])"),
        ("hidden_marginal", "mu[k], sigma)", "mu[k], square(sigma))"),
    ],
)
def test_mutants_of_another_law_are_drawn_by_it(name: str, old: str, new: str) -> None:
    """What is simulated is the law of the changed program, and not that of the original."""
    observed = ["grade"] if name == "graded_with_missing" else ["y"]
    program = analyse(Source.from_text(changed(name, old, new)), observed=observed, data=data_of(name), stanc=stanc)
    run, original = (interpreter(one, data_of(name)) for one in (program, analysed(name)))
    draws, _ = simulate(program, run, 6, default_rng(6))
    own = np.array([np.subtract(run.log_density(one.values), one.own) for one in draws])
    other = np.array([np.subtract(original.log_density(one.values), one.own) for one in draws])
    assert len(draws) == 6 and is_constant(own, draws) and not is_constant(other, draws)


def test_probabilities_that_do_not_sum_to_one_are_never_drawn_from() -> None:
    for name, old, new in [
        ("graded_with_missing", "= 1 - above[c, i, 1]", "= 0.9 - above[c, i, 1]"),
        ("graded_with_missing", "theta[c] - cut[i, k]", "theta[c] + cut[i, k]"),  # negative probabilities
        ("hidden_regression", "log_move[n][k] +", "log_move[n][j] +"),  # the weight of the state before
    ]:
        observed = ["grade"] if name == "graded_with_missing" else ["y"]
        program = analyse_text(changed(name, old, new), observed)
        assert program.is_automatic  # it is seen to when it draws
        run = interpreter(program, data_of(name))
        draws, n_rejected = simulate(program, run, 3, default_rng(7))
        assert not draws and n_rejected >= 12


def test_sizes_are_held_and_bounds_only_where_the_likelihood_does_not_end_there() -> None:
    held = analysed("size_from_data")
    assert held.is_automatic and held.copies == {"bread_held_y": "y"}
    assert held.tempered.count("\n") == held.written.text.count("\n")
    assert "held as the real data give them" in held.notes[-1]
    text = "data { int N; vector[N] y; } parameters { real<lower=LOW, upper=UP> m; } model { y ~ normal(m, 1); }"
    loose = text.replace("LOW", "mean(y) - 3 * sd(y)").replace("UP", "mean(y) + 3 * sd(y)")
    assert analyse_text(loose, ["y"]).is_automatic
    for low, high in (("-9", "min(y)"), ("max(y)", "99"), ("y[1]", "99"), ("mean(y)", "max(y)")):
        program = analyse_text(text.replace("LOW", low).replace("UP", high), ["y"])
        assert program.simulator_refusal is not None and "depend on observed" in str(program.simulator_refusal)


def test_parameters_that_are_partly_flat_can_be_held() -> None:
    text = (
        "data { int n; vector[n] y; } parameters { vector<lower=mean(y) - 3 * sd(y), upper=mean(y) + 3 * sd(y)>[n] mu; "
        "real beta; positive_ordered[2] sigma; } model { for (t in 2 : n) mu[t] ~ normal(mu[t - 1], sigma[1]); "
        "y ~ normal(mu + beta, sigma[2]); sigma ~ student_t(4, 0, 1); }"
    )
    source = Source.from_text(text)
    free = analyse(source, observed=["y"], stanc=stanc)
    assert free.simulator_refusal is not None and "not every element of 'mu'" in free.simulator_refusal.reason
    program = analyse(source, observed=["y"], held=(), stanc=stanc)
    assert program.is_automatic and {"mu", "beta"} <= set(program.held)
