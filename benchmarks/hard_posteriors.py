"""Twenty posteriors that are hard to sample, as PyMC models on made-up data: each a function that returns one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

_SEED = 20


def _rng(number: int) -> np.random.Generator:
    return np.random.default_rng([_SEED, number])


def _funnel(dim: int) -> pm.Model:
    y = _rng(dim).normal(0.0, 1.5, dim - 1)
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 3.0)
        x = pm.Normal("x", 0.0, pm.math.exp(v / 2), shape=dim - 1)
        pm.Normal("y", x, 1.0, observed=y)
    return model


def funnel_10() -> pm.Model:
    """Return Neal's funnel of 10 coordinates, seen through noise."""
    return _funnel(10)


def funnel_20() -> pm.Model:
    """Return Neal's funnel of 20 coordinates, seen through noise."""
    return _funnel(20)


def horseshoe() -> pm.Model:
    """Return regression with a horseshoe prior on 20 coefficients, 3 of them large; 50 rows."""
    rng, n, p = _rng(1), 50, 20
    design = rng.normal(size=(n, p))
    slope = np.concatenate([[3.0, -2.0, 1.5], np.zeros(p - 3)])
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 0.2)
        width = pm.HalfCauchy("width", 1.0, shape=p)
        z = pm.Normal("z", 0.0, 1.0, shape=p)
        sigma = pm.HalfNormal("sigma", 1.0)
        beta = pm.Deterministic("beta", z * width * tau)
        pm.Normal("y", pt.dot(design, beta), sigma, observed=design @ slope + rng.normal(size=n))
    return model


def mixture_3() -> pm.Model:
    """Return three Gaussian clusters with unknown weights and means, labels free; 60 values."""
    rng = _rng(2)
    y = rng.choice([-4.0, 0.0, 4.0], 60, p=[0.3, 0.4, 0.3]) + rng.normal(size=60)
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(3))
        mu = pm.Normal("mu", 0.0, 5.0, shape=3)
        pm.NormalMixture("y", w=w, mu=mu, sigma=1.0, observed=y)
    return model


def spike_and_slab() -> pm.Model:
    """Return regression on 8 covariates with a narrow and a wide Gaussian as the prior of each coefficient; 40 rows."""
    rng, n, p = _rng(3), 40, 8
    design = rng.normal(size=(n, p))
    slope = np.array([2.0, -1.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pm.Model() as model:
        beta = pm.NormalMixture("beta", w=[0.7, 0.3], mu=[0.0, 0.0], sigma=[0.05, 2.0], shape=p)
        pm.Normal("y", pt.dot(design, beta), 1.0, observed=design @ slope + rng.normal(size=n))
    return model


def ring() -> pm.Model:
    """Return a point in the plane whose distance from the origin was measured."""
    with pm.Model() as model:
        at = pm.Normal("at", 0.0, 3.0, shape=2)
        pm.Normal("y", pm.math.sqrt((at**2).sum()), 0.1, observed=np.array([3.0]))
    return model


def banana() -> pm.Model:
    """Return Rosenbrock's valley: one coordinate plus the square of the other was measured."""
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0)
        b = pm.Normal("b", 0.0, 1.0)
        pm.Normal("y", b + a**2, 0.05, observed=np.array([1.0]))
    return model


def sinusoid() -> pm.Model:
    """Return amplitude and frequency of a sine wave: many modes in the frequency; 40 values."""
    rng, time = _rng(4), np.linspace(0.0, 10.0, 40)
    with pm.Model() as model:
        amplitude = pm.Normal("amplitude", 0.0, 2.0)
        frequency = pm.Uniform("frequency", 0.1, 5.0)
        signal = amplitude * pm.math.sin(frequency * time)
        pm.Normal("y", signal, 1.0, observed=np.sin(2.3 * time) + rng.normal(size=40))
    return model


def latent_gp() -> pm.Model:
    """Return a Gaussian process at 30 points with unknown length scale, height and noise."""
    rng, x = _rng(5), np.linspace(0.0, 1.0, 30)[:, None]
    with pm.Model() as model:
        length = pm.InverseGamma("length", 5.0, 1.0)
        height = pm.HalfNormal("height", 1.0)
        process = pm.gp.Latent(cov_func=height**2 * pm.gp.cov.ExpQuad(1, ls=length))
        f = process.prior("f", X=x)
        sigma = pm.HalfNormal("sigma", 0.5)
        pm.Normal("y", f, sigma, observed=np.sin(7.0 * x[:, 0]) + 0.3 * rng.normal(size=30))
    return model


def random_walk() -> pm.Model:
    """Return counts whose log rate is a Gaussian random walk of 60 steps with unknown step size."""
    rng = _rng(6)
    walk = np.cumsum(rng.normal(0.0, 0.2, 60)) + 1.0
    with pm.Model() as model:
        step = pm.HalfNormal("step", 0.5)
        level = pm.GaussianRandomWalk("level", sigma=step, init_dist=pm.Normal.dist(1.0, 1.0), shape=60)
        pm.Poisson("y", pm.math.exp(level), observed=rng.poisson(np.exp(walk)))
    return model


def crossed() -> pm.Model:
    """Return two crossed group effects (10 by 8) with unknown scales, centred; one value a cell."""
    rng = _rng(7)
    row, column = np.repeat(np.arange(10), 8), np.tile(np.arange(8), 10)
    truth = rng.normal(0.0, 1.0, 10)[row] + rng.normal(0.0, 0.5, 8)[column]
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        row_scale, column_scale = pm.HalfNormal("row_scale", 1.0), pm.HalfNormal("column_scale", 1.0)
        a = pm.Normal("a", 0.0, row_scale, shape=10)
        b = pm.Normal("b", 0.0, column_scale, shape=8)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu + a[row] + b[column], sigma, observed=truth + rng.normal(0.0, 0.7, 80))
    return model


