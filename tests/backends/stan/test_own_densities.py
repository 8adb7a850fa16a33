"""Densities that a program writes as formulas: drawn by inverting their integrals, which must be one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.backends.stan.model import StanModel
from bread.errors import BreadError
from tests.support.annealed_pools import tuned_kernel
from tests.support.conformance import check_evidence, check_forward_reverse_identities, check_simulate_is_exact
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import analyse_text

pytestmark = pytest.mark.stan

# A law on all numbers, with a generator that is wrong; one with a kink at its mode; brms's inverse Gaussian; a law
# between bounds; a law with a tail so heavy that it has no mean; one far from 0 and narrow; and one of a parameter.
PROGRAM = """functions {
  real s_shaped_lpdf(real y, real mu, real s) {
    return -log(s) - (y - mu) / s - 2 * log1p_exp(-(y - mu) / s);
  }
  real s_shaped_rng(real mu, real s) {
    return normal_rng(mu, s);
  }
  real asym_laplace_lpdf(real y, real mu, real sigma, real quantile) {
    real tail = y < mu ? 1 - quantile : -quantile;
    return log(quantile) + log1m(quantile) - log(sigma) + tail * (y - mu) / sigma;
  }
  real inv_gaussian_lpdf(real y, real mu, real shape) {
    return 0.5 * log(shape / (2 * pi())) - 1.5 * log(y) - 0.5 * shape * square((y - mu) / (mu * sqrt(y)));
  }
  real kumaraswamy_lpdf(real y, vector ab) {
    return log(ab[1]) + log(ab[2]) + (ab[1] - 1) * log(y) + (ab[2] - 1) * log1m(y ^ ab[1]);
  }
  real heavy_lpdf(real y, real a) {
    return log(a) - (a + 1) * log1p(y);
  }
  real narrow_lpdf(real y, data real at) {
    return -0.5 * log(2 * pi()) - log(1e-3) - 0.5 * square((y - at) / 1e-3);
  }
  real own_prior_lpdf(real x) {
    return -0.5 * log(2 * pi()) - log(0.6) - 0.5 * square((x - 0.2) / 0.6);
  }
}
data {
  int<lower=1> N;
  vector[N] a;
  vector[N] b;
  vector<lower=0>[N] c;
  vector<lower=0, upper=1>[N] d;
  array[N] real<lower=0> e;
  real f;
}
parameters {
  real mu;
}
model {
  mu ~ own_prior();
  for (n in 1 : N) {
    a[n] ~ s_shaped(mu, 0.7);
    target += asym_laplace_lpdf(b[n] | mu, 0.5, 0.05);
    c[n] ~ inv_gaussian(exp(mu), 2);
    d[n] ~ kumaraswamy([exp(mu), 1.5]');
    e[n] ~ heavy(0.5);
  }
  f ~ narrow(1000);
}
"""
DATA = {
    "N": 2, "a": [0.9, -0.4], "b": [0.1, 2.0], "c": [1.4, 0.6], "d": [0.3, 0.9], "e": [3.0, 0.2], "f": 1000.0004,
}  # fmt: skip
OUTCOMES = ["a", "b", "c", "d", "e", "f"]
LEVEL = 1e-4  # of each test of a law


def asym_laplace(y: Any, mu: Any) -> Any:
    slope = np.where(np.less(y, mu), 0.95, -0.05)
    return np.log(0.05 * 0.95 / 0.5) + slope * (y - mu) / 0.5


def asym_laplace_cdf(y: Any, mu: float) -> Any:
    below = 0.05 * np.exp(0.95 * np.minimum(y - mu, 0) / 0.5)
    return np.where(y < mu, below, 1 - 0.95 * np.exp(-0.05 * np.maximum(y - mu, 0) / 0.5))


FINE = np.linspace(-8, 8, 20_001)  # in standard deviations: the kinks of one law want many points


def log_evidence(data: Any) -> float:
    mu = 0.2 + 0.6 * FINE[:, None]
    a, b, c, d, e, f = (np.asarray(data[name]) for name in OUTCOMES)
    shape = np.exp(mu)
    terms = (
        stats.logistic.logpdf(a, mu, 0.7), asym_laplace(b, mu), stats.invgauss.logpdf(c, shape / 2, scale=2),
        np.log(shape) + np.log(1.5) + (shape - 1) * np.log(d) + 0.5 * np.log1p(-(d**shape)),
    )  # fmt: skip
    total = np.sum([term.sum(axis=1) for term in terms], axis=0) + stats.norm.logpdf(FINE)
    most = total.max()
    integral = np.exp(total - most).sum() * (FINE[1] - FINE[0])
    free = stats.lomax.logpdf(e, 0.5).sum() + stats.norm.logpdf(f, 1000, 1e-3)
    return float(np.log(integral) + most + free)


@functools.cache
def model() -> StanModel:
    return opened(PROGRAM, DATA, observed=OUTCOMES)


@pytest.mark.slow
@pytest.mark.statistical
def test_simulations_follow_every_law() -> None:
    """Mu held at 0.4: Kolmogorov-Smirnov at 1e-4 with 3000 draws, and the law of a wrong generator is rejected."""
    check_simulate_is_exact(model())
    notes = "\n".join(model().info.identity.notes)
    assert "s_shaped_lpdf is drawn from by inverting its integral, which must be 1; s_shaped_rng is not used." in notes
    data = model().simulate(3000, fixed={"mu": np.array(0.4)}, seed=SeedSequence(5)).data
    shape = np.exp(0.4)
    for name, cdf in (
        ("a", stats.logistic(0.4, 0.7).cdf),
        ("b", lambda y: asym_laplace_cdf(y, 0.4)),
        ("c", stats.invgauss(shape / 2, scale=2).cdf),
        ("d", lambda y: 1 - (1 - y**shape) ** 1.5),
        ("e", stats.lomax(0.5).cdf),
    ):
        for n in range(2):
            assert stats.kstest(data[name][:, n], cdf).pvalue > LEVEL, name
    assert stats.kstest(data["f"], stats.norm(1000, 1e-3).cdf).pvalue > LEVEL
    # negative controls: what the program's own generator would have drawn, and a neighbouring law
    assert stats.kstest(data["a"][:, 0], stats.norm(0.4, 0.7).cdf).pvalue < LEVEL
    assert stats.kstest(data["e"][:, 0], stats.lomax(0.6).cdf).pvalue < LEVEL
    mu = model().simulate(3000, fixed=None, seed=SeedSequence(6)).parameters["mu"]
    assert stats.kstest(mu, stats.norm(0.2, 0.6).cdf).pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.statistical
def test_evidence_is_exact() -> None:
    kernel = tuned_kernel(model())
    check_evidence(model(), kernel, log_evidence=log_evidence, n_temperatures=64)
    betas = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
    check_forward_reverse_identities(model(), kernel, betas, log_evidence=log_evidence, n_simulations=300)


ONE = """functions {{
  real law_lpdf(real y, real p) {{
    {body}
  }}
}}
data {{
  real{bound} y;
}}
parameters {{
  real<lower=0, upper=1> p;
}}
model {{
  p ~ beta(2, 3);
  y ~ law(p);
}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "bound", "message"),
    [
        ("return -0.5 * square(y - p);", "", "law_lpdf integrates to 2.50"),
        ("return log(p) - p * y;", "<lower=1>", "law_lpdf integrates to 0"),
        ("return log(0.5) + log_sum_exp(-0.919 - 0.5 * square(y), -0.919 - 0.5 * square(y - 90));", "",
         "finds the mass of one that has a single mode"),
    ],
    ids=["not normalised", "cut off by a bound", "two modes far apart"],
)  # fmt: skip
def test_densities_whose_integral_is_not_one_are_refused(body: str, bound: str, message: str) -> None:
    with pytest.raises(BreadError, match=message):
        opened(ONE.format(body=body, bound=bound), {"y": 2}, observed="y")


