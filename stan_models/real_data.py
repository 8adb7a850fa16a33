"""Figures 5 and 6 of Grosse, Ancha & Roy (2016), in PyMC, in Stan, or in both.

    python stan_models/real_data.py logistic_regression --ppl both --output output

Figure 5: forward chains on the real data and on data simulated with hyperparameters of the fit. Figure 6: reverse
chains on the simulated data, which begin S transitions after the simulated parameters, for several S. As in the paper,
a curve is the median and the quartiles of single chains, less the largest forward log weight of the data set. Writes a
PNG, two tables as CSV (the curves, and the bounds), and the report of figure 5.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recipes import RECIPES
from run import consistency, read_data, table
from scipy import stats

import bread
from bread.report.compat import read_group

NAMES = [name for name, recipe in RECIPES.items() if recipe.hyperparameters is not None]
PPLS = {"pymc": "PyMC", "stan": "Stan"}
QUARTILES = (25, 50, 75)
FAR = 50.0  # nats below the largest, from which a forward chain counts as stuck


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=NAMES, help="the model")
    parser.add_argument("--ppl", choices=[*PPLS, "both"], default="both", help="where the model is run (both)")
    parser.add_argument(
        "--fit", choices=["pymc", "own"], default="pymc", help='of the real data ("own": by Stan, with --ppl stan)'
    )
    parser.add_argument("--csv", type=Path, default=None, help="raw data of your own, instead of the shipped source")
    parser.add_argument("--temperatures", "-T", type=int, nargs="+", default=[16, 64, 256], help="values of T")
    parser.add_argument("--steps", "-S", type=int, nargs="*", default=[10, 100, 1000, 10_000], help="values of S")
    parser.add_argument("--simulations", type=int, default=10, help="simulated data sets that are annealed both ways")
    parser.add_argument("--chains", type=int, default=4, help="chains per data set and direction")
    parser.add_argument("--reverse-chains", type=int, default=2, help="the same, for each S of --steps")
    parser.add_argument(
        "--reverse-temperatures", type=int, nargs="+", default=None, help="the T of --steps (those of -T)"
    )
    parser.add_argument("--simulate-from", choices=["fitted", "prior"], default="fitted")
    parser.add_argument("--schedule", choices=["adaptive", "linear", "sigmoid", "geometric"], default="adaptive")
    parser.add_argument("--kernel", choices=["nuts", "hmc"], default="nuts", help="the sampler")
    parser.add_argument("--draws", type=int, default=0, help="annealed draws on the real data, for the test of fit")
    parser.add_argument("--cores", type=int, default=None, help="processes (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--quick", action="store_true", help="T = 4 and 16, S = 2 and 20, three data sets")
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder for the PNG and the CSV files")
    options = parser.parse_args()
    if options.quick:
        options.temperatures, options.reverse_temperatures, options.steps = [4, 16], None, [2, 20]
        options.simulations = 3
    if options.simulate_from == "prior":
        options.steps = []  # reverse chains begin at the exact draw
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def fitted_in_pymc(name: str, data: dict[str, Any], options: argparse.Namespace) -> Any:
    """Return draws of `pm.sample` on the real data."""
    import pymc as pm
    from pymc_models import MODELS

    logging.getLogger("pymc").setLevel(logging.ERROR)
    with MODELS[name](data):
        return pm.sample(cores=options.cores, chains=4, random_seed=options.seed, progressbar=False)


class Checker:
    """Runs `bread.check` on a recipe in one PPL, with the fit to the real data that it is given.

    Programs and models have the same parameters: one fit serves both. Without it each check begins with its own.
    """

    def __init__(self, ppl: str, data: dict[str, Any], options: argparse.Namespace, fit: Any = None) -> None:
        recipe = self.recipe = RECIPES[options.name]
        self.options, self.is_fitted = options, options.simulate_from == "fitted"
        self.subject: dict[str, Any]
        if ppl == "pymc":
            from pymc_models import MODELS

            self.subject = {"model": MODELS[options.name](data)}
        else:
            self.subject = {"model": recipe.program, "data": data, "observed": recipe.observed}
        if self.is_fitted and fit is not None:
            self.subject["posterior"] = fit

    def check(self, temperatures: list[int], chains: int, draws: int = 0, **settings: Any) -> Any:
        """Return a report. Data sets and the random numbers of their chains depend on the seed alone."""
        if self.is_fitted:
            settings["hyperparameters"] = self.recipe.hyperparameters
        return bread.check(
            **self.subject, simulate_from=self.options.simulate_from, n_temperatures=temperatures, chains=chains,
            simulations=self.options.simulations, schedule=self.options.schedule, path="prior", draws=draws,
            cores=self.options.cores, random_seed=self.options.seed, kernel=self.options.kernel, **settings,
        )  # fmt: skip


def log_weights(report: Any, group: str) -> Any:
    """Return log weights of finished data sets, less the largest forward one of each (n_temperatures, ..., chain)."""
    found, forward = read_group(report, group), read_group(report, "forward")
    if group == "observed_forward":
        return found["log_weight"] - found["log_weight"].max()
    top = forward["log_weight"].max(["n_temperatures", "chain"])
    finished = found["finished"].all(["n_temperatures", "chain"])
    return (found["log_weight"] - top).isel(simulation=finished.values)


def curve(weights: Any, ppl: str, label: str, steps: int | None) -> pd.DataFrame:
    """Return the quartiles of single chains at each T."""
    low, middle, high = np.percentile(weights.values.reshape(weights.sizes["n_temperatures"], -1), QUARTILES, axis=1)
    return pd.DataFrame(
        {
            "ppl": PPLS[ppl], "curve": label, "S": steps, "n_temperatures": weights["n_temperatures"].values,
            "n_data_sets": weights.sizes.get("simulation", 1), "n_chains": weights.sizes["chain"],
            "lower_quartile": low, "median": middle, "upper_quartile": high,
        }
    )  # fmt: skip


def stuck(report: Any) -> Any:
    """Return the share of forward chains on simulated data that end `FAR` below the largest of their data set, by T."""
    weights = log_weights(report, "forward")
    return (weights < -FAR).mean(["simulation", "chain"]).values.round(4)


def level(report: Any) -> str:
    """Return sentences on level and fit: is the evidence of the real data as of simulated ones, do they look alike."""
    shape, fit = read_group(report, "consistency"), read_group(report, "fit")
    said = []
    if shape is not None:
        said.append(
            f"level: the log evidence of {int(shape['log_evidence_rank'])} of {int(shape['n_simulations'])} simulated "
            f"data sets is below that of the real data (two-sided p = {float(shape['log_evidence_p_value']):.2g}; "
            "exact under 'prior' alone)"
        )
    if fit is not None:
        nodes = fit["p_value_by_node"].to_series().dropna().sort_values()
        (node, statistic), worst = nodes.index[0], nodes.iloc[0]
        said.append(f"fit: p = {float(fit['p_value']):.2g}; smallest for {node!r} ({statistic}): {worst:.2g}")
    return "\n".join(said)


def run(
    ppl: str, data: dict[str, Any], options: argparse.Namespace, fit: Any = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the curves and the bounds of a model in one PPL."""
    name, checker = options.name, Checker(ppl, data, options, fit)
    report = checker.check(options.temperatures, options.chains, options.draws)
    bounds = table(report).assign(stuck=stuck(report))
    report.to_netcdf(f"{options.output / f'real_data_{name}_{ppl}'}.nc")
    print(f"== {name} in {PPLS[ppl]}, simulated from {options.simulate_from!r}\n{bounds.to_string()}")
    print(f"{consistency(report)}\n{level(report)}\n[{bread.verdict(report).status}] {bread.verdict(report)}")
    curves = [
        curve(log_weights(report, group), ppl, label, None)
        for group, label in (("observed_forward", "real, forward"), ("forward", "simulated, forward"))
    ]
    temperatures = options.reverse_temperatures or options.temperatures
    reverse = {}
    for steps in options.steps:
        other = checker.check(temperatures, options.reverse_chains, init_steps=steps)
        reverse[steps] = log_weights(other, "reverse")
        curves.append(curve(reverse[steps], ppl, "simulated, reverse", steps))
    if len(reverse) > 1:
        print(start_matters(reverse))
    return pd.concat(curves), bounds.reset_index().assign(ppl=PPLS[ppl])


