"""PyMC's DEMetropolis before `bread.debug`: its population of chains is one state, moved by PyMC's own stepper.

    python benchmarks/demetropolis.py [--budget 1] [--seed 1] [--only normal] [--chains 4]

Each row is one target with one set of options: as `pm.sample` moves the chains (all at once, by the states that the
others had before), and, as a control, the same step methods taken in turn, each by the states that the others have now.
"""

from __future__ import annotations

import argparse
import copy
import logging
import time
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pymc.sampling.population import PopulationStepper
from scipy import stats

import bread
from bread.debugging.target import Target
from bread.debugging.targets import copies

DIM = 3
LAWS = {
    "normal": (stats.norm(), lambda: pm.Normal("x", shape=DIM)),
    "student t": (stats.t(5.0), lambda: pm.StudentT("x", 5.0, shape=DIM)),
    "gumbel": (stats.gumbel_r(), lambda: pm.Gumbel("x", 0.0, 1.0, shape=DIM)),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "uniform proposal": {"proposal_dist": pm.step_methods.UniformProposal},
    "Cauchy proposal": {"proposal_dist": pm.step_methods.CauchyProposal},
    "Laplace proposal": {"proposal_dist": pm.step_methods.LaplaceProposal},
    "scaling=0.1, S a vector": {"scaling": 0.1, "S": np.array([1.0, 2.0, 0.5])},
    "lamb=0.5, tune=lambda": {"lamb": 0.5, "tune": "lambda"},
    "tune=None": {"tune": None},
}


def target(name: str) -> Target:
    """Return one chain's target."""
    law = LAWS[name][0]
    return Target(name, DIM, lambda x: law.logpdf(x).sum(-1), lambda n, rng: law.rvs((n, DIM), random_state=rng))


class Moving(NamedTuple):
    """A population in one run: points of all chains, the list that every step method reads, and what steps them."""

    points: list[dict[str, Any]]
    steppers: list[Any]
    all_at_once: PopulationStepper


class Population:
    """All chains of DEMetropolis as one `bread.debugging.stepper.Stepper`, tuning ended."""

    def __init__(self, name: str, chains: int, in_turn: bool, **options: Any) -> None:
        with pm.Model() as model:
            LAWS[name][1]()
            self._step = pm.DEMetropolis(**options)
        self._step.stop_tuning()
        (self._value,) = (variable.name for variable in model.value_vars)
        self._chains, self._in_turn = chains, in_turn

    def start(self, x: np.ndarray, rng: np.random.Generator) -> Moving:
        """Link a population that begins at these points."""
        points = [{self._value: part} for part in x.reshape(self._chains, DIM)]
        steppers = [copy.copy(self._step) for _ in points]
        for number, step in enumerate(steppers):
            step.set_rng(rng)
            step.link_population(points, number)
        return Moving(points, steppers, PopulationStepper(steppers, parallelize=False, progressbar=False))

    def step(self, moving: Moving, rng: np.random.Generator) -> Moving:
        """Move all chains once."""
        if self._in_turn:
            for number, step in enumerate(moving.steppers):
                moving.points[number], _ = step.step(moving.points[number])
        else:  # as `pymc.sampling.population._iter_population` does
            updates = moving.all_at_once.step(False, moving.points)
            moving.points[:] = [point for point, _ in updates]
        return moving

    def position(self, moving: Moving) -> np.ndarray:
        """Return the points of all chains, one after another."""
        return np.concatenate([point[self._value] for point in moving.points])


def row(name: str, chains: int, in_turn: bool, options: str, budget: float, seed: int) -> str:
    """Return one line of Markdown."""
    began = time.process_time()
    report = bread.debug(
        kernel=lambda _: Population(name, chains, in_turn, **OPTIONS[options]),
        targets=[copies(target(name), chains)],
        budget=budget,
        random_seed=seed,
        progressbar=False,
    )
    table = bread.summary(report, kind="bounds")
    done = table[table["p_value"].notna()].sort_values("p_value")
    first = done.iloc[0]
    how = "in turn" if in_turn else "as pm.sample"
    return (
        f"| {name} | {chains} | {options} | {how} | {bread.verdict(report).status} | {first['p_value']:.2g} | "
        f"{first['test']} | {time.process_time() - began:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chains", type=int, nargs="*", default=[4, 8])
    parser.add_argument("--only", default="", help="targets whose name begins so")
    parser.add_argument("--options", default="", help="sets of options whose name begins so")
    parser.add_argument("--how", choices=("both", "sample", "turn"), default="both")
    wanted = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.WARNING)  # the stepper writes a line for each population
    print(f"PyMC {pm.__version__}\n\n| target | chains | options | moved | verdict | smallest p | its test | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    turns = {"both": (False, True), "sample": (False,), "turn": (True,)}[wanted.how]
    for options in OPTIONS:
        for name in LAWS:
            for chains in wanted.chains:
                for in_turn in turns:
                    if name.startswith(wanted.only) and options.startswith(wanted.options):
                        print(row(name, chains, in_turn, options, wanted.budget, wanted.seed), flush=True)


if __name__ == "__main__":
    main()
