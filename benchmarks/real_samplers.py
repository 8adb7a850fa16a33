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
from pymc import step_methods as STEPS
from pymc.step_methods.hmc.quadpotential import QuadPotentialFull

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


COVARIANCE = np.eye(3) + 0.5  # about that of `correlated`
PRECISION = np.linalg.inv(COVARIANCE)


def with_options(kind: Any, **options: Any) -> Callable[[pm.Model], Any]:
    return lambda model: kind(model=model, **options)


def on_discrete(kind: Any, **options: Any) -> Callable[[pm.Model], Any]:
    """Return a builder of a step method that wants its variables named."""
    return lambda model: kind(model.free_RVs, model=model, **options)


def multivariate(model: pm.Model) -> Any:
    n = int(sum(np.size(value) for value in model.initial_point().values()))
    return pm.Metropolis(S=np.eye(n) + 0.5, proposal_dist=pm.step_methods.MultivariateNormalProposal, model=model)


def two_steps(model: pm.Model) -> Any:
    """Return a compound step: slices for the scale, NUTS for the rest."""
    free = model.free_RVs
    return [pm.Slice(free[:1], model=model), pm.NUTS(free[1:], model=model)]


METHODS: dict[str, tuple[Any, tuple[Build, ...]]] = {
    "Slice": (pm.Slice, CONTINUOUS),
    "Slice, w=0.1": (with_options(pm.Slice, w=0.1), (scalar, correlated)),
    "Slice, tune=False": (with_options(pm.Slice, tune=False), (scalar, heavy_tails)),
    "Slice, blocked=True": (with_options(pm.Slice, blocked=True), (funnel,)),
    "Slice, iter_limit=50": (with_options(pm.Slice, iter_limit=50), (correlated,)),
    "Metropolis, normal": (with_options(pm.Metropolis, proposal_dist=STEPS.NormalProposal), (*CONTINUOUS, *WHOLE)),
    "Metropolis, uniform": (with_options(pm.Metropolis, proposal_dist=STEPS.UniformProposal), (scalar, matrix, counts)),
    "Metropolis, Cauchy": (with_options(pm.Metropolis, proposal_dist=STEPS.CauchyProposal), (scalar, matrix, counts)),
    "Metropolis, Laplace": (with_options(pm.Metropolis, proposal_dist=STEPS.LaplaceProposal), (scalar, matrix, counts)),
    "Metropolis, Poisson": (with_options(pm.Metropolis, proposal_dist=STEPS.PoissonProposal), WHOLE),
    "Metropolis, multivariate normal": (multivariate, (correlated, matrix)),
    "Metropolis, S a vector": (with_options(pm.Metropolis, S=np.array([0.3, 1.0, 2.0])), (correlated,)),
    "Metropolis, S a matrix": (with_options(pm.Metropolis, S=COVARIANCE), (correlated, bounded)),
    "Metropolis, scaling=0.3": (with_options(pm.Metropolis, scaling=0.3), (correlated,)),
    "Metropolis, tune=False": (with_options(pm.Metropolis, tune=False), (scalar,)),
    "Metropolis, tune_interval=20": (with_options(pm.Metropolis, tune_interval=20), (heavy_tails,)),
    "Metropolis, blocked": (with_options(pm.Metropolis, blocked=True), (funnel, matrix)),
    "BinaryMetropolis": (on_discrete(pm.BinaryMetropolis), (binary,)),
    "BinaryMetropolis, scaling=3": (on_discrete(pm.BinaryMetropolis, scaling=3.0), (binary,)),
    "BinaryMetropolis, tune=False, blocked=False": (
        on_discrete(pm.BinaryMetropolis, tune=False, blocked=False),
        (binary,),
    ),
    "BinaryGibbsMetropolis": (on_discrete(pm.BinaryGibbsMetropolis), (binary,)),
    "BinaryGibbsMetropolis, transit_p=0.3": (on_discrete(pm.BinaryGibbsMetropolis, transit_p=0.3), (binary,)),
    "BinaryGibbsMetropolis, fixed order": (
        on_discrete(pm.BinaryGibbsMetropolis, order=[2, 0, 1], transit_p=1.0),
        (binary,),
    ),
    "CategoricalGibbsMetropolis, uniform": (
        on_discrete(pm.CategoricalGibbsMetropolis, proposal="uniform"),
        (binary, *CATEGORICAL),
    ),
    "CategoricalGibbsMetropolis, proportional": (
        on_discrete(pm.CategoricalGibbsMetropolis, proposal="proportional"),
        (binary, *CATEGORICAL),
    ),
    "CategoricalGibbsMetropolis, fixed order": (
        on_discrete(pm.CategoricalGibbsMetropolis, proposal="uniform", order=[1, 0]),
        (categories(3),),
    ),
    "DEMetropolisZ": (pm.DEMetropolisZ, (scalar, correlated, matrix)),
    "DEMetropolisZ, normal, tune=lambda": (
        with_options(pm.DEMetropolisZ, proposal_dist=STEPS.NormalProposal, tune="lambda"),
        (correlated,),
    ),
    "DEMetropolisZ, uniform, tune=None": (
        with_options(pm.DEMetropolisZ, proposal_dist=STEPS.UniformProposal, tune=None, scaling=0.1),
        (correlated,),
    ),
    "DEMetropolisZ, lamb=0.5, tune_drop_fraction=0": (
        with_options(pm.DEMetropolisZ, lamb=0.5, tune_drop_fraction=0.0),
        (scalar,),
    ),
    "HamiltonianMC": (pm.HamiltonianMC, CONTINUOUS),
    "HamiltonianMC, path_length=0.5": (with_options(pm.HamiltonianMC, path_length=0.5), (correlated,)),
    "HamiltonianMC, max_steps=3": (with_options(pm.HamiltonianMC, max_steps=3), (correlated,)),
    "HamiltonianMC, full metric": (with_options(pm.HamiltonianMC, scaling=PRECISION, is_cov=False), (correlated,)),
    "HamiltonianMC, is_cov=True": (with_options(pm.HamiltonianMC, scaling=COVARIANCE, is_cov=True), (correlated,)),
    "HamiltonianMC, potential=": (with_options(pm.HamiltonianMC, potential=QuadPotentialFull(COVARIANCE)), (bounded,)),
    "HamiltonianMC, target_accept=0.95": (with_options(pm.HamiltonianMC, target_accept=0.95), (funnel,)),
    "HamiltonianMC, Emax=2": (with_options(pm.HamiltonianMC, Emax=2.0), (funnel,)),
    "NUTS": (pm.NUTS, CONTINUOUS),
    "NUTS, max_treedepth=2": (with_options(pm.NUTS, max_treedepth=2), (correlated, funnel)),
    "NUTS, early_max_treedepth=3": (with_options(pm.NUTS, early_max_treedepth=3), (funnel,)),
    "NUTS, step_rand": (
        with_options(pm.NUTS, step_rand=lambda size, rng: size * rng.uniform(0.8, 1.2)),
        (correlated,),
    ),
    "NUTS, full metric": (with_options(pm.NUTS, scaling=PRECISION, is_cov=False), (correlated,)),
    "NUTS, is_cov=True": (with_options(pm.NUTS, scaling=COVARIANCE, is_cov=True), (correlated,)),
    "NUTS, scaling a vector": (with_options(pm.NUTS, scaling=np.array([1.0, 2.0, 0.5])), (heavy_tails,)),
    "NUTS, potential=": (with_options(pm.NUTS, potential=QuadPotentialFull(COVARIANCE)), (bounded,)),
    "NUTS, target_accept=0.95": (with_options(pm.NUTS, target_accept=0.95), (funnel,)),
    "NUTS, step_scale=1, gamma=0.1, k=0.9, t0=20": (
        with_options(pm.NUTS, step_scale=1.0, gamma=0.1, k=0.9, t0=20),
        (correlated,),
    ),
    "NUTS, Emax=2": (with_options(pm.NUTS, Emax=2.0), (correlated, funnel)),
    "NUTS, adapt_step_size=False": (with_options(pm.NUTS, adapt_step_size=False), (correlated,)),
    "NUTS and Slice": (two_steps, (funnel,)),
}  # pm.DEMetropolis needs other chains: see `benchmarks/demetropolis.py`


def row(method: str, build: Build, *, budget: float, seed: int) -> str:
    """Return the line of one method on one model."""
    kernel, _ = METHODS[method]
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = bread.debug(build(), kernel=kernel, budget=budget, random_seed=seed, progressbar=False)
        verdict, table = bread.verdict(report), bread.summary(report, kind="bounds")
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