def start_matters(reverse: dict[int, Any]) -> str:
    """Say by how much reverse weights differ between the S, by data set: median over chains, Student's t over sets."""
    most = max(reverse)
    lines = []
    for steps, weights in reverse.items():
        if steps == most:
            continue
        change = (weights.median("chain") - reverse[most].median("chain")).values
        n = change.shape[1]
        half = stats.t.ppf(0.975, n - 1) * change.std(axis=1, ddof=1) / np.sqrt(n)
        cells = ", ".join(
            f"{middle:.2f} ± {width:.2f} (T = {T})"
            for T, middle, width in zip(weights["n_temperatures"].values, change.mean(axis=1), half, strict=True)
        )
        lines.append(f"reverse at S = {steps} less S = {most}, nats: {cells}")
    return "\n".join(lines)


def compare(bounds: pd.DataFrame) -> str:
    """Say at each T whether B in either PPL lies within the other's interval."""
    first, second = (part.set_index("T") for _, part in bounds.groupby("ppl"))
    lines = []
    for T in first.index:
        a, b = first.loc[T], second.loc[T]
        inside = [b["lower"] <= a["B"] <= b["upper"], a["lower"] <= b["B"] <= a["upper"]]
        is_apart = a["upper"] < b["lower"] or b["upper"] < a["lower"]
        words = "both within" if all(inside) else "one within" if any(inside) else "none within"
        lines.append(
            f"T = {T}: B {a['B']:.3g} ({a['lower']:.3g} to {a['upper']:.3g}) in {a['ppl']}, {b['B']:.3g} "
            f"({b['lower']:.3g} to {b['upper']:.3g}) in {b['ppl']}: {words} the other's interval"
            f"{', which are apart' if is_apart else ''}; medians {a['median']:.3g} and {b['median']:.3g}"
        )
    return "\n".join(lines)


