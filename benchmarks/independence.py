"""A trial of independence proposals from the path's start before each transition.

`python benchmarks/independence.py`. Ten models in NumPy, static HMC along the prior path and the path that
"auto" takes, with and without the proposal, at one T. V falls as 1 / sqrt(T), so that the work to reach a V goes as the
work at this T times V squared. A proposal costs one evaluation of the density, a third of a gradient.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measuring import print_table

import bread
from bread.report.compat import read_group

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `tests` of this repository, not an installed one
from tests.models.reference import (
    AbsoluteMean,
    BetaBinomial,
    CompoundKernel,
    HierarchicalNormal,
    HMCKernel,
    IndependenceKernel,
    LinearRegression,
    MarginalMixture,
    NormalMean,
    NormalScale,
)

SEEDS = range(3)
TEMPERATURES = {"prior": 32, "auto": 8}
EVALUATION = 1 / 3  # of a gradient
_RNG = np.random.default_rng(7)
_X = _RNG.normal(size=(30, 10))
_SCALED = _RNG.normal(0.0, 0.3, 20)


def models(kernel: Any) -> dict[str, Any]:
    """Return the ten models with a kernel."""
    return {
        "normal mean": NormalMean(np.array([0.4, 1.9, 1.1]), kernel=kernel),
        "normal mean, far out": NormalMean(np.array([8.0, 9.0, 8.5, 9.5]), prior_sd=1.5, noise_sd=0.5, kernel=kernel),
        "beta-binomial": BetaBinomial(np.array([3, 1, 9]), np.array([4, 3, 10]), alpha=2.0, beta=3.0, kernel=kernel),
        "half-normal scale": NormalScale(_SCALED, kernel=kernel),
        "half-normal scale, 3 data": NormalScale(np.array([0.1, -0.2, 0.15]), kernel=kernel),
        "two modes": AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=kernel),
        "mixture of two": MarginalMixture(
            np.array([0.3]), probability=0.3, shifts=(0.0, 2.0), noise_sds=(0.2, 1.0), prior_sd=1.5, kernel=kernel
        ),
        "hierarchy of 3": HierarchicalNormal(np.array([1.5, -0.2, 0.6]), np.array([1.0, 1.5, 0.8]), kernel=kernel),
        "regression of 3": LinearRegression(_X[:, :3].sum(axis=1), _X[:, :3], noise_sd=1.5, kernel=kernel),
        "regression of 10": LinearRegression(_X.sum(axis=1), _X, noise_sd=1.5, kernel=kernel),
    }


def work(model: Any, path: str, seed: int) -> tuple[float, float]:
    """Return gradients (evaluations counted as a third each) and V of one check."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = bread.check(
            model, simulate_from="prior", path=path, n_temperatures=TEMPERATURES[path], draws=0, tune_on="shared",
            random_seed=seed, cores=1, progressbar=False,
        )  # fmt: skip
    spent = 0.0
    for direction in ("forward", "reverse"):
        group = read_group(report, direction)
        finished = group["finished"].values
        counts = group["n_gradients"].values + EVALUATION * group["n_evaluations"].values
        spent += float(counts[finished.astype(bool)].sum())
    return spent, bread.verdict(report).error


def main() -> None:
    """Print a row a model and path, medians over the seeds."""
    plain, mixed = HMCKernel(), CompoundKernel((IndependenceKernel(), HMCKernel()))
    rows = []
    for path in ("prior", "auto"):
        for name in models(plain):
            without, with_it = (
                np.mean([work(models(kernel)[name], path, seed) for seed in SEEDS], axis=0) for kernel in (plain, mixed)
            )
            cells = [f"{spent:.3g}, V = {error:.3f}" for spent, error in (without, with_it)]
            gain = without[0] * without[1] ** 2 / (with_it[0] * with_it[1] ** 2)
            rows.append((name, path, *cells, f"{gain:.2f}"))
            print(rows[-1], flush=True, file=sys.stderr)
    print_table(
        "Independence proposals from the path's start",
        ("model", "path", "HMC: gradients", "with the proposal", "times cheaper"),
        rows,
        "Annealing alone; means of three seeds.",
    )


if __name__ == "__main__":
    main()
