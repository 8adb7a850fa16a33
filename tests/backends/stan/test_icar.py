"""Intrinsic autoregressions with a soft sum to zero: the normal law that they are, exact evidence, what is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.backends.stan.model import StanModel
from bread.errors import BreadError
from tests.support.conformance import check_evidence, check_simulate_is_exact, tuned_kernel
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import analyse_text

PROGRAM = """data {
  int<lower=0> N;
  int<lower=0> E;
  array[E] int<lower=1, upper=N> node1;
  array[E] int<lower=1, upper=N> node2;
  vector[N] y;
}
parameters {
  real alpha;
  vector[N] phi;
}
model {
  y ~ normal(alpha + 1.5 * phi, 0.8);
  alpha ~ normal(0.3, 1);
  target += -0.5 * dot_self(phi[node1] - phi[node2]);
  sum(phi) ~ normal(0, 0.1 * N);
}
"""
# A path of four with a fifth at its second node, and one edge twice, which counts twice.
DATA: dict[str, Any] = {
    "N": 5,
    "E": 5,
    "node1": [1, 2, 3, 2, 3],
    "node2": [2, 3, 4, 5, 4],
    "y": [0.4, 1.9, 1.1, -0.6, 0],
}


def precision(n_edges: int = 5) -> np.ndarray:
    ends = np.zeros((n_edges, 5))
    rows = np.arange(n_edges)
    ends[rows, np.subtract(DATA["node1"][:n_edges], 1)] = 1
    ends[rows, np.subtract(DATA["node2"][:n_edges], 1)] = -1
    return ends.T @ ends + np.ones((5, 5)) / (0.1 * 5) ** 2


def log_evidence(data: Any, n_edges: int = 5) -> float:
    covariance = 1.5**2 * np.linalg.inv(precision(n_edges)) + 1.0 + 0.8**2 * np.eye(5)
    return float(stats.multivariate_normal(np.full(5, 0.3), covariance).logpdf(data["y"]))


@functools.cache
def model() -> StanModel:
    return opened(PROGRAM, DATA)


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.statistical
def test_draws_and_evidence_are_exact() -> None:
    """Draws: chi-square of their quadratic form, Kolmogorov-Smirnov at 1e-4; evidence: 3 standard errors."""
    check_simulate_is_exact(model())
    phi = model().simulate(3000, fixed=None, seed=SeedSequence(5)).parameters["phi"]
    for matrix, fits in ((precision(), True), (precision(4), False)):  # negative control: one edge less
        form = np.einsum("ni,ij,nj->n", phi, matrix, phi)
        assert (stats.kstest(form, stats.chi2(5).cdf).pvalue > 1e-4) == fits
    # what both statements integrate to: the normal law's own constant, and that of the sum's density
    own = 2.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision())[1] + stats.norm.logpdf(0, 0, 0.5)
    assert model().log_integral == pytest.approx(own, abs=1e-8)
    kernel = tuned_kernel(model())
    check_evidence(model(), kernel, log_evidence=log_evidence)
    with pytest.raises(AssertionError, match="wrong side"):  # negative control: the prior as it is stated
        check_evidence(model(), kernel, log_evidence=lambda data: log_evidence(data) + own)


@pytest.mark.slow
@pytest.mark.stan
def test_a_graph_in_two_parts_is_refused() -> None:
    with pytest.raises(BreadError, match="graph of an ICAR prior is not connected"):
        opened(PROGRAM, {**DATA, "node2": [2, 3, 4, 1, 4]})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("target += -0.5 *", "target += -0.7 *"),
        ("target += -0.5 *", "target += 0.5 *"),
        ("phi[node1] - phi[node2]", "phi[node1] + phi[node2]"),
        ("phi[node1] - phi[node2]", "phi[node1] - y[node2]"),
        ("sum(phi) ~ normal(0,", "sum(phi) ~ normal(1,"),
        ("sum(phi) ~ normal(0,", "sum(phi) ~ cauchy(0,"),
        ("normal(0, 0.1 * N);", "normal(0, exp(alpha));"),
        ("sum(phi) ~ normal(0, 0.1 * N);", ""),
        ("sum(phi) ~ normal(0, 0.1 * N);", "sum(phi) ~ normal(0, 0.1); phi ~ normal(0, 1);"),
        ("vector[N] phi;", "vector<lower=0>[N] phi;"),
    ],
)
def test_what_is_another_law_is_refused(old: str, new: str) -> None:
    assert old in PROGRAM
    assert not analyse_text(PROGRAM.replace(old, new), ["y"]).is_automatic


def test_both_forms_of_the_statements_are_read_and_lines_stay() -> None:
    written = (
        PROGRAM.replace("sum(phi) ~ normal(0, 0.1 * N);", "target += normal_lpdf(sum(phi) | 0, 0.1 * N);"),
        "functions {\n}\n" + PROGRAM.replace("parameters {", "transformed data {\n  int M = N;\n}\nparameters {", 1),
        PROGRAM,
    )
    for text in written:
        program = analyse_text(text, ["y"])
        assert program.is_automatic and program.tempered.count("\n") >= text.count("\n")
        assert program.source.text.count("\n") == text.count("\n") and program.written.text == text
