"""V by how often the kernel moves a chain that proposes draws: python benchmarks/resting.py [--only NAME ...].

Hard models in PyMC along their reference, whose draws are proposed at each temperature; NUTS moves chains at each, at
one in 4, 8 and 16. One fit by `pm.sample` serves all checks of a model, which have the same data sets and references.
One row a T: V, and gradients a data set with those of proposals.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import hard_posteriors
import numpy as np
import pymc as pm
from measuring import SEED, machine, print_table

import bread
from bread.report.compat import read_group
from bread.running.check import preparation

TEMPERATURES = {"crossed": (8, 32), "random_walk": (32, 64), "horseshoe": (16, 64)}
SETS = {"horseshoe": 6}
USUAL_SETS = 10
EVERY = (1, 4, 8, 16)


def measured(model: Any, posterior: Any, n_temperatures: int, n_sets: int, every: int) -> str:
    """Return V and gradients a data set."""
    with (
        warnings.catch_warnings(),
        patch.object(preparation, "wants_proposals", lambda *_: True),
        patch.object(preparation, "moves_every", lambda *_: every),
    ):
        warnings.simplefilter("ignore")
        report = bread.check(
            model, posterior=posterior, path="reference", n_temperatures=n_temperatures, simulations=n_sets, draws=0,
            random_seed=SEED, progressbar=False,
        )  # fmt: skip
    used = read_group(report, "bounds")["used"].values[-1]
    both = (read_group(report, way)["n_gradients"].values[-1][used] for way in ("forward", "reverse"))
    return f"{bread.verdict(report).error:.3f} ({np.nansum(sum(both)) / used.sum():,.0f})"


def rows_of(name: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a model."""
    model = hard_posteriors.MODELS[name]()
    with model:
        posterior = pm.sample(random_seed=SEED, progressbar=False, quiet=True)
    for n_temperatures in TEMPERATURES[name]:
        n_sets = SETS.get(name, USUAL_SETS)
        cells = [measured(model, posterior, n_temperatures, n_sets, every) for every in EVERY]
        yield name, n_temperatures, n_sets, *cells


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(TEMPERATURES), default=list(TEMPERATURES), metavar="NAME")
    options = parser.parse_args()
    print(machine())
    print_table(
        "V (gradients a data set) by how often NUTS moves a chain that proposes",
        ("model", "T", "data sets", *("each temperature" if every == 1 else f"one in {every}" for every in EVERY)),
        [row for name in options.only for row in rows_of(name)],
    )
