"""Chains that a benchmark anneals again and again: one model on its real data, one kernel, tuned and frozen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from measuring import SEED

from bread.backends.base import FloatArray, Kernel
from bread.paths import schedules
from bread.paths.kinds import PriorPath
from bread.running.pilots.tuning import tune
from bread.seeds import Purpose, chain_seeds


class Chains(NamedTuple):
    """What forward chains along the prior path take; ``posterior`` is of the model's backend."""

    posterior: Any
    kernel: Kernel
    betas: FloatArray
    start: FloatArray
    seeds: list[np.random.SeedSequence]

    def anneal(self) -> Any:
        """Run all chains."""
        return self.posterior.anneal(
            PriorPath(), self.betas, self.kernel, direction="forward", initial=self.start, seeds=self.seeds
        )


def tuned_chains(model: Any, n_temperatures: int, n_chains: int) -> Chains:
    """Tune a kernel and place the temperatures on the real data of an opened model."""
    path = PriorPath()
    posterior = model.condition(model.info.data.observed)
    pilot = tune(posterior, path, root=SEED, simulation=0, n_steps=200, n_base_draws=1000, source="the data")
    length = schedules.thermodynamic_length(pilot.kernel.betas, pilot.kernel.log_ratio)
    betas = schedules.schedule("adaptive", n_temperatures, schedules.mean_length([length]))
    start = posterior.draw_base(path, chain_seeds(SEED, Purpose.BASE, 0, n_temperatures, range(n_chains)))
    seeds = chain_seeds(SEED, Purpose.FORWARD, 0, n_temperatures, range(n_chains))
    return Chains(posterior, pilot.kernel, betas, start, seeds)
