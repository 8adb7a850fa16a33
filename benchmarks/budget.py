"""What a budget was predicted to show, against what it showed: `python benchmarks/budget.py [NAME ...]`.

Models in NumPy, of PyMC and of Stan. Budgets in gradient evaluations, but for finite models, whose kernels
take none. One row a model: the limit of V that `bread.plan` predicts with its 90 % interval, the forecast of the check
itself, and the limit that the check ended with. Below it: how many outcomes lay within either interval.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from path_models import path_models

import bread
from bread import exact

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `tests` of this repository, not an installed one
from tests.models.finite import FiniteModel
from tests.models.reference import (
    AbsoluteMean,
    BetaBinomial,
    HierarchicalNormal,
    HMCKernel,
    LinearRegression,
    MarginalMixture,
    NormalMean,
)

HMC = HMCKernel(n_leapfrog=5)
X = np.random.default_rng(0).normal(size=(10, 3))
Y = X @ np.array([1.0, -0.5, 0.3]) + np.random.default_rng(1).normal(size=10)
METROPOLIS = exact.Lazy(exact.MetropolisHastings(exact.grid_neighbours((3,))), 0.3)


def _finite(n: int) -> FiniteModel:
    likelihood = np.array([[0.8, 0.2], [0.1, 0.9], [0.4, 0.6]])
    return FiniteModel(np.array([0.5, 0.2, 0.3]), likelihood, np.arange(n) % 2, METROPOLIS)


def _eight_schools() -> Any:
    import pymc as pm

    effects, sds = [28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfNormal("tau", 5)
        theta = pm.Normal("theta", 0, 1, shape=8)
        pm.Normal("y", mu + tau * theta, sds, observed=effects)
    return model


def _poisson() -> Any:
    import pymc as pm

    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("count", rate, observed=[3, 1, 4, 1, 5])
    return model


def _stan(name: str, budget: int) -> tuple[Callable[[], Any], str | int, dict[str, Any]]:
    """Return the entry of a Stan program of the benchmarks of paths."""
    found = path_models()[name]
    return lambda: found.program, budget, {"data": found.data, "observed": list(found.observed)}


STAN = {
    "regression, 5 data": 500_000,
    "schools, non-centred": 2_000_000,
    "half-normal scale": 1_000_000,
    "Poisson regression": 3_000_000,
    "Weibull survival": 3_000_000,
}
MODELS: dict[str, tuple[Callable[[], Any], str | int, dict[str, Any]]] = {
    "normal mean": (lambda: NormalMean(np.array([0.4, 1.9, 1.1]), prior_sd=1.5, kernel=HMC), 300_000, {}),
    "normal mean, reference": (
        lambda: NormalMean(np.array([0.4, 1.9, 1.1]), prior_sd=1.5, kernel=HMC), 300_000, {"path": "reference"},
    ),
    "regression, 3 slopes": (lambda: LinearRegression(Y, X, noise_sd=1.0, kernel=HMC), 600_000, {}),
    "hierarchy": (
        lambda: HierarchicalNormal(np.array([1.5, -0.2, 0.6]), np.array([1.0, 1.5, 0.8]), kernel=HMC), 400_000, {},
    ),
    "beta-binomial": (
        lambda: BetaBinomial(np.array([3, 1]), np.array([4, 3]), alpha=2.0, beta=3.0, kernel=HMC), 300_000, {},
    ),
    "two modes": (lambda: AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMC), 300_000, {}),
    "mixture": (
        lambda: MarginalMixture(
            np.array([0.3]), probability=0.3, shifts=(0.0, 2.0), noise_sds=(0.2, 1.0), prior_sd=1.5, kernel=HMC
        ),
        300_000, {},
    ),
    "three states, 5 outcomes": (lambda: _finite(5), "20 s", {}),
    "three states, 12 outcomes": (lambda: _finite(12), "20 s", {}),
    "Poisson rate (PyMC)": (_poisson, 400_000, {}),
    "eight schools (PyMC)": (_eight_schools, 2_000_000, {}),
    **{f"{name} (Stan)": _stan(name, budget) for name, budget in STAN.items()},
}  # fmt: skip


def measure(name: str, seed: int = 1) -> dict[str, Any]:
    """Return prediction and outcome of one model."""
    build, budget, more = MODELS[name]
    settings = {
        "simulate_from": "prior", "path": "prior", "tune": 50, "tune_on": "shared", "cores": 1, "max_error": 0.02,
        "max_temperatures": 4096, "random_seed": seed, "progressbar": False, **more,
    }  # fmt: skip
    planned = bread.plan(build(), budget=budget, **settings)
    report = bread.check(build(), budget=budget, **settings)
    found = json.loads(report.attrs["budget"])
    row = bread.summary(report, kind="bounds").loc[report.attrs["n_temperatures"]]
    return {
        "model": name,
        "budget": str(budget),
        "planned": (planned.limit, planned.lower, planned.upper),
        "plan_share": planned.spent / planned.budget,
        "predicted": tuple(found["predicted"][key] for key in ("limit", "lower", "upper")),
        "outcome": float(row["error_limit"]),
        "V": float(row["error"]),
        "spent": found["spent"] / found["amount"],
        "n_temperatures": int(report.attrs["n_temperatures"]),
        "n_simulations": int(report.attrs["n_confirming"]),
    }


def main() -> None:
    head = "model | budget | plan: limit (90 %) | its share | first rounds: limit (90 %) | outcome | T, R | spent"
    print(f"| {head} |\n|{'---|' * 8}")
    held: list[tuple[bool, bool]] = []
    for name in sys.argv[1:] or MODELS:
        try:
            found = measure(name)
        except bread.BreadError as error:
            print(f"| {name} | {error} |", flush=True)
            continue
        cells = [
            found["model"], found["budget"], *(
                f"{found[key][0]:.2g} ({found[key][1]:.2g} to {found[key][2]:.2g})" for key in ("planned",)
            ),
            f"{found['plan_share']:.0%}",
            "{:.2g} ({:.2g} to {:.2g})".format(*found["predicted"]),
            f"{found['outcome']:.2g}", f"{found['n_temperatures']}, {found['n_simulations']}", f"{found['spent']:.0%}",
        ]  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)
        by_plan, by_check = (found[key][1] <= found["outcome"] <= found[key][2] for key in ("planned", "predicted"))
        held.append((by_plan, by_check))
    by_plan, by_check = (sum(column) for column in zip(*held, strict=True))
    print(f"\nOf {len(held)} outcomes {by_check} lie within the check's own interval, {by_plan} within the plan's.")


if __name__ == "__main__":
    main()
