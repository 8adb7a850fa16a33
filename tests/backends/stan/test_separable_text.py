"""Which Stan programs are sums over observations, and what is said of the others; no compiler."""

from __future__ import annotations

import pytest

from bread.backends.stan.language.refusals import RefusedError
from bread.backends.stan.separable import by_observation
from tests.support.stan_corpus_table import analyse_text, analysed, stanc

# Programs of the corpus, each of another form; the numbers of some are checked in test_separable.py.
TAKEN = [
    "eight_schools_centered", "normal_glm", "negbin_glm", "ordered_logistic_cutpoints", "growth_multivariate",
    "mixture_gathered", "mixture_log_mix", "zero_inflated", "truncated_outcome", "slices_disjoint", "log_of_outcome",
    "alias_scaled_data", "accumulator_likelihood", "brms_multilevel", "capture_rows", "outcome_minus_curve",
    "dirichlet_multinomial_counts", "missing_data_indexed",
]  # fmt: skip
DEPENDENT = {
    "ar1_vectorised": "the law of some outcomes depends on others",
    "ar_k": "the law of some outcomes depends on others",
    "garch11": "the law of some outcomes depends on others",
    "arma_errors": "no plain selection",
    "gp_regr": "multi_normal_cholesky",
    "hidden_categories": "not known to be a sum",
    "several_outcomes": "one observed variable",
    "uniform_bounds": "several elements",
    "mixture_gathered_assigned": "'ps', which may hold what other observations left there. Declare it inside",
}
HEAD = "data { int N; vector[N] y; vector[N] x; } parameters { real m; real<lower=0> s; } "
PRIOR = "m ~ normal(0, 1); s ~ exponential(1); "


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_a_sum_over_observations(name: str) -> None:
    program = analysed(name)
    text, _ = by_observation(program)
    assert stanc(text, "--allow-undefined").returncode == 0
    assert text.count("\n") == program.source.text.count("\n")  # messages name the user's lines
    before, after = (program.tempered.count("bread_temper("), text.count("bread_temper("))
    assert after == before
    assert "bread_is_in[" in text or "bread_places(bread_is_in" in text


@pytest.mark.parametrize("name", DEPENDENT)
def test_what_depends_on_other_outcomes(name: str) -> None:
    with pytest.raises(RefusedError, match=DEPENDENT[name]) as refused:
        by_observation(analysed(name))
    assert f"'{name}.stan', line " in str(refused.value)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("y ~ normal(m, s);", "normal_lpdf(bread_pick(y, bread_places(bread_is_in)) | m, s)"),
        ("y ~ normal(x, s);", "bread_places(bread_is_in)) | bread_pick(x, bread_places(bread_is_in)), s)"),
        ("for (n in 1:N) y[n] ~ normal(m, s);", "{ if (bread_is_in[n] == 1) target += bread_temper(normal_lpdf(y[n]|"),
        ("y[2:N] ~ normal(x[2:N], s); y[1] ~ normal(m, s);", "bread_pick(y[2:N], bread_places(bread_is_in[2:N]))"),
        ("if (N > 1) y ~ normal(m + x, s);", "bread_pick(m + x, bread_places(bread_is_in))"),
        ("if (N > 1) for (n in 1:N) if (x[n] > 0) y[n] ~ normal(m, s); else y[n] ~ normal(0, s);", " } else { if"),
        (
            "vector[N] t; for (n in 1:N) t[n] = x[n] * normal_lpdf(y[n] | m, s); target += sum(t);",
            "bread_temper(sum(bread_pick(t, bread_places(bread_is_in))))",
        ),
    ],
)
def test_the_text(statement: str, expected: str) -> None:
    text, _ = by_observation(analyse_text(f"{HEAD} model {{ {PRIOR} {statement} }}", ["y"]))
    assert expected.replace(" ", "") in text.replace(" ", "")
    assert stanc(text, "--allow-undefined").returncode == 0


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("target += normal_lpdf(y | m, s) - N * log(s);", "does not belong to single observations"),
        (
            "real before = 0; for (n in 1:N) { y[n] ~ normal(m + before, s); before = y[n]; }",
            "'before', which may hold",
        ),
        ("for (n in 1:N) if (y[1] > 0) y[n] ~ normal(m, s); else y[n] ~ normal(0, s);", "depends on other"),
        ("for (n in 1:N) { int k = n; y[k] ~ normal(m, s); }", "no plain selection"),
        ("y ~ normal(mean(y) + m, s);", "the law of some outcomes depends on others"),
    ],
)
def test_what_is_refused(statement: str, match: str) -> None:
    program = analyse_text(f"{HEAD} model {{ {PRIOR} {statement} }}", ["y"])
    assert program.split_refusal is None
    with pytest.raises(RefusedError, match=match):
        by_observation(program)
