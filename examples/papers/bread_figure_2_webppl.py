"""Figure 2 of BREAD in WebPPL: B of matrix factorisation by Metropolis over traces, collapsed and not.

Both forms share simulated matrices and exact draws, as in the paper (50 x 25 of rank 5, all hyperparameters 1). A step
is one proposal at one inverse temperature, of an even schedule; proposals come from the prior, as in 2016, or from near
the last value (WebPPL's drift kernels). Needs Node.js and the npm package webppl; says so and ends where they are not
there.

    npm install --prefix .webppl webppl
    python examples/papers/bread_figure_2_webppl.py --node-modules .webppl/node_modules --output output
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import save, write_csv

import bread_webppl
from bread import seeds
from bread.backends import open_model
from bread.backends.base import Kernel, OpenOptions
from bread.errors import MissingDependencyError
from bread.paths.kinds import PriorPath

SIZES = {"N": 50, "K": 5, "D": 25}
SMALL = {"N": 8, "K": 2, "D": 5}
PAPER = {"uncollapsed": (10_000, 1120.0, 126.0), "collapsed": (None, 160.0, 88.0)}  # steps, nats, seconds of a pair
NO_SETTINGS = Kernel(np.array([0.0, 1.0]), {})  # WebPPL's kernel has none

# A site is drawn by `draw`: from the prior alone, or with a drift kernel, which proposes near the last value.
DRAW = {
    "prior": "var draw = function() { return gaussian(0, 1); };",
    "drift": "var draw = function() { return gaussianDrift({mu: 0, sigma: 1, width: 0.5}); };",
}
FORMS = {
    "uncollapsed": """
var dot = function(a, b) { return sum(map2(function(x, y) { return x * y; }, a, b)); };
var model = function(data) {
  var u = repeat(data.N, function() { return repeat(data.K, draw); });
  var v = repeat(data.D, function() { return repeat(data.K, draw); });
  map2(function(row, own) {
    map2(function(y, other) { observe(Gaussian({mu: dot(own, other), sigma: 1}), y); }, row, v);
  }, data.y, u);
  return {u: u, v: v};
};
""",
    "collapsed": """
var model = function(data) {
  var v = repeat(data.D, function() { return repeat(data.K, draw); });
  var factor = Matrix(v);
  var cov = T.add(T.dot(factor, T.transpose(factor)), idMatrix(data.D));
  var law = MultivariateGaussian({mu: zeros([data.D, 1]), cov: cov});
  map(function(row) { observe(law, Vector(row)); }, data.y);
  return {v: v};
};
""",
}


def open_form(form, proposals, sizes, options, packages=()):
    """Open the program of one form, a transition being one proposal."""
    data = {**sizes, "y": np.zeros((sizes["N"], sizes["D"]))}  # simulated ones take their place
    program = DRAW[proposals] + FORMS[form]
    model = bread_webppl.Model(program, data, "y", updates=1, packages=packages, node_modules=options.node_modules)
    return open_model(model, OpenOptions())


def anneal(model, data, state, n_steps, seed, number):
    """Return log weights of one forward and one reverse chain, and the CPU time of both in seconds."""
    posterior, path, betas = model.condition(data), PriorPath(), np.linspace(0.0, 1.0, n_steps + 1)
    weights, began = [], model.program.cpu_seconds()
    for direction, purpose in (("forward", seeds.Purpose.FORWARD), ("reverse", seeds.Purpose.REVERSE)):
        start = seeds.chain_seeds(seed, seeds.Purpose.BASE, number, n_steps, range(1))
        initial = posterior.draw_base(path, start) if direction == "forward" else state[None]
        own = seeds.chain_seeds(seed, purpose, number, n_steps, range(1))
        run = posterior.anneal(path, betas, NO_SETTINGS, direction=direction, initial=initial, seeds=own)
        weights.append(float(run.log_weight[0]))
    return weights, model.program.cpu_seconds() - began


def measure(options, sizes, steps):
    """Return a row of the table for each form, way of proposing and number of steps; all see the same data sets."""
    source = open_form("uncollapsed", "prior", sizes, options)
    drawn = source.simulate(
        options.simulations, fixed=None, seed=seeds.seed_sequence(options.seed, seeds.Purpose.SIMULATE)
    )
    rows = []
    for form in options.forms:
        for proposals in options.proposals:
            model = open_form(form, proposals, sizes, options)
            names = model.info.layout.positions
            states = model.unconstrain({name: drawn.parameters[name] for name in names})
            for n_steps in steps:
                runs = [
                    anneal(model, drawn.data_of(i), states[i], n_steps, options.seed, i)
                    for i in range(options.simulations)
                ]
                gaps = np.array([reverse - forward for (forward, reverse), _ in runs])
                error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
                seconds = float(np.mean([one for _, one in runs]))
                rows.append((form, proposals, n_steps, float(gaps.mean()), float(error), seconds))
                spread = f" (standard error {error:.1f})" if len(gaps) > 1 else ""
                print(
                    f"{form:11s} {proposals:5s} {n_steps:7d} steps   B = {gaps.mean():8.1f} nats{spread}   "
                    f"{seconds:7.1f} CPU s a pair of chains",
                    flush=True,
                )
    return rows


def draw(rows, path, with_paper):
    """Draw B against steps and against time, and the paper's two points where the sizes are its own."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained", sharey=True)
    for place, form in enumerate(FORMS):
        for proposals, style in (("prior", "-"), ("drift", "--")):
            own = [row for row in rows if row[:2] == (form, proposals)]
            if own:
                steps, gaps, seconds = (np.array([row[column] for row in own]) for column in (2, 3, 5))
                left.loglog(steps, gaps, style, color=f"C{place}", marker=".", label=f"{form}, {proposals}")
                right.loglog(seconds, gaps, style, color=f"C{place}", marker=".")
        if not with_paper:
            continue
        steps, gap, seconds = PAPER[form]
        right.scatter([seconds], [gap], color=f"C{place}", marker="x", zorder=3)
        if steps is not None:
            left.scatter([steps], [gap], color=f"C{place}", marker="x", zorder=3)
    left.set(xlabel="steps", ylabel="B, nats")
    if with_paper:
        left.set_title("crosses: read from the paper's figure")
    right.set(xlabel="CPU seconds, forward and reverse chain")
    left.legend(frameon=False)
    save(figure, path)
    plt.close(figure)


def arguments():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder for the PNG and the CSV")
    parser.add_argument("--node-modules", help="folder where the npm package webppl is installed")
    parser.add_argument("--forms", choices=list(FORMS), nargs="+", default=list(FORMS))
    parser.add_argument("--proposals", choices=list(DRAW), nargs="+", default=list(DRAW))
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--simulations", type=int, default=1, help="simulated data sets, one chain each way")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a small matrix and few steps")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    options = arguments()
    sizes, steps = (SMALL, [30, 100, 300]) if options.quick else (SIZES, options.steps)
    began = time.perf_counter()
    try:
        rows = measure(options, sizes, steps)
    except MissingDependencyError as error:
        raise SystemExit(f"skipped: {error}") from error
    print(f"{time.perf_counter() - began:.0f} s")
    header = ("form", "proposals", "steps", "B", "standard_error", "seconds")
    write_csv(options.output / "bread_figure_2_webppl.csv", header, rows)
    draw(rows, options.output / "bread_figure_2_webppl.png", with_paper=not options.quick)
