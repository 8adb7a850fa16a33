"""Tuned kernels and pools of annealed chains of any `Model`, for the tests that need many simulations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import AnnealRun, Failure, Kernel, Model, Simulations
from bread.paths.kinds import Path, PriorPath
from bread.statistics.bounds.bounds import simulation_gaps

PATH = PriorPath()
KNOTS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)


def tuned_kernel(
    model: Model, *, seed: int = 100, knots: Sequence[float] = KNOTS, n_steps: int = 100, path: Path = PATH
) -> Kernel:
    """Adapt the kernel at fixed knots on one extra simulated data set, and freeze it."""
    simulate, start, adapt = SeedSequence(seed).spawn(3)
    posterior = model.condition(model.simulate(1, fixed=None, seed=simulate).data_of(0))
    state = posterior.draw_base(path, [start])[0]
    adaptations, previous = [], None
    for beta, child in zip(knots, adapt.spawn(len(knots)), strict=True):
        adaptations.append(posterior.adapt(path, beta, state, child, n_steps, previous))
        state, previous = adaptations[-1].state, adaptations[-1].settings
    settings = {name: np.stack([one.settings[name] for one in adaptations]) for name in adaptations[0].settings}
    return Kernel(betas=np.array(knots), settings=settings, log_ratio=tuple(one.log_ratio for one in adaptations))


@dataclass(frozen=True)
class Pool:
    """Forward and reverse chains of many simulations; every array starts with (simulation, chain)."""

    simulations: Simulations
    forward: np.ndarray  # log weights
    reverse: np.ndarray
    forward_paths: np.ndarray  # functions of a path, (simulation, chain, function)
    reverse_paths: np.ndarray

    @property
    def gaps(self) -> np.ndarray:
        return simulation_gaps(self.forward, self.reverse)


def anneal_pool(
    model: Model,
    kernel: Kernel,
    betas: np.ndarray,
    *,
    n_simulations: int,
    n_chains: int,
    seed: int,
    n_between: int = 5,
    exact_starts: Callable[[np.ndarray], np.ndarray] | None = None,
    path: Path = PATH,
) -> Pool:
    """Simulate, and anneal ``n_chains`` chains each way for every simulation.

    Reverse chains start from the exact draw (the first) and from states of a chain at beta = 1 run from it,
    ``n_between`` steps apart. ``exact_starts`` maps the exact draws to wrong ones (a defect, for negative controls).
    """
    simulate, start, forward, evolve, reverse = SeedSequence(seed).spawn(5)
    simulations = model.simulate(n_simulations, fixed=None, seed=simulate)
    exact = simulations.states if exact_starts is None else exact_starts(simulations.states)
    total = n_simulations * n_chains
    seeds = [one.spawn(total) for one in (start, forward, reverse)]
    evolve_seeds = evolve.spawn(n_simulations)
    keep = tuple(n_between * chain for chain in range(n_chains))
    if hasattr(model, "condition_rows"):
        data = {name: np.repeat(values, n_chains, axis=0) for name, values in simulations.data.items()}
        starts = model.condition_rows(simulations.data).evolve_rows(path, kernel, 1.0, exact, keep, evolve_seeds)
        posterior = model.condition_rows(data)
        blocks = [(posterior, starts.reshape(total, -1), slice(0, total))]
    else:
        blocks = []
        for row in range(n_simulations):
            posterior = model.condition(simulations.data_of(row))
            states = posterior.evolve(path, kernel, 1.0, exact[row], keep, evolve_seeds[row]).states
            blocks.append((posterior, states, slice(row * n_chains, (row + 1) * n_chains)))
    weights: dict[str, list[np.ndarray]] = {"forward": [], "reverse": []}
    paths: dict[str, list[np.ndarray]] = {"forward": [], "reverse": []}
    for posterior, states, rows in blocks:
        first = posterior.draw_base(path, seeds[0][rows])
        for direction, begin, own in (("forward", first, seeds[1]), ("reverse", states, seeds[2])):
            run = posterior.anneal(path, betas, kernel, direction=direction, initial=begin, seeds=own[rows])
            assert (run.failure <= Failure.ZERO_RATIO).all(), f"{direction} chains failed: {run.message}"
            weights[direction].append(run.log_weight)
            paths[direction].append(path_functions(run))
    shape = (n_simulations, n_chains)
    return Pool(
        simulations,
        np.concatenate(weights["forward"]).reshape(shape),
        np.concatenate(weights["reverse"]).reshape(shape),
        np.concatenate(paths["forward"]).reshape((*shape, -1)),
        np.concatenate(paths["reverse"]).reshape((*shape, -1)),
    )


def path_functions(run: AnnealRun) -> np.ndarray:
    """Return functions of each path, shape (chain, function): both ends, their densities, and products of the ends."""
    start, end = run.state_at_base, run.state_at_end
    products = (start[:, :, None] * end[:, None, :]).reshape((len(start), -1))
    return np.concatenate([start, end, run.log_base_density, run.log_ratio[:, [0, -1]], products], axis=1)


def log_evidences(model: Model, data: dict[str, Any], log_evidence: Callable[[Any], float] | None) -> np.ndarray:
    """Return the exact log evidence of every simulated data set."""
    if log_evidence is None and hasattr(model, "log_evidence_rows"):
        return model.log_evidence_rows(data)
    exact = log_evidence or model.log_evidence
    n = len(next(iter(data.values())))
    return np.array([exact({name: values[row] for name, values in data.items()}) for row in range(n)])
