"""Does integrating u out pay? Matrix factorisation in two forms, on the same simulated data and exact draws.

The question of Grosse, Ancha & Roy (2016), section 5.2.1. A kernel is tuned once on an extra data set and frozen; then
one forward and one reverse chain a data set, on one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from recipes import RECIPES, simulated_factors

from bread.backends import open_model
from bread.backends.base import Direction, OpenOptions
from bread.paths import schedules
from bread.paths.kinds import PriorPath
from bread.running.pilots.tuning import Pilot, tune
from bread.seeds import Purpose, chain_seeds, seed_sequence
from bread.statistics.bounds import bounds, intervals

FORMS = {"uncollapsed": "matrix_factorisation", "collapsed": "collapsed_matrix_factorisation"}
LEVELS = (100.0, 30.0, 10.0, 3.3)  # nats at which the two are compared
EXTRA = -2  # number of the data set of the pilot, as `bread.check` has it


def simulate(rng: np.random.Generator, data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw both factors and a matrix; the program takes those of the factors that it declares."""
    u, v = simulated_factors(rng)
    return {"u": u, "v": v}, {"y": u @ v + rng.standard_normal((data["N"], data["D"]))}


def measure(form: str, kernel: str, options: argparse.Namespace) -> pd.DataFrame:
    """Return B in nats with its interval, gradients and seconds a pair of chains, one row per T."""
    recipe, path = RECIPES[FORMS[form]], PriorPath()
    how = OpenOptions(kernel=kernel, data=recipe.data(), observed=recipe.observed, simulator=simulate)
    model = open_model(recipe.program, how)
    began = time.perf_counter()
    pilot = _tune(model, path, options)
    seconds_of_pilot = time.perf_counter() - began
    length = schedules.thermodynamic_length(pilot.kernel.betas, pilot.kernel.log_ratio)
    simulations = model.simulate(options.simulations, fixed=None, seed=seed_sequence(options.seed, Purpose.SIMULATE))
    directions: tuple[Direction, ...] = ("forward", "reverse")
    rows = []
    for n_temperatures in options.temperatures if form == "uncollapsed" else options.collapsed_temperatures:
        betas = schedules.schedule(options.schedule, n_temperatures, length)
        runs: dict[str, list[Any]] = {direction: [] for direction in directions}
        for i in range(options.simulations):
            posterior = model.condition(simulations.data_of(i))
            for direction in directions:
                is_forward = direction == "forward"
                starts = chain_seeds(options.seed, Purpose.BASE, i, n_temperatures, range(1))
                start = posterior.draw_base(path, starts) if is_forward else simulations.states[i : i + 1]
                purpose = Purpose.FORWARD if is_forward else Purpose.REVERSE
                seeds = chain_seeds(options.seed, purpose, i, n_temperatures, range(1))
                run = posterior.anneal(path, betas, pilot.kernel, direction=direction, initial=start, seeds=seeds)
                runs[direction].append(run)
        forward, reverse = (np.array([run.log_weight for run in runs[direction]]) for direction in directions)
        interval = bounds.jeffreys_bound(forward, reverse, intervals.alpha_level(0))
        both = [run for direction in directions for run in runs[direction]]
        rows.append(
            {
                "T": n_temperatures,
                "B": interval.estimate,
                "lower": interval.lower,
                "upper": interval.upper,
                "gradients": sum(int(run.n_gradients.sum()) for run in both) / options.simulations,
                "seconds": sum(run.seconds for run in both) / options.simulations,
            }
        )
    frame = pd.DataFrame(rows).set_index("T")
    print(f"== {form}, {kernel}, {options.schedule} schedule; pilot {seconds_of_pilot:.1f} s")
    print(frame.to_string(float_format=lambda value: f"{value:.3g}"), flush=True)
    return frame


def _tune(model: Any, path: PriorPath, options: argparse.Namespace) -> Pilot:
    data = model.simulate(1, fixed=None, seed=seed_sequence(options.seed, Purpose.SIMULATE, EXTRA)).data_of(0)
    return tune(
        model.condition(data),
        path,
        root=options.seed,
        simulation=EXTRA,
        n_steps=options.tune,
        n_base_draws=1000,
        source="an extra simulated data set",
    )


def cost_at(frame: pd.DataFrame, level: float) -> tuple[float, float]:
    """Return T and seconds at which B falls to ``level``, by interpolation of logarithms; NaN outside the table."""
    falling = np.minimum.accumulate(frame["B"].clip(lower=1e-3).to_numpy())
    log_bound = np.log(falling[::-1])
    temperatures, seconds = (
        float(np.exp(np.interp(np.log(level), log_bound, np.log(cost[::-1]), left=np.nan, right=np.nan)))
        for cost in (frame.index.to_numpy(dtype=float), frame["seconds"].to_numpy(dtype=float))
    )
    return temperatures, seconds


def main() -> None:
    """Print a table for each kernel and form, then T and seconds at equal bounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--kernels", choices=["nuts", "hmc"], nargs="+", default=["nuts", "hmc"], help="Stan's samplers"
    )
    parser.add_argument("--forms", choices=list(FORMS), nargs="+", default=list(FORMS))
    parser.add_argument("--temperatures", "-T", type=int, nargs="+", default=[10, 30, 100, 300, 1000, 3000])
    parser.add_argument("--collapsed-temperatures", type=int, nargs="+", default=[3, 10, 30, 100, 300, 1000])
    parser.add_argument("--simulations", type=int, default=10, help="simulated data sets, one chain each way")
    parser.add_argument("--schedule", choices=["adaptive", "linear", "sigmoid", "geometric"], default="adaptive")
    parser.add_argument("--tune", type=int, default=200, help="adaptation steps at every knot")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    options = parser.parse_args()
    for kernel in options.kernels:
        frames = {form: measure(form, kernel, options) for form in options.forms}
        for level in LEVELS:
            costs = {form: cost_at(frame, level) for form, frame in frames.items()}
            texts = [
                f"{form} T = {steps:.0f}, {seconds:.2f} s"
                for form, (steps, seconds) in costs.items()
                if np.isfinite(steps)
            ]
            if texts:
                print(f"B = {level:g} nats: {'; '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
