"""Figure 2 of Grosse, Ancha & Roy (2016): matrix factorisation, uncollapsed and with u integrated out, in both PPLs.

`bread.compare` anneals both forms on the same simulated matrices (50 x 25, rank 5), from the same exact draws: B
against steps and against the time of a forward and a reverse chain, with the points read from the figure of the paper.

    python examples/papers/bread_figure_2.py --ppl both --output output
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, write_csv

import bread

SIZES, SMALL = {"N": 50, "K": 5, "D": 25}, {"N": 6, "K": 2, "D": 3}
FORMS = ("uncollapsed", "collapsed")
PPLS = {"pymc": "PyMC", "stan": "Stan"}
STAN = Path(__file__).resolve().parents[2] / "stan_models"
PROGRAMS = {"uncollapsed": "matrix_factorisation.stan", "collapsed": "collapsed_matrix_factorisation.stan"}
PAPER = {  # of Stan: steps, B, seconds of both chains
    "uncollapsed": ([10, 30, 100, 300, 1000, 3000], [1138, 328, 95, 32, 10.4, 3.3], [0.32, 1.1, 3.4, 10.8, 32, 96]),
    "collapsed": ([3, 10, 30, 100, 300], [1114, 323, 108, 32, 10.8], [0.6, 2.9, 8.8, 29, 87]),
}
LEVELS = (100.0, 30.0, 10.0)
HEADER = (
    "ppl",
    "form",
    "n_temperatures",
    "B",
    "lower",
    "upper",
    "reliable",
    "gradients",
    "seconds",
)  # of a pair of chains


def models(ppl: str, sizes: dict[str, int]) -> dict[str, Any]:
    """Return both forms, on a matrix of zeros, which `bread.compare` puts simulated ones in the place of."""
    n, k, d = sizes.values()
    y = np.zeros((n, d))
    if ppl == "stan":
        how = {"data": {**sizes, "y": y}, "observed": "y"}
        return {form: (STAN / PROGRAMS[form], how) for form in FORMS}
    import pymc as pm
    import pytensor.tensor as pt

    with pm.Model() as uncollapsed:
        u, v = pm.Normal("u", shape=(n, k)), pm.Normal("v", shape=(k, d))
        pm.Normal("y", u @ v, 1.0, observed=y)
    with pm.Model() as collapsed:
        v = pm.Normal("v", shape=(k, d))
        pm.MvNormal("y", np.zeros(d), cov=v.T @ v + pt.eye(d), observed=y)
    return {"uncollapsed": uncollapsed, "collapsed": collapsed}


def measure(ppl: str, sizes: dict[str, int], options: Any) -> list[tuple[Any, ...]]:
    """Return a row for each form and number of steps; print what the comparison says."""
    report = bread.compare(
        models(ppl, sizes), mapping={"collapsed": lambda draw: {"v": draw["v"]}}, simulations=options.simulations,
        chains=1, n_temperatures=options.temperatures, kernel=options.kernel, tune_on="shared", cores=1,
        random_seed=options.seed,
    )  # fmt: skip
    table = bread.summary(report).reset_index()
    print(f"== {PPLS[ppl]}\n{table.to_string()}\n{bread.verdict(report)}", flush=True)
    return [
        (PPLS[ppl], row["model"], int(row["n_temperatures"]), float(row["jeffreys"]), float(row["lower"]),
         float(row["upper"]), bool(row["reliable"]), 2 * float(row["gradients"]), 2 * float(row["seconds"]))
        for _, row in table.iterrows()
    ]  # fmt: skip


def cost_at(level: float, bounds: Any, costs: Any) -> float:
    """Return the cost at which B falls to a level, by interpolation of logarithms; NaN outside the table."""
    falling = np.minimum.accumulate(np.clip(bounds, 1e-3, None))[::-1]
    found = np.interp(np.log(level), np.log(falling), np.log(costs)[::-1], left=np.nan, right=np.nan)
    return float(np.exp(found))


def say(rows: list[tuple[Any, ...]]) -> None:
    """Print by how much the forms differ at equal B, beside the paper's."""
    for ppl in dict.fromkeys(row[0] for row in rows):
        for level in LEVELS:
            cost = {}
            for form in FORMS:
                columns = np.array([row[2:] for row in rows if row[:2] == (ppl, form)], dtype=float)
                cost[form] = [cost_at(level, columns[:, 1], columns[:, i]) for i in (0, 6)]
            steps, seconds = np.array(cost["collapsed"]) / np.array(cost["uncollapsed"])
            if np.isfinite(steps):
                print(f"{ppl}, B = {level:g}: collapsed takes {steps:.2f} times the steps, {seconds:.2f} the seconds")


def draw(rows: list[tuple[Any, ...]], *, with_paper: bool) -> Any:
    """Return B against steps (left) and seconds (right), one row for each PPL."""
    ppls = list(dict.fromkeys(row[0] for row in rows))
    figure, axes = plt.subplots(
        len(ppls), 2, figsize=(9.0, 3.4 * len(ppls) + 0.4), layout="constrained", squeeze=False, sharey=True
    )
    for (left, right), ppl in zip(axes, ppls, strict=True):
        for place, form in enumerate(FORMS):
            columns = np.array([row[2:] for row in rows if row[:2] == (ppl, form)], dtype=float)
            bounds = columns[:, 1]
            low = np.maximum(columns[:, 2], 0.1 * bounds)  # the scale is logarithmic
            errors = bounds - low, columns[:, 3] - bounds
            for axis, at in ((left, 0), (right, 6)):
                axis.errorbar(columns[:, at], bounds, errors, color=f"C{place}", marker="o", label=form)
            if with_paper and ppl == "Stan":
                steps, gaps, seconds = PAPER[form]
                for axis, values in ((left, steps), (right, seconds)):
                    axis.plot(values, gaps, "x:", color=f"C{place}", label=f"{form}, paper")
        left.set(ylabel=f"{ppl}: B (nats)", xlabel="inverse temperatures T")
        right.set(xlabel="seconds, forward and reverse chain")
        for axis in (left, right):
            axis.set(xscale="log", yscale="log")
        left.legend(frameon=False)
    return figure


def main() -> None:
    """Write the table and the figure."""
    options = arguments(
        __doc__,
        ("--ppl", {"choices": [*PPLS, "both"], "default": "both", "help": "where the forms are run"}),
        ("--kernel", {"choices": ["nuts", "hmc"], "default": "nuts", "help": "the sampler"}),
        ("--temperatures", {"type": int, "nargs": "+", "default": [10, 30, 100, 300, 1000], "help": "values of T"}),
        ("--simulations", {"type": int, "default": 10, "help": "simulated matrices, one chain each way"}),
    )
    if options.quick:
        options.temperatures = [4, 8, 16]
    ppls = list(PPLS) if options.ppl == "both" else [options.ppl]
    rows = [row for ppl in ppls for row in measure(ppl, SMALL if options.quick else SIZES, options)]
    say(rows)
    write_csv(options.output / "bread_figure_2.csv", HEADER, rows)
    save(draw(rows, with_paper=not options.quick), options.output / "bread_figure_2.png")


if __name__ == "__main__":
    main()
