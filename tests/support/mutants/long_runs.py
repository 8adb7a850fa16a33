"""Long runs against exact draws: whether a kernel keeps a law, told without the battery that the mutants are for."""

from __future__ import annotations

import numpy as np

from bread.debugging.stepper import as_stepper

N_EXACT = 40_000
LIMIT = 5.5  # standard errors, of 200 chains, at most 226 functions a case: a false alarm in 1 of 10^5 cases


class Functions:
    """Bounded functions of a state: coordinates, sizes, tails, products of pairs, the log density."""

    def __init__(self, target):
        self._density = target.log_density
        draws = target.simulate(N_EXACT, np.random.default_rng(99))
        low, self._centre, high = np.quantile(draws, [0.1, 0.5, 0.9], axis=0)
        self._low, self._high = low, high
        self._scale = np.maximum(0.5 * (high - low), 0.05)
        logs = self._densities(draws)
        self._level, self._width = np.median(logs), np.subtract(*np.quantile(logs, [0.9, 0.1])) + 0.1
        self.exact = self(draws)

    def _densities(self, states):
        with np.errstate(all="ignore"):
            values = np.array([float(self._density(x)) for x in states[:40_000]])
        return np.maximum(values, -1e6)

    def __call__(self, states):
        """Return values, shape (n, function)."""
        own = np.tanh((states - self._centre) / self._scale)
        i, j = np.triu_indices(own.shape[1], 1)
        pairs = own[:, i] * own[:, j]
        tails = np.column_stack([states < self._low, states > self._high])
        return np.column_stack([own, own**2, pairs, tails])

    def of_density(self, states):
        """Return the bounded log density, shape (n, 1)."""
        return np.tanh((self._densities(states) - self._level) / self._width)[:, None]


def chains(case, n_chains, n_steps, seed):
    """Run chains from exact draws; return states, shape (n_chains, n_steps + 1, dim)."""
    rng = np.random.default_rng(seed)
    kernel = as_stepper(case.kernel)
    starts = case.target.simulate(n_chains, rng)
    states = np.empty((n_chains, n_steps + 1, case.target.dim))
    with np.errstate(all="ignore"):  # some mutants go far
        for number, start in enumerate(starts):
            carry = kernel.start(start, rng)
            states[number, 0] = kernel.position(carry)
            for i in range(n_steps):
                carry = kernel.step(carry, rng)
                states[number, i + 1] = kernel.position(carry)
    return states


def law_score(case, *, n_chains=200, n_steps=100, seed=1):
    """Largest distance, in standard errors, of time averages of functions from those over exact draws."""
    functions = Functions(case.target)
    states = chains(case, n_chains, n_steps, seed)[:, 1:]
    values = functions(np.nan_to_num(states.reshape(-1, case.target.dim), posinf=1e9, neginf=-1e9))
    means = values.reshape(n_chains, n_steps, -1).mean(axis=1)
    every = max(1, n_steps // 20)
    few = states[:, ::every]
    logs = functions.of_density(few.reshape(-1, case.target.dim)).reshape(n_chains, -1).mean(axis=1)
    means = np.column_stack([means, logs])
    exact = functions.exact
    draws = case.target.simulate(4000, np.random.default_rng(98))
    truth = np.append(exact.mean(axis=0), functions.of_density(draws).mean())
    spread = np.append(exact.var(axis=0) / len(exact), functions.of_density(draws).var() / len(draws))
    error = np.sqrt(means.var(axis=0, ddof=1) / n_chains + spread)
    return float(np.max(np.abs(means.mean(axis=0) - truth) / np.maximum(error, 1e-4)))


def reversal_score(case, *, n_chains=200, n_steps=100, seed=2):
    """Largest z of E[f(x) g(x') - g(x) f(x')] over successive states, for pairs of functions."""
    functions = Functions(case.target)
    states = chains(case, n_chains, n_steps, seed)
    values = functions(states.reshape(-1, case.target.dim)).reshape(n_chains, n_steps + 1, -1)
    before, after = values[:, :-1], values[:, 1:]
    flow = np.einsum("cti,ctj->cij", before, after) / n_steps
    flow = (flow - flow.transpose(0, 2, 1))[:, *np.triu_indices(values.shape[2], 1)]
    error = flow.std(axis=0, ddof=1) / np.sqrt(n_chains)
    return float(np.max(np.abs(flow.mean(axis=0)) / np.maximum(error, 1e-6)))


def restart_score(case, *, n_chains=1500, n_steps=10, seed=5):
    """Largest z of the next moves' share and sizes: chains that go on against chains started where those are."""
    rng, kernel = np.random.default_rng(seed), as_stepper(case.kernel)
    sizes = []
    for start in case.target.simulate(n_chains, rng):
        carry = kernel.start(start, rng)
        for _ in range(n_steps):
            carry = kernel.step(carry, rng)
        position = np.array(kernel.position(carry))
        ends = [kernel.position(kernel.step(one, rng)) for one in (carry, kernel.start(position, rng))]
        moves = [np.abs(end - position).sum() for end in ends]
        sizes.append([(move > 0.0, np.tanh(move), np.tanh(0.3 * move) ** 2) for move in moves])
    gap = np.subtract(*np.array(sizes, dtype=float).transpose(1, 0, 2))
    return float(np.max(np.abs(gap.mean(axis=0)) / (gap.std(axis=0) / np.sqrt(n_chains) + 1e-9)))


def memory(case, *, n_chains=60, n_steps=200, seed=3):
    """Largest share of a function's variance that lies between chains: near 1 where they cannot leave their part."""
    functions = Functions(case.target)
    states = chains(case, n_chains, n_steps, seed)
    flat = states.reshape(-1, case.target.dim)
    values = np.column_stack([functions(flat), functions.of_density(flat)]).reshape(n_chains, n_steps + 1, -1)
    return float(np.max(values.mean(axis=1).var(axis=0) / values.reshape(-1, values.shape[2]).var(axis=0)))
