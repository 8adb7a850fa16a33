"""Nodes of PyMC models without the engine that anneals them, and ranks of a node among its replicates."""

from __future__ import annotations

import numpy as np
from numpy.random import SeedSequence

from bread.backends.pymc.model import reading
from bread.backends.pymc.simulation.replicating import Replicator
from bread.backends.pymc.simulation.simulation import build_simulator


class PyMCNodes:
    """What the fit test asks of a model: `nodes`, `replicate`; and `simulate`, `unconstrain`."""

    def __init__(self, model) -> None:
        layout = reading.read_layout(model, reading.read_initial_point(model))
        self.data = reading.read_observed(model)
        self.simulator = build_simulator(model, layout, self.data, [])
        self.replicator = Replicator(model, self.simulator)
        self.nodes, self.simulate, self.unconstrain = (
            self.replicator.nodes, self.simulator.simulate, self.simulator.unconstrain,
        )  # fmt: skip

    def replicate(self, state, node, n, *, seed, data=None):
        return self.replicator.replicate(state, node, n, seed, self.data if data is None else data)


def ranks(model, node, *, n_sets, n_replicates, functions, parents_of_another=False):
    """Return ranks, (set, function), of functions of a node among those of its replicates, over exact joint draws.

    With ``parents_of_another`` the replicates are drawn from the state of another joint draw: they must not pass.
    """
    joint = model.simulate(n_sets, fixed=None, seed=SeedSequence(7))
    found = []
    for index in range(n_sets):
        data = {name: values[index] for name, values in joint.data.items()}
        made = model.replicate(joint.states[index], node, n_replicates, seed=SeedSequence([8, index]), data=data)
        values, log_density = made.values, made.log_density
        if parents_of_another:
            other = model.replicate(
                joint.states[index - 1], node, n_replicates, seed=SeedSequence([9, index]), data=data
            )
            values = np.concatenate([values[:1], other.values[1:]])
            log_density = None if log_density is None else np.concatenate([log_density[:1], other.log_density[1:]])
        found.append([_rank(function(values, log_density), index) for function in functions])
    return np.array(found)


def _rank(values, index):
    """Return the rank of the first value among the others in (0, 1), ties broken at random."""
    low, ties = (values[1:] < values[0]).sum(), (values[1:] == values[0]).sum()
    return (low + np.random.default_rng([10, index]).integers(0, ties + 1) + 0.5) / len(values)


def mean(values, _):
    return values.mean(axis=1)


def largest(values, _):
    return values.max(axis=1)


def density(_, log_density):
    return log_density
