"""Laws that a program writes itself: its own mass functions, and containers of densities."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.backends.stan.language.refusals import RefusedError
from bread.backends.stan.model import StanModel
from bread.errors import BreadError
from tests.support.annealed_pools import tuned_kernel
from tests.support.conformance import check_evidence, check_forward_reverse_identities, check_simulate_is_exact
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import analyse_text

pytestmark = pytest.mark.stan

# Families as brms writes them, and log likelihoods that are collected, then added up.
PROGRAM = """functions {
  real hurdle_poisson_log_lpmf(int y, real eta, real hu) {
    if (y == 0) {
      return bernoulli_lpmf(1 | hu);
    } else {
      return bernoulli_lpmf(0 | hu) + poisson_log_lpmf(y | eta) - log1m_exp(-exp(eta));
    }
  }
  real zero_inflated_poisson_log_lpmf(int y, real eta, real zi) {
    if (y == 0) {
      return log_sum_exp(bernoulli_lpmf(1 | zi), bernoulli_lpmf(0 | zi) + poisson_log_lpmf(0 | eta));
    } else {
      return bernoulli_lpmf(0 | zi) + poisson_log_lpmf(y | eta);
    }
  }
  real cumulative_logit_lpmf(int y, real mu, real disc, vector thres) {
    int nthres = num_elements(thres);
    if (y == 1) {
      return log_inv_logit(disc * (thres[1] - mu));
    } else if (y == nthres + 1) {
      return log1m_inv_logit(disc * (thres[nthres] - mu));
    } else {
      return log_inv_logit_diff(disc * (thres[y] - mu), disc * (thres[y - 1] - mu));
    }
  }
}
data {
  int<lower=1> N;
  array[N] int h;
  array[N] int z;
  array[N] int c;
  vector[N] y;
  vector[N] w;
  vector[N] v;
  vector[2] thres;
}
parameters {
  real mu;
}
transformed parameters {
  vector[N] log_lik;
  for (n in 1 : N) {
    log_lik[n] = normal_lpdf(y[n] | mu, 1.5);
  }
}
model {
  array[N] real more;
  for (n in 1 : 1) more[n] = normal_lpdf(w[n] | 0.5 * mu, 2);
  for (n in 2 : N) more[n] = hurdle_poisson_log_lpmf(h[n] | mu, 0.4);
  mu ~ normal(0.3, 0.8);
  target += hurdle_poisson_log_lpmf(h[1] | mu, 0.4);
  w[2 : N] ~ normal(0.5 * mu, 2);
  for (n in 1 : N) {
    target += zero_inflated_poisson_log_lpmf(z[n] | mu, 0.3);
    c[n] ~ cumulative_logit(mu, 1.3, thres);
    v[n] ~ double_exponential(mu, 0.7);
  }
  target += sum(log_lik);
  target += more;
}
"""
THRES = np.array([-0.6, 0.9])
DATA = {
    "N": 3, "h": [0, 2, 1], "z": [1, 0, 3], "c": [3, 1, 2], "y": [0.9, -0.3, 1.2], "w": [0.1, 2.0, -1.0],
    "v": [0.4, 1.0, -0.2], "thres": THRES.tolist(),
}  # fmt: skip
OUTCOMES = ["h", "z", "c", "y", "w", "v"]


def hurdle(k: Any, rate: Any) -> Any:
    positive = 0.6 * stats.poisson.pmf(k, rate) / -np.expm1(-rate)
    return np.where(np.equal(k, 0), 0.4, positive)


def inflated(k: Any, rate: Any) -> Any:
    return 0.7 * stats.poisson.pmf(k, rate) + 0.3 * np.equal(k, 0)


def category(k: Any, mu: Any) -> Any:
    """Probabilities of the categories ``k``, in the last axis; one row for each of ``mu``."""
    cut = 1 / (1 + np.exp(-1.3 * (THRES - np.asarray(mu)[..., None])))
    below = np.concatenate([np.zeros((*cut.shape[:-1], 1)), cut, np.ones((*cut.shape[:-1], 1))], axis=-1)
    return np.diff(below)[..., np.asarray(k, int) - 1]


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)  # the integral over the prior, to 1e-9 nats


def log_evidence(data: Any) -> float:
    mu = 0.3 + 0.8 * NODES[:, None]
    h, z, c, y, w, v = (np.asarray(data[name]) for name in OUTCOMES)
    densities = (
        hurdle(h, np.exp(mu)), inflated(z, np.exp(mu)), category(c, mu[:, 0]), stats.norm.pdf(y, mu, 1.5),
        stats.norm.pdf(w, 0.5 * mu, 2), stats.laplace.pdf(v, mu, 0.7),
    )  # fmt: skip
    likelihood = np.prod([density.prod(axis=1) for density in densities], axis=0)
    return float(np.log(likelihood @ WEIGHTS / WEIGHTS.sum()))


@functools.cache
def model() -> StanModel:
    return opened(PROGRAM, DATA, observed=OUTCOMES)


@pytest.mark.slow
@pytest.mark.statistical
def test_simulations_follow_every_law() -> None:
    """Mu held at 0.4; each law by chi-square or Kolmogorov-Smirnov at 1e-4, and another law is rejected."""
    check_simulate_is_exact(model())
    data = model().simulate(3000, fixed={"mu": np.array(0.4)}, seed=SeedSequence(5)).data
    rate = np.exp(0.4)
    for name, law, wrong in (
        ("h", lambda k: hurdle(k, rate), lambda k: inflated(k, rate)),
        ("z", lambda k: inflated(k, rate), lambda k: hurdle(k, rate)),
    ):
        counts = np.bincount(np.minimum(data[name].ravel(), 5), minlength=6)
        for probability, fits in ((law, True), (wrong, False)):
            expected = np.array([probability(k) for k in range(5)])
            expected = np.append(expected, 1 - expected.sum()) * counts.sum()
            assert (stats.chisquare(counts, expected).pvalue > 1e-4) == fits, name
    counts = np.bincount(data["c"].ravel(), minlength=4)[1:]
    assert stats.chisquare(counts, counts.sum() * category([1, 2, 3], 0.4)).pvalue > 1e-4
    assert stats.chisquare(counts, counts.sum() * category([3, 2, 1], 0.4)).pvalue < 1e-4
    assert stats.kstest(data["v"][:, 0], stats.laplace(0.4, 0.7).cdf).pvalue > 1e-4
    assert stats.kstest(data["w"][:, 0], stats.norm(0.2, 2).cdf).pvalue > 1e-4
    assert stats.kstest(data["y"][:, 2], stats.norm(0.4, 1.5).cdf).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.statistical
def test_evidence_is_exact() -> None:
    kernel = tuned_kernel(model())
    check_evidence(model(), kernel, log_evidence=log_evidence, n_temperatures=64)
    betas = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
    check_forward_reverse_identities(model(), kernel, betas, log_evidence=log_evidence, n_simulations=300)


MASS = """functions {{
  real mass_lpmf(int k, real p) {{
    {body}
  }}
}}
data {{
  int{bound} y;
}}
parameters {{
  real<lower=0, upper=1> p;
}}
model {{
  p ~ beta(2, 3);
  y ~ mass(p);
}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "bound", "message"),
    [
        ("return log(0.9) + k * log1m(p) + log(p);", "", "mass_lpmf adds up to 0.9"),
        ("return k * log1m(p) + log(p);", "<lower=1>", "mass_lpmf adds up to"),
        ("return log(1.2) + k * log1m(p) + log(p);", "", "mass_lpmf adds up to more than one"),
    ],
    ids=["short", "without its zero", "too much"],
)
def test_masses_that_do_not_add_up_to_one_are_refused(body: str, bound: str, message: str) -> None:
    with pytest.raises(BreadError, match=message):
        opened(MASS.format(body=body, bound=bound), {"y": 2}, observed="y")


