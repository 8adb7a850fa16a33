"""Units of work of the tests of exact draws; each depends on its own seeds alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Discarded, Evolution, FloatArray, Kernel, Model, Simulations
from bread.errors import UnsupportedKernelError, UnsupportedModelError
from bread.paths.kinds import Path, PriorPath
from bread.running.exactness.joint import draw_held, draw_joint
from bread.seeds import Purpose, chain_seeds, seed_sequence

RowData = dict[str, NDArray[Any]]


class JointGradients(NamedTuple):
    """Joint draws and gradients there.

    Attributes
    ----------
    simulations : Simulations
    gradients : dict of float to ndarray (n, dim)
        By inverse temperature, 0 or 1; empty where model or kernel has none.
    refusal : str
        Why there are none.
    """

    simulations: Simulations
    gradients: dict[float, FloatArray]
    refusal: str = ""


@dataclass(frozen=True)
class JointTask:
    """Draw parameters and data jointly, and differentiate the density there at each of ``betas``.

    ``held`` are values of parameters that draws are made at, one set a draw; none by default.
    """

    batch: int
    n_chains: int
    betas: tuple[float, ...]
    root: int
    held: tuple[dict[str, NDArray[Any]], ...] = ()

    def run(self, model: Model) -> JointGradients:
        """Return draws and gradients."""
        seed = seed_sequence(self.root, Purpose.DIRECT, self.batch, int(bool(self.held)))
        simulations = draw_held(model, self.held, seed) if self.held else draw_joint(model, self.n_chains, seed)
        rows = model.rows(simulations.data)
        try:
            gradients = {beta: rows.density_gradient(beta, simulations.states)[1] for beta in self.betas}
        except (UnsupportedKernelError, UnsupportedModelError) as error:
            return JointGradients(simulations, {}, str(error))
        return JointGradients(simulations, gradients)


@dataclass(frozen=True)
class PriorTask:
    """Draw parameters alone, whatever their outcomes are, and differentiate the log prior there."""

    batch: int
    n_chains: int
    root: int

    def run(self, model: Model) -> JointGradients:
        """Return draws without data, and gradients at inverse temperature 0; those that cannot be had are counted."""
        posterior = model.condition(model.info.data.observed)
        low = self.batch * self.n_chains
        seeds = chain_seeds(self.root, Purpose.DIRECT_BASE, 1, 0, range(low, low + self.n_chains))
        lost = Discarded()
        try:
            states = posterior.draw_base(PriorPath(), seeds)
        except Exception:  # a simulator may raise anything
            states = np.empty((0, model.info.layout.dim))
            for seed in seeds:
                try:
                    states = np.concatenate([states, posterior.draw_base(PriorPath(), [seed])])
                except Exception as error:
                    lost += Discarded(n_parameters=1, reason=str(error))
        drawn = Simulations(states, {}, {}, discarded=lost)
        try:
            return JointGradients(drawn, {0.0: posterior.density_gradient(0.0, states)[1]} if len(states) else {})
        except (UnsupportedKernelError, UnsupportedModelError) as error:
            return JointGradients(drawn, {}, str(error))


@dataclass(frozen=True)
class JointDensityTask:
    """Evaluate densities at pairs of states and data: the log prior at ``beta`` = 0, the log likelihood for None."""

    states: FloatArray
    data: RowData
    beta: float | None

    @property
    def n_chains(self) -> int:
        """Number of pairs."""
        return len(self.states)

    def run(self, model: Model) -> FloatArray:
        """Return the log densities, shape (n,)."""
        rows = model.rows(self.data)
        if self.beta is None:
            return rows.log_likelihood(self.states)
        return rows.density_gradient(self.beta, self.states)[0]


@dataclass(frozen=True)
class KernelTask:
    """Move exact draws by the frozen kernel at one end of the path, each with its own data.

    ``states`` are None at the base of the path, where they are drawn with ``base_seeds``.
    """

    data: RowData
    path: Path
    kernel: Kernel
    beta: float
    n_steps: int
    seeds: Sequence[SeedSequence]
    states: FloatArray | None = None
    base_seeds: Sequence[SeedSequence] = field(default=())

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.seeds)

    def run(self, model: Model) -> tuple[FloatArray, Evolution]:
        """Return the draws and where they went."""
        states = self.states
        if states is None:
            first = {name: values[0] for name, values in self.data.items()}
            states = model.condition(first).draw_base(self.path, self.base_seeds)
        moved = model.rows(self.data).move(self.path, self.kernel, self.beta, states, self.n_steps, self.seeds)
        return states, moved
