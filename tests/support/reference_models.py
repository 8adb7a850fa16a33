"""The conjugate models that the statistical tests run over, with weak enough data for exact identities to show."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from bread.backends.base import Kernel
from tests.models.reference import (
    AbsoluteMean,
    AutoregressiveKernel,
    BetaBinomial,
    CompoundKernel,
    GibbsLabelKernel,
    HierarchicalNormal,
    HMCKernel,
    LabelMixture,
    LinearRegression,
    MarginalMixture,
    NormalMean,
)

NO_SETTINGS = Kernel(np.array([0.0, 1.0]), {})
AR, HMC = AutoregressiveKernel(rho=0.5), HMCKernel(n_leapfrog=5)
X = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.2], [1.0, -0.4]])

CONJUGATE = {
    "normal_mean": NormalMean(np.array([0.4, 1.9, 1.1]), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2, kernel=AR),
    "regression": LinearRegression(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), X, noise_sd=1.5, kernel=AR),
    "hierarchical": HierarchicalNormal(
        np.array([1.5, -0.2, 0.6]), np.array([1.0, 1.5, 0.8]), prior_mean=0.3, group_sd=0.7, kernel=AR
    ),
    "label_mixture": LabelMixture(np.array([1.2, 0.6]), kernel=CompoundKernel((GibbsLabelKernel(), AR))),
    "normal_mean_hmc": NormalMean(np.array([0.4, 1.9, 1.1]), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2, kernel=HMC),
    "regression_hmc": LinearRegression(np.array([1.0, -0.3, 2.0, 0.7, 0.1]), X, noise_sd=1.5, kernel=HMC),
    "beta_binomial_hmc": BetaBinomial(np.array([3, 1]), np.array([4, 3]), alpha=2.0, beta=3.0, kernel=HMC),
    "hierarchical_hmc": HierarchicalNormal(
        np.array([1.5, -0.2, 0.6]), np.array([1.0, 1.5, 0.8]), prior_mean=0.3, group_sd=0.7, kernel=HMC
    ),
    "label_mixture_hmc": LabelMixture(np.array([1.2, 0.6]), kernel=CompoundKernel((GibbsLabelKernel(), HMC))),
}
BIMODAL = {
    "absolute_mean_hmc": AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMC),
    "marginal_mixture_hmc": MarginalMixture(
        np.array([0.3]), probability=0.3, shifts=(0.0, 2.0), noise_sds=(0.2, 1.0), prior_sd=1.5, kernel=HMC
    ),
}
ALL_MODELS = CONJUGATE | BIMODAL


def dense_grid(model, statistics, n=40001):
    """Return the log evidence by a sum over a grid of one coordinate and over labels; else by Bayes' rule."""
    if model.dim > 1 and model.label_index is None:
        rng = np.random.default_rng(0)
        mean, cholesky = model.gaussian_targets(np.array([1.0]), statistics)
        state = mean[0, 0] + rng.normal(size=(1, model.dim))
        factor = cholesky[0, 0]
        scaled = np.linalg.solve(factor, (state - mean[0, 0])[0])
        log_posterior = -0.5 * scaled @ scaled - np.log(np.diag(factor)).sum() - 0.5 * model.dim * np.log(2 * np.pi)
        return float((model.log_prior(state) + model.log_likelihood(state, statistics))[0] - log_posterior)
    grid = np.linspace(-30.0, 30.0, n)[:, None, None]
    labels = [None] if model.label_index is None else [0.0, 1.0]
    parts = []
    for label in labels:
        states = grid if label is None else np.concatenate([np.full_like(grid, label), grid], axis=-1)
        parts.append((model.log_prior(states) + model.log_likelihood(states, statistics))[:, 0])
    return float(logsumexp(np.concatenate(parts)) + np.log(grid[1, 0, 0] - grid[0, 0, 0]))