def two_scales() -> pm.Model:
    """Return intercepts and slopes of 8 groups, each with a scale of its own, centred; 5 values a group."""
    rng, group = _rng(8), np.repeat(np.arange(8), 5)
    x = np.tile(np.linspace(-1.0, 1.0, 5), 8)
    truth = rng.normal(1.0, 0.7, 8)[group] + rng.normal(0.5, 0.4, 8)[group] * x
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0, shape=2)
        tau_a, tau_b = pm.HalfNormal("tau_a", 1.0), pm.HalfNormal("tau_b", 1.0)
        a = pm.Normal("a", mu[0], tau_a, shape=8)
        b = pm.Normal("b", mu[1], tau_b, shape=8)
        pm.Normal("y", a[group] + b[group] * x, 0.7, observed=truth + rng.normal(0.0, 0.7, 40))
    return model


def ordinal() -> pm.Model:
    """Return ordered logistic regression with four cutpoints, the first and then positive gaps; 100 rows."""
    rng = _rng(9)
    x = rng.normal(size=100)
    y = np.digitize(1.2 * x + rng.logistic(size=100), [-2.0, -0.5, 0.7, 2.0])
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0)
        first = pm.Normal("first", -2.0, 2.0)
        gaps = pm.Exponential("gaps", 1.0, shape=3)
        cuts = first + pt.concatenate([pt.zeros(1), pt.cumsum(gaps)])
        pm.OrderedLogistic("y", eta=slope * x, cutpoints=cuts, compute_p=False, observed=y)
    return model


def zero_inflated() -> pm.Model:
    """Return zero-inflated Poisson regression; 80 rows."""
    rng = _rng(10)
    x = rng.normal(size=80)
    y = rng.poisson(np.exp(0.5 + 0.6 * x)) * (rng.random(80) < 0.7)
    with pm.Model() as model:
        a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
        psi = pm.Beta("psi", 1.0, 1.0)
        pm.ZeroInflatedPoisson("y", psi=psi, mu=pm.math.exp(a + b * x), observed=y)
    return model


def lkj_slopes() -> pm.Model:
    """Return correlated intercepts and slopes of 8 groups (LKJ), non-centred; 6 values a group."""
    rng, group = _rng(11), np.repeat(np.arange(8), 6)
    x = np.tile(np.linspace(-1.0, 1.0, 6), 8)
    effect = rng.multivariate_normal([1.0, 0.5], [[0.5, 0.3], [0.3, 0.4]], 8)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0), compute_corr=True)
        mu = pm.Normal("mu", 0.0, 1.0, shape=2)
        z = pm.Normal("z", 0.0, 1.0, shape=(8, 2))
        own = mu + pt.dot(z, factor.T)
        sigma = pm.HalfNormal("sigma", 1.0)
        y = effect[group, 0] + effect[group, 1] * x + rng.normal(0.0, 0.5, 48)
        pm.Normal("y", own[group, 0] + own[group, 1] * x, sigma, observed=y)
    return model


