"""Stan programs tempered by hand, with exact answers, for tests of the engine."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import special, stats

from bread.backends.base import AnnealRun, Kernel
from bread.backends.stan.native.build import build_library
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.native.library import StanLibrary
from bread.backends.stan.native.toolchain import Toolchain, find_toolchain
from bread.backends.stan.posterior import StanPosterior
from bread.errors import MissingDependencyError
from bread.paths.kinds import PriorPath

PATH = PriorPath()
BETAS = np.linspace(0, 1, 17) ** 2
NUTS, HMC = StanKernel("NUTS"), StanKernel("HMC")

# mu: normal mean; rate: Poisson rate. Both tempered posteriors are exact at every beta; log rate is skewed.
CONJUGATE = """
functions { real bread_temper(real x); vector bread_temper(vector x);
}
data {
  int<lower=0> N;
  vector[N] y;
  array[2] int<lower=0> count;
}
parameters {
  real mu;
  real<lower=0> rate;
}
transformed parameters {
  matrix[2, 3] table = [[mu, 2, 3], [4, rate, 6]];
}
model {
  mu ~ normal(1, 2);
  rate ~ gamma(2, 0.5);
  target += bread_temper(normal_lpdf(y | mu, 1.5));
  target += bread_temper([poisson_lpmf(count[1] | rate), poisson_lpmf(count[2] | rate)]');
}
generated quantities {
  vector[N] y_new = to_vector(normal_rng(rep_vector(mu, N), 1.5));
}
"""

# What can go wrong beyond theta = 1, by `mode`.
FAILING = """
functions { real bread_temper(real x);
}
data {
  int<lower=0, upper=5> mode;
  real y;
}
transformed data {
  if (y > 100) {
    reject("transformed data refuse y = ", y);
  }
}
parameters {
  real theta;
}
model {
  theta ~ normal(0, 1);
  if (theta > 1 && mode == 1) {
    reject("the model refuses theta = ", theta);
  }
  if (theta > 1 && mode == 2) {
    array[1] real values = {theta};
    target += bread_temper(values[mode]);
  }
  if (theta > 1 && mode == 3) {
    target += bread_temper(not_a_number());
  }
  if (theta > 1 && mode == 4) {
    target += bread_temper(negative_infinity());
  }
  if (theta > 1 && mode == 5) {
    target += negative_infinity();
  }
  target += bread_temper(normal_lpdf(y | theta, 1));
}
"""


@functools.cache
def toolchain() -> Toolchain:
    """Return the toolchain, or skip the test."""
    try:
        return find_toolchain()
    except MissingDependencyError as error:
        pytest.skip(str(error))


@functools.cache
def compiled(program: str, filename: str = "test.stan") -> StanLibrary:
    """Compile a program, or take it from the cache."""
    return StanLibrary(build_library(program, toolchain(), filename=filename))


@dataclass(frozen=True)
class Conjugate:
    """Exact answers for `CONJUGATE` with these data; states are (mu, log rate)."""

    y: np.ndarray
    count: np.ndarray

    @property
    def data(self) -> dict:
        return {"N": len(self.y), "y": self.y, "count": self.count}

    def posterior(self, kernel: StanKernel) -> StanPosterior:
        return StanPosterior(compiled(CONJUGATE).instance(self.data), self, kernel)

    def draw(self, beta: float, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw from the tempered posterior."""
        precision = 1 / 4 + beta * len(self.y) / 1.5**2
        mean = (1 / 4 + beta * self.y.sum() / 1.5**2) / precision
        rate = rng.gamma(2 + beta * self.count.sum(), 1 / (0.5 + beta * len(self.count)), n)
        return np.column_stack([rng.normal(mean, precision**-0.5, n), np.log(rate)])

    def draw_states(self, seeds: Sequence[SeedSequence]) -> np.ndarray:
        return np.concatenate([self.draw(0.0, 1, default_rng(seed)) for seed in seeds])

    def log_rate_cdf(self, beta: float, log_rate: np.ndarray) -> np.ndarray:
        return stats.gamma.cdf(np.exp(log_rate), 2 + beta * self.count.sum(), scale=1 / (0.5 + beta * len(self.count)))

    def log_rate_quantile(self, beta: float, p: np.ndarray) -> np.ndarray:
        return np.log(stats.gamma.ppf(p, 2 + beta * self.count.sum(), scale=1 / (0.5 + beta * len(self.count))))

    def log_prior(self, states: np.ndarray) -> np.ndarray:
        mu, log_rate = states.T
        return stats.norm.logpdf(mu, 1, 2) + stats.gamma.logpdf(np.exp(log_rate), 2, scale=2) + log_rate

    def log_likelihood(self, states: np.ndarray) -> np.ndarray:
        mu, log_rate = states.T
        normal = stats.norm.logpdf(self.y[:, None], mu, 1.5).sum(axis=0)
        return normal + stats.poisson.logpmf(self.count[:, None], np.exp(log_rate)).sum(axis=0)

    @property
    def log_evidence(self) -> float:
        n, total = len(self.y), self.count.sum()
        covariance = 1.5**2 * np.eye(n) + 4.0
        normal = stats.multivariate_normal.logpdf(self.y, np.ones(n), covariance)
        shape, rate = 2 + total, 0.5 + len(self.count)
        poisson = 2 * np.log(0.5) - special.gammaln(2) + special.gammaln(shape) - shape * np.log(rate)
        return float(normal + poisson - special.gammaln(self.count + 1).sum())


EXAMPLE = Conjugate(np.array([2.1, 3.4, 0.7, 1.9, 2.8]), np.array([5, 9]))


@functools.cache
def frozen_kernel(kernel: StanKernel) -> Kernel:
    """Adapt the kernel on the example at three knots."""
    posterior, betas = EXAMPLE.posterior(kernel), np.array([0.0, 0.1, 1.0])
    state, previous, adaptations = np.array([1.0, 1.0]), None, []
    for index, beta in enumerate(betas):
        adaptations.append(posterior.adapt(PATH, beta, state, SeedSequence(100 + index), 200, previous))
        state, previous = adaptations[-1].state, adaptations[-1].settings
    settings = {name: np.stack([one.settings[name] for one in adaptations]) for name in adaptations[0].settings}
    return Kernel(betas, settings)


def anneal(posterior: StanPosterior, direction: str, initial: np.ndarray, seed: int, **changes) -> AnnealRun:
    """Anneal with the kernel frozen on the example, one spawned seed a chain."""
    options = {"betas": BETAS, "kernel": frozen_kernel(posterior.kernel)} | changes
    seeds = SeedSequence(seed).spawn(len(initial))
    return posterior.anneal(PATH, direction=direction, initial=initial, seeds=seeds, **options)
