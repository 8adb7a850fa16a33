"""Of which function of an outcome a program's likelihood is a density."""

from __future__ import annotations

import pytest

from bread.backends.info import UNKNOWN
from tests.support.direct_models import combined, direct_tests
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import analyse_text

DATA = "data { int N; vector<lower=0>[N] y; vector[N] x; }"
LEVEL = 0.001


def functions(statements: str, more: str = "", own: str = "", observed: tuple[str, ...] = ("y",)) -> dict[str, str]:
    text = f"{own}\n{DATA}\n{more}\nparameters {{ real m; }}\nmodel {{ m ~ normal(0, 1); {statements} }}"
    return analyse_text(text, observed=list(observed)).outcome_functions


@pytest.mark.parametrize(
    ("statements", "function"),
    [
        ("y ~ normal(m, 1);", None),
        ("y - m ~ normal(0, 1);", None),
        ("y / 2 ~ normal(m, 1);", None),
        ("for (n in 2:N) y[n] ~ normal(m * y[n - 1], 1);", None),
        ("for (n in 1:N) target += log_mix(0.5, normal_lpdf(y[n] | m, 1), normal_lpdf(y[n] | 0, 2));", None),
        ("y ~ multi_normal_prec(rep_vector(m, N), identity_matrix(N));", None),  # of which Stan has no generator
        ("log(y) ~ normal(m, 1);", "log"),
        ("log(y) - m ~ normal(0, 1);", "log"),
        ("2 * log10(y) ~ normal(m, 1);", "log"),
        ("for (n in 1:N) log(3 * y[n]) ~ normal(m, 1);", "log"),
        ("for (n in 1:N) target += normal_lpdf(log(y[n]) | m, 1);", "log"),
        ("logit(y) ~ normal(m, 1);", "logit"),
        ("for (n in 1:N) logit(y[n] / 10) ~ normal(m, 1);", UNKNOWN),
        ("log(y + 1) ~ normal(m, 1);", UNKNOWN),
        ("log(log(y)) ~ normal(m, 1);", UNKNOWN),
        ("y[1] ~ normal(m, 1); log(y[2:N]) ~ normal(m, 1);", UNKNOWN),
        ("sqrt(y) ~ normal(m, 1);", UNKNOWN),
        ("square(y) ~ normal(m, 1);", UNKNOWN),
        ("target += -0.5 * sum(square(log(y) - m));", UNKNOWN),
        ("y ~ normal(m, 1); target += sum(y);", UNKNOWN),
        ("for (n in 1:N) if (y[n] > 1) y[n] ~ normal(m, 1);", UNKNOWN),
        ("for (n in 1:N) target += 2 * normal_lpdf(y[n] | m, 1);", UNKNOWN),
    ],
)
def test_functions(statements: str, function: str | None) -> None:
    assert functions(statements) == ({} if function is None else {"y": function})


def test_functions_under_other_names() -> None:
    known = "transformed data { vector[N] z = log(y); }"
    filled = "transformed data { vector[N] z; for (n in 1:N) z[n] = log(y[n]); }"
    standard = "transformed data { vector[N] z = (y - mean(y)) / sd(y); }"
    found = [functions("z ~ normal(m, 1);", more) for more in (known, filled, standard)]
    assert found == [{"y": "log"}, {"y": "log"}, {"y": UNKNOWN}]


def test_another_outcome_in_the_derivative_and_an_own_density() -> None:
    both = "x ~ normal(m, 1); for (n in 1:N) {} ~ normal(m, 1);"
    assert functions(both.format("y[n] / x[n]"), observed=("y", "x")) == {"x": UNKNOWN}
    assert functions(both.format("y[n] - x[n]"), observed=("y", "x")) == {}
    own = "functions { real law_lpdf(real v, real m) { return -0.5 * square(log(v) - m); } }"
    assert functions("for (n in 1:N) y[n] ~ law(m);", own=own) == {"y": UNKNOWN}


@pytest.mark.stan
@pytest.mark.statistical
def test_a_logarithm_of_data_is_no_bug() -> None:
    text = """data { int N; vector<lower=0>[N] y; }
    transformed data { vector[N] z = log(y); }
    parameters { real mu; real<lower=0> sigma; }
    model { mu ~ normal(0, 1); sigma ~ gamma(4, 4); z ~ normal(mu, sigma); }"""
    model = opened(text, {"N": 4, "y": [0.5, 1.4, 3.0, 0.8]}, observed="y")
    for seed in (1, 2, 3):
        found = direct_tests(model, seed)
        assert combined(found) > LEVEL
        assert "outcome score" in [test.name for test in found.tests]