def weibull_censored() -> pm.Model:
    """Return Weibull survival times, censored at 3, with one covariate; 60 rows."""
    rng = _rng(12)
    x = rng.normal(size=60)
    times = np.minimum(np.exp(0.7 + 0.4 * x) * rng.weibull(1.5, 60), 3.0)
    with pm.Model() as model:
        shape = pm.LogNormal("shape", 0.0, 0.5)
        a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
        lifetime = pm.Weibull.dist(shape, pm.math.exp(a + b * x))
        pm.Censored("y", lifetime, lower=None, upper=3.0, observed=times)
    return model


def large_logistic() -> pm.Model:
    """Return logistic regression on 5 covariates with 20,000 rows."""
    rng, n = _rng(13), 20_000
    design = np.column_stack([np.ones(n), rng.normal(size=(n, 5))])
    truth = np.array([-0.5, 1.0, -0.5, 0.3, 0.0, 0.2])
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-design @ truth))).astype(int)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=6)
        pm.Bernoulli("y", logit_p=pt.dot(design, beta), observed=y)
    return model


def correlated_100() -> pm.Model:
    """Return a correlated Gaussian of 100 coordinates, each measured once: the evidence is known in closed form."""
    covariance, y = _correlated()
    with pm.Model() as model:
        theta = pm.MvNormal("theta", np.zeros(100), covariance, shape=100)
        pm.Normal("y", theta, 1.0, observed=y)
    return model


def _correlated() -> tuple[np.ndarray, np.ndarray]:
    rng, dim = _rng(14), 100
    loadings = rng.normal(size=(dim, dim)) / np.sqrt(dim)
    covariance = 2.0 * loadings @ loadings.T + 0.1 * np.eye(dim)
    return covariance, rng.multivariate_normal(np.zeros(dim), covariance + np.eye(dim))


def cauchy_logit() -> pm.Model:
    """Return logistic regression that separates its 10 rows, with Cauchy priors."""
    x = np.linspace(-1.0, 1.0, 10)
    with pm.Model() as model:
        a, b = pm.Cauchy("a", 0.0, 2.5), pm.Cauchy("b", 0.0, 2.5)
        pm.Bernoulli("y", logit_p=a + b * x, observed=(x > 0).astype(int))
    return model


def simplex_corner() -> pm.Model:
    """Shares of five groups under a Dirichlet prior that favours corners, and few counts."""
    with pm.Model() as model:
        w = pm.Dirichlet("w", 0.1 * np.ones(5))
        pm.Multinomial("y", n=12, p=w, observed=np.array([9, 3, 0, 0, 0]))
    return model


def _gaussian_evidence() -> float:
    from scipy.stats import multivariate_normal

    covariance, y = _correlated()
    return float(multivariate_normal(np.zeros(100), covariance + np.eye(100)).logpdf(y))


def _dirichlet_evidence() -> float:
    from scipy.stats import dirichlet_multinomial

    return float(dirichlet_multinomial(0.1 * np.ones(5), 12).logpmf([9, 3, 0, 0, 0]))


MODELS: dict[str, Callable[[], pm.Model]] = {
    builder.__name__: builder
    for builder in (
        funnel_10, funnel_20, horseshoe, mixture_3, spike_and_slab, ring, banana, sinusoid, latent_gp, random_walk,
        crossed, two_scales, ordinal, zero_inflated, lkj_slopes, weibull_censored, large_logistic, correlated_100,
        cauchy_logit, simplex_corner,
    )
}  # fmt: skip

EXACT: dict[str, Callable[[], float]] = {"correlated_100": _gaussian_evidence, "simplex_corner": _dirichlet_evidence}
LARGEST_GRID = 2  # coordinates up to which the evidence is summed over a grid
_POINTS, _REACH = 400, 12.0  # of the grid in each coordinate; how far it goes from 0, unconstrained


def log_evidence(name: str, model: Any) -> float | None:
    """Return the log evidence of the data (nats), in closed form or summed over a grid; None where it is not known."""
    if name in EXACT:
        return EXACT[name]()
    start = model.initial_point()
    if sum(np.size(value) for value in start.values()) > LARGEST_GRID or name in ("cauchy_logit",):
        return None  # a Cauchy law is too wide for a grid
    axis = np.linspace(-_REACH, _REACH, _POINTS)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    density = model.compile_logp()
    names, sizes = list(start), [np.size(value) for value in start.values()]
    cuts = np.cumsum(sizes)[:-1]
    values = np.empty(len(grid))
    for row, state in enumerate(grid):
        parts = np.split(state, cuts)
        values[row] = density({key: part.reshape(np.shape(start[key])) for key, part in zip(names, parts, strict=True)})
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()) + 2 * np.log(axis[1] - axis[0]))