def plot(curves: pd.DataFrame, title: str, path: Path) -> None:
    """Draw figure 5 (left) and figure 6 (right), one row for each PPL, with bands from quartile to quartile."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ppls = list(dict.fromkeys(curves["ppl"]))
    n_columns = 1 + bool(curves["S"].notna().any())
    figure, axes = plt.subplots(
        len(ppls), n_columns, figsize=(5.2 * n_columns, 3.6 * len(ppls) + 0.4), layout="constrained", squeeze=False,
        sharex="col", sharey="col",
    )  # fmt: skip
    for row, ppl in zip(axes, ppls, strict=True):
        own = curves[curves["ppl"] == ppl]
        forward, reverse = own[own["S"].isna()], own[own["S"].notna()]
        for label, part in forward.groupby("curve", sort=False):
            _band(row[0], part, str(label))
        row[0].set_title(f"{ppl}: forward chains")
        for steps, part in reverse.groupby("S", sort=False):
            _band(row[1], part, f"S = {int(steps)}")
        if n_columns > 1:
            row[1].set_title(f"{ppl}: reverse chains, simulated data")
        for axis in row:
            axis.legend(frameon=False)
            axis.set_ylabel("log weight, less the data set's\nlargest forward one (nats)")
    for axis in axes[-1]:
        axis.set_xlabel("number of inverse temperatures T")
    figure.suptitle(title)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _band(axis: Any, part: pd.DataFrame, label: str) -> None:
    """Draw a curve and its quartiles; the scale is linear near 0 and logarithmic beyond."""
    (line,) = axis.plot(part["n_temperatures"], part["median"], marker="o", markersize=4, label=label)
    axis.fill_between(
        part["n_temperatures"], part["lower_quartile"], part["upper_quartile"], color=line.get_color(), alpha=0.15
    )
    axis.set_xscale("log", base=2)
    axis.set_xticks(part["n_temperatures"], [str(T) for T in part["n_temperatures"]])
    axis.minorticks_off()
    axis.set_yscale("symlog", linthresh=1.0)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.grid(alpha=0.3)


def main() -> None:
    """Run a model in one PPL or both; write figure and tables."""
    options = arguments()
    data = read_data(RECIPES[options.name], options.csv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        needs_fit = options.simulate_from == "fitted" and (options.ppl != "stan" or options.fit == "pymc")
        fit = fitted_in_pymc(options.name, data, options) if needs_fit else None
        parts = [run(ppl, data, options, fit) for ppl in (PPLS if options.ppl == "both" else [options.ppl])]
    curves, bounds = (pd.concat(tables) for tables in zip(*parts, strict=True))
    if options.ppl == "both":
        print(compare(bounds))
    stem = options.output / f"real_data_{options.name}"
    curves.to_csv(f"{stem}.csv", index=False)
    bounds.to_csv(f"{stem}_bounds.csv", index=False)
    protocol = {"fitted": "with hyperparameters of the fit", "prior": "from the prior"}[options.simulate_from]
    plot(curves, f"{options.name.replace('_', ' ')}\ndata simulated {protocol}", stem.with_suffix(".png"))
    print(f"figure, tables, reports: {stem}.png, {stem}.csv, {stem}_bounds.csv, {stem}_*.nc")


if __name__ == "__main__":
    main()
