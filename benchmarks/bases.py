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
from ordinary_models import MODELS

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import centred
from bread.fitting.search.work import FitWork
from bread.paths.mixture import gaussian

DRAWS = 400  # of each law
NEVER = 1e9  # nats of divergence, however many of which do


NAMES = ("crossed_counts", "correlated_slopes", "dispersed_counts")


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
    for name in sys.argv[1:] or NAMES:
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
