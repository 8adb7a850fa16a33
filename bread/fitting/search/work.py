"""One fit of a reference at work: a posterior, random numbers of the fit's own, and what was spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Adaptation, Evolution, FloatArray, Kernel, Posterior
from bread.fitting.search.joint_density import joint_log_density
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import MixtureReference, Reference, diagonal
from bread.seeds import Purpose, seed_sequence
from bread.statistics.bounds.tails import MEAN_LIMIT, NORMAL_QUANTILE, tail_index
from bread.statistics.exactness.relaxation import thinned

CHECK_DRAWS = 100  # draws from a reference, to check it where there are no others


class Part(IntEnum):
    """What random numbers of a fit are for (purpose `Purpose.REFERENCE`); an index counts within a part."""

    ADAPT = 0  # adaptation of chain `index`
    EVOLVE = 1  # its steps after that
    INITIAL = 2  # prior draws from which chains begin
    CRITERION = 3  # draws of candidate `index`, which choose among all
    MODES = 4  # prior draws from which optimisations start
    CHECKED_MOVE = 5  # chain from mode `index`, which moves it on the same data set
    OWN_DRAWS = 6  # draws of a reference that check it
    EXPLORE = 7  # long chain from mode `index`
    EXPLORED = 8  # draws of what is compared after these
    PRIOR = 9  # prior draws that show what drives widths
    NEAR_ZERO = 10  # where chains begin if the prior has no draw of finite density
    SINGLE = 11  # draws of a family that optimisation found, which may be enough
    ROTATIONS = 12  # a rotation, and prior draws that it may leave as likely as they are
    ADAPTED = 13  # draws of round `index` of a mixture that is adapted to the posterior
    ADAPTED_PRIOR = 14  # prior draws that show where such a mixture begins
    CENTRED = 15  # draws of round `index` of a Gaussian that is moved to where the mass is
    MOVE = ADAPT  # chain from component `index`, where nothing that was adapted is kept


@dataclass
class FitWork:
    """A fit of a reference to one data set.

    Attributes
    ----------
    posterior : Posterior
        Model and data set.
    transformed : ndarray of bool, shape (dim,)
        Coordinates that may be the logarithm of a scale.
    root, simulation : int
        For the seeds: every `Part` of a fit has random numbers of its own.
    n_gradients, n_evaluations : int
        What was spent.
    """

    posterior: Posterior
    transformed: NDArray[np.bool_]
    root: int
    simulation: int
    n_gradients: int = field(default=0, init=False)
    n_evaluations: int = field(default=0, init=False)
    _ends: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict, init=False, repr=False)
    _own: dict[int, tuple[Reference, FloatArray]] = field(default_factory=dict, init=False, repr=False)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.transformed)

    def add(self, other: FitWork | Adaptation | Evolution) -> None:
        """Count what another fit, an adaptation or a chain spent."""
        self.n_gradients += other.n_gradients
        self.n_evaluations += other.n_evaluations

    def seed(self, part: Part, index: int = 0) -> SeedSequence:
        """Return a seed of a part of the fit."""
        return seed_sequence(self.root, Purpose.REFERENCE, self.simulation, int(part), index)

    def seeds(self, part: Part, indices: range) -> list[SeedSequence]:
        """Return several seeds of a part of the fit."""
        return [self.seed(part, index) for index in indices]

    def rng(self, part: Part, index: int = 0) -> Generator:
        """Return the random numbers of a part of the fit."""
        return np.random.default_rng(self.seed(part, index))

    def log_ratio(self, reference: Reference, states: FloatArray) -> FloatArray:
        """Return log p(theta, y) - log q(theta) (nats) at states; -inf along a reference that chains cannot follow."""
        takes = getattr(self.posterior, "takes_reference", None)  # which not every posterior inherits
        if takes is not None and not takes(reference):
            return np.full(len(states), -np.inf)
        self.n_evaluations += len(states)
        return self.posterior.log_ratio(ReferencePath(reference), states)

    def joint(self, states: FloatArray) -> FloatArray:
        """Return log p(theta, y) (nats) at states, -inf where it is NaN."""
        self.n_evaluations += len(states)
        return joint_log_density(self.posterior, states)

    def evolve(
        self, reference: Reference, kernel: Kernel, state: FloatArray, keep: range, seed: SeedSequence
    ) -> Evolution:
        """Run a chain at beta = 1."""
        evolved = self.posterior.evolve(ReferencePath(reference), kernel, 1.0, state, keep, seed)
        self.add(evolved)
        return evolved

    def own_divergence(self, reference: Reference, n_left_out: int = 0) -> float:
        """Return a reference's Jeffreys divergence (nats) from the posterior by its own draws, weighted.

        The lowest ratios may be left out where one far draw must not decide, and others will be looked at. Densities
        are taken once for each reference.
        """
        ratio = self._own_log_ratio(reference)
        return shown_divergence(ratio[n_left_out:]) if np.isfinite(ratio).all() else float("inf")

    def own_elbo(self, reference: Reference) -> float:
        """Return the evidence lower bound (nats) by a reference's own draws: log p(y) - KL(q || p) on average."""
        return float(self._own_log_ratio(reference).mean())

    def _own_log_ratio(self, reference: Reference) -> FloatArray:
        """Return log ratios (nats) at draws from a reference, in increasing order."""
        if id(reference) not in self._own:
            ratio = self.log_ratio(reference, reference.sample(CHECK_DRAWS, self.rng(Part.OWN_DRAWS)))
            self._own[id(reference)] = reference, np.sort(ratio)  # the reference is kept with its number
        return self._own[id(reference)][1]

    def criterion(
        self, reference: Reference, chains: Sequence[FloatArray], n_draws: int, part: Part, index: int
    ) -> float:
        """Return the Jeffreys divergence (nats) by draws of the reference and the second halves of chains."""
        start = self.log_ratio(reference, reference.sample(n_draws, self.rng(part, index)))
        return divergence(start, [self._end_log_ratio(reference, states) for states in chains])

    def _end_log_ratio(self, reference: Reference, chain: FloatArray) -> FloatArray:
        """Return log ratios at the second half of a chain, whose densities are taken once for all references."""
        half = chain[len(chain) // 2 :]
        if id(chain) not in self._ends:
            self._ends[id(chain)] = chain, self.joint(half)  # the chain is kept with its number
        with np.errstate(invalid="ignore"):
            return np.asarray(self._ends[id(chain)][1] - reference.log_density(half))


def plain(dim: int) -> MixtureReference:
    """Return independent standard normal laws, where any reference will do."""
    return diagonal(np.zeros(dim), np.ones(dim))


def shown_divergence(ratio: FloatArray) -> float:
    """Return the Jeffreys divergence (nats) that log ratios at a law's own draws show, weighted."""
    if not np.isfinite(ratio).all():
        return float("inf")
    weights = np.exp(ratio - ratio.max())
    return float(weights @ ratio / weights.sum() - ratio.mean())


def divergence(start: FloatArray, end: Sequence[FloatArray]) -> float:
    """Return the Jeffreys divergence (nats) that log ratios at draws from both laws estimate.

    Infinite where a mean does not exist or a ratio is zero. Draws of a chain come in clusters: one visit to a tail, of
    many draws, does not make it a heavy one.

    Parameters
    ----------
    start : ndarray, shape (n,)
        At independent draws of the reference.
    end : sequence of ndarray
        At draws of each chain.
    """
    ends = np.concatenate(end)
    if not (np.isfinite(start).all() and np.isfinite(ends).all()):
        return float("inf")
    for values in (start, -np.concatenate([thinned(values) for values in end])):
        tail = tail_index(values)
        if tail.shape - NORMAL_QUANTILE * tail.standard_error >= MEAN_LIMIT:
            return float("inf")
    return float(ends.mean() - start.mean())
