"""WebPPL's draws of multivariate Gaussians until June 2016: eigenvectors transposed, which BREAD's authors found.

Grosse, Ancha & Roy (2016), section 5.2.2, saw reverse chains estimate less than forward ones. The sampler of that time
is put back into today's WebPPL by a package (`webppl_gaussian/sampler.js`); without it, WebPPL is right. Needs Node.js:

    npm install --prefix .webppl webppl
    python examples/historical_bugs/webppl_gaussian.py --node-modules .webppl/node_modules
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.random import SeedSequence

import bread
import bread_webppl
from bread.backends import open_model
from bread.backends.base import Kernel, OpenOptions
from bread.errors import MissingDependencyError
from bread.paths.kinds import PriorPath

OLD = Path(__file__).with_name("webppl_gaussian")
PRIOR = """
var cov = Matrix([[2, 1.2, 0.3], [1.2, 1, 0.1], [0.3, 0.1, 0.5]]);
var model = function(data) {
  var theta = sample(MultivariateGaussian({mu: Vector([0, 0, 0]), cov: cov}));
  observe(DiagCovGaussian({mu: theta, sigma: Vector([1, 1, 1])}), Vector(data.y));
  return {theta: theta};
};
"""
# Matrix factorisation with the factors of the rows summed out: 50 x 25 of rank 5 as in the paper, and 10 x 4 of rank 1.
COLLAPSED = """
var model = function(data) {
  var v = repeat(data.D, function() { return repeat(data.K, function() { return gaussian(0, 1); }); });
  var cov = T.add(T.dot(Matrix(v), T.transpose(Matrix(v))), idMatrix(data.D));
  map(function(row) { observe(MultivariateGaussian({mu: zeros([data.D, 1]), cov: cov}), Vector(row)); }, data.y);
  return {v: v};
};
"""


def collapsed(n, rank, dim, **how):
    """Return a collapsed factorisation, whose data are simulated."""
    return bread_webppl.Model(COLLAPSED, {"D": dim, "K": rank, "y": np.zeros((n, dim))}, "y", **how)


def models(**how):
    """Return the two models by name."""
    prior = bread_webppl.Model(PRIOR, {"y": np.array([1.0, -0.5, 0.3])}, "y", **how)
    return {"a multivariate Gaussian prior": prior, "the collapsed factorisation": collapsed(10, 1, 4, **how)}


def look(name, model):
    """Print what the battery and a check say, and whether the bounds cross."""
    report = bread.debug(model, only="simulator", random_seed=1, progressbar=False)
    print(f"{name}, bread.debug: {bread.verdict(report)}")
    table = bread.summary(report)
    print(table[["test", "p_value", "fails"]].to_string(index=False))
    report = bread.check(
        model, simulate_from="prior", simulations=20, n_temperatures=[256], draws=0, random_seed=1, progressbar=False
    )
    print(f"{name}, bread.check: {bread.verdict(report)}\n")


def crossing(model, n_steps):
    """Print estimates of the log evidence by one chain each way, a step being one proposal: what the authors saw."""
    opened, path, kernel = open_model(model, OpenOptions()), PriorPath(), Kernel(np.array([0.0, 1.0]), {})
    drawn = opened.simulate(1, fixed=None, seed=SeedSequence(1))
    posterior, betas, seeds = opened.condition(drawn.data_of(0)), np.linspace(0.0, 1.0, n_steps + 1), SeedSequence(2)
    start, *rest = seeds.spawn(3)
    forward, reverse = (
        posterior.anneal(path, betas, kernel, direction=direction, initial=initial, seeds=[seed]).log_weight[0]
        for direction, initial, seed in (
            ("forward", posterior.draw_base(path, [start]), rest[0]),
            ("reverse", drawn.states, rest[1]),
        )
    )
    print(f"the paper's size, {n_steps} steps: forward {forward:.0f}, reverse {reverse:.0f} nats", end="")
    print(": impossible without a bug\n" if reverse < forward else "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node-modules", help="folder where the npm package webppl is installed")
    options = parser.parse_args()
    try:
        for title, packages in (("the sampler of 2016", [OLD]), ("today's sampler", [])):
            print(f"== {title}")
            how = {"packages": packages, "node_modules": options.node_modules}
            for name, model in models(**how).items():
                look(name, model)
            crossing(collapsed(50, 5, 25, updates=1, **how), 300)
    except MissingDependencyError as error:
        raise SystemExit(f"skipped: {error}") from error
