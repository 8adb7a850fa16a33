"""First looks at draws of PyMC models: python benchmarks/first_look_models.py {level,power} [MODEL ...].

``level``: draws of NUTS (4 chains of 500, four seeds) of ten models that it samples well. ``power``: mean-field ADVI by
``pm.fit`` on five models whose parameters are correlated.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from pathlib import Path
from typing import Any

import hard_posteriors
import numpy as np
import pymc as pm
from first_look_draws import by_pymc, draws_of, file_of

from bread.backends import open_model
from bread.backends.base import Model, OpenOptions
from bread.report.fit_quality import quality_attributes
from bread.running.check.first_look import look_at
from bread.statistics.first_look.first_look import LEVEL

SAMPLED_WELL = (
    "funnel_10", "funnel_20", "random_walk", "ordinal", "zero_inflated", "lkj_slopes", "weibull_censored",
    "large_logistic", "correlated_100", "simplex_corner",
)  # fmt: skip
CORRELATED = ("latent_gp", "random_walk", "crossed", "two_scales", "correlated_100")
SEEDS = {"level": range(1, 5), "power": range(1, 5)}


def by_advi(model: pm.Model, seed: int) -> dict[str, Any]:
    with model:
        fitted = pm.fit(20_000, method="advi", random_seed=seed, progressbar=False)
    drawn = fitted.sample(1000, random_seed=seed, return_inferencedata=True)
    return {one.name: np.asarray(drawn["posterior"][one.name].values) for one in model.free_RVs}


def row(opened: Model, name: str, seed: int, draws: dict[str, Any]) -> tuple[str, float]:
    fit = opened.read_posterior(draws)
    found, mixing = look_at(opened, fit), quality_attributes(fit)
    quality = f"{mixing['fit_r_hat']:.3f} | {mixing['fit_n_effective']:.0f}"
    return f"| {name} | {seed} | {quality} | {found.p_value:.2g} |", found.p_value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=SEEDS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--folder", type=Path, default=Path("first_look_draws"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    options.folder.mkdir(exist_ok=True)
    print("| model | seed | R-hat | effective | p |\n|---|---|---|---|---|")
    p_values = []
    for name in options.names or (SAMPLED_WELL if options.study == "level" else CORRELATED):
        model = hard_posteriors.MODELS[name]()
        opened = open_model(model, OpenOptions(density_only=True))
        for seed in options.seeds or SEEDS[options.study]:
            file = file_of(options.folder, name if options.study == "level" else f"advi_{name}", seed)
            if not file.exists():
                np.savez(file, **(by_pymc(name, seed) if options.study == "level" else by_advi(model, seed)))
            text, p_value = row(opened, name, seed, draws_of(file))
            print(text, flush=True)
            p_values.append(p_value)
    print(f"disagreement: {int((np.array(p_values) < LEVEL).sum())} of {len(p_values)}")


if __name__ == "__main__":
    main()
