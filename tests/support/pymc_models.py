"""A table of small PyMC models of many kinds, for tests: name -> function that builds the model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions import transforms

SCHOOLS_EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = [
    "Choate",
    "Deerfield",
    "Phillips Andover",
    "Phillips Exeter",
    "Hotchkiss",
    "Lawrenceville",
    "St. Paul's",
    "Hermon",
]

MODELS: dict[str, Callable[[], pm.Model]] = {}


def register(build: Callable[[], pm.Model]) -> Callable[[], pm.Model]:
    MODELS[build.__name__] = build
    return build


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(20160911).normal(size=shape)


@register
def schools_centred() -> pm.Model:
    with pm.Model(coords={"school": SCHOOLS}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Normal("y", theta, SCHOOLS_ERROR, observed=SCHOOLS_EFFECT, dims="school")
    return model


@register
def schools_non_centred() -> pm.Model:
    with pm.Model(coords={"school": SCHOOLS}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 5)
        z = pm.Normal("z", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta, SCHOOLS_ERROR, observed=SCHOOLS_EFFECT, dims="school")
    return model


@register
def logistic_regression() -> pm.Model:
    x = data(40, 3)
    with pm.Model(coords={"predictor": ["a", "b", "c"]}) as model:
        covariates = pm.Data("x", x, dims=("row", "predictor"))
        intercept = pm.Normal("intercept", 0, 2)
        slope = pm.Normal("slope", 0, 1, dims="predictor")
        pm.Bernoulli("y", logit_p=intercept + covariates @ slope, observed=(x[:, 0] > 0).astype(int), dims="row")
    return model


@register
def normal_mean() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Normal("y", mu, 1, observed=data(10))
    return model


@register
def linear_regression() -> pm.Model:
    x = data(15, 2)
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1, shape=2)
        pm.Normal("y", x @ slope, 0.5, observed=x @ np.array([1.0, -1.0]))
    return model


@register
def beta_binomial() -> pm.Model:
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        pm.Binomial("y", n=[10, 20], p=p, observed=[3, 9])
    return model


@register
def hierarchical_normal() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        theta = pm.Normal("theta", mu, 2, shape=5)
        pm.Normal("y", theta, 1, observed=data(5))
    return model


@register
def mixture_with_label() -> pm.Model:
    with pm.Model() as model:
        label = pm.Bernoulli("label", 0.3)
        mean = pm.Normal("mean", 4 * label, 1)
        pm.Normal("y", mean, 1, observed=data(5) + 4)
    return model


@register
def bimodal() -> pm.Model:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 2)
        pm.Normal("y", x**2, 0.5, observed=np.array([4.0, 4.5]))
    return model


@register
def lkj_cholesky() -> pm.Model:
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", np.zeros(2), chol=chol, observed=data(6, 2))
    return model


@register
def simplex() -> pm.Model:
    with pm.Model(coords={"kind": ["a", "b", "c"]}) as model:
        p = pm.Dirichlet("p", np.array([1.0, 2.0, 3.0]), dims="kind")
        pm.Multinomial("y", n=20, p=p, observed=np.array([4, 6, 10]), dims="kind")
    return model


@register
def ordered_identical() -> pm.Model:
    with pm.Model() as model:
        cut = pm.Normal("cut", 0, 2, shape=3, transform=transforms.ordered, initval=[-1.0, 0.0, 1.0])
        slope = pm.Normal("slope", 0, 1)
        pm.OrderedLogistic("y", eta=slope * data(12), cutpoints=cut, observed=np.arange(12) % 4)
    return model


@register
def ordered_different() -> pm.Model:
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1)
        cut = pm.Normal("cut", [-1.0, 1.0], 1 + scale, transform=transforms.ordered)
        pm.Normal("y", cut[0] + cut[1], 1, observed=data(3))
    return model


@register
def ordered_positive() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Exponential("rate", 1, shape=2, transform=transforms.ordered, initval=[0.5, 1.0])
        pm.Exponential("y", rate, observed=[1.0, 0.5])
    return model


@register
def zero_sum() -> pm.Model:
    with pm.Model(coords={"group": list("abcd")}) as model:
        effect = pm.ZeroSumNormal("effect", sigma=1.5, dims="group")
        pm.Normal("y", effect, 1, observed=data(4), dims="group")
    return model


@register
def interval_random_bounds() -> pm.Model:
    with pm.Model() as model:
        width = pm.Gamma("width", 2, 1)
        x = pm.Uniform("x", -width, 2 * width)
        triangle = pm.Triangular("triangle", lower=0, upper=1, c=0.3)
        pm.Normal("y", x + triangle, 1, observed=data(4))
    return model


@register
def truncated() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 1, 1)
        rate = pm.TruncatedNormal("rate", mu=1, sigma=1, lower=0.5, upper=3)
        pm.Truncated("y", pm.Normal.dist(mu, rate), lower=0, observed=np.abs(data(6)))
    return model


@register
def censored() -> pm.Model:
    y = np.minimum(np.abs(data(8)), 1.0)
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 1)
        pm.Censored("y", pm.Normal.dist(0.5, sigma + 0.1), lower=None, upper=1.0, observed=y)
    return model


@register
def mixture_likelihood() -> pm.Model:
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(2))
        mu = pm.Normal("mu", [-2.0, 2.0], 1)
        pm.Mixture("y", w=w, comp_dists=[pm.Normal.dist(mu[0], 1), pm.Normal.dist(mu[1], 0.5)], observed=data(7))
    return model


@register
def two_observed() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Exponential("rate", 1)
        n = pm.Poisson("n", 5 * rate, observed=np.array([4, 2, 7]))
        pm.Normal("total", n * 2.0 + rate, 1, observed=np.array([8.0, 5.0, 13.0]))
    return model


@register
def mutable_observed() -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", data(6))
        y = pm.Data("y_data", (10 * data(6)).astype(int))
        slope = pm.StudentT("slope", nu=4, mu=0, sigma=1)
        sigma = pm.LogNormal("sigma", 0, 0.5)
        pm.Normal("y", slope * x, sigma, observed=y, shape=x.shape)
    return model


@register
def bernoulli_vector() -> pm.Model:
    with pm.Model() as model:
        include = pm.Bernoulli("include", 0.4, shape=3)
        slope = pm.Normal("slope", 0, 1, shape=3)
        pm.Normal("y", data(8, 3) @ (include * slope), 1, observed=data(8))
    return model


@register
def categorical() -> pm.Model:
    with pm.Model() as model:
        label = pm.Categorical("label", p=[0.2, 0.3, 0.5], shape=4)
        mean = pm.Normal("mean", [-2.0, 0.0, 2.0], 0.5)
        pm.Normal("y", mean[label], 1, observed=data(4))
    return model


@register
def poisson_count() -> pm.Model:
    with pm.Model() as model:
        n = pm.Poisson("n", 6)
        pm.Normal("y", n, 2, observed=data(3) + 5)
    return model


@register
def mv_normal() -> pm.Model:
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    with pm.Model() as model:
        mu = pm.MvNormal("mu", np.zeros(2), cov=covariance)
        pm.MvNormal("y", mu, cov=covariance, observed=data(5, 2))
    return model


@register
def autoregression() -> pm.Model:
    with pm.Model() as model:
        rho = pm.Uniform("rho", -1, 1, shape=1)
        sigma = pm.HalfNormal("sigma", 1)
        pm.AR("y", rho, sigma=sigma, init_dist=pm.Normal.dist(0, 1), observed=data(8))
    return model


@register
def random_walk() -> pm.Model:
    with pm.Model(coords={"day": np.arange(5)}) as model:
        step = pm.Exponential("step", 2)
        level = pm.GaussianRandomWalk("level", sigma=step, init_dist=pm.Normal.dist(0, 1), dims="day")
        pm.Poisson("y", pt.exp(level - 1), observed=[1, 0, 2, 3, 1], dims="day")
    return model


@register
def circular_and_scale() -> pm.Model:
    with pm.Model() as model:
        angle = pm.VonMises("angle", mu=0, kappa=2)
        scale = pm.InverseGamma("scale", 3, 2, transform=transforms.log_exp_m1, default_transform=None)
        speed = pm.Weibull("speed", 2, 1)
        pm.Deterministic("east", speed * pt.cos(angle))
        pm.Gumbel("y", speed * pt.sin(angle), scale, observed=data(4))
    return model


@register
def symbolic_observed() -> pm.Model:
    with pm.Model() as model:
        raw = pm.Data("raw", data(4))
        mu = pm.Laplace("mu", 0, 1)
        pm.Cauchy("y", mu, 1, observed=raw * 2)
    return model


@register
def custom_likelihood() -> pm.Model:
    def logp(value, mu):
        return pm.logp(pm.Normal.dist(mu, 1), value)

    def random(mu, rng=None, size=None):
        return rng.normal(mu, 1, size=size)

    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        shifted = pm.CustomDist("shifted", mu, dist=lambda mu, size: pm.Normal.dist(mu, 1, size=size) + 1, shape=3)
        pm.CustomDist("y", shifted, logp=logp, random=random, observed=data(3))
    return model


def restricted_interval() -> pm.Model:
    """A normal variable that a transform restricts to (0, 1), with a mean of its own prior."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, transform=transforms.Interval(0, 1), initval=0.5)
        pm.Normal("y", x, 1, observed=0.3)
    return model
