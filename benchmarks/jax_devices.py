"""Chains a second of PyMC models on the device that JAX finds, by the number of chains; compiling apart.

Needs the extras ``jax`` and ``pymc``. Wall time of whole annealed chains, from host to host. With a GPU, run it
twice, once with ``JAX_PLATFORMS=cpu``; ``--copies`` runs so many processes at once and sums their chains.
``--engine pymc`` measures PyMC's own step methods, which move one chain at a time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
from numpy.random import SeedSequence
from vectorised import MODELS as OF_THE_ENGINE
from vectorised import PATH, frozen_kernel, show

from bread.backends import open_model
from bread.backends.base import OpenOptions

N_TEMPERATURES = 65
SIZES = (16, 64, 256, 1024, 4096, 16384, 65536)
ROUNDS = 3  # fewer where they take long
LONG = 10.0  # seconds
COLUMNS = ("model", "kernel", "device", "chains", "chains / s", "gradients / s", "gradients a chain", "compiling, s")


def varying_intercepts() -> pm.Model:
    """Return intercepts of 85 groups and a slope, for 919 simulated outcomes: the shape of the radon data."""
    rng = np.random.default_rng(1)
    groups = rng.integers(85, size=919)
    x = rng.normal(size=919)
    y = rng.normal(1.3, 0.3, size=85)[groups] - 0.6 * x + rng.normal(0, 0.7, size=919)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 2), pm.HalfNormal("spread", 1)
        slope, noise = pm.Normal("slope", 0, 1), pm.HalfNormal("noise", 1)
        intercept = pm.Normal("intercept", 0, 1, shape=85)
        pm.Normal("y", mean + spread * intercept[groups] + slope * x, noise, observed=y)
    return model


MODELS = {**OF_THE_ENGINE, "varying intercepts, 919 x 85": (varying_intercepts, (0.3, 0.03))}


def measure(name: str, kernel: str, engine: str, sizes: list[int], deadline: float) -> list[tuple[Any, ...]]:
    """Return a row for each number of chains that is begun before the deadline."""
    build, steps = MODELS[name]
    model: Any = open_model(build(), OpenOptions(engine=engine, kernel=kernel))
    found, where = model.info.identity.engine, "one core"
    if found != engine:
        raise SystemExit(f"{name} runs on {found!r}: {model.info.identity.notes}")
    posterior: Any = model.condition(model.info.data.observed)
    frozen = frozen_kernel(steps, model.info.layout.dim)
    betas = np.linspace(0.0, 1.0, N_TEMPERATURES)
    start = posterior.draw_base(PATH, SeedSequence(3).spawn(min(1024, max(sizes))))
    rows = []
    for size in sizes:
        if time.perf_counter() > deadline:
            print(f"{name}, {kernel}: no time left for {size} chains and more", flush=True)
            break
        one = posterior
        if engine == "blackjax":
            where = model.info.identity.versions.get("jax device", "CPU")
            lanes = size if where != "CPU" else model.chains_at_once
            one = dataclasses.replace(
                posterior, vector=dataclasses.replace(posterior.vector, lanes=lanes, _programs={})
            )
        seeds = SeedSequence(4).spawn(size)
        initial = start[np.arange(size) % len(start)]

        def anneal(one: Any = one, initial: Any = initial, seeds: Any = seeds) -> tuple[float, int]:
            began = time.perf_counter()
            run = one.anneal(PATH, betas, frozen, direction="forward", initial=initial, seeds=seeds)
            return time.perf_counter() - began, int(run.n_gradients.sum())

        first = anneal()[0] if engine == "blackjax" else 0.0
        timed = [anneal()]
        while len(timed) < ROUNDS and sum(one[0] for one in timed) < LONG:
            timed.append(anneal())
        seconds, n_gradients = float(np.median([one[0] for one in timed])), timed[0][1]
        row = (name, kernel.upper(), where, size, size / seconds, n_gradients / seconds, n_gradients / size,
               max(0.0, first - seconds))  # fmt: skip
        print("  ".join(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row), flush=True)
        rows.append(row)
    return rows


def copies(number: int, words: list[str]) -> list[tuple[Any, ...]]:
    """Return the rows of as many processes at once, their chains added up."""
    programs = [
        subprocess.Popen([sys.executable, __file__, *words, "--json", "-"], stdout=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    parts = [json.loads(program.communicate()[0].splitlines()[-1]) for program in programs]
    rows = []
    for same in zip(*parts, strict=True):
        first = same[0]
        sums = [sum(row[place] for row in same) for place in (3, 4, 5)]
        rows.append((*first[:2], f"{number} cores", sums[0], sums[1], sums[2], first[6], max(row[7] for row in same)))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("blackjax", "pymc"), default="blackjax")
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--kernels", nargs="*", choices=("hmc", "nuts"), default=["hmc", "nuts"])
    parser.add_argument("--chains", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--copies", type=int, default=1, help="processes at once")
    parser.add_argument("--seconds", type=float, default=3600.0, help="no number of chains is begun after them")
    parser.add_argument("--json", help="a file for the rows; '-' for the last line of what is printed")
    options = parser.parse_args()
    deadline = time.perf_counter() + options.seconds
    if options.copies > 1:
        rows = copies(options.copies, _words(options))
    else:
        rows = [
            row
            for name in options.models
            for kernel in options.kernels
            for row in measure(name, kernel, options.engine, options.chains, deadline)
        ]
    if options.json == "-":
        print(json.dumps(rows))
        return
    show(f"Chains a second, T = {N_TEMPERATURES - 1}, {options.engine}", COLUMNS, rows)
    if options.json:
        Path(options.json).write_text(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows]))


def _words(options: argparse.Namespace) -> list[str]:
    return ["--engine", options.engine, "--models", *options.models, "--kernels", *options.kernels,
            "--chains", *map(str, options.chains), "--seconds", str(options.seconds)]  # fmt: skip


if __name__ == "__main__":
    main()
