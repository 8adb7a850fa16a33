"""Simulation-based calibration that is exact at any chain length, and the theory alarm, for one Stan program.

A joint draw (theta*, y) makes theta* a draw of the posterior given y. It is put at a uniformly random place of a
stationary chain, which is run from it in both directions (the kernel is reversible). All states of the chain then
have the same law, and theta* is one of them at random: its rank is uniform, however slowly the chain mixes.

Gandy & Scott (2020), "Unit testing for MCMC and other Monte Carlo methods", arXiv:2001.06465, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.backends.base import FloatArray
from bread.backends.stan.model import StanModel
from bread.paths.kinds import PriorPath
from bread.statistics.bounds.alarms import rank_p_values, theory_alarm
from tests.support.conformance import tuned_kernel

PATH = PriorPath()
N_SIMULATIONS = 150
N_STATES = 10  # of a chain, theta* among them
STEPS = 4  # of NUTS between two of them
MOST_COORDINATES = 4  # whose ranks are tested, beside log prior and log likelihood
N_ALARM, BETAS = 30, np.array([0.0, 0.01, 0.05, 0.15, 0.3, 0.5, 0.75, 1.0])


class Verdict(NamedTuple):
    """P-values of one program: of the ranks (Bonferroni over functions), and of the theory alarm."""

    ranks: float
    alarm: float


def calibration(model: StanModel, seed: int = 1) -> Verdict:
    """Return the p-values of a model's simulator, density and kernel taken together."""
    simulate, place, ties, alarm = SeedSequence(seed).spawn(4)
    kernel = tuned_kernel(model)
    chosen = np.unique(np.linspace(0, model.info.layout.dim - 1, MOST_COORDINATES).astype(int))
    simulations = model.simulate(N_SIMULATIONS, fixed=None, seed=simulate)
    rng, uniforms = default_rng(place), default_rng(ties)
    ranks = []
    for row in range(N_SIMULATIONS):
        posterior = model.condition(simulations.data_of(row))
        at = int(rng.integers(N_STATES))
        exact = simulations.states[row]
        parts = [exact[None, :]]
        for n_states, one in zip((at, N_STATES - 1 - at), SeedSequence(seed, spawn_key=(row,)).spawn(2), strict=True):
            keep = STEPS * np.arange(1, n_states + 1)
            if n_states:
                parts.append(posterior.evolve(PATH, kernel, 1.0, exact, keep.tolist(), one).states)
        states = np.concatenate(parts)
        log_prior, log_likelihood, _ = posterior.instance.terms(states)
        values = np.column_stack([states[:, chosen], log_prior, log_likelihood])
        below, tied = (values < values[0]).sum(axis=0), (values == values[0]).sum(axis=0)
        ranks.append((below + uniforms.uniform(size=values.shape[1]) * tied) / N_STATES)
    p_values = rank_p_values(np.array(ranks))
    return Verdict(float(min(1.0, len(p_values) * p_values.min())), _alarm(model, kernel, simulations, alarm))


def _alarm(model: StanModel, kernel, simulations, seed: SeedSequence) -> float:
    weights: dict[str, list[FloatArray]] = {"forward": [], "reverse": []}
    for row in range(N_ALARM):
        posterior = model.condition(simulations.data_of(row))
        for direction, one in zip(("forward", "reverse"), seed.spawn(2), strict=True):
            seeds = one.spawn(1)
            start = posterior.draw_base(PATH, seeds) if direction == "forward" else simulations.states[[row]]
            run = posterior.anneal(PATH, BETAS, kernel, direction=direction, initial=start, seeds=seeds)
            weights[direction].append(run.log_weight)
    return theory_alarm(np.array(weights["forward"]), np.array(weights["reverse"])).p_value
