"""Check a model of the papers on its data and print what the papers report: python stan_models/run.py NAME."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recipes import RECIPES, Recipe

import bread
from bread.report.compat import read_group


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(RECIPES), help="the model")
    parser.add_argument("--csv", type=Path, default=None, help="raw data of your own, instead of the shipped source")
    parser.add_argument("--temperatures", "-T", type=int, nargs="+", default=[16, 64, 256, 1024], help="values of T")
    parser.add_argument("--simulations", type=int, default=10, help="simulated data sets")
    parser.add_argument("--chains", type=int, default=4, help="chains per data set and direction")
    parser.add_argument("--kernel", choices=["nuts", "hmc"], default="nuts", help="Stan's sampler")
    parser.add_argument("--schedule", choices=["adaptive", "linear", "sigmoid", "geometric"], default="adaptive")
    parser.add_argument("--path", choices=["prior", "reference", "auto"], default="prior")
    parser.add_argument("--init-steps", type=int, default=100, help="S: steps before reverse chains, under 'fitted'")
    parser.add_argument("--tune", type=int, default=200, help="adaptation steps at every knot")
    parser.add_argument("--cores", type=int, default=None, help="processes (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output", type=Path, default=None, help="folder for the report and the plots")
    return parser.parse_args()


def read_data(recipe: Recipe, csv_file: Path | None) -> dict[str, Any]:
    """Return the data block, or end with the reason why there is none."""
    try:
        return recipe.data(csv_file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None


def check(recipe: Recipe, data: dict[str, Any], options: argparse.Namespace) -> Any:
    """Run `bread.check` by the paper's protocol at the given numbers of temperatures; return the report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bread.check(
            recipe.program,
            data=data,
            observed=recipe.observed,
            simulate_from=recipe.simulate_from,
            hyperparameters=recipe.hyperparameters,
            init_steps=options.init_steps,
            simulations=options.simulations,
            chains=options.chains,
            n_temperatures=options.temperatures,
            path=options.path,
            schedule=options.schedule,
            kernel=options.kernel,
            tune=options.tune,
            draws=0,
            cores=options.cores,
            random_seed=options.seed,
            progressbar=False,
        )


def table(report: Any) -> pd.DataFrame:
    """Return one row per number of temperatures T, over the simulations that were annealed both ways.

    Columns, in nats: ``B`` and its interval; ``reliable``, whether B has a finite mean; ``V``, no number of nats,
    with its limit if the data sets are typical; ``median``, the median over data sets of the difference of the median
    log weights, as the paper has it; ``KL(p||q)``, one-sided, and the upper end of its interval; means of the log
    weights. Then what one forward and one reverse chain cost together:
    ``gradients`` and ``seconds`` of one core.
    """
    summary = bread.summary(report, kind="bounds")
    forward, reverse = (_both_ways(report, direction) for direction in ("forward", "reverse"))
    gap = reverse["log_weight"].median("chain") - forward["log_weight"].median("chain")
    pair = {name: (forward[name] + reverse[name]) for name in ("n_gradients", "seconds")}
    others = {name: [dim for dim in values.dims if dim != "n_temperatures"] for name, values in pair.items()}
    return pd.DataFrame(
        {
            "B": summary["jeffreys"],
            "lower": summary["lower"],
            "upper": summary["upper"],
            "reliable": summary["reliable"],
            "V": summary["error"],
            "V limit": summary["error_limit"],
            "median": gap.median("simulation").values.round(3),
            "KL(p||q)": summary["kl_exact_approx"],
            "KL upper": summary["kl_exact_approx_upper"],
            "forward": forward["log_weight"].mean(["simulation", "chain"]).values.round(1),
            "reverse": reverse["log_weight"].mean(["simulation", "chain"]).values.round(1),
            "gradients": pair["n_gradients"].mean(others["n_gradients"]).values.round().astype(int),
            "seconds": (pair["seconds"].mean(others["seconds"]).values / forward.sizes["chain"]).round(3),
        },
        index=summary.index.rename("T"),
    )


def _both_ways(report: Any, direction: str) -> Any:
    """Return the runs of the simulations that were annealed in both directions at every T."""
    runs = {name: read_group(report, name) for name in ("forward", "reverse")}
    used = np.logical_and(*(run["finished"].values.all(axis=(0, 2)) for run in runs.values()))
    return runs[direction].isel(simulation=used)


def consistency(report: Any) -> str:
    """Return a sentence on whether the real data anneal like the simulated ones."""
    group = read_group(report, "consistency")
    if group is None:
        return "consistency: needs at least two numbers of temperatures"
    effect = ", ".join(f"{value:.2g}" for value in np.atleast_1d(group["effect"].values))
    return f"consistency: p = {float(group['p_value']):.3g}; real data harder than simulated by {effect} nats at each T"


def phases(report: Any) -> str:
    """Return the wall time of each phase."""
    cost = read_group(report, "cost")
    return ", ".join(
        f"{phase} {seconds:.1f} s" for phase, seconds in zip(cost["phase"].values, cost["seconds"].values, strict=True)
    )


def plot(report: Any, title: str, path: Path) -> None:
    """Draw the four plots of a report into a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 9), layout="constrained")
    for draw, axis in zip(
        (bread.plot_bounds, bread.plot_consistency, bread.plot_work, bread.plot_path), axes.flat, strict=True
    ):
        draw(report, ax=axis)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run a model and print its table."""
    options = arguments()
    recipe = RECIPES[options.name]
    report = check(recipe, read_data(recipe, options.csv), options)
    print(f"== {options.name}: simulate_from={recipe.simulate_from!r}, {options.kernel}, {options.schedule} schedule")
    print(table(report).to_string())
    print(consistency(report))
    print(f"wall time: {phases(report)}")
    verdict = bread.verdict(report)
    print(f"[{verdict.status}] {verdict}")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        stem = options.output / options.name
        report.to_netcdf(f"{stem}.nc")
        plot(report, options.name, stem.with_suffix(".png"))
        print(f"report and plots: {stem}.nc, {stem}.png")


if __name__ == "__main__":
    main()
