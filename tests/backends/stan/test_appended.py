"""Vectors that `append_row` makes of a parameter and minus its sum: exact densities of draws, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from tests.support.stan_corpus_table import analyse_text, analysed
from tests.support.stan_mutants import drawn, interpreter, is_constant

pytestmark = pytest.mark.stan

TEXT = """data {
  int<lower=2> I;
  vector[I] y;
}
parameters {
  vector[I - 1] free;
}
transformed parameters {
  vector[I] beta = append_row(free, -sum(free));
}
model {
  beta ~ normal(0.5, 2);
  y ~ normal(beta, 1);
}
"""
DATA = {"I": 4, "y": [0.3, -1.0, 2.0, 0.1]}
FORMS = (
    "vector[I] beta = append_row(free, -sum(free));",
    "vector[I] beta = append_row(free, rep_vector(-1 * sum(free), 1));",
    "vector[I] beta; beta = append_row((free), (-sum(free)));",
    "vector[I] beta;\n  beta = append_row(free,\n    rep_vector(-sum(free), 1));",
)


def with_form(form: str) -> str:
    assert FORMS[0] in TEXT
    return TEXT.replace(FORMS[0], form)


@pytest.mark.parametrize("form", FORMS)
def test_draws_have_the_density_of_the_program(form: str) -> None:
    program = analyse_text(with_form(form))
    assert program.is_automatic and program.observed == ("y",)
    assert program.written.text == with_form(form)
    run, rng = interpreter(program, DATA), default_rng(3)
    draws = [drawn(program, run.simulate(rng)) for _ in range(20)]
    assert is_constant(np.array([np.subtract(run.log_density(one.values), one.own) for one in draws]), draws)
    # negative control: one effect is moved, and the sum is not what it was
    moved = [{**one.values, "free": one.values["free"] + [0.3, 0, 0]} for one in draws]
    assert not is_constant(
        np.array([np.subtract(run.log_density(a), b.own) for a, b in zip(moved, draws, strict=True)]), draws
    )


@pytest.mark.statistical
def test_effects_are_normals_less_their_mean() -> None:
    """At level 1e-3: one of two effects has half the variance that the law of each states, whatever the location."""
    run, rng = interpreter(analyse_text(TEXT), {"I": 2, "y": [0.3, -1.0]}), default_rng(4)
    free = np.array([run.simulate(rng)["bread_sim_free"] for _ in range(500)]).ravel()
    assert stats.kstest(free, stats.norm(0, 2 / np.sqrt(2)).cdf).pvalue > 1e-3
    assert stats.kstest(free, stats.norm(0, 2).cdf).pvalue < 1e-3  # negative control


@pytest.mark.parametrize(
    "form",
    [
        "vector[I] beta = append_row(free, sum(free));",
        "vector[I] beta = append_row(free, -0.5 * sum(free));",
        "vector[I] beta = append_row(free, -sum(free) + 1);",
        "vector[I] beta = append_row(free, -sum(exp(free)));",
        "vector[I] beta = append_row(2 * free, -sum(free));",
        "vector[I] beta = append_row(free, 0);",
    ],
)
def test_other_last_elements_are_refused(form: str) -> None:
    program = analyse_text(with_form(form))
    assert not program.is_automatic
    assert "computed from 'free'" in str(program.simulator_refusal)


@pytest.mark.parametrize("law", ["student_t(3, 0, 1)", "normal(0, exp(y[1]))", "normal(rep_vector(0, I), 1)"])
def test_only_one_normal_law_without_parameters_is_centred(law: str) -> None:
    assert not analyse_text(TEXT.replace("beta ~ normal(0.5, 2)", f"beta ~ {law}")).is_automatic


def test_a_declaration_of_several_variables_and_sizes_computed_from_outcomes() -> None:
    several = with_form("vector[I] other, beta = append_row(free, -sum(free)); other = beta;")
    assert analyse_text(several).is_automatic
    program = analysed("irt_rating_scale_appended")
    assert program.is_automatic and any("held as the real data give them" in note for note in program.notes)
