"""What is held by default where no parameter depends on another: all but standardised effects."""

from __future__ import annotations

import pytest

from tests.support.stan_corpus_table import analyse_text

DATA = "data { int N; int K; matrix[N, K] X; vector[N] y; }"
HALF = "real<lower=0> tau;"
TAU = "tau ~ exponential(1);"
BRMS = (
    "matrix scale_r_cor(matrix z, vector SD, matrix L) { return transpose(diag_pre_multiply(SD, L) * z); }"
    " vector shifted(vector z, real tau) { return z + tau; }"
)

Z = HALF + "vector[N] z;"
STANDARD = TAU + "z ~ normal(0, 1); "
CASES = {
    "non-centred": (
        HALF + "real mu; vector[N] z;",
        TAU + "mu ~ normal(0, 5); z ~ std_normal(); y ~ normal(mu + tau * z, 1);",
        "tau mu",
    ),
    "through an index, in a loop": (Z, STANDARD + "for (n in 1:N) y[n] ~ normal(z[n] * tau, 1);", "tau"),
    "law of each element": (Z, TAU + "for (n in 1:N) z[n] ~ normal(0, 1); y ~ normal(z * tau, 1);", "tau"),
    "target +=": (
        Z,
        TAU + "target += student_t_lpdf(z | 4, 0, 1); y ~ normal((z)' .* rep_row_vector(tau, N), 1);",
        "tau",
    ),
    "constant factor first": (HALF + "vector[K] z;", STANDARD + "y ~ normal(tau * (X * z), 1);", "tau"),
    "of another mean": (Z, TAU + "z ~ normal(1, 1); y ~ normal(tau * z, 1);", "tau z"),
    "added": (Z, STANDARD + "y ~ normal(tau + z, 1);", "tau z"),
    "a scale of its own": (Z, STANDARD + "y ~ normal(tau * z, exp(z[1]));", "tau z"),
    "regression": (HALF + "vector[K] b;", TAU + "b ~ normal(0, 1); y ~ normal(X * b, tau);", "tau b"),
    "denominator": (Z, STANDARD + "y ~ normal(tau ./ z, 1);", "tau z"),
    "brms": (
        "vector<lower=0>[2] sd; cholesky_factor_corr[2] L; matrix[2, N] z;",
        "sd ~ exponential(1); L ~ lkj_corr_cholesky(1); to_vector(z) ~ std_normal(); "
        "y ~ normal(scale_r_cor(z, sd, L)[:, 1], 1);",
        "sd L",
    ),
    "a function that adds": (Z, STANDARD + "y ~ normal(shifted(z, tau), 1);", "tau z"),
    "Gaussian process": (
        Z,
        STANDARD + "y ~ normal(cholesky_decompose(add_diag(rep_matrix(0, N, N), tau)) * z, 1);",
        "tau",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_held_by_default(name: str) -> None:
    parameters, statements, held = CASES[name]
    program = analyse_text(
        f"functions {{ {BRMS} }} {DATA} parameters {{ {parameters} }} model {{ {statements} }}", observed=["y"]
    )
    assert program.hyperparameters == tuple(held.split())
