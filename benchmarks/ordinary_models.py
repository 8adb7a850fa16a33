"""Seventeen models of kinds that are met every day, on made-up data: what `check_over_fit.py` and `bases.py` measure.

The first seven were once beyond what a check could do; the others were written before any of them was tried.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.interpolate import BSpline

Numbers = np.random.Generator


def crossed_counts(rng: Numbers) -> pm.Model:
    """Poisson counts with crossed effects: 104 coordinates."""
    a, b, x = rng.integers(0, 60, 4000), rng.integers(0, 40, 4000), rng.normal(size=4000)
    effects = 0.5 * rng.normal(size=60)[a] + 0.3 * rng.normal(size=40)[b]
    with pm.Model() as model:
        intercept, slope = pm.Normal("intercept", 0, 2), pm.Normal("slope", 0, 1)
        of_a = pm.HalfNormal("sd_a", 1) * pm.Normal("z_a", 0, 1, shape=60)
        of_b = pm.HalfNormal("sd_b", 1) * pm.Normal("z_b", 0, 1, shape=40)
        log_rate = intercept + slope * x + of_a[a] + of_b[b]
        pm.Poisson("y", pm.math.exp(log_rate), observed=rng.poisson(np.exp(0.5 + 0.3 * x + effects)))
    return model


def correlated_slopes(rng: Numbers) -> pm.Model:
    """Correlated intercepts and slopes of 80 groups, normal outcomes: 166 coordinates."""
    group, x = rng.integers(0, 80, 2000), rng.normal(size=2000)
    u = rng.multivariate_normal([0, 0], [[0.49, 0.15], [0.15, 0.25]], 80)
    with pm.Model() as model:
        b, sd = pm.Normal("b", 0, 2, shape=2), pm.HalfNormal("sd", 1)
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1, shape=2))
        effects = pm.math.dot(factor, pm.Normal("z", 0, 1, shape=(2, 80)))
        y = 1 + 0.5 * x + u[group, 0] + u[group, 1] * x + rng.normal(0, 1, 2000)
        pm.Normal("y", b[0] + b[1] * x + effects[0][group] + effects[1][group] * x, sd, observed=y)
    return model


def item_response(rng: Numbers) -> pm.Model:
    """Two-parameter item response, 200 persons and 30 items: 260 coordinates."""
    discrimination, difficulty = np.exp(0.3 * rng.normal(size=30)), rng.normal(size=30)
    p = 1 / (1 + np.exp(-discrimination * (rng.normal(size=(200, 1)) - difficulty)))
    with pm.Model() as model:
        ability, difficult = pm.Normal("ability", 0, 1, shape=200), pm.Normal("difficulty", 0, 2, shape=30)
        discriminates = pm.LogNormal("discrimination", 0, 0.5, shape=30)
        logit = discriminates * (ability[:, None] - difficult)
        pm.Bernoulli("y", logit_p=logit, observed=(rng.random((200, 30)) < p).astype(int))
    return model


def gaussian_process_basis(rng: Numbers) -> pm.Model:
    """Gaussian process by 30 basis functions, 600 rows: 33 coordinates."""
    x = np.linspace(0, 10, 600)
    with pm.Model() as model:
        scale, length = pm.HalfNormal("scale", 1), pm.InverseGamma("length", 5, 5)
        process = pm.gp.HSGP(m=[30], c=1.5, cov_func=scale**2 * pm.gp.cov.Matern52(1, ls=length))
        curve = process.prior("curve", X=x[:, None])
        pm.Normal("y", curve, pm.HalfNormal("sd", 1), observed=np.sin(x) + 0.3 * rng.normal(size=600))
    return model


def volatility(rng: Numbers) -> pm.Model:
    """Stochastic volatility by a random walk, 400 days: 402 coordinates."""
    log_variance = -1 + np.cumsum(rng.normal(0, 0.15, 400))
    with pm.Model() as model:
        sd, first = pm.HalfNormal("sd", 0.3), pm.Normal("first", -1, 1)
        walk = first + sd * pm.math.cumsum(pm.Normal("z", 0, 1, shape=400))
        pm.Normal("y", 0, pm.math.exp(walk / 2), observed=np.exp(log_variance / 2) * rng.normal(size=400))
    return model


def dispersed_counts(rng: Numbers) -> pm.Model:
    """Negative binomial counts in 50 groups: 56 coordinates."""
    group, x = rng.integers(0, 50, 3000), rng.normal(size=(3000, 3))
    rate = np.exp(1 + x @ [0.3, -0.2, 0.1] + 0.4 * rng.normal(size=50)[group])
    with pm.Model() as model:
        intercept, b = pm.Normal("intercept", 0, 2), pm.Normal("b", 0, 1, shape=3)
        of_group = pm.HalfNormal("sd", 1) * pm.Normal("z", 0, 1, shape=50)
        log_rate = intercept + pm.math.dot(x, b) + of_group[group]
        alpha = pm.Exponential("alpha", 0.5)
        y = rng.poisson(rate * rng.gamma(2, 0.5, 3000))
        pm.NegativeBinomial("y", mu=pm.math.exp(log_rate), alpha=alpha, observed=y)
    return model


def logistic(rng: Numbers, n: int = 10_000) -> pm.Model:
    """Logistic regression on 10,000 rows and 20 columns: 21 coordinates."""
    x = rng.normal(size=(n, 20))
    p = 1 / (1 + np.exp(-(x @ (0.3 * rng.normal(size=20)) - 0.5)))
    with pm.Model() as model:
        logit = pm.Normal("intercept", 0, 2) + pm.math.dot(x, pm.Normal("b", 0, 1, shape=20))
        pm.Bernoulli("y", logit_p=logit, observed=(rng.random(n) < p).astype(int))
    return model


def survival_with_frailty(rng: Numbers) -> pm.Model:
    """Weibull survival of 600 patients in 40 centres, censored at two years: 44 coordinates."""
    centre, x = rng.integers(0, 40, 600), rng.normal(size=600)
    scale = np.exp(0.5 + 0.4 * x + 0.5 * rng.normal(size=40)[centre])
    times = np.minimum(scale * rng.weibull(1.3, 600), 2.0)
    with pm.Model() as model:
        shape, frailty = pm.LogNormal("shape", 0, 0.5), pm.HalfNormal("sd", 1)
        effect = frailty * pm.Normal("z", 0, 1, shape=40)
        log_scale = pm.Normal("intercept", 0, 1) + pm.Normal("slope", 0, 1) * x + effect[centre]
        law = pm.Weibull.dist(shape, pm.math.exp(log_scale), shape=600)
        pm.Censored("y", law, lower=None, upper=2.0, observed=times)
    return model


def hurdle(rng: Numbers) -> pm.Model:
    """Hurdle model of counts, 800 rows: 4 coordinates."""
    x = rng.normal(size=800)
    counts = rng.poisson(np.exp(0.6 + 0.3 * x))
    y = np.where(rng.random(800) < 1 / (1 + np.exp(-(0.5 - 0.8 * x))), np.maximum(counts, 1), 0)
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1, shape=2), pm.Normal("b", 0, 1, shape=2)
        pm.HurdlePoisson("y", psi=pm.math.invlogit(a[0] + b[0] * x), mu=pm.math.exp(a[1] + b[1] * x), observed=y)
    return model


def ordinal_mixed(rng: Numbers) -> pm.Model:
    """Ordered outcomes of 60 raters, 1,200 rows: 66 coordinates."""
    rater, x = rng.integers(0, 60, 1200), rng.normal(size=1200)
    latent = 0.8 * x + 0.7 * rng.normal(size=60)[rater] + rng.logistic(size=1200)
    with pm.Model() as model:
        effect = pm.HalfNormal("sd", 1) * pm.Normal("z", 0, 1, shape=60)
        cuts = pm.Normal(
            "cuts", 0, 2, shape=4, transform=pm.distributions.transforms.ordered, initval=np.array([-2.0, -1, 1, 2])
        )
        eta = pm.Normal("slope", 0, 1) * x + effect[rater]
        pm.OrderedLogistic("y", eta=eta, cutpoints=cuts, observed=np.searchsorted([-1.5, -0.5, 0.7, 1.8], latent))
    return model


def spatial_counts(rng: Numbers) -> pm.Model:
    """Smooth and independent effects (BYM2) of counts on a grid of 8 x 8: 131 coordinates."""
    place = np.arange(64)
    row, column = place // 8, place % 8
    distance = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    smooth = np.sin(row / 2.0) + np.cos(column / 2.0)
    with pm.Model() as model:
        share, sd = pm.Beta("share", 1, 1), pm.HalfNormal("sd", 1)
        of_place = pm.math.sqrt(share) * pm.ICAR("smooth", W=(distance == 1).astype(int))
        alone = pm.math.sqrt(1 - share) * pm.Normal("alone", 0, 1, shape=64)
        log_rate = pm.Normal("intercept", 0, 2) + sd * (of_place + alone)
        y = rng.poisson(np.exp(1.5 + 0.5 * smooth + 0.2 * rng.normal(size=64)))
        pm.Poisson("y", pm.math.exp(log_rate), observed=y)
    return model


def spline(rng: Numbers) -> pm.Model:
    """Twenty cubic B-splines whose coefficients are a random walk, 500 rows: 22 coordinates."""
    x, knots = np.sort(rng.random(500)), np.concatenate([[0.0] * 3, np.linspace(0, 1, 18), [1.0] * 3])
    basis = BSpline.design_matrix(np.clip(x, 0, 1 - 1e-9), knots, 3).toarray()
    with pm.Model() as model:
        steps = pm.HalfNormal("smoothness", 1) * pm.Normal("z", 0, 1, shape=basis.shape[1])
        curve = pm.math.dot(basis, pm.Normal("level", 0, 2) + pm.math.cumsum(steps))
        y = rng.poisson(np.exp(1 + np.sin(6 * x)))
        pm.Poisson("y", pm.math.exp(curve), observed=y)
    return model


def vector_autoregression(rng: Numbers) -> pm.Model:
    """Three series of 150 steps with correlated noise: 18 coordinates."""
    matrix = np.array([[0.6, 0.1, 0.0], [0.0, 0.5, 0.2], [0.1, 0.0, 0.4]])
    series = np.zeros((151, 3))
    for step in range(150):
        series[step + 1] = matrix @ series[step] + rng.multivariate_normal(np.zeros(3), 0.3 + 0.7 * np.eye(3))
    with pm.Model() as model:
        a, lag = pm.Normal("a", 0, 1, shape=3), pm.Normal("lag", 0, 0.5, shape=(3, 3))
        factor, _, _ = pm.LKJCholeskyCov("factor", n=3, eta=2, sd_dist=pm.HalfNormal.dist(1, shape=3))
        pm.MvNormal("y", a + pm.math.dot(series[:-1], lag.T), chol=factor, observed=series[1:])
    return model


def mixture(rng: Numbers) -> pm.Model:
    """Two regression lines, which one is not known, 300 rows: 7 coordinates."""
    x, first = rng.normal(size=300), rng.random(300) < 0.35
    y = np.where(first, -1 + 1.5 * x, 1.5 - 0.5 * x) + 0.5 * rng.normal(size=300)
    with pm.Model() as model:
        a = pm.Normal("a", [-1, 1], 1, shape=2, transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])
        b, sd = pm.Normal("b", 0, 1, shape=2), pm.HalfNormal("sd", 1, shape=2)
        laws = pm.Normal.dist(a + b * x[:, None], sd, shape=(300, 2))
        pm.Mixture("y", w=pm.Dirichlet("weights", [2.0, 2.0]), comp_dists=laws, observed=y)
    return model


def binomial_of_thousand_groups(rng: Numbers) -> pm.Model:
    """Successes in 1,000 groups of 5 to 50 trials: 1,002 coordinates."""
    trials = rng.integers(5, 50, 1000)
    p = 1 / (1 + np.exp(-(-0.5 + 0.7 * rng.normal(size=1000))))
    with pm.Model() as model:
        effect = pm.HalfNormal("sd", 1) * pm.Normal("z", 0, 1, shape=1000)
        pm.Binomial("y", n=trials, logit_p=pm.Normal("mean", 0, 1) + effect, observed=rng.binomial(trials, p))
    return model


def logistic_of_100_000(rng: Numbers) -> pm.Model:
    """Logistic regression on 100,000 rows and 20 columns: 21 coordinates."""
    return logistic(rng, 100_000)


def gaussian_process(rng: Numbers) -> pm.Model:
    """Gaussian process on 200 points, integrated out: 3 coordinates."""
    x = np.sort(10 * rng.random(200))
    with pm.Model() as model:
        scale, length, sd = pm.HalfNormal("scale", 1), pm.InverseGamma("length", 5, 5), pm.HalfNormal("sd", 1)
        distance = (x[:, None] - x) ** 2
        covariance = scale**2 * pt.exp(-0.5 * distance / length**2) + (sd**2 + 1e-6) * pt.eye(200)
        y = np.sin(x) + 0.3 * rng.normal(size=200)
        pm.MvNormal("y", np.zeros(200), cov=covariance, observed=y)
    return model


MODELS: dict[str, Callable[[Numbers], pm.Model]] = {
    one.__name__: one
    for one in (
        crossed_counts, correlated_slopes, item_response, gaussian_process_basis, volatility, dispersed_counts,
        logistic, survival_with_frailty, hurdle, ordinal_mixed, spatial_counts, spline, vector_autoregression, mixture,
        binomial_of_thousand_groups, logistic_of_100_000, gaussian_process,
    )
}  # fmt: skip
