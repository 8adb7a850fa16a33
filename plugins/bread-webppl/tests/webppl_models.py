"""WebPPL programs for tests: conjugate ones with exact answers, broken ones, and those that are refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import bread_webppl

FOLDER = Path(__file__).resolve().parents[3]
MEAN, SD, NOISE = 0.5, 1.2, 1.6
Y = np.array([1.4, 3.1, 0.7, -0.6])
N, A, B = 6, 2.0, 3.0
SUCCESSES = np.array([True, False, True, True, False, True])


@cache
def node_modules() -> str | None:
    """Return the folder of the npm package, None where Node.js finds it by itself."""
    own = os.environ.get("WEBPPL_NODE_MODULES", str(FOLDER / ".webppl" / "node_modules"))
    return own if Path(own).is_dir() else None


@cache
def why_not() -> str:
    """Return why these tests cannot run here; "" where they can."""
    node = shutil.which("node")
    if node is None:
        return "Node.js is not installed"
    where = json.dumps([node_modules() or str(FOLDER)])
    look = f"require.resolve('webppl/package.json', {{paths: {where}}})"
    found = subprocess.run([node, "-e", look], capture_output=True, timeout=60, check=False)
    return "" if found.returncode == 0 else "the npm package webppl is not installed: make test-webppl"


def wrapped(program: str, data: Mapping[str, Any], observed: Any = "y", **options: Any) -> bread_webppl.Model:
    return bread_webppl.Model(program, data, observed, node_modules=node_modules(), **options)


NORMAL_MEAN = f"""
var model = function(data) {{
  var mu = sample(Gaussian({{mu: {MEAN}, sigma: {SD}}}));
  map(function(y) {{ observe(Gaussian({{mu: mu, sigma: {NOISE}}}), y); }}, data.y);
  return {{mu: mu}};
}};
"""
PACKAGES = Path(__file__).with_name("packages")
NARROW = PACKAGES / "narrow"  # draws that are narrower than their density
BIASED = PACKAGES / "biased"  # booleans that are true more often than their score says
OPAQUE = PACKAGES / "opaque"  # a function that automatic differentiation does not see through


SAMPLER_OF_2016 = FOLDER / "examples" / "historical_bugs" / "webppl_gaussian"
CORRELATED = """
var model = function(data) {
  var scale = gaussian(0, 1);
  var cov = Matrix([[2, 1.2, 0.3], [1.2, 1 + scale * scale, 0.1], [0.3, 0.1, 0.5]]);
  map(function(row) { observe(MultivariateGaussian({mu: zeros([3, 1]), cov: cov}), Vector(row)); }, data.y);
  return {scale: scale};
};
"""


def correlated(**options: Any) -> bread_webppl.Model:
    """Rows of three correlated numbers."""
    return wrapped(CORRELATED, {"y": np.zeros((4, 3))}, **options)


def normal_mean(**options: Any) -> bread_webppl.Model:
    """A normal mean with known noise."""
    return wrapped(NORMAL_MEAN, {"y": Y}, **options)


def log_evidence(data: Mapping[str, Any]) -> float:
    """Return the exact log evidence (nats) of a data set of `normal_mean`."""
    y = np.asarray(data["y"])
    cov = SD**2 + NOISE**2 * np.eye(len(y))
    return float(stats.multivariate_normal(np.full(len(y), MEAN), cov).logpdf(y))


def posterior_moments(y: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation of the posterior of `normal_mean`."""
    precision = 1 / SD**2 + len(y) / NOISE**2
    return float((MEAN / SD**2 + y.sum() / NOISE**2) / precision), float(precision**-0.5)


# A discrete and a constrained site: which of two coins it is, with a bias that is known or not.
COINS = f"""
var model = function(data) {{
  var fair = flip(0.3);
  var p = sample(Beta({{a: {A}, b: {B}}}), {{driftKernel: function(p) {{
    return Uniform({{a: Math.max(0, p - 0.3), b: Math.min(1, p + 0.3)}});
  }}}});
  map(function(y) {{ observe(Bernoulli({{p: fair ? 0.5 : p}}), y); }}, data.y);
  return {{coin: {{}}, fair: fair, p: p}};
}};
"""


def coins(**options: Any) -> bread_webppl.Model:
    return wrapped(COINS, {"y": SUCCESSES}, **options)


def coins_log_evidence(data: Mapping[str, Any]) -> float:
    """Return the exact log evidence (nats) of a data set of `coins`."""
    k = int(np.sum(data["y"]))
    own = stats.betabinom(N, A, B).pmf(k) / stats.binom(N, 0.5).pmf(k) * 0.5**N
    return float(np.log(0.3 * 0.5**N + 0.7 * own))


# Sites in vectors and matrices, in an order that is not that of the names; data in rows, one of them drawn from two.
VECTORS = """
var model = function(data) {
  var w = sample(TensorGaussian({mu: 0, sigma: 1, dims: [3, 1]}));
  var n = sample(Poisson({mu: 3}));
  var b = sample(MultivariateGaussian({mu: Vector([0, 1]), cov: Matrix([[1, 0.5], [0.5, 2]])}));
  var extra = gaussian(0, data.scale);
  map(function(i) {
    observe(DiagCovGaussian({mu: b, sigma: Vector([1, Math.exp(T.get(w, 0))])}), Vector(data.pairs[i]));
    observe(Poisson({mu: n + Math.exp(extra)}), data.counts[i]);
  }, _.range(data.counts.length));
  return {b: b, rate: n, w: w};
};
"""


