"""Chains of PyMC models on JAX: cost per gradient in units of PyMC's own compiled gradient, and memory along T.

Needs the extras ``jax`` and ``pymc``. Figures are CPU time, compilation apart; no GPU is asked for.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import Any

import numpy as np
import pymc as pm
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import Kernel, OpenOptions
from bread.backends.pymc.density.compiling import compile_mode
from bread.paths.kinds import PriorPath

N_CHAINS = 128
N_TEMPERATURES = 17
ROUNDS = 3
N_CALLS = 500
GOALS = {"hmc": 0.6, "nuts": 1.5}
PATH = PriorPath()


def eight_schools() -> pm.Model:
    """Return the eight schools, non-centred."""
    effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfNormal("tau", 5)
        z = pm.Normal("z", 0, 1, shape=8)
        pm.Normal("y", mu + tau * z, error, observed=effect)
    return model


def logistic() -> pm.Model:
    """Return a logistic regression of 532 outcomes on 8 covariates, simulated."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(532, 8))
    y = rng.random(532) < 1.0 / (1.0 + np.exp(-x @ rng.normal(size=8)))
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1.5, shape=8)
        pm.Bernoulli("y", logit_p=pm.math.dot(x, slope), observed=y.astype(int))
    return model


# A model, and step sizes at beta = 0 and 1 at which most proposals are accepted.
MODELS = {"eight schools": (eight_schools, (0.4, 0.2)), "logistic 532 x 8": (logistic, (0.4, 0.06))}


def raw_gradient(model: pm.Model, states: np.ndarray) -> Any:
    """Return a function that measures the CPU seconds of one call of PyMC's compiled gradient."""
    gradient = model.logp_dlogp_function(ravel_inputs=True, mode=compile_mode())
    gradient.set_extra_values({})
    function = gradient._pytensor_function
    function.trust_input = True
    function(states[0].copy())

    def measure() -> float:
        began = time.process_time()
        for index in range(N_CALLS):
            function(states[index % len(states)])
        return (time.process_time() - began) / N_CALLS

    return measure


def frozen_kernel(steps: tuple[float, float], dim: int) -> Kernel:
    """Return a kernel of a unit metric and these step sizes at both ends."""
    return Kernel(np.array([0.0, 1.0]), {"step_size": np.array(steps), "inverse_metric": np.ones((2, dim))})


def prepare(name: str, kernel: str) -> tuple[Any, Any, Kernel, np.ndarray, list[SeedSequence]]:
    """Return the user's model, its posterior on JAX, a frozen kernel, states from the prior, and seeds."""
    build, steps = MODELS[name]
    user_model = build()
    model = open_model(user_model, OpenOptions(engine="blackjax", kernel=kernel))
    if model.info.identity.engine != "blackjax":
        raise SystemExit(f"{name} does not run on JAX: {model.info.identity.notes}")
    posterior = model.condition(model.info.data.observed)
    seeds = SeedSequence(3).spawn(N_CHAINS)
    frozen = frozen_kernel(steps, model.info.layout.dim)
    return user_model, posterior, frozen, posterior.draw_base(PATH, seeds), seeds


def cost(name: str, kernel: str) -> tuple[Any, ...]:
    """Return one row of the table."""
    user_model, posterior, frozen, start, seeds = prepare(name, kernel)
    betas = np.linspace(0.0, 1.0, N_TEMPERATURES)

    def anneal(n: int) -> tuple[float, int]:
        began = time.process_time()
        run = posterior.anneal(PATH, betas, frozen, direction="forward", initial=start[:n], seeds=seeds[:n])
        return time.process_time() - began, int(run.n_gradients.sum())

    compiling = anneal(1)[0]
    raw, ratios, own = raw_gradient(user_model, start), [], []
    for _ in range(ROUNDS):
        before = raw()
        seconds, n_gradients = anneal(N_CHAINS)
        own.append(seconds / n_gradients)
        ratios.append(own[-1] / (0.5 * (before + raw())))
    ratio = float(np.median(ratios))
    met = "yes" if ratio <= GOALS[kernel] else "NO"
    return name, kernel.upper(), 1e6 * own[-1] / ratios[-1], 1e6 * float(np.median(own)), ratio, compiling, met


def memory(n_temperatures: int, n_chains: int) -> tuple[Any, ...]:
    """Return how much the largest resident memory of this process grows while chains are annealed, in MB."""
    _, posterior, frozen, start, seeds = prepare("eight schools", "hmc")
    frozen = Kernel(frozen.betas, {**frozen.settings, "step_size": np.array([1.0, 1.0])})

    def anneal(number: int) -> float:
        began = time.process_time()
        posterior.anneal(
            PATH, np.linspace(0.0, 1.0, number), frozen, direction="forward",
            initial=start[:n_chains], seeds=seeds[:n_chains],
        )  # fmt: skip
        return time.process_time() - began

    anneal(64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = anneal(n_temperatures)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return n_temperatures, n_chains, grown, 8e-6 * n_temperatures * n_chains, seconds


def show(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Print a table in Markdown."""
    print(f"\n### {title}\n\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
    print(flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--temperatures", type=int, default=10_000, help="of the run whose memory is measured")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {N_CHAINS} chains, T = {N_TEMPERATURES}; no GPU")
    show(
        "engine='blackjax': CPU time per gradient, microseconds",
        ("model", "kernel", "raw: PyMC", "engine", "engine / raw", "compiling, s", "goal met"),
        [cost(name, kernel) for name in MODELS for kernel in GOALS],
    )
    show(
        "Memory of long paths",
        ("T", "chains", "growth, MB", "of it log ratios, MB", "CPU s"),
        [memory(options.temperatures, 100)],
    )


if __name__ == "__main__":
    main()
