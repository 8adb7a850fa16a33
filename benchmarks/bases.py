"""How far bases are from posteriors of hierarchies: python benchmarks/bases.py [NAME ...].

Two data sets of one model are sampled by `pm.sample`. A row a base: its Jeffreys divergence (nats) from the posterior
of the second, with a standard error. A Gaussian with mean and covariance of its own draws; one with the first data
set's covariance and its own mean; and the Gaussian in centred coordinates that `bread.fitting` finds without any draws,
with the gradients that this took.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pymc as pm
from measuring import SEED, machine
from numpy.typing import NDArray

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.fitting.initial import many_prior_draws
from bread.fitting.searches import centred
from bread.fitting.work import FitWork
from bread.paths.mixture import gaussian

DRAWS = 400  # of each law
NEVER = 1e9  # nats of divergence, however many of which do


def crossed_counts(rng: np.random.Generator) -> pm.Model:
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


def correlated_slopes(rng: np.random.Generator) -> pm.Model:
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


def dispersed_counts(rng: np.random.Generator) -> pm.Model:
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


MODELS = {one.__name__: one for one in (crossed_counts, correlated_slopes, dispersed_counts)}


def states_of(opened: Any, model: pm.Model) -> NDArray[np.float64]:
    """Return draws of the posterior, unconstrained, shape (n, dim)."""
    with model:
        draws = pm.sample(chains=4, random_seed=SEED, progressbar=False)
    values = opened.read_posterior(draws).flat_draws()
    return np.asarray(opened.unconstrain({name: values[name] for name in opened.info.layout.positions}))


def divergence(posterior: Any, law: Any, draws: NDArray[np.float64], rng: np.random.Generator) -> str:
    """Return the Jeffreys divergence (nats) and its standard error."""
    at = [law.sample(DRAWS, rng), draws[rng.integers(0, len(draws), DRAWS)]]
    ratios = [posterior.density_gradient(1.0, states)[0] - law.log_density(states) for states in at]
    error = np.sqrt(sum(one.var() / DRAWS for one in ratios))
    return f"{ratios[1].mean() - ratios[0].mean():8.2f} ({error:.2f})"


def main() -> None:
    """Print a table."""
    print(machine())
    for name in sys.argv[1:] or MODELS:
        rng = np.random.default_rng(SEED)
        first, second = MODELS[name](rng), MODELS[name](rng)
        options = OpenOptions()
        opened = open_model(second, options)
        others, own = states_of(open_model(first, options), first), states_of(opened, second)
        posterior = opened.condition(opened.info.data.observed)
        work = FitWork(posterior, np.asarray(opened.info.layout.transformed), SEED, 0)
        found = centred(work, many_prior_draws(work), NEVER)
        laws = {
            "its own draws' Gaussian": gaussian(own.mean(axis=0), np.cov(own.T)),
            "the other's, its mean": gaussian(own.mean(axis=0), np.cov(others.T)),
            f"centred, {work.n_gradients} gradients": found,
        }
        for label, law in laws.items():
            shown = "      none" if law is None else divergence(posterior, law, own, rng)
            print(f"{name:20} {own.shape[1]:4} {label:30} {shown}", flush=True)


if __name__ == "__main__":
    main()