def vectors(**options: Any) -> bread_webppl.Model:
    data = {"pairs": np.array([[0.1, 0.9], [1.2, 1.1], [-0.3, 0.4]]), "counts": np.array([3, 5, 2]), "scale": 0.7}
    return wrapped(VECTORS, data, ["pairs", "counts"], **options)


def program(body: str, returned: str = "{mu: mu}") -> str:
    return f"var model = function(data) {{\n  {body}\n  return {returned};\n}};\n"


OBSERVED = "map(function(y) { observe(Gaussian({mu: mu, sigma: 1}), y); }, data.y);"
REFUSED = {
    "sites that change": (
        program(f"var mu = flip(0.5) ? gaussian(0, 1) : gaussian(gaussian(0, 1), 1); {OBSERVED}"),
        "sites of the program depend on random values",
    ),
    "observations that change": (
        program(f"var mu = gaussian(0, 1); {OBSERVED} if (mu > 0) {{ observe(Gaussian({{mu: mu, sigma: 1}}), 1); }}"),
        "observations of the program depend on random values",
    ),
    "factor": (
        program(f"var mu = gaussian(0, 1); factor(-mu * mu); {OBSERVED}"),
        "change the density but not the draws",
    ),
    "condition": (
        program(f"var mu = gaussian(0, 1); condition(mu > 0); {OBSERVED}"),
        "Write the term as a distribution",
    ),
    "a number to be optimised": (
        program(f"var mu = gaussian(0, 1) + param({{name: 'shift'}}); {OBSERVED}"),
        "param is a number to be optimised",
    ),
    "no model": ("var modell = 3;", "model is not defined"),
    "no function": ("var model = 3;", "no function `model`"),
    "a syntax error": ("var model = function(data) {", "does not run"),
    "nothing observed": (program("var mu = gaussian(0, 1);"), "observes nothing"),
    "no sites": (program("var mu = 1; " + OBSERVED), "no sample statement"),
    "a constant observed": (
        program(f"var mu = gaussian(0, 1); {OBSERVED} observe(Gaussian({{mu: mu, sigma: 1}}), 2.5);"),
        "is given no element of the observed data",
    ),
    "data that are transformed": (
        program("var mu = gaussian(0, 1); map(function(y) { observe(Gaussian({mu: mu, sigma: 1}), 2 * y); }, data.y);"),
        "is given no element of the observed data",
    ),
    "observed twice": (program(f"var mu = gaussian(0, 1); {OBSERVED} {OBSERVED}"), r"data.y\[0\] is observed 2 times"),
    "left out": (
        program("var mu = gaussian(0, 1); observe(Gaussian({mu: mu, sigma: 1}), data.y[0]);"),
        r"data.y\[1\] is observed 0 times",
    ),
    "data in a prior": (program(f"var mu = gaussian(data.y[0], 1); {OBSERVED}"), "elsewhere than in observe"),
    "lagged data": (
        program(
            "var mu = gaussian(0, 1); observe(Gaussian({mu: mu, sigma: 1}), data.y[0]);"
            " map(function(i) { observe(Gaussian({mu: mu + data.y[i - 1], sigma: 1}), data.y[i]); }, [1, 2, 3]);"
        ),
        "Use what observe returns",
    ),
    "unrelated data": (
        program("var mu = gaussian(0, 1); map(function(y) { observe(Gaussian({mu: 0, sigma: 1}), y); }, data.y);"),
        "depends on no site",
    ),
    "other randomness": (
        program(
            "var mu = gaussian(0, 1); var shift = expectation(Infer({method: 'forward', samples: 5, model: function() "
            "{ return gaussian(0, 1); }})); map(function(y) "
            "{ observe(Gaussian({mu: mu + shift, sigma: 1}), y); }, data.y);"
        ),
        "random numbers outside of sample",
    ),
    "a value that is no number": (
        program("var mu = gaussian(0, 1); var c = categorical({vs: ['a', 'b']}); " + OBSERVED),
        "values must be numbers",
    ),
    "a delta": (program("var mu = gaussian(0, 1); var c = sample(Delta({v: 1})); " + OBSERVED), "is a Delta"),
    "a simplex": (
        program("var mu = gaussian(0, 1); var w = sample(Dirichlet({alpha: Vector([1, 2])})); " + OBSERVED),
        "values lie on a simplex",
    ),
    "a reserved name": (program("var mu = gaussian(0, 1); " + OBSERVED, "{chain: mu}"), "Return it by another name"),
    "the name of data": (program("var mu = gaussian(0, 1); " + OBSERVED, "{y: mu}"), "Return it by another name"),
    "an improper prior": (program("var mu = sample(ImproperUniform()); " + OBSERVED), "does not run"),
}
