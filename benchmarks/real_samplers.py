"""Every step method that PyMC exports, with its proposals and options, before `bread.debug`.

    python benchmarks/real_samplers.py [--budget 0.3] [--seed 1] [--only Slice]

Each row is one method on one model that it can sample: a line of Markdown with the verdict, the smallest p-value after
correction, the test that gave it, and the seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import bread

Build = Callable[[], pm.Model]


def scalar() -> pm.Model:
    with pm.Model() as model:
        x = pm.Gamma("x", 2.0, 1.0)
        pm.Normal("y", x, 1.0, observed=np.array([0.3, 1.9]))
    return model


def correlated() -> pm.Model:
    covariance = np.array([[1.0, 0.9, 0.5], [0.9, 1.0, 0.6], [0.5, 0.6, 2.0]])
    with pm.Model() as model:
        x = pm.MvNormal("x", np.array([0.0, 1.0, -1.0]), covariance)
        pm.Poisson("y", pt.exp(0.5 * x), observed=np.array([2, 0, 1]))
    return model


def matrix() -> pm.Model:
    with pm.Model() as model:
        x = pm.SkewNormal("x", mu=0.0, sigma=1.0, alpha=3.0, shape=(2, 2))
        pm.Normal("y", pt.dot(x, np.array([1.0, 0.4])), 0.7, observed=np.array([0.2, 1.1]))
    return model


def heavy_tails() -> pm.Model:
    with pm.Model() as model:
        x = pm.StudentT("x", 4.0, 1.0, shape=3)
        pm.Normal("y", x, 2.0, observed=np.array([0.1, 3.0, -1.0]))
    return model


def bounded() -> pm.Model:
    with pm.Model() as model:
        x = pm.Beta("x", 2.0, 0.8, shape=3)
        pm.Binomial("y", 4, x, observed=np.array([1, 4, 2]))
    return model


def simplex() -> pm.Model:
    with pm.Model() as model:
        x = pm.Dirichlet("x", np.array([0.8, 2.0, 4.0]))
        pm.Multinomial("y", 5, x, observed=np.array([1, 0, 4]))
    return model


def funnel() -> pm.Model:
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 2.0)
        x = pm.Normal("x", 0.0, tau, shape=3)
        pm.Normal("y", x, 1.0, observed=np.array([0.5, -1.0, 2.5]))
    return model


def binary() -> pm.Model:
    with pm.Model() as model:
        x = pm.Bernoulli("x", np.array([0.3, 0.6, 0.8]), shape=3)
        pm.Normal("y", x[0] + 2.0 * x[1] * x[2], 0.8, observed=np.array([1.2]))
    return model


def categories(n: int) -> Build:
    def build() -> pm.Model:
        weights = np.arange(1.0, n + 1.0)
        with pm.Model() as model:
            x = pm.Categorical("x", weights / weights.sum(), shape=2)
            pm.Normal("y", x[0] - 0.5 * x[1], 1.0, observed=np.array([0.4]))
        return model

    build.__name__ = f"{n} categories"
    return build


def offset_support() -> pm.Model:
    with pm.Model() as model:
        x = pm.DiscreteUniform("x", 1, 4, shape=2)
        pm.Normal("y", x[0] * x[1], 2.0, observed=np.array([5.0]))
    return model


def counts() -> pm.Model:
    with pm.Model() as model:
        x = pm.Poisson("x", 3.0)
        pm.Normal("y", x, 1.5, observed=np.array([4.0]))
    return model


CONTINUOUS: tuple[Build, ...] = (scalar, correlated, matrix, heavy_tails, bounded, simplex, funnel)
CATEGORICAL: tuple[Build, ...] = (categories(2), categories(3), categories(5))
WHOLE: tuple[Build, ...] = (offset_support, counts)


def metropolis(proposal: Any) -> Callable[[pm.Model], Any]:
    return lambda model: pm.Metropolis(proposal_dist=proposal, model=model)


def multivariate(model: pm.Model) -> Any:
    n = int(sum(np.size(value) for value in model.initial_point().values()))
    return pm.Metropolis(S=np.eye(n) + 0.5, proposal_dist=pm.step_methods.MultivariateNormalProposal, model=model)


def gibbs(**options: Any) -> Callable[[pm.Model], Any]:
    return lambda model: pm.CategoricalGibbsMetropolis(model.free_RVs, model=model, **options)


def dense(kind: Any) -> Callable[[pm.Model], Any]:
    """Return a builder of HMC or NUTS with a full metric, of about the covariance of `correlated`."""
    return lambda model: kind(scaling=np.linalg.inv(np.eye(3) + 0.5), is_cov=False, model=model)


def two_steps(model: pm.Model) -> Any:
    """Return a compound step: slices for the scale, NUTS for the rest."""
    free = model.free_RVs
    return [pm.Slice(free[:1], model=model), pm.NUTS(free[1:], model=model)]


METHODS: dict[str, tuple[Any, tuple[Build, ...]]] = {
    "NUTS": (pm.NUTS, CONTINUOUS),
    "NUTS, max_treedepth=2": (lambda model: pm.NUTS(max_treedepth=2, model=model), (correlated, funnel)),
    "NUTS, step_rand": (
        lambda model: pm.NUTS(step_rand=lambda size, rng: size * rng.uniform(0.8, 1.2), model=model),
        (correlated,),
    ),
    "NUTS, full metric": (dense(pm.NUTS), (correlated,)),
    "NUTS, Emax=2": (lambda model: pm.NUTS(Emax=2.0, model=model), (correlated, funnel)),
    "NUTS, adapt_step_size=False": (lambda model: pm.NUTS(adapt_step_size=False, model=model), (correlated,)),
    "NUTS and Slice": (two_steps, (funnel,)),
    "HamiltonianMC": (pm.HamiltonianMC, CONTINUOUS),
    "HamiltonianMC, path_length=0.5": (lambda model: pm.HamiltonianMC(path_length=0.5, model=model), (correlated,)),
    "HamiltonianMC, max_steps=3": (lambda model: pm.HamiltonianMC(max_steps=3, model=model), (correlated,)),
    "HamiltonianMC, full metric": (dense(pm.HamiltonianMC), (correlated,)),
    "Slice": (pm.Slice, CONTINUOUS),
    "Slice, w=0.1": (lambda model: pm.Slice(w=0.1, model=model), (scalar,)),
    "Metropolis, normal": (metropolis(pm.step_methods.NormalProposal), (*CONTINUOUS, *WHOLE)),
    "Metropolis, uniform": (metropolis(pm.step_methods.UniformProposal), (scalar, matrix)),
    "Metropolis, Cauchy": (metropolis(pm.step_methods.CauchyProposal), (scalar, matrix)),
    "Metropolis, Laplace": (metropolis(pm.step_methods.LaplaceProposal), (scalar, matrix)),
    "Metropolis, Poisson": (metropolis(pm.step_methods.PoissonProposal), (counts, offset_support)),
    "Metropolis, multivariate normal": (multivariate, (correlated, matrix)),
    "Metropolis, blocked": (lambda model: pm.Metropolis(blocked=True, model=model), (funnel, matrix)),
    "Metropolis, scaling=0.3": (lambda model: pm.Metropolis(scaling=0.3, model=model), (correlated,)),
    "BinaryMetropolis": (lambda model: pm.BinaryMetropolis(model.free_RVs, model=model), (binary,)),
    "BinaryGibbsMetropolis": (lambda model: pm.BinaryGibbsMetropolis(model.free_RVs, model=model), (binary,)),
    "BinaryGibbsMetropolis, fixed order": (
        lambda model: pm.BinaryGibbsMetropolis(model.free_RVs, order=[2, 0, 1], transit_p=1.0, model=model),
        (binary,),
    ),
    "CategoricalGibbsMetropolis, uniform": (gibbs(proposal="uniform"), (binary, *CATEGORICAL)),
    "CategoricalGibbsMetropolis, proportional": (gibbs(proposal="proportional"), (binary, *CATEGORICAL)),
    "CategoricalGibbsMetropolis, fixed order": (gibbs(proposal="uniform", order=[1, 0]), (categories(3),)),
    "DEMetropolisZ": (pm.DEMetropolisZ, (scalar, correlated, matrix)),
    "DEMetropolisZ, normal, tune=lambda": (
        lambda model: pm.DEMetropolisZ(proposal_dist=pm.step_methods.NormalProposal, tune="lambda", model=model),
        (correlated,),
    ),
    "DEMetropolis": (pm.DEMetropolis, (scalar,)),
}


def row(method: str, build: Build, *, budget: float, seed: int) -> str:
    """Return the line of one method on one model."""
    kernel, _ = METHODS[method]
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = bread.debug(build(), kernel=kernel, budget=budget, random_seed=seed, progressbar=False)
        verdict, table = bread.verdict(report), bread.summary(report)
    except Exception as error:
        said, p_value, least = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}", float("nan"), ""
    else:
        said = verdict.status
        done = table[table["p_value"].notna()].sort_values("p_value")
        p_value, least = float(done["p_value"].iloc[0]), str(done["test"].iloc[0])
    return f"| {method} | {build.__name__} | {said} | {p_value:.2g} | {least} | {time.perf_counter() - began:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="methods whose name begins so")
    parser.add_argument("--model", default="", help="models whose name begins so")
    wanted = parser.parse_args()
    print(
        f"PyMC {pm.__version__}\n\n| method | model | verdict | smallest p | its test | s |\n|---|---|---|---|---|---|"
    )
    for method, (_, builds) in METHODS.items():
        for build in builds:
            if method.startswith(wanted.only) and build.__name__.startswith(wanted.model):
                print(row(method, build, budget=wanted.budget, seed=wanted.seed), flush=True)


if __name__ == "__main__":
    main()
