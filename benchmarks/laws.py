"""What exact laws given scales cost, and how near they are: python benchmarks/laws.py [--only NAME ...].

A law is found on the model's data, then on simulated data sets from that one. One row a model: how many scales;
gradients and processor seconds of both; the Jeffreys divergence (nats) that draws of each law show, weighted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import hard_posteriors
import numpy as np
from measuring import SEED, machine, print_table

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.fitting.importance.adaptation import truncated
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import by_precision
from bread.fitting.search.work import FitWork
from bread.paths.precision import PrecisionReference

NAMES = ("two_scales", "crossed", "lkj_slopes", "horseshoe")
SETS = 6
OWN_DRAWS = 2000
ANY = 100.0  # nats that a law's own draws may show, to be in the table


class Found:
    """Laws of some data sets: what they cost and what their own draws show."""

    def __init__(self) -> None:
        self.gradients: list[int] = []
        self.seconds: list[float] = []
        self.shown: list[float] = []

    def find(self, work: FitWork, like: PrecisionReference | None) -> PrecisionReference | None:
        """Return the law of one data set."""
        began = time.process_time()
        law = by_precision(work, many_prior_draws(work), ANY, like)
        self.seconds.append(time.process_time() - began)
        self.gradients.append(work.n_gradients)
        if law is not None:
            own = law.sample(OWN_DRAWS, np.random.default_rng(SEED))
            self.shown.append(float(truncated(work.log_ratio(law, own))))
        return law

    def __str__(self) -> str:
        shown = ", ".join(f"{value:.2f}" for value in self.shown) or "none found"
        return f"{np.mean(self.gradients):,.0f}; {np.mean(self.seconds):.2f} s; {shown}"


def row_of(name: str, n_sets: int) -> tuple[Any, ...]:
    """Return one row."""
    opened = open_model(hard_posteriors.MODELS[name](), OpenOptions())
    layout, first, others = opened.info.layout, Found(), Found()
    law = first.find(FitWork(opened.condition(opened.info.data.observed), layout.may_be_scale, SEED, 0), None)
    if law is None:
        return name, layout.dim, "", str(first), ""
    simulated = opened.simulate(n_sets, fixed=None, seed=np.random.SeedSequence(SEED))
    for index in range(n_sets):
        work = FitWork(opened.condition(simulated.data_of(index)), layout.may_be_scale, SEED, index)
        others.find(work, law)
    return name, layout.dim, len(law.drivers), str(first), str(others)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(hard_posteriors.MODELS), default=NAMES, metavar="NAME")
    parser.add_argument("--sets", type=int, default=SETS, help="simulated data sets")
    options = parser.parse_args()
    print(machine())
    print_table(
        "Exact laws given scales: gradients; processor seconds; nats of divergence",
        ("model", "d", "scales", "on the model's data", "on simulated data, means; each"),
        [row_of(name, options.sets) for name in options.only],
    )
