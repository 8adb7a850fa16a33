"""Annealed importance sampling on a finite state space, computed exactly by propagating its marginals.

The true Jeffreys divergence of the annealed draw and its upper bound are both matrix products here, so that the bound's
tightness can be studied without any sampling (Grosse, Ancha & Roy 2016, appendix B.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import kl_div

from bread.exact.chain import FiniteChain
from bread.paths.schedules import explicit
from bread.statistics.bounds.bounds import total_variation_from_jeffreys, total_variation_from_kl

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactAnnealing:
    """Exact properties of annealed importance sampling on a finite state space; nats, but for probabilities.

    q is the law of the annealed draw (the last state, after the kernel at beta = 1), p the target.

    Attributes
    ----------
    jeffreys : float
        J = KL(q||p) + KL(p||q).
    bound : float
        B = ``expected_reverse - expected_forward``, at least J; infinite where a forward weight may be zero. How near B
        is to J says how much of the gap between the two log weights is an error of the last state.
    kl_approx_exact, kl_exact_approx : float
        KL(q||p) and KL(p||q), whose sum is J.
    total_variation : float
        Largest error of a probability computed from q, in [0, 1]; at most V.
    log_evidence : float
        log of the sum of f_1 over the sum of f_0; lies between the two expected log weights.
    expected_forward, expected_reverse : float
        Expected log weights of a forward and of a reverse chain.
    final_law, target : ndarray, shape (n,)
        q and p.
    reverse_law : ndarray, shape (n,)
        Law of a reverse chain's end at beta = 0.
    n_temperatures : int
        T, both ends counted.
    """

    jeffreys: float
    bound: float
    kl_approx_exact: float
    kl_exact_approx: float
    total_variation: float
    log_evidence: float
    expected_forward: float
    expected_reverse: float
    final_law: FloatArray
    target: FloatArray
    reverse_law: FloatArray
    n_temperatures: int

    @property
    def path_kl_forward(self) -> float:
        """KL of the law of forward paths from that of reverse paths: log evidence less expected forward log weight."""
        return self.log_evidence - self.expected_forward

    @property
    def path_kl_reverse(self) -> float:
        """KL of the law of reverse paths from that of forward paths."""
        return self.expected_reverse - self.log_evidence

    @property
    def error_limits(self) -> tuple[float, float]:
        """Limits of V, the total variation between the laws of whole paths, from the numbers above alone.

        The lower is the total variation of the last state. The upper is the least of the solution of
        4 V artanh V = B, and of sqrt(1 - exp(-KL)) (Bretagnolle & Huber 1979) and sqrt(KL / 2) (Pinsker) for both
        divergences of paths. `bread.exact.path_error` is nearer, and dearer.
        """
        kls = (self.path_kl_forward, self.path_kl_reverse)
        upper = [total_variation_from_jeffreys(self.bound), *map(total_variation_from_kl, kls)]
        return self.total_variation, max(self.total_variation, min(upper))


def anneal(chain: FiniteChain, betas: ArrayLike) -> ExactAnnealing:
    """Compute J, B, both divergences and the expected log weights of annealed importance sampling without sampling.

    Laws of states are carried from one inverse temperature to the next, forward by the kernels, in reverse by their
    reversals: T = 10^5 on 49 states takes seconds.

    Parameters
    ----------
    chain : FiniteChain
        States, densities and kernels.
    betas : array_like, shape (T,)
        Inverse temperatures, strictly increasing from 0 to 1, both ends counted (`bread.paths.schedules`).

    Returns
    -------
    ExactAnnealing
        ``bound >= jeffreys`` always, for kernels that leave their densities invariant and for their reversals.

    Raises
    ------
    InvalidArgumentError
        ``betas`` is no schedule.

    References
    ----------
    Grosse, Ancha & Roy (2016), equations 7 to 12 and appendix B.1.
    """
    values = explicit(np.asarray(betas, dtype=np.float64))
    forward, reverse = marginals(chain, values)
    final, target = forward[-1], reverse[-1]
    kl_approx_exact, kl_exact_approx = float(kl_div(final, target).sum()), float(kl_div(target, final).sum())
    expected_forward = _expected_log_weight(chain, values, forward)
    expected_reverse = _expected_log_weight(chain, values, reverse)
    return ExactAnnealing(
        jeffreys=kl_approx_exact + kl_exact_approx,
        bound=expected_reverse - expected_forward,
        kl_approx_exact=kl_approx_exact,
        kl_exact_approx=kl_exact_approx,
        total_variation=float(0.5 * np.abs(final - target).sum()),
        log_evidence=chain.log_evidence,
        expected_forward=expected_forward,
        expected_reverse=expected_reverse,
        final_law=final.copy(),
        target=target.copy(),
        reverse_law=reverse[0].copy(),
        n_temperatures=len(values),
    )


def marginals(chain: FiniteChain, betas: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the law of every state of a forward and of a reverse chain.

    Parameters
    ----------
    chain : FiniteChain
        States, densities and kernels.
    betas : array_like, shape (T,)
        Inverse temperatures, strictly increasing from 0 to 1.

    Returns
    -------
    forward : ndarray, shape (T, n)
        Laws of a forward chain, see below.
    reverse : ndarray, shape (T, n)
        Row t is the law of the state that the kernel at beta_t leaves (forward), or enters (reverse): the first row of
        ``forward`` is the base, the last one the law of the annealed draw; the last row of ``reverse`` is the target.

    Raises
    ------
    InvalidArgumentError
        ``betas`` is no schedule.
    """
    values = explicit(np.asarray(betas, dtype=np.float64))
    ends = chain.laws(values[[0, -1]])
    forward, reverse = np.empty((len(values), chain.n_states)), np.empty((len(values), chain.n_states))
    forward[0] = law = ends[0]
    for t, matrix in enumerate(chain.matrices(values[1:]), start=1):
        forward[t] = law = law @ matrix
    reverse[-1] = law = ends[1]
    for t, matrix in enumerate(chain.matrices(values[:0:-1], reverse=True), start=2):
        reverse[-t] = law = law @ matrix
    return forward, reverse


def _expected_log_weight(chain: FiniteChain, betas: FloatArray, laws: FloatArray) -> float:
    """Return the sum over t = 2..T of (beta_t - beta_{t-1}) E[log ratio(x_{t-1})]; -inf where that has mass."""
    zero = chain.log_ratio == -np.inf
    if (laws[:-1, zero] > 0).any():
        return -np.inf
    return float(np.diff(betas) @ (laws[:-1] @ np.where(zero, 0.0, chain.log_ratio)))
