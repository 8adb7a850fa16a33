"""Laws of a diagonal beside a loop over the other elements: exact densities of draws, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from tests.support.stan_corpus_table import CORPUS, analyse_text, analysed
from tests.support.stan_mutants import drawn, interpreter, is_constant

pytestmark = pytest.mark.stan

CASE = next(case for case in CORPUS if case.name == "autoregression_by_diagonal")
ON = "  diagonal(A) ~ normal(0.5, 0.1);\n"
OFF = "  for (i in 1 : m) for (j in 1 : m) if (i != j) A[i, j] ~ normal(0, 1);\n"
TEXT = f"""data {{
  int<lower=1> m;
  int<lower=1> n;
  real c;
  vector[m] y;
}}
parameters {{
  matrix[m, m] A;
}}
model {{
{ON}{OFF}  for (k in 1 : m) y[k] ~ normal(sum(A[k]), 1);
}}
"""
DATA = {"m": 2, "n": 2, "c": 0.3, "y": [0.2, -1.0]}


def changed(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_draws_of_a_series_have_the_density_of_the_program() -> None:
    program = analysed(CASE.name)
    assert program.is_automatic and program.written.text == CASE.source.text
    run, rng = interpreter(program, CASE.data), default_rng(3)
    draws = [drawn(program, run.simulate(rng)) for _ in range(20)]
    assert is_constant(np.array([np.subtract(run.log_density(one.values), one.own) for one in draws]), draws)
    # negative control: the law of the diagonal is taken for that of the other elements
    turned = [{**one.values, "phi": one.values["phi"][:, ::-1, :]} for one in draws]
    assert not is_constant(
        np.array([np.subtract(run.log_density(a), b.own) for a, b in zip(turned, draws, strict=True)]), draws
    )


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        changed((ON + OFF, OFF + ON)),
        changed(("if (i != j) A[i, j] ~ normal(0, 1);", "{ if (j != i) { A[i, j] ~ normal(0, 1); } }")),
        changed(("diagonal(A)", "(diagonal((A)))"), ("normal(0.5, 0.1)", "normal(c,\n    0.1)")),
    ],
)
def test_each_element_is_drawn_by_its_own_law(text: str) -> None:
    program = analyse_text(text)
    assert program.is_automatic and program.written.text == text
    run, rng = interpreter(program, DATA), default_rng(3)
    A = np.array([run.simulate(rng)["bread_sim_A"] for _ in range(100)])
    deviations = A.std(axis=0)
    assert (np.diag(deviations) < 0.15).all() and (deviations[[0, 1], [1, 0]] > 0.7).all()
    assert (np.abs(A.mean(axis=0)) < 0.55).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("j in 1 : m", "j in 1 : n"),  # the same numbers, by another name
        ("i in 1 : m", "i in 2 : m"),
        ("i != j", "i < j"),
        ("i != j", "i == j"),
        ("i != j", "i != m"),
        ("A[i, j] ~", "A[j, i] ~"),
        ("A[i, j] ~", "A[i, i] ~"),
        ("diagonal(A) ~ normal(0.5, 0.1)", "diagonal(A) ~ normal(y, 0.1)"),
        ("diagonal(A) ~ normal(0.5, 0.1)", "diagonal(A) ~ normal(0.5, 0.1) T[0, ]"),
        ("diagonal(A) ~", "diagonal(2 * A) ~"),
        (OFF, f"  real d = 1;\n{OFF}"),
        (ON, f"{ON}{ON}"),
        (OFF, OFF.replace(";\n", "; else A[i, j] ~ normal(0, 2);\n")),
    ],
)
def test_others_are_refused(old: str, new: str) -> None:
    program = analyse_text(changed((old, new)))
    assert not program.is_automatic and "computed from 'A'" in str(program.simulator_refusal)


def test_both_laws_are_cut_at_the_bounds_of_the_matrix() -> None:
    program = analyse_text(changed(("matrix[m, m] A;", "matrix<lower=0>[m, m] A;")))
    assert program.is_automatic
    run, rng = interpreter(program, DATA), default_rng(3)
    draws = [drawn(program, run.simulate(rng)) for _ in range(20)]
    assert all((one.values["A"] >= 0).all() for one in draws)
    assert is_constant(np.array([np.subtract(run.log_density(one.values), one.own) for one in draws]), draws)
