"""Ising and Potts models on a periodic lattice, annealed by single-spin Metropolis updates (numba); exact log Z.

The log density is a coupling times the number of equal neighbours; the path raises the inverse temperature evenly from
0, where states are uniform, to 1. The Ising model is that of two colours with coupling 2, less the number of bonds.
"""

from __future__ import annotations

import numba
import numpy as np

N_NEIGHBOURS = 4


@numba.njit(cache=True)
def _next(state):
    """Return the next 64 random bits of xorshift64* and the state behind them."""
    state ^= state >> np.uint64(12)
    state ^= state << np.uint64(25)
    state ^= state >> np.uint64(27)
    return state * np.uint64(2685821657736338717), state


@numba.njit(cache=True)
def _uniform(bits):
    return (bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@numba.njit(cache=True)
def _neighbours(spins, place, side):
    row, column = place // side, place % side
    return (
        spins[((row + 1) % side) * side + column],
        spins[((row - 1) % side) * side + column],
        spins[row * side + (column + 1) % side],
        spins[row * side + (column - 1) % side],
    )


@numba.njit(cache=True)
def equal_bonds(spins, side):
    """Return how many neighbours are equal."""
    count = 0
    for place in range(side * side):
        row, column = place // side, place % side
        count += spins[place] == spins[((row + 1) % side) * side + column]
        count += spins[place] == spins[row * side + (column + 1) % side]
    return count


@numba.njit(cache=True)
def anneal(side, n_colours, coupling, betas, n_updates, seed, is_reverse):
    """Return the log weight of one chain: the sum of (beta_k - beta_{k-1}) coupling * equal bonds(x_{k-1}).

    Forward from uniform colours; reverse from a ground state. ``n_updates`` Metropolis updates of random sites at each
    inverse temperature but the first; their reversal is themselves.
    """
    state = np.uint64(seed)
    n = side * side
    spins = np.zeros(n, dtype=np.int64)
    for _ in range(20):
        bits, state = _next(state)
    colour = np.int64(_uniform(bits) * n_colours)
    for i in range(n):
        if is_reverse:
            spins[i] = colour
        else:
            bits, state = _next(state)
            spins[i] = np.int64(_uniform(bits) * n_colours)
    bonds = equal_bonds(spins, side)
    log_weight = 0.0
    accept = np.empty(2 * N_NEIGHBOURS + 1)
    last = len(betas) - 1
    for step in range(last):
        k = last - step if is_reverse else step + 1
        if not is_reverse:
            log_weight += (betas[k] - betas[k - 1]) * coupling * bonds
        for change in range(-N_NEIGHBOURS, N_NEIGHBOURS + 1):
            accept[change + N_NEIGHBOURS] = np.exp(min(0.0, betas[k] * coupling * change))
        for _ in range(n_updates):
            bits, state = _next(state)
            place = np.int64(_uniform(bits) * n)
            bits, state = _next(state)
            old = spins[place]
            new = (old + 1 + np.int64(_uniform(bits) * (n_colours - 1))) % n_colours
            a, b, c, d = _neighbours(spins, place, side)
            change = (a == new) + (b == new) + (c == new) + (d == new)
            change -= (a == old) + (b == old) + (c == old) + (d == old)
            bits, state = _next(state)
            if _uniform(bits) < accept[change + N_NEIGHBOURS]:
                spins[place] = new
                bonds += change
        if is_reverse:
            log_weight += (betas[k] - betas[k - 1]) * coupling * bonds
    return log_weight


def log_weights(side, n_colours, coupling, n_temperatures, n_updates, n_chains, seed):
    """Return forward and reverse log weights, each (n_chains,), of `anneal` on an even path."""
    betas = np.linspace(0.0, 1.0, n_temperatures + 1)
    seeds = np.random.SeedSequence(seed).generate_state(2 * n_chains, np.uint64) | np.uint64(1)
    return tuple(
        np.array([anneal(side, n_colours, coupling, betas, n_updates, one, way) for one in part])
        for part, way in ((seeds[:n_chains], False), (seeds[n_chains:], True))
    )


def ising_log_z(side, beta):
    """Return log Z of the periodic square Ising model, E = -sum of s_i s_j: Kaufman's (1949) formula, in nats."""
    n = side
    if n % 2 or beta <= 0:
        raise ValueError(f"side must be even and beta positive, got {side} and {beta}.")
    k = np.arange(2 * n)
    gamma = np.empty(2 * n)
    cosine = np.cosh(2 * beta) ** 2 / np.sinh(2 * beta) - np.cos(np.pi * k / n)
    gamma[1:] = np.arccosh(cosine[1:])
    gamma[0] = 2 * beta + np.log(np.tanh(beta))
    odd, even = gamma[1::2] * n / 2, gamma[0::2] * n / 2

    def log_cosh2(x):
        return np.abs(x) + np.log1p(np.exp(-2 * np.abs(x)))  # log(2 cosh x)

    def log_sinh2(x):
        with np.errstate(divide="ignore"):
            return np.abs(x) + np.log1p(-np.exp(-2 * np.abs(x)))  # log|2 sinh x|

    terms = np.array([log_cosh2(odd).sum(), log_sinh2(odd).sum(), log_cosh2(even).sum(), log_sinh2(even).sum()])
    signs = np.array([1.0, 1.0, 1.0, float(np.prod(np.sign(even)))])
    top = terms.max()
    total = float((signs * np.exp(terms - top)).sum())
    return float(-np.log(2) + n * n / 2 * np.log(2 * np.sinh(2 * beta)) + top + np.log(total))


def enumerated_log_z(side, n_colours, coupling):
    """Return log Z of exp(coupling * equal bonds) by a sum over all states; for a few sites."""
    n = side * side
    states = np.arange(n_colours**n)
    colours = (states[:, None] // n_colours ** np.arange(n)) % n_colours
    grid = colours.reshape(-1, side, side)
    equal = (grid == np.roll(grid, 1, axis=1)).sum(axis=(1, 2)) + (grid == np.roll(grid, 1, axis=2)).sum(axis=(1, 2))
    return float(np.log(np.exp(coupling * (equal - equal.max())).sum()) + coupling * equal.max())


def potts_series(side, n_colours, coupling):
    """Return log Z of the ordered Potts model at low temperature: ground states, single sites, pairs of neighbours.

    The next terms are of the order of exp(-16 coupling / 2) a site.
    """
    n, q, x = side * side, n_colours, np.exp(-coupling)
    single = (q - 1) * x**4
    pair = 2 * (q - 1) * x**6 + 2 * (q - 1) * (q - 2) * x**7  # a site, both directions
    excluded = -(single**2) * (1 + 4) / 2  # the same site twice, or neighbours, in the square of singles
    return float(2 * n * coupling + np.log(q) + n * (single + pair + excluded))
