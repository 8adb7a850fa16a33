"""Rows gathered from several outcomes (brms `set_rescor(TRUE)`): their law, exact evidence, and what is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import special, stats

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.source import Source
from bread.errors import BreadError
from tests.support.conformance import check_evidence, check_simulate_is_exact, tuned_kernel
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import SUPPORTED, analysed, stanc
from tests.support.stan_mutants import Mutant, Original, interpreter, is_constant, simulate

CASE = next(case for case in SUPPORTED if case.name == "gathered_rows")
GATHERED = "transpose([Y_a[n], Y_b[n]])"
STATEMENT = "target += multi_normal_cholesky_lpdf(Y | Mu, LSigma);"

# As brms 2.22 writes two intercepts, with known standard deviations.
BRMS = """data {
  int<lower=1> N;  // total number of observations
  int<lower=1> N_a;
  vector[N_a] Y_a;  // response variable
  int<lower=1> N_b;
  vector[N_b] Y_b;
  int<lower=1> nresp;  // number of responses
  vector<lower=0>[nresp] sigma;
  int prior_only;
}
transformed data {
  array[N] vector[nresp] Y;  // response array
  for (n in 1:N) {
    Y[n] = transpose([Y_a[n], Y_b[n]]);
  }
}
parameters {
  real Intercept_a;
  real Intercept_b;
  cholesky_factor_corr[nresp] Lrescor;
}
transformed parameters {
  real lprior = 0;
  lprior += normal_lpdf(Intercept_a | 0.3, 1);
  lprior += normal_lpdf(Intercept_b | -0.4, 2);
  lprior += lkj_corr_cholesky_lpdf(Lrescor | 1);
}
model {
  if (!prior_only) {
    vector[N_a] mu_a = rep_vector(0.0, N_a);
    vector[N_b] mu_b = rep_vector(0.0, N_b);
    array[N] vector[nresp] Mu;
    matrix[nresp, nresp] LSigma = diag_pre_multiply(sigma, Lrescor);
    mu_a += Intercept_a;
    mu_b += Intercept_b;
    for (n in 1:N) {
      Mu[n] = transpose([mu_a[n], mu_b[n]]);
    }
    target += multi_normal_cholesky_lpdf(Y | Mu, LSigma);
  }
  target += lprior;
}
"""
N = 20
SIGMA = np.array([0.8, 1.5])
BRMS_DATA: dict[str, Any] = {
    "N": N, "N_a": N, "Y_a": np.linspace(-1, 1, N), "N_b": N, "Y_b": np.cos(np.arange(N)), "nresp": 2, "sigma": SIGMA,
    "prior_only": 0,
}  # fmt: skip

# Three outcomes, gathered in an order that is not that of their means.
THREE = """data {
  int N;
  vector[N] a;
  array[N] real b;
  row_vector[N] c;
  cov_matrix[3] S;
}
transformed data {
  array[N] vector[3] Y;
  for (i in 1 : N) Y[i] = [c[i], a[i], b[i]]';
}
parameters {
  vector[3] mu;
}
model {
  mu ~ normal([0.5, -1, 2]', 1);
  Y ~ multi_normal(mu, S);
}
"""
S = np.array([[1.0, 0.7, -0.6], [0.7, 2.0, 0.3], [-0.6, 0.3, 1.5]])
THREE_DATA: dict[str, Any] = {
    "N": 6, "a": np.linspace(-1, 1, 6), "b": np.cos(np.arange(6)), "c": np.sin(np.arange(6)), "S": S,
}  # fmt: skip


def read(text: str, data: dict[str, Any] | None = None, observed: list[str] | None = None) -> Program:
    return analyse(Source.from_text(text), observed=observed, data=data, stanc=stanc)


def brms_evidence(data: Any, rho: np.ndarray | None = None, weights: np.ndarray | None = None) -> float:
    """Integrate normal evidences over the correlation, uniform under LKJ(1) of two dimensions."""
    if rho is None or weights is None:
        rho, weights = special.roots_legendre(200)
    rows = np.stack([data["Y_a"], data["Y_b"]], axis=-1) - [0.3, -0.4]
    prior = np.kron(np.ones((N, N)), np.diag([1.0, 4.0]))
    values = []
    for r in rho:
        one = np.outer(SIGMA, SIGMA) * np.array([[1.0, r], [r, 1.0]])
        covariance = prior + np.kron(np.eye(N), one)
        values.append(stats.multivariate_normal(np.zeros(2 * N), covariance).logpdf(rows.ravel()))
    return float(special.logsumexp(values, b=weights / weights.sum()))


def three_evidence(data: Any, names: str = "cab") -> float:
    n = THREE_DATA["N"]
    rows = np.stack([np.asarray(data[name]) for name in names], axis=-1) - [0.5, -1, 2]
    covariance = np.kron(np.ones((n, n)), np.eye(3)) + np.kron(np.eye(n), S)
    return float(stats.multivariate_normal(np.zeros(3 * n), covariance).logpdf(rows.ravel()))


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.statistical
def test_evidence_under_residual_correlations_is_exact() -> None:
    """Evidence within 3 standard errors, residual products within 4 of the correlation, outcomes swapped in neither."""
    model = opened(BRMS, BRMS_DATA)
    check_simulate_is_exact(model)
    kernel = tuned_kernel(model)
    check_evidence(model, kernel, log_evidence=brms_evidence)
    with pytest.raises(AssertionError, match="wrong side"):  # negative control: some 18 nats less, on average
        check_evidence(model, kernel, log_evidence=lambda d: brms_evidence({"Y_a": d["Y_b"], "Y_b": d["Y_a"]}))
    joint = model.simulate(1000, fixed=None, seed=SeedSequence(5))
    rho = joint.parameters["Lrescor"][:, 1, 0]
    errors = [
        (np.asarray(joint.data[f"Y_{name}"]) - joint.parameters[f"Intercept_{name}"][:, None]) / SIGMA[k]
        for k, name in enumerate("ab")
    ]
    for other, fits in ((errors[1], True), (np.roll(errors[1], 1, axis=0), False)):  # control: correlation ignored
        excess = np.sign(rho) * ((errors[0] * other).mean(axis=1) - rho)
        assert (abs(excess.mean()) < 4 * excess.std(ddof=1) / np.sqrt(len(excess))) == fits


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.statistical
def test_rows_follow_the_order_in_which_they_are_gathered() -> None:
    model = opened(THREE, THREE_DATA)
    check_simulate_is_exact(model)
    kernel = tuned_kernel(model)
    check_evidence(model, kernel, log_evidence=three_evidence)
    with pytest.raises(AssertionError, match="wrong side"):  # negative control: the order of the declarations
        check_evidence(model, kernel, log_evidence=lambda data: three_evidence(data, "abc"))


def test_the_simulator_has_the_density_of_the_rows() -> None:
    """By densities of SciPy alone; swapped or uncorrelated outcomes are told by the same comparison."""
    program = analysed("gathered_rows")
    draws, _ = simulate(program, interpreter(program, CASE.data), 12, default_rng(3))
    written = interpreter(read(CASE.source.text.replace(STATEMENT, f"{STATEMENT} // as it stands")), CASE.data)
    assert len(draws) == 12

    def differences(change: Any) -> np.ndarray:
        found = []
        for one in draws:
            values = change(one.values)
            rows = np.stack([values["Y_a"], values["Y_b"]], axis=-1)
            mean = np.stack([values["Intercept_a"] + values["slope"] * np.array(CASE.data["x"]),
                             np.full(4, values["Intercept_b"])], axis=-1)  # fmt: skip
            factor = np.diag([values["sigma_a"], values["sigma_b"]]) @ values["Lrescor"]
            law = stats.multivariate_normal(np.zeros(2), factor @ factor.T)
            found.append([written.log_density(one.values)[0] - one.own[0], law.logpdf(rows - mean).sum() - one.own[1]])
        return np.array(found)

    assert is_constant(differences(lambda values: values), draws)
    assert not is_constant(differences(lambda v: {**v, "Y_a": v["Y_b"], "Y_b": v["Y_a"]}), draws)
    assert not is_constant(differences(lambda v: {**v, "Lrescor": np.eye(2)}), draws)


@functools.cache
def original() -> Original:
    return Original(CASE, analysed("gathered_rows"), 12)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (GATHERED, "transpose([Y_b[n], Y_a[n]])"),
        pytest.param("transpose([mu_a[n], mu_b[n]])", "transpose([mu_b[n], mu_a[n]])", marks=pytest.mark.slow),
        pytest.param("transpose([sigma_a, sigma_b])", "transpose([sigma_b, sigma_a])", marks=pytest.mark.slow),
        pytest.param(
            "diag_pre_multiply(sigma, Lrescor)", "diag_pre_multiply(square(sigma), Lrescor)", marks=pytest.mark.slow
        ),
        pytest.param(STATEMENT, "Y ~ multi_normal(Mu, LSigma * LSigma' + diag_matrix(sigma));", marks=pytest.mark.slow),
        pytest.param("mu_b += Intercept_b;", "mu_b += Intercept_b + 0.5 * x;", marks=pytest.mark.slow),
    ],
)
def test_another_law_is_simulated_by_its_own(old: str, new: str) -> None:
    assert old in CASE.source.text
    verdict = original().verdict(Mutant("rows", CASE.source.text.replace(old, new)), 12)
    assert verdict is not None and verdict.outcome == "simulated by its own law"
    assert verdict.same_law is False and verdict.is_told


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (GATHERED, "transpose([Y_a[n], 2 * Y_b[n]])", "form that bread does not follow"),
        (GATHERED, "transpose([Y_a[n], Y_b[N + 1 - n]])", "form that bread does not follow"),
        (GATHERED, "transpose([Y_a[n] + Y_b[n], Y_b[n]])", "form that bread does not follow"),
        ("  for (n in 1:N) {\n    Y[n]", "  for (n in 2:N) {\n    Y[n]", "form that bread does not follow"),
        ("  for (n in 1:N) {\n    Y[n]", "  for (n in 1:N) {\n    if (n > 2) Y[n]", "form that bread does not follow"),
        (STATEMENT, "target += multi_normal_cholesky_lpdf(Y | rep_array([0.1, 0.2]', N), LSigma);", "not a variable"),
        (STATEMENT, "target += multi_student_t_lpdf(Y | 4, Mu, LSigma * LSigma');", "'multi_student_t'"),
        ("mu_a += Intercept_a", "mu_a += Y_b + Intercept_a", "depend on each other"),
        ("mu_a += Intercept_a", "mu_a += Y[1][2] + Intercept_a", "depend on each other"),
    ],
)
def test_what_is_not_proven_is_refused_with_its_reason(old: str, new: str, match: str) -> None:
    assert old in CASE.source.text
    text = CASE.source.text.replace(old, new, 1)
    try:
        program = read(text, CASE.data)
    except BreadError as error:
        assert match in str(error)
    else:
        assert not program.is_automatic and match in str(program.simulator_refusal or program.split_refusal)


def test_one_outcome_of_two_is_not_enough() -> None:
    assert not read(CASE.source.text, CASE.data, ["Y_a"]).is_automatic


def test_brms_and_three_outcomes_are_read_and_lines_stay() -> None:
    for text, data, names in ((BRMS, BRMS_DATA, ("Y_a", "Y_b")), (THREE, THREE_DATA, ("a", "b", "c"))):
        program = read(text, data)
        assert program.is_automatic and program.observed == names
        assert program.source.text.count("\n") == text.count("\n") and program.written.text == text
