"""How near references come to the posterior before any annealing: python benchmarks/references.py [--only NAME ...].

Hard models with several scales: 4000 draws of a long `pm.sample` of the real data stand for the posterior. Families are
fitted to every second one; a reference given some coordinates is found from where these are. One row a model: the
Jeffreys divergence (nats) on the other half of the draws and 1000 of each reference.
"""

from __future__ import annotations

import argparse
from typing import Any

import hard_posteriors
import numpy as np
import pymc as pm
from measuring import SEED, machine, print_table

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.fitting.conditional.one_driver import rank_drivers
from bread.fitting.gaussian.families import FAMILIES
from bread.fitting.search.searches import conditional
from bread.fitting.search.work import FitWork

DRAWS, TUNE, CHAINS, TARGET_ACCEPT = 1000, 1500, 4, 0.97
OWN_DRAWS = 1000
NAMES = ("two_scales", "crossed", "lkj_slopes")


def long_run(model: Any, layout: Any) -> np.ndarray:
    """Return draws (n, dim) of `pm.sample`, unconstrained."""
    kept = {"include_transformed": True}
    with model:
        trace = pm.sample(
            DRAWS, tune=TUNE, chains=CHAINS, cores=1, target_accept=TARGET_ACCEPT, random_seed=SEED,
            progressbar=False, idata_kwargs=kept,
        )  # fmt: skip
    states = np.empty((CHAINS * DRAWS, layout.dim))
    for value in model.value_vars:
        name = model.values_to_rvs[value].name
        states[:, layout.positions[name]] = trace.posterior[value.name].to_numpy().reshape(len(states), -1)
    return states


def row_of(name: str) -> tuple[Any, ...]:
    """Return one row."""
    model = hard_posteriors.MODELS[name]()
    opened = open_model(model, OpenOptions())
    layout = opened.info.layout
    states = long_run(model, layout)
    fitted_to, held_out = states[::2], states[1::2]
    work = FitWork(opened.condition(opened.info.data.observed), layout.may_be_scale, SEED, 0)

    def divergence(reference: Any) -> float:
        own = reference.sample(OWN_DRAWS, np.random.default_rng(SEED))
        return float(work.log_ratio(reference, held_out).mean() - work.log_ratio(reference, own).mean())

    fits = {family: fit(fitted_to, layout.may_be_scale) for family, fit in FAMILIES.items()}
    off = {family: divergence(reference) for family, reference in fits.items() if reference is not None}
    best = min(off, key=lambda family: off[family])
    spread = fitted_to.std(axis=0)
    middle = fitted_to[np.argmin((((fitted_to - np.median(fitted_to, axis=0)) / spread) ** 2).sum(axis=1))]
    found = conditional(work, rank_drivers(fitted_to[::5], layout.may_be_scale), middle, fitted_to)
    if found is None:
        return name, layout.dim, f"{off[best]:.2g} ({best})", "none", "", work.n_gradients
    return name, layout.dim, f"{off[best]:.2g} ({best})", divergence(found), len(found.drivers), work.n_gradients


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(hard_posteriors.MODELS), default=NAMES, metavar="NAME")
    options = parser.parse_args()
    print(machine())
    print_table(
        "Jeffreys divergence between reference and posterior, nats",
        ("model", "d", "best family fitted to draws", "given some coordinates", "of them", "gradients of finding it"),
        [row_of(name) for name in options.only],
    )
