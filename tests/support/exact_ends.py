"""Reference models annealed by kernels under which the law of the last state is known exactly, one data set at a time.

With the Gaussian autoregression every law of the chain is Gaussian. With `LazyExactKernel` the last state is a mixture
of tempered densities, known on a grid of the one coordinate; that also covers models whose B is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.random import SeedSequence, default_rng
from scipy.stats import multivariate_normal

from bread.backends.base import Failure
from bread.paths.kinds import PriorPath
from tests.models.reference import (
    AbsoluteMean,
    AutoregressiveKernel,
    BetaBinomial,
    HierarchicalNormal,
    LinearRegression,
    NormalMean,
    NormalScale,
    ReferenceModel,
    UniformLocation,
)
from tests.support.reference_models import NO_SETTINGS, X

PATH = PriorPath()
N_GRID = 20_001  # spacing of about 1e-3: the draws' law differs from the exact one by far less than any error below
N_POSTERIOR = 20_000


@dataclass(frozen=True)
class LazyExactKernel:
    """Stays with probability ``stay``, and draws from the tempered density otherwise: reversible, one coordinate.

    Draws invert the distribution function on a grid between ``low`` and ``high``, linear between its points.
    """

    stay: float
    low: float
    high: float
    name: str = "lazy exact draw"
    moves_label: bool = field(default=False, init=False)
    is_tunable: bool = field(default=False, init=False)
    draws_exactly: bool = field(default=True, init=False)

    @property
    def grid(self) -> np.ndarray:
        return np.linspace(self.low, self.high, N_GRID)

    def n_random(self, dim):
        return 0, 2

    def transition(self, run):
        grid, uniforms = self.grid, run.random.uniforms
        tables = {}
        for beta in np.unique(run.betas):
            density = np.exp(log_density_on_grid(run.target.formulae, run.target.statistics, float(beta), grid))
            cells = np.where(density[1:] * density[:-1] > 0.0, density[1:] + density[:-1], 0.0)  # none across an edge
            total = np.concatenate([[0.0], np.cumsum(cells)])
            tables[float(beta)] = total / total[-1]

        def step(i, states):
            drawn = np.interp(uniforms[i, :, 1], tables[float(run.betas[i])], grid)[:, None]
            return np.where(uniforms[i, :, :1] < self.stay, states, drawn)

        return step


def log_density_on_grid(model, statistics, beta, grid):
    """Log tempered density, largest value 0, on a grid of the one coordinate."""
    states = grid[:, None]
    with np.errstate(all="ignore"):
        values = model.log_prior(states)
        if beta > 0:
            values = values + beta * model.log_likelihood(states, statistics)
    return values - values.max()


def models(stay: float) -> dict[str, ReferenceModel]:
    """Seven models whose kernels keep ``stay`` of a state; B of the last two is infinite."""
    rho = AutoregressiveKernel(stay)
    return {
        "normal_mean": NormalMean(np.zeros(3), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2, kernel=rho),
        "regression": LinearRegression(np.zeros(5), X, noise_sd=1.5, kernel=rho),
        "hierarchical": HierarchicalNormal(
            np.zeros(3), np.array([1.0, 1.5, 0.8]), prior_mean=0.3, group_sd=0.7, kernel=rho
        ),
        "beta_binomial": BetaBinomial(
            np.array([3, 1]), np.array([4, 3]), alpha=2.0, beta=3.0, kernel=LazyExactKernel(stay, -9.0, 9.0)
        ),
        "absolute_mean": AbsoluteMean(np.zeros(4), kernel=LazyExactKernel(stay, -8.0, 8.0)),
        "half_normal_scale": NormalScale(np.zeros(4), kernel=LazyExactKernel(stay, -14.0, 2.0)),
        "uniform_location": UniformLocation(np.zeros(3), kernel=LazyExactKernel(stay, -8.0, 8.0)),
    }


INFINITE = ("half_normal_scale", "uniform_location")


def end_error(model: ReferenceModel, betas: np.ndarray, data) -> tuple[float, float]:
    """Total variation between the law of the last forward state and the posterior, and its standard error."""
    statistics = model.summarise({name: np.asarray(values)[None] for name, values in data.items()})
    if isinstance(model.kernel, LazyExactKernel):
        return _end_error_on_grid(model, betas, statistics), 0.0
    rho = model.kernel.rho
    means, factors = model.gaussian_targets(betas, statistics)
    covariances = factors[:, 0] @ np.swapaxes(factors[:, 0], 1, 2)
    mean, covariance = means[0, 0, 0], covariances[0]
    for target, spread in zip(means[1:, 0, 0], covariances[1:], strict=True):
        mean, covariance = target + rho * (mean - target), rho**2 * covariance + (1 - rho**2) * spread
    exact = multivariate_normal(means[-1, 0, 0], covariances[-1])
    draws = np.asarray(exact.rvs(N_POSTERIOR, random_state=default_rng(7))).reshape(N_POSTERIOR, -1)
    log_odds = multivariate_normal(mean, covariance).logpdf(draws) - exact.logpdf(draws)
    missed = np.maximum(0.0, -np.expm1(log_odds))
    return float(missed.mean()), float(missed.std() / np.sqrt(N_POSTERIOR))


def _end_error_on_grid(model, betas, statistics):
    stay, grid = model.kernel.stay, model.kernel.grid
    laws = []
    for beta in betas:
        density = np.exp(log_density_on_grid(model, statistics, float(beta), grid))
        laws.append(density / density.sum())
    law = laws[0]
    for target in laws[1:]:
        law = stay * law + (1.0 - stay) * target
    return float(0.5 * np.abs(law - laws[-1]).sum())


@dataclass(frozen=True)
class Repetitions:
    """Log weights of many repetitions on one data set, (repetition, chain) each, and the exact error of the end."""

    forward: np.ndarray
    reverse: np.ndarray
    end_error: float
    end_standard_error: float


def repeat(
    model: ReferenceModel, betas: np.ndarray, data, *, n: int, n_forward: int, n_reverse: int, seed: int
) -> Repetitions:
    """Anneal ``n`` times on one data set, each with its own exact posterior draw theta*.

    The first reverse chain starts from theta*, the others from next states of a chain at beta = 1 that runs from it.
    """
    truth, start, forward, evolve, reverse = SeedSequence(seed).spawn(5)
    posterior = model.condition(data)
    exact = model.draw_posterior(data, n, default_rng(truth))
    first = posterior.draw_base(PATH, start.spawn(n * n_forward))
    shared = posterior.evolve_rows(PATH, NO_SETTINGS, 1.0, exact, range(n_reverse), evolve.spawn(n))
    weights = []
    for direction, states, seeds in (
        ("forward", first, forward.spawn(n * n_forward)),
        ("reverse", shared.reshape(n * n_reverse, -1), reverse.spawn(n * n_reverse)),
    ):
        run = posterior.anneal(PATH, betas, NO_SETTINGS, direction=direction, initial=states, seeds=seeds)
        assert (run.failure <= Failure.ZERO_RATIO).all(), run.message
        weights.append(run.log_weight.reshape(n, -1))
    return Repetitions(*weights, *end_error(model, betas, data))


@cache
def simulated_data(name: str, n: int, seed: int):
    """Data sets of a model: they do not depend on the kernel."""
    simulations = models(0.5)[name].simulate(n, fixed=None, seed=SeedSequence(seed))
    return tuple(simulations.data_of(row) for row in range(n))


def with_stay(name: str, stay: float) -> ReferenceModel:
    """Return the named model with kernels that keep ``stay`` of a state."""
    return replace(models(stay)[name])
