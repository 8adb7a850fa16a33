"""The exact law of log weights on a finite state space, and with it V: what the certificate estimates.

Paths that have the same state and the same log weight so far go on as one. On an even schedule there are few of them:
at T temperatures and n different log ratios as many as there are ways to visit n kinds of state T - 1 times.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bread.errors import InvalidArgumentError
from bread.exact.chain import FiniteChain
from bread.paths.schedules import explicit

FloatArray = NDArray[np.float64]

SAME = 1e-11  # log weights that differ by less are one
ZERO = -1e300  # stands for -inf, so that differences exist
MAX_COMBINATIONS = 10_000_000


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """Exact laws of the log weight of a forward and of a reverse chain.

    Attributes
    ----------
    forward_log_weight : ndarray, shape (n_forward_atoms,)
        Increasing, in nats; the first is -inf where a forward chain may meet a ratio of zero.
    forward : ndarray, shape (n_forward_atoms,)
        Their probabilities.
    reverse_log_weight, reverse : ndarray, shape (n_reverse_atoms,)
        The same of a reverse chain, by the reversed kernels; no relation between the two directions is used.
    log_evidence : float
        Nats.
    """

    forward_log_weight: FloatArray
    forward: FloatArray
    reverse_log_weight: FloatArray
    reverse: FloatArray
    log_evidence: float

    @property
    def error(self) -> float:
        """V with the evidence known: E_reverse[(1 - Z / w)_+], the total variation between the two laws of paths.

        In [0, 1]. No probability computed from one annealed draw is off by more.
        """
        return float(self.reverse @ _positive_part(self.log_evidence - self.reverse_log_weight))

    def expected_error(self, n_chains: int) -> float:
        """Return the mean of what `bread.check` computes for V with ``n_chains`` forward chains.

        E[(1 - Zhat / w)_+], Zhat the mean of the weights of so many forward chains, w that of a reverse chain: at
        least `error`, and falling to it.

        Parameters
        ----------
        n_chains : int
            K, at least 1.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        InvalidArgumentError
            There are too many combinations of weights to sum over.
        """
        n_atoms = len(self.forward)
        n_combinations = comb(n_atoms + n_chains - 1, n_chains)
        if n_chains < 1 or n_combinations * len(self.reverse) > MAX_COMBINATIONS:
            raise InvalidArgumentError(
                f"{n_chains} chains of {n_atoms} different weights have {n_combinations:.3g} combinations, times "
                f"{len(self.reverse)} reverse weights; at most {MAX_COMBINATIONS:.0e} are summed over. Take fewer "
                "chains, states or temperatures, or an even schedule."
            )
        chosen = np.array(list(combinations_with_replacement(range(n_atoms), n_chains)))
        counts = np.stack([(chosen == atom).sum(axis=1) for atom in range(n_atoms)], axis=1)
        orders = gammaln(n_chains + 1) - gammaln(counts + 1).sum(axis=1)
        probability = np.exp(orders) * self.forward[chosen].prod(axis=1)
        log_mean = np.logaddexp.reduce(self.forward_log_weight[chosen], axis=1) - np.log(n_chains)
        return float(probability @ _positive_part(log_mean[:, None] - self.reverse_log_weight) @ self.reverse)


def weight_law(chain: FiniteChain, betas: ArrayLike, *, max_atoms: int = 50_000) -> WeightLaw:
    """Compute the laws of the log weights of forward and reverse chains, atom by atom.

    Parameters
    ----------
    chain : FiniteChain
        States, densities and kernels.
    betas : array_like, shape (T,)
        Inverse temperatures, strictly increasing from 0 to 1. Equal steps make few atoms; otherwise they are about as
        many as there are paths.
    max_atoms : int, default 50_000
        Different log weights at most; memory is two numbers for each, times the number of states.

    Returns
    -------
    WeightLaw
        Log weights that differ by less than 1e-11 nats count as one.

    Raises
    ------
    InvalidArgumentError
        ``betas`` is no schedule, or there are more atoms: `path_error` then has limits of V.
    """
    values = explicit(np.asarray(betas, dtype=np.float64))
    steps, ends = np.diff(values), chain.laws(values[[0, -1]])
    shifts, kinds = np.unique(chain.log_ratio, return_inverse=True)
    kinds = kinds.reshape(-1)
    keys, mass = np.zeros(1), ends[0][:, None]
    for step, matrix in zip(steps, chain.matrices(values[1:]), strict=True):
        keys, mass = _weigh(keys, mass, step * shifts, kinds, max_atoms)
        mass = matrix.T @ mass
    back_keys, back = np.zeros(1), ends[1][:, None]
    for step, matrix in zip(steps[::-1], chain.matrices(values[:0:-1], reverse=True), strict=True):
        back_keys, back = _weigh(back_keys, matrix.T @ back, step * shifts, kinds, max_atoms)
    return WeightLaw(*_law(keys, mass), *_law(back_keys, back), chain.log_evidence)


def _weigh(
    keys: FloatArray, mass: FloatArray, shifts: FloatArray, kinds: NDArray[np.int64], max_atoms: int
) -> tuple[FloatArray, FloatArray]:
    """Add to each state's log weights its own shift, and join what is equal; ``mass`` is (state, atom)."""
    moved = np.where(shifts[:, None] == -np.inf, ZERO, keys + shifts[:, None])  # (kind, atom)
    order = np.argsort(moved, axis=None, kind="stable")
    ordered = moved.ravel()[order]
    starts = np.concatenate([[True], np.diff(ordered) > SAME])
    place = np.empty(len(ordered), dtype=np.int64)
    place[order] = np.cumsum(starts) - 1
    places = place.reshape(moved.shape)
    joined = np.zeros((len(mass), int(starts.sum())))
    for kind in range(len(shifts)):
        rows = np.flatnonzero(kinds == kind)
        np.add.at(joined, (rows[:, None], places[kind][None, :]), mass[rows])
    used = joined.any(axis=0)
    if used.sum() > max_atoms:
        raise InvalidArgumentError(
            f"There are more than max_atoms={max_atoms} different log weights. Take an even schedule or fewer "
            "temperatures, or bread.exact.path_error, whose limits of V need no atoms."
        )
    return ordered[starts][used], joined[:, used]


def _law(keys: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.where(keys <= ZERO / 2, -np.inf, keys), mass.sum(axis=0)


def _positive_part(log_share: FloatArray) -> FloatArray:
    """Return (1 - exp(x))_+."""
    return np.asarray(-np.expm1(np.minimum(log_share, 0.0)))
