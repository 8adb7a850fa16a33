"""Transition kernels of the reference models, vectorised over chains, each with its own random numbers.

A kernel says how many random numbers a transition takes, and makes a transition for a whole anneal from them. The
numbers of a chain come from its own generator, so that a chain does not depend on the batch it runs in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.random import SeedSequence, default_rng
from scipy.special import expit

from bread.backends.base import Direction, FloatArray, IntArray, Settings
from bread.errors import InvalidArgumentError
from bread.paths.kinds import PriorPath
from tests.models.reference.arrays import apply_matrix
from tests.models.reference.density import TargetDensity

Transition = Callable[[int, FloatArray], FloatArray]
"""Maps (number of the transition, states of shape (n, dim)) to the new states."""


@dataclass
class Tally:
    """Cost of a run, by chain, and the acceptance probability of the last transition."""

    n_gradients: IntArray
    n_evaluations: IntArray
    n_divergences: IntArray
    acceptance: FloatArray

    @classmethod
    def of(cls, n: int) -> Tally:
        """Return zeros for ``n`` chains."""
        gradients, evaluations, divergences = np.zeros((3, n), dtype=np.int64)
        return cls(gradients, evaluations, divergences, acceptance=np.ones(n))


@dataclass(frozen=True)
class RandomNumbers:
    """Random numbers of a run: transition by chain by number."""

    normals: FloatArray
    uniforms: FloatArray

    def part(self, normals: slice, uniforms: slice) -> RandomNumbers:
        """Return the share of one part of a compound kernel."""
        return RandomNumbers(
            np.ascontiguousarray(self.normals[..., normals]), np.ascontiguousarray(self.uniforms[..., uniforms])
        )


@dataclass(frozen=True)
class Run:
    """What a kernel needs to make its transitions, in the order in which they run.

    Attributes
    ----------
    target : TargetDensity
    betas : ndarray, shape (n_transitions,)
    settings : sequence of dict
        Frozen settings of each transition. Only the adaptation changes later entries as it goes.
    random : RandomNumbers
    direction : {"forward", "reverse"}
        In reverse a kernel must run its own reversal.
    tally : Tally
    """

    target: TargetDensity
    betas: FloatArray
    settings: Sequence[Settings]
    random: RandomNumbers
    direction: Direction
    tally: Tally


@runtime_checkable
class ReferenceKernel(Protocol):
    """A kernel that leaves every tempered density of a model invariant."""

    @property
    def name(self) -> str:
        """Name for the report."""
        ...

    @property
    def moves_label(self) -> bool:
        """Whether the kernel moves a discrete label."""
        ...

    @property
    def is_tunable(self) -> bool:
        """Whether the kernel has a step size and a metric."""
        ...

    @property
    def draws_exactly(self) -> bool:
        """Whether the kernel needs closed forms of the densities of the prior path."""
        ...

    def n_random(self, dim: int) -> tuple[int, int]:
        """Return how many normal and how many uniform numbers one transition of one chain takes."""
        ...

    def transition(self, run: Run) -> Transition:
        """Return the transitions of a run."""
        ...


@dataclass(frozen=True)
class AutoregressiveKernel:
    """Exact Gaussian autoregression: x' = mu + rho (x - mu) + sqrt(1 - rho^2) L z, for Gaussian targets.

    mu and L L' are mean and covariance of the tempered density; the kernel leaves it invariant, is reversible, needs no
    tuning, and keeps every moment of the chain in closed form (Habeck 2017, section 4, with tau = rho). With
    ``rho=0`` every transition is an independent exact draw.

    Parameters
    ----------
    rho : float
        Correlation of successive states, -1 < rho < 1.

    Raises
    ------
    InvalidArgumentError
        ``rho`` is out of range.
    """

    rho: float = 0.5
    moves_label: bool = field(default=False, init=False, repr=False)
    is_tunable: bool = field(default=False, init=False, repr=False)
    draws_exactly: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        if not -1.0 < self.rho < 1.0:
            raise InvalidArgumentError(f"rho must be between -1 and 1, both excluded; received {self.rho!r}.")

    @property
    def name(self) -> str:
        """Name for the report."""
        return f"Gaussian autoregression (rho = {self.rho:g})"

    def n_random(self, dim: int) -> tuple[int, int]:
        """One normal number a coordinate."""
        return dim, 0

    def transition(self, run: Run) -> Transition:
        """Return the transitions; means and factors of all temperatures are computed at once."""
        formulae = run.target.formulae
        continuous = formulae.continuous
        normals = run.random.normals[..., continuous]
        mean, cholesky = formulae.gaussian_targets(run.betas, run.target.statistics)
        rho = self.rho
        noise = apply_matrix(cholesky[:, :, None], normals[:, None])
        drive = (1.0 - rho) * mean + np.sqrt(1.0 - rho**2) * noise
        if formulae.label_index is None:
            unlabelled = drive[:, 0]
            return lambda i, states: unlabelled[i] + rho * states
        label_index, rows = formulae.label_index, np.arange(normals.shape[1])

        def step(i: int, states: FloatArray) -> FloatArray:
            moved = states.copy()
            label = states[:, label_index].astype(np.int64)
            moved[:, continuous] = drive[i, label, rows] + rho * states[:, continuous]
            return moved

        return step


@dataclass(frozen=True)
class GibbsLabelKernel:
    """Exact draw of a binary label given the continuous coordinates; reversible, no settings."""

    name: str = field(default="Gibbs label", init=False, repr=False)
    moves_label: bool = field(default=True, init=False, repr=False)
    is_tunable: bool = field(default=False, init=False, repr=False)
    draws_exactly: bool = field(default=False, init=False, repr=False)

    def n_random(self, dim: int) -> tuple[int, int]:
        """One uniform number."""
        return 0, 1

    def transition(self, run: Run) -> Transition:
        """Return the transitions."""
        target, betas, uniforms = run.target, run.betas, run.random.uniforms[..., 0]
        label_index = target.formulae.label_index

        def step(i: int, states: FloatArray) -> FloatArray:
            moved = states.copy()
            if isinstance(target.path, PriorPath):
                log_odds = target.formulae.label_log_odds(float(betas[i]), states, target.statistics)
            else:
                moved[:, label_index] = 1.0
                log_odds = target.log_density(float(betas[i]), moved)
                moved[:, label_index] = 0.0
                log_odds = log_odds - target.log_density(float(betas[i]), moved)
            run.tally.n_evaluations += 2
            moved[:, label_index] = uniforms[i] < expit(log_odds)
            return moved

        return step


@dataclass(frozen=True)
class IndependenceKernel:
    """A draw from the path's base, whatever the state, accepted by Metropolis and Hastings; reversible, no settings.

    Part of a `CompoundKernel`, before the kernel that moves locally; see `bread.backends.support.independence`.
    """

    name: str = field(default="independence proposals", init=False, repr=False)
    moves_label: bool = field(default=False, init=False, repr=False)
    is_tunable: bool = field(default=False, init=False, repr=False)
    draws_exactly: bool = field(default=False, init=False, repr=False)

    def n_random(self, dim: int) -> tuple[int, int]:
        """Two uniform numbers: the seed of the proposal, and acceptance."""
        return 0, 2

    def transition(self, run: Run) -> Transition:
        """Return the transitions."""
        target, uniforms = run.target, run.random.uniforms

        def step(i: int, states: FloatArray) -> FloatArray:
            proposed = np.stack([self._draw(target, number) for number in uniforms[i, :, 0]])
            ratios = target.log_ratio(proposed), target.log_ratio(states)
            run.tally.n_evaluations += 2
            is_finite = np.isfinite(ratios[0]) & np.isfinite(ratios[1])
            gain = np.where(is_finite, ratios[0] - ratios[1], -np.inf)
            beta = float(run.betas[i])
            accepted = is_finite & (np.log(uniforms[i, :, 1]) < (beta * gain if beta else 0.0))
            return np.where(accepted[:, None], proposed, states)

        return step

    @staticmethod
    def _draw(target: TargetDensity, number: float) -> FloatArray:
        rng = default_rng(SeedSequence(int(number * 2**53)))
        reference = target.path.reference
        if reference is None:
            return np.asarray(target.formulae.draw_state(rng, {}), dtype=np.float64)
        return np.asarray(reference.sample(1, rng)[0], dtype=np.float64)


@dataclass(frozen=True)
class CompoundKernel:
    """Parts that run one after the other: in order in a forward chain, in the opposite order in a reverse chain.

    Each part is reversible, so that the opposite order is the reversal of the whole.

    Parameters
    ----------
    parts : tuple of kernels
    """

    parts: tuple[ReferenceKernel, ...]

    @property
    def name(self) -> str:
        """Name for the report."""
        return ", then ".join(part.name for part in self.parts)

    @property
    def moves_label(self) -> bool:
        """Whether any part moves a discrete label."""
        return any(part.moves_label for part in self.parts)

    @property
    def is_tunable(self) -> bool:
        """Whether any part has a step size and a metric."""
        return any(part.is_tunable for part in self.parts)

    @property
    def draws_exactly(self) -> bool:
        """Whether any part needs closed forms."""
        return any(part.draws_exactly for part in self.parts)

    def n_random(self, dim: int) -> tuple[int, int]:
        """Return the sums over the parts."""
        counts = [part.n_random(dim) for part in self.parts]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)

    def transition(self, run: Run) -> Transition:
        """Return the transitions of the parts, chained in the order of the direction."""
        transitions: list[Transition] = []
        normal, uniform = 0, 0
        for part in self.parts:
            n_normals, n_uniforms = part.n_random(run.target.formulae.dim)
            share = run.random.part(slice(normal, normal + n_normals), slice(uniform, uniform + n_uniforms))
            normal, uniform = normal + n_normals, uniform + n_uniforms
            own = Run(run.target, run.betas, run.settings, share, run.direction, run.tally)
            transitions.append(part.transition(own))
        if run.direction == "reverse":
            transitions.reverse()

        def step(i: int, states: FloatArray) -> FloatArray:
            for transition in transitions:
                states = transition(i, states)
            return states

        return step


def draw_random_numbers(
    kernel: ReferenceKernel, dim: int, n_transitions: int, seeds: Sequence[SeedSequence]
) -> RandomNumbers:
    """Draw all random numbers of a run, those of a chain from its own generator."""
    n_normals, n_uniforms = kernel.n_random(dim)
    normals = np.empty((n_transitions, len(seeds), n_normals))
    uniforms = np.empty((n_transitions, len(seeds), n_uniforms))
    for chain, seed in enumerate(seeds):
        generator = default_rng(seed)
        normals[:, chain] = generator.standard_normal((n_transitions, n_normals))
        uniforms[:, chain] = generator.random((n_transitions, n_uniforms))
    return RandomNumbers(normals, uniforms)
