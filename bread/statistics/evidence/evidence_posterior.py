"""The histogram estimator of the log evidence, with the posterior of log Z (Habeck 2017, section 5.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bread.errors import InvalidArgumentError
from bread.statistics.evidence.evidence import bennett

FloatArray = NDArray[np.float64]

_N_GRID = 1001
_DEPTH = 30.0  # nats below its peak, where the density of the auxiliary variable is cut off


class EvidencePosterior(NamedTuple):
    """The posterior of the log evidence given log weights of both directions, in nats.

    Attributes
    ----------
    mean, standard_deviation, lower, upper : float
        Of the posterior, with the limits of its central part.
    draws : ndarray, shape (n_draws,)
    """

    mean: float
    standard_deviation: float
    lower: float
    upper: float
    draws: FloatArray


def histogram_posterior(
    forward: ArrayLike, reverse: ArrayLike, rng: Generator, *, level: float = 0.95, n_draws: int = 2000
) -> EvidencePosterior:
    """Draw the log evidence from its posterior, given the law of the work at the values that were seen.

    The law of forward log weights is p_j at the pooled values w_j; Crooks' relation makes that of reverse ones
    ``p_j exp(w_j) / Z`` with ``Z = sum p_j exp(w_j)``. Under Haldane's prior (prod 1 / p_j) the posterior is ``prod
    p_j^(n_j - 1) Z^(-n_reverse)``. With ``Z^-n = integral of u^(n - 1) exp(-u Z) du / Gamma(n)`` the unnormalised p_j
    given u are independent, exponential with rate 1 + u exp(w_j), and u has the density ``u^(n - 1) prod 1 / (1 + u
    exp(w_j))`` in one dimension: so draws are exact and independent, where Habeck (2017) has a Gibbs sampler. The
    mode of log u is Bennett's equation, so that the histogram's point estimate is `evidence.bennett`.

    Parameters
    ----------
    forward, reverse : array_like, shape (n_forward,), (n_reverse,)
        Log weights of one data set, nats.
    rng : Generator
    level : float
        Of the central interval.
    n_draws : int

    Returns
    -------
    EvidencePosterior
        NaN where every forward weight is zero. The p_j sit at values that were seen: a tail that no chain met is not
        in it, and chains that share an exact draw count as independent.

    Raises
    ------
    InvalidArgumentError
        ``level`` outside (0, 1), fewer than one draw, or log weights of the wrong shape or value.
    """
    if not 0.0 < level < 1.0 or n_draws < 1:
        raise InvalidArgumentError(f"level must lie in (0, 1) and n_draws be 1 or more, but got {level}, {n_draws}.")
    centre = bennett(forward, reverse).value
    if np.isnan(centre):
        nan = float("nan")
        return EvidencePosterior(nan, nan, nan, nan, np.full(n_draws, nan))
    down = np.asarray(reverse, dtype=np.float64)
    pooled = np.concatenate([np.asarray(forward, dtype=np.float64), down]) - centre
    n_reverse, n_forward = len(down), len(pooled) - len(down)

    def log_density(log_u: FloatArray) -> FloatArray:
        return np.asarray(n_reverse * log_u - np.logaddexp(0.0, log_u[:, None] + pooled).sum(axis=1))

    peak = float(np.log(n_reverse / n_forward))
    ends = [_edge(log_density, peak, sign) for sign in (-1.0, 1.0)]
    grid = np.linspace(ends[0], ends[1], _N_GRID)
    density = np.exp(log_density(grid) - log_density(np.array([peak])))
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2.0)])
    log_u = np.interp(rng.random(n_draws) * cumulative[-1], cumulative, grid)
    exponentials = np.log(rng.exponential(size=(n_draws, len(pooled)))) - np.logaddexp(0.0, log_u[:, None] + pooled)
    draws = centre + logsumexp(exponentials + pooled, axis=1) - logsumexp(exponentials, axis=1)
    lower, upper = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return EvidencePosterior(float(draws.mean()), float(draws.std()), float(lower), float(upper), draws)


def _edge(log_density: Callable[[FloatArray], FloatArray], peak: float, sign: float) -> float:
    """Return where the log density, concave in log u, has fallen by `_DEPTH`, or a little further."""
    top, step = float(log_density(np.array([peak]))[0]), 1e-3
    while float(log_density(np.array([peak + sign * step]))[0]) > top - _DEPTH:
        step *= 1.5
    return peak + sign * step
