"""Draws that first looks are measured at, kept in files: python benchmarks/first_look_draws.py {pymc,stan} MODEL ...

By NUTS with its defaults, 4 chains of 500 (PyMC) or as many as the embedded engine makes (Stan), one file a seed.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def file_of(folder: Path, name: str, seed: int = 1) -> Path:
    return folder / f"{name.replace(' ', '_').replace(',', '')}_{seed}.npz"


def draws_of(file: Path) -> dict[str, Any]:
    with np.load(file) as arrays:
        return dict(arrays)


def by_pymc(name: str, seed: int) -> dict[str, Any]:
    import hard_posteriors
    import pymc as pm

    with hard_posteriors.MODELS[name]() as model:
        drawn = pm.sample(
            500, tune=500, chains=4, cores=1, random_seed=seed, progressbar=False, compute_convergence_checks=False
        )
    return {one.name: np.asarray(drawn["posterior"][one.name].values) for one in model.free_RVs}


def by_stan(name: str, seed: int) -> dict[str, Any]:
    import shapes_stan

    from bread.backends import open_model
    from bread.backends.base import OpenOptions

    program, data, observed = shapes_stan.PROGRAMS[name]
    opened = open_model(program, OpenOptions(data=data, observed=observed, density_only=True))
    return dict(opened.fit(seed=seed, cores=1, progressbar=False).draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("pymc", "stan"))
    parser.add_argument("names", nargs="+")
    parser.add_argument("--folder", type=Path, default=Path("first_look_draws"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    options.folder.mkdir(exist_ok=True)
    for name in options.names:
        for seed in options.seeds:
            file = file_of(options.folder, name, seed)
            if not file.exists():
                np.savez(file, **(by_pymc if options.kind == "pymc" else by_stan)(name, seed))


if __name__ == "__main__":
    main()
