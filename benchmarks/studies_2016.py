"""The five studies of Grosse, Ancha & Roy (2016) and their matrix factorisation, beside 2016's figures.

`python benchmarks/studies_2016.py [--long]`. 2016's figures were read off the paper's plots, to about 2 %; between its
numbers of temperatures they are interpolated on logarithmic scales. Only the factorisation has seconds there. Three
of the data sets are today's stand-ins (`stan_models/README.md` has runs on the paper's own files).
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measuring import SEED, print_table, read_is_long, seconds_of_a_pair

import bread
from bread.report.compat import read_group

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "stan_models"))
from recipes import RECIPES

GAPS_2016: dict[str, dict[int, float]] = {
    "matrix_factorisation": {10: 1138, 30: 328, 100: 95, 300: 32, 1000: 10.4, 3000: 3.3},
    "logistic_regression": {10: 60, 100: 4.9, 1000: 0.68, 2000: 0.42},
    "linear_regression": {100: 19, 1000: 3.3, 2000: 1.8},
    "clustering": {10: 344, 100: 11.7, 1500: 0.90},
    "time_series": {100: 41, 1200: 3.2, 15000: 0.76},
    "movielens": {100: 251, 2000: 29},
}
SECONDS_2016 = {10: 0.32, 30: 1.1, 100: 3.4, 300: 10.8, 1000: 32.0, 3000: 96.0}  # of the factorisation
TEMPERATURES, LONG_TEMPERATURES = (100,), (100, 300, 1000)  # the paper has all at 100
SMALL, LARGE = {"simulations": 4, "chains": 4}, {"simulations": 10, "chains": 4}
LONG_ONLY = ("movielens",)


def interpolated(figures: dict[int, float], number: int) -> float:
    """Return a figure of 2016 at another number of temperatures, on a line of logarithms; NaN outside."""
    known = np.array(list(figures), dtype=float)
    if not known[0] <= number <= known[-1]:
        return float("nan")
    return float(np.exp(np.interp(np.log(number), np.log(known), np.log(list(figures.values())))))


def rows_of(name: str, is_long: bool) -> list[tuple[Any, ...]]:
    """Return a row for each number of temperatures."""
    recipe = RECIPES[name]
    temperatures = LONG_TEMPERATURES if is_long else TEMPERATURES
    is_factorisation = name == "matrix_factorisation"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = bread.check(
            recipe.program, data=recipe.data(None), observed=list(recipe.observed), simulate_from=recipe.simulate_from,
            hyperparameters=recipe.hyperparameters, path="prior", kernel="hmc" if is_factorisation else "nuts",
            n_temperatures=temperatures, draws=0, cores=1, random_seed=SEED, progressbar=False,
            **(LARGE if is_long else SMALL),
        )  # fmt: skip
    forward, reverse = read_group(report, "forward"), read_group(report, "reverse")
    median = reverse["log_weight"].median("chain") - forward["log_weight"].median("chain")
    table, rows = bread.summary(report, kind="bounds"), []
    for number in temperatures:
        gap = float(median.sel(n_temperatures=number).median())
        seconds = seconds_of_a_pair(forward, reverse, number)
        row, old = table.loc[number], interpolated(GAPS_2016[name], number)
        old_seconds = interpolated(SECONDS_2016, number) if is_factorisation else None
        rows.append(
            (name, number, float(row["error"]), float(row["jeffreys"]), gap, old, old / gap, seconds,
             "" if old_seconds is None else old_seconds, "" if old_seconds is None else old_seconds / seconds)
        )  # fmt: skip
    return rows


def run(is_long: bool = False) -> None:
    """Measure and print."""
    rows: list[tuple[Any, ...]] = []
    for name in GAPS_2016:
        if is_long or name not in LONG_ONLY:
            rows += rows_of(name, is_long)
            print(".", end="", flush=True)
    print_table(
        "2016's studies: then and now, at equal numbers of temperatures",
        (
            "study",
            "T",
            "V",
            "B, nats",
            "median gap, nats",
            "2016: gap",
            "2016 / now",
            "s a pair",
            "2016: s",
            "2016 / now, s",
        ),
        rows,
        "Prior path, adaptive schedule (2016: linear or sigmoid), NUTS, static HMC for the factorisation. Gap: median "
        "over data sets of the difference of median log weights (the factorisation's 2016 figures are means). B is "
        "infinite on linear_regression, clustering and movielens whatever is printed. A pair is one forward and one "
        "reverse chain. 2016's computers were slower, too.",
    )


if __name__ == "__main__":
    run(read_is_long(__doc__))
