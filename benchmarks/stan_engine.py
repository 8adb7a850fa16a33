"""Stan engine: time per leapfrog of whole annealed chains, over one gradient of the same compiled program."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from measuring import SEED, median, print_table
from stan_cases import case

from bread import schedules
from bread.backends import open_model
from bread.backends.base import FloatArray, Kernel, OpenOptions
from bread.paths import PriorPath
from bread.seeds import Purpose, chain_seeds
from bread.tuning import tune

N_CHAINS = 4
ROUNDS = 25  # each times chains and gradients one after the other; the median of their ratios counts
RAW_SECONDS = 0.1  # of gradients in a round
CASES = (  # model, kernel, number of temperatures, limit of the ratio
    ("logistic 768 x 8", "nuts", 129, 1.2),
    ("factorisation 50 x 5 x 25", "nuts", 65, 1.5),
    ("factorisation 50 x 5 x 25", "hmc", 65, 1.2),
)


class Chains(NamedTuple):
    """What the chains of a round take."""

    posterior: Any
    kernel: Kernel
    betas: FloatArray
    start: FloatArray
    seeds: list[np.random.SeedSequence]
    states: FloatArray  # along the path, where the single gradients are taken


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
    chains = _prepare(name, kernel, n_temperatures)
    instance = chains.posterior.instance
    counted = _anneal(chains)
    n_gradients = int(counted.n_gradients.sum())
    n_transitions = N_CHAINS * (n_temperatures - 1)
    n_leapfrogs = n_gradients - n_transitions
    once = instance.seconds_per_gradient(chains.states, 1.0, 10)
    repeats = max(1, round(RAW_SECONDS / (once * len(chains.states))))
    raw, whole = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        _anneal(chains)
        whole.append(time.perf_counter() - began)
        raw.append(instance.seconds_per_gradient(chains.states, 1.0, repeats))
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


def _prepare(name: str, kernel: str, n_temperatures: int) -> Chains:
    program, data, observed = case(name)
    model = open_model(program, OpenOptions(kernel, None, None, {"data": data, "observed": observed}))
    path = PriorPath()
    posterior = model.condition(model.info.observed_data)
    pilot = tune(posterior, path, root=SEED, simulation=0, n_steps=200, n_start_draws=1000, source="the data")
    length = schedules.thermodynamic_length(pilot.kernel.betas, pilot.kernel.log_ratio)
    betas = schedules.schedule("adaptive", n_temperatures, schedules.mean_length([length]))
    start = posterior.draw_start(path, chain_seeds(SEED, Purpose.START, 0, n_temperatures, range(N_CHAINS)))
    seeds = chain_seeds(SEED, Purpose.FORWARD, 0, n_temperatures, range(N_CHAINS))
    chains = Chains(posterior, pilot.kernel, betas, start, seeds, start)
    states = [start[0]]
    for beta, seed in zip(betas[1:], np.random.SeedSequence(SEED).spawn(n_temperatures), strict=False):
        states.append(posterior.evolve(path, pilot.kernel, beta, states[-1], (1,), seed).states[0])
    return chains._replace(states=np.array(states))


def _anneal(chains: Chains) -> Any:
    return chains.posterior.anneal(
        PriorPath(), chains.betas, chains.kernel, direction="forward", start=chains.start, seeds=chains.seeds
    )