LAW = "functions { real foo_lpdf(TYPE y, real m) { return -0.5 * SQUARE - 0.919; } }"
REST = "data { int N; vector[N] y; } parameters { real<lower=-9> mu; BOUND } model { mu ~ normal(0, 1); STATEMENT }"


@pytest.mark.parametrize(
    ("type_", "bound", "statement", "reason"),
    [
        ("vector", "", "y[1 : 2] ~ foo(mu);", "is the program's own and of several values at once"),
        ("real", "", "for (n in 1 : N) y[n] + mu ~ foo(mu);", "several values, or a computed one"),
        ("real", "", "for (n in 1 : N) y[n] ~ foo(mu) T[0, ];", "truncated"),
        (
            "real",
            "real<lower=mu> x;",
            "x ~ foo(mu); y ~ normal(x, 1);",
            "bounds that no parameter and no outcome enters",
        ),
        (
            "real",
            "",
            "for (n in 1 : N) target += log_mix(0.3, foo_lpdf(y[n] | mu), normal_lpdf(y[n] | mu, 2));",
            "no density",
        ),
        ("real", "ordered[2] x;", "for (n in 1 : 2) x[n] ~ foo(mu); y ~ normal(x[1], 1);", "that has bounds alone"),
    ],
)
def test_what_is_refused(type_: str, bound: str, statement: str, reason: str) -> None:
    square = "dot_self(y - m)" if type_ == "vector" else "square(y - m)"
    law = LAW.replace("TYPE", type_).replace("SQUARE", square)
    if "T[" in statement:
        law = law.replace(
            "} }", "} " + "".join(f"real foo_{one}(real y, real m) {{ return 0; }} " for one in ("lcdf", "lccdf")) + "}"
        )
    program = analyse_text(law + REST.replace("BOUND", bound).replace("STATEMENT", statement), ["y"])
    assert program.simulator_refusal is not None and reason in str(program.simulator_refusal)


def test_a_density_of_one_number_needs_no_generator() -> None:
    law = LAW.replace("TYPE", "real").replace("SQUARE", "square(y - m)")
    program = analyse_text(law + REST.replace("BOUND", "").replace("STATEMENT", "for (n in 1 : N) y[n] ~ foo(mu);"))
    assert program.is_automatic and program.observed == ("y",)
    assert "foo_lpdf is drawn from by inverting its integral, which must be 1." in program.notes