LAW = "functions { real foo_lpdf(real y, real m) { return -0.5 * square(y - m) - 0.919; } FOO }"
REST = "data { int N; vector[N] y; array[N] int z; } parameters { real mu; } model { mu ~ normal(0, 1); LIKELIHOOD }"


@pytest.mark.parametrize(
    ("generator", "likelihood", "reason"),
    [
        ("", "y[1] + mu ~ foo(mu);", "is the program's own and is given several values, or a computed one"),
        (
            "real two_lpmf(array[] int k, real m) { return sum(k) * m - size(k) * exp(m); }",
            "target += two_lpmf(z | mu); for (n in 1 : N) y[n] ~ normal(mu, 1);",
            "of several values at once",
        ),
        (
            "", "vector[N] l; for (n in 1 : N) l[n] = normal_lpdf(y[n] | mu, 1); l[1] = 0; target += sum(l);",
            "no density which bread can draw from",
        ),
        (
            "", "vector[N] l; for (n in 1 : N) { l[n] = normal_lpdf(y[n] | mu, 1); target += sum(l); }",
            "may count more or less than once",
        ),
        (
            "", "vector[N] l = rep_vector(0, N); for (n in 1 : N) l[n] += normal_lpdf(y[n] | mu, 1); target += l;",
            "no density which bread can draw from",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(generator: str, likelihood: str, reason: str) -> None:
    text = LAW.replace("FOO", generator) + REST.replace("LIKELIHOOD", likelihood)
    program = analyse_text(text, ["y", "z"] if "z |" in likelihood else ["y"])
    assert program.simulator_refusal is not None and reason in str(program.simulator_refusal)


def test_the_same_element_in_two_branches_is_assigned_once() -> None:
    likelihood = (
        "vector[N] l; for (n in 1 : N) { if (n > 2) l[n] = normal_lpdf(y[n] | mu, 1); "
        "else l[n] = normal_lpdf(y[n] | mu, 2); } target += sum(l);"
    )
    program = analyse_text(LAW.replace("FOO", "") + REST.replace("LIKELIHOOD", likelihood), ["y"])
    assert program.simulator_refusal is None


def test_refusals_are_raised_when_a_model_is_opened() -> None:
    text = LAW.replace("FOO", "") + REST.replace("LIKELIHOOD", "y[1] + mu ~ foo(mu);")
    with pytest.raises((RefusedError, BreadError), match="own and is given several values, or a computed one"):
        opened(text, {"N": 1, "y": [0.3], "z": [1]}, observed="y")
