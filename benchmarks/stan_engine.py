"""Stan engine: time per leapfrog of whole annealed chains, over one gradient of the same compiled program."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from frozen import Chains, tuned_chains
from measuring import SEED, median, print_table
from stan_cases import case

from bread.backends import open_model
from bread.backends.base import FloatArray, OpenOptions
from bread.paths.kinds import PriorPath

N_CHAINS = 4
ROUNDS = 25  # each times chains and gradients one after the other; the median of their ratios counts
RAW_SECONDS = 0.1  # of gradients in a round
CASES = (  # model, kernel, number of temperatures, limit of the ratio
    ("logistic 768 x 8", "nuts", 129, 1.2),
    ("factorisation 50 x 5 x 25", "nuts", 65, 1.5),
    ("factorisation 50 x 5 x 25", "hmc", 65, 1.2),
)


def run() -> None:
    """Measure and print."""
    rows = [(name, kernel.upper(), *_measure(name, kernel, count, limit)) for name, kernel, count, limit in CASES]
    print_table(
        "Stan engine: wall time per leapfrog step, in microseconds",
        ("model", "kernel", "leapfrogs a transition", "raw gradient", "leapfrog", "leapfrog / raw",
         "per gradient / raw", "limit", "below"),
        rows,
        f"Whole forward chains (`Posterior.anneal`, {N_CHAINS} chains, adaptive schedule; tuning is not in it) divided "
        "by their leapfrog steps: the gradient with which Stan begins every transition, tree building, log weights, "
        "random numbers and Python are part of the cost. Per gradient: divided by all gradients. Raw: Stan's gradient "
        "of the same program alone, at one state of a chain at every temperature (states of the prior can cost more "
        f"than those of the posterior). Medians of {ROUNDS} rounds.",
    )  # fmt: skip


def _measure(name: str, kernel: str, n_temperatures: int, limit: float) -> tuple[Any, ...]:
    chains, states = _prepare(name, kernel, n_temperatures)
    instance = chains.posterior.instance
    counted = chains.anneal()
    n_gradients = int(counted.n_gradients.sum())
    n_transitions = N_CHAINS * (n_temperatures - 1)
    n_leapfrogs = n_gradients - n_transitions
    once = instance.seconds_per_gradient(states, 1.0, 10)
    repeats = max(1, round(RAW_SECONDS / (once * len(states))))
    raw, whole = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        chains.anneal()
        whole.append(time.perf_counter() - began)
        raw.append(instance.seconds_per_gradient(states, 1.0, repeats))
    seconds, gradient = np.array(whole), np.array(raw)
    ratio = median(seconds / n_leapfrogs / gradient)
    return (
        n_leapfrogs / n_transitions,
        1e6 * median(gradient),
        1e6 * median(seconds / n_leapfrogs),
        ratio,
        median(seconds / n_gradients / gradient),
        limit,
        "yes" if ratio <= limit else "NO",
    )


def _prepare(name: str, kernel: str, n_temperatures: int) -> tuple[Chains, FloatArray]:
    """Return chains, and states along the path, where the single gradients are taken."""
    program, data, observed = case(name)
    model = open_model(program, OpenOptions(kernel=kernel, data=data, observed=observed))
    chains = tuned_chains(model, n_temperatures, N_CHAINS)
    states = [chains.start[0]]
    for beta, seed in zip(chains.betas[1:], np.random.SeedSequence(SEED).spawn(n_temperatures), strict=False):
        states.append(chains.posterior.evolve(PriorPath(), chains.kernel, beta, states[-1], (1,), seed).states[0])
    return chains, np.array(states)
