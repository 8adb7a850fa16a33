"""Annealing on a finite state space with a finite set of data: exact laws by enumeration, and exact samples.

Likelihoods may be zero. Log weights count (beta_t - beta_{t-1}) * log likelihood, so a path that visits a state of zero
likelihood before its last kernel has weight zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np


def independent(density: np.ndarray) -> np.ndarray:
    """Return the kernel that draws from ``density``, whatever the state."""
    return np.tile(density / density.sum(), (len(density), 1))


def lazy(stay: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return kernels that stay with this probability, and draw independently otherwise."""
    return lambda density: stay * np.eye(len(density)) + (1.0 - stay) * independent(density)


def metropolis_on_line(density: np.ndarray) -> np.ndarray:
    """Return the Metropolis kernel that proposes either neighbour; moves off the line are rejected."""
    n = len(density)
    matrix = np.zeros((n, n))
    for i in range(n):
        for j in (i - 1, i + 1):
            if 0 <= j < n:
                matrix[i, j] = 0.5 * (min(1.0, density[j] / density[i]) if density[i] > 0 else 1.0)
        matrix[i, i] = 1.0 - matrix[i].sum()
    return matrix


def sweep_of_pairs(density: np.ndarray) -> np.ndarray:
    """Return a move over states 0 and 1, then over 1 and 2, ...: each reversible, together not."""
    n = len(density)
    matrix = np.eye(n)
    for i in range(n - 1):
        pair = [i, i + 1]
        step = np.eye(n)
        mass = density[pair].sum()
        step[np.ix_(pair, pair)] = density[pair] / mass if mass > 0 else 0.5
        matrix = matrix @ step
    return matrix


@dataclass(frozen=True)
class Chains:
    """Log weights, (simulation, chain) each, and the data set of every simulation."""

    forward: np.ndarray
    reverse: np.ndarray
    data: np.ndarray


@dataclass(frozen=True)
class FiniteAnnealing:
    """A model of finitely many states and data sets, with a schedule and kernels.

    Parameters
    ----------
    prior : ndarray, shape (state,)
    likelihood : ndarray, shape (state, data)
        Rows sum to one; zeros are allowed.
    betas : ndarray, shape (T,)
    transition : callable
        Maps an unnormalised density, shape (state,), to a row-stochastic matrix that leaves it invariant.
    """

    prior: np.ndarray
    likelihood: np.ndarray
    betas: np.ndarray
    transition: Callable[[np.ndarray], np.ndarray]

    @property
    def n_data(self) -> int:
        return self.likelihood.shape[1]

    @property
    def evidence(self) -> np.ndarray:
        """Probability of each data set."""
        return self.prior @ self.likelihood

    def posterior(self, data: int) -> np.ndarray:
        density = self.prior * self.likelihood[:, data]
        return density / density.sum()

    def kernels(self, data: int) -> list[np.ndarray]:
        """Forward kernels at beta_2, ..., beta_T."""
        return [self.transition(self.prior * self.likelihood[:, data] ** beta) for beta in self.betas[1:]]

    def reversals(self, data: int) -> list[np.ndarray]:
        """Their reversals with respect to the tempered densities; identity at states without mass, never visited."""
        result = []
        for beta, kernel in zip(self.betas[1:], self.kernels(data), strict=True):
            density = self.prior * self.likelihood[:, data] ** beta
            flow = (density[:, None] * kernel).T
            result.append(np.where(density[:, None] > 0, flow / np.where(density > 0, density, 1.0)[:, None], 0.0))
            result[-1][density == 0, density == 0] = 1.0
        return result

    def end_error(self, data: int) -> float:
        """Exact total variation between the law of a forward chain's last state and the posterior."""
        law = self.prior
        for kernel in self.kernels(data):
            law = law @ kernel
        return float(0.5 * np.abs(law - self.posterior(data)).sum())

    def weight_laws(self, data: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log weight of every path theta_1, ..., theta_T, and its probability forward and in reverse.

        The two laws are products of kernels and of reversals; nothing here uses Crooks' relation.
        """
        n, last = len(self.prior), len(self.betas) - 1
        paths = np.array(list(product(range(n), repeat=last + 1)))
        forward, reverse = self.prior[paths[:, 0]], self.posterior(data)[paths[:, last]]
        for t, (kernel, reversal) in enumerate(zip(self.kernels(data), self.reversals(data), strict=True)):
            forward = forward * kernel[paths[:, t], paths[:, t + 1]]
            reverse = reverse * reversal[paths[:, t + 1], paths[:, t]]
        return self._log_weight(paths, data), forward, reverse

    def path_error(self, data: int) -> float:
        """Exact total variation between the laws of forward and of reverse paths."""
        _, forward, reverse = self.weight_laws(data)
        return float(0.5 * np.abs(forward - reverse).sum())

    def pairs(self, n_simulations: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Simulate theta* and data."""
        truth = _draw(np.tile(self.prior, (n_simulations, 1)), rng)
        return truth, _draw(self.likelihood[truth], rng)

    def sample(
        self,
        n_simulations: int,
        n_forward: int,
        n_reverse: int,
        rng: np.random.Generator,
        *,
        exact_draw: Callable[[np.ndarray], np.ndarray] | None = None,
        pairs: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Chains:
        """Simulate theta* and data, and anneal both ways.

        The first reverse chain starts from theta* itself, the others from the next states of a chain at beta = 1
        that runs from it, one kernel apart. ``exact_draw`` maps theta* to a wrong draw, as a defect. ``pairs`` are
        theta* and data that were simulated before.
        """
        truth, data = self.pairs(n_simulations, rng) if pairs is None else pairs
        start = truth if exact_draw is None else exact_draw(truth)
        kernels = np.array([self.kernels(d) for d in range(self.n_data)])  # (data, T - 1, state, state)
        reversals = np.array([self.reversals(d) for d in range(self.n_data)])
        forward, reverse = np.empty((n_simulations, n_forward)), np.empty((n_simulations, n_reverse))
        for chain in range(n_forward):
            states = [_draw(np.tile(self.prior, (n_simulations, 1)), rng)]
            for t in range(kernels.shape[1]):
                states.append(_draw(kernels[data, t, states[-1]], rng))
            forward[:, chain] = self._log_weight(np.stack(states, axis=1), data)
        for chain in range(n_reverse):
            states = [start]
            for t in reversed(range(kernels.shape[1])):
                states.append(_draw(reversals[data, t, states[-1]], rng))
            reverse[:, chain] = self._log_weight(np.stack(states[::-1], axis=1), data)
            start = _draw(kernels[data, -1, start], rng)
        return Chains(forward, reverse, data)

    def _log_weight(self, paths: np.ndarray, data: int | np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            log_likelihood = np.log(self.likelihood)
        visited = log_likelihood[paths[:, :-1], np.broadcast_to(np.asarray(data), len(paths))[:, None]]
        return (np.diff(self.betas) * visited).sum(axis=1)


def _draw(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one index from every row."""
    cumulative = probabilities.cumsum(axis=1)
    uniforms = rng.random(len(probabilities))[:, None] * cumulative[:, -1:]
    return (uniforms >= cumulative).sum(axis=1)
