"""The three toy distributions of BREAD, each on a 7 x 7 grid (Grosse, Ancha & Roy 2016, appendix B.1.1).

Chains start from the uniform law. The kernel is Metropolis with a step in one of four directions; steps off the grid
are rejected.
"""

from __future__ import annotations

import numpy as np

from bread.exact.chain import FiniteChain
from bread.exact.transitions import MetropolisHastings, grid_neighbours

SHAPE = (7, 7)
EASY_SIGMA, HARD_SIGMA = 2.0, 10.0


def barrier() -> FiniteChain:
    """Return BARRIER: four modes of 3 x 3 states, separated by the middle row and column.

    Returns
    -------
    FiniteChain
        The log of f is 3 in the upper right quadrant, 0 in the other three, -10 on the barrier; the dominant mode holds
        0.87 of the mass.

    References
    ----------
    Grosse, Ancha & Roy (2016), equation 24.
    """
    values = np.zeros(SHAPE)
    values[:3, 4:] = 3.0
    values[3, :] = values[:, 3] = -10.0
    return _on_grid(values, "BARRIER")


def easy_random(seed: int = 0) -> FiniteChain:
    """Return EASY RANDOM: every log f(x) drawn from N(0, 2^2), so that most moves are accepted.

    Parameters
    ----------
    seed : int
        Of the draw. The paper's own draw is not known.

    Returns
    -------
    FiniteChain
        With the same seed it is `hard_random`'s target, its log divided by 5.
    """
    return random_grid(EASY_SIGMA, seed, "EASY RANDOM")


def hard_random(seed: int = 0) -> FiniteChain:
    """Return HARD RANDOM: every log f(x) drawn from N(0, 10^2), so that mass lies in separated modes.

    Parameters
    ----------
    seed : int
        Of the draw. The paper's own draw is not known.

    Returns
    -------
    FiniteChain
        Modes are single states or a few.
    """
    return random_grid(HARD_SIGMA, seed, "HARD RANDOM")


def random_grid(sigma: float, seed: int, name: str = "RANDOM") -> FiniteChain:
    """Return a chain whose target has independent N(0, sigma^2) logs on the grid.

    Parameters
    ----------
    sigma : float
        Standard deviation in nats; the paper writes N(0, sigma) and calls 2 easy, 10 hard.
    seed : int
        Of the draw.
    name : str
        For titles.

    Returns
    -------
    FiniteChain
        From the uniform law to the target.
    """
    return _on_grid(sigma * np.random.default_rng(seed).standard_normal(SHAPE), name)


def _on_grid(log_target: np.ndarray, name: str) -> FiniteChain:
    kernel = MetropolisHastings(grid_neighbours(SHAPE), "Metropolis on a grid")
    return FiniteChain(np.zeros(SHAPE), log_target, kernel, name)
