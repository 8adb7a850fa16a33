"""CPU time of the tests before annealing, as a share of the whole check's: `python benchmarks/direct_share.py`.

Five PyMC models and five Stan programs, one check each with all defaults, in a process of its own. Run with the number
of a model, the script prints the seconds of that one, in JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import ROOT, build_model, print_table
from phases import by_phase

TESTS = ("testing the density", "testing the kernel")
BUILDING = ("opening", "compiling")
N_ROWS, N_SLOPES = 30, 3
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(N_ROWS, N_SLOPES))
LINEAR = X @ np.array([1.0, -0.5, 0.3])
Y = LINEAR + _RNG.normal(size=N_ROWS)
COUNTS = _RNG.poisson(np.exp(0.5 + 0.3 * LINEAR))
OUTCOMES = (_RNG.random(N_ROWS) < 1.0 / (1.0 + np.exp(-LINEAR))).astype(int)
Case = tuple[str, Callable[[], tuple[Any, dict[str, Any]]]]


def _schools(*, is_centred: bool) -> tuple[Any, dict[str, Any]]:
    return build_model("eight schools centred" if is_centred else "eight schools"), {}


def _normal() -> tuple[Any, dict[str, Any]]:
    import pymc as pm

    with pm.Model() as model:
        mu, sd = pm.Normal("mu", 0, 5), pm.HalfNormal("sd", 2)
        pm.Normal("y", mu, sd, observed=Y)
    return model, {}


def _regression() -> tuple[Any, dict[str, Any]]:
    import pymc as pm

    with pm.Model() as model:
        b, sd = pm.Normal("b", 0, 2, shape=N_SLOPES), pm.Exponential("sd", 1)
        pm.Normal("y", pm.math.dot(X, b), sd, observed=Y)
    return model, {}


def _counts() -> tuple[Any, dict[str, Any]]:
    import pymc as pm

    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 0.5, shape=N_SLOPES)
        pm.Poisson("y", pm.math.exp(a + pm.math.dot(X, b)), observed=COUNTS)
    return model, {}


def _stan(parameters: str, block: str, outcome: str, kind: str) -> Callable[[], tuple[Any, dict[str, Any]]]:
    program = f"data {{ int N; int K; matrix[N, K] X; {kind}; }} parameters {{ {parameters} }} model {{ {block} }}"
    values = {"Y": Y, "COUNTS": COUNTS, "OUTCOMES": OUTCOMES}[outcome]
    data = {"N": N_ROWS, "K": N_SLOPES, "X": X.tolist(), "y": values.tolist()}
    return lambda: (program, {"data": data, "observed": ["y"]})


def _stan_schools() -> tuple[Any, dict[str, Any]]:
    data = json.loads((ROOT / "examples" / "eight_schools.json").read_text())
    return str(ROOT / "examples" / "eight_schools.stan"), {"data": data, "observed": ["y"]}


CASES: tuple[Case, ...] = (
    ("normal, PyMC", _normal),
    ("regression, PyMC", _regression),
    ("Poisson regression, PyMC", _counts),
    ("eight schools, PyMC", lambda: _schools(is_centred=False)),
    ("eight schools centred, PyMC", lambda: _schools(is_centred=True)),
    (
        "normal, Stan",
        _stan("real mu; real<lower=0> s;", "mu ~ normal(0, 5); s ~ normal(0, 2); y ~ normal(mu, s);", "Y",
              "vector[N] y"),
    ),
    (
        "regression, Stan",
        _stan("vector[K] b; real<lower=0> s;", "b ~ normal(0, 2); s ~ exponential(1); y ~ normal(X * b, s);", "Y",
              "vector[N] y"),
    ),
    (
        "Poisson regression, Stan",
        _stan("real a; vector[K] b;", "a ~ normal(0, 1); b ~ normal(0, 0.5); y ~ poisson_log(a + X * b);", "COUNTS",
              "array[N] int y"),
    ),
    (
        "logistic regression, Stan",
        _stan("vector[K] b;", "b ~ normal(0, 2); y ~ bernoulli_logit(X * b);", "OUTCOMES", "array[N] int y"),
    ),
    ("eight schools, Stan", _stan_schools),
)  # fmt: skip


def run() -> None:
    """Measure every model in a process of its own, and print."""
    rows = []
    for number, (name, _) in enumerate(CASES):
        seconds = _seconds(number)
        total = sum(seconds.values())
        building = sum(spent for phase, spent in seconds.items() if phase.startswith(BUILDING))
        tests = [seconds.get(phase, 0.0) for phase in TESTS]
        priors = seconds.get("integrating priors", 0.0)
        shares = (f"{100.0 * sum(tests) / part:.1f} %" for part in (total - building, total))
        rows.append((name, *tests, priors, total - building, total, *shares))
        print(rows[-1], flush=True, file=sys.stderr)
    print_table(
        "Tests before annealing",
        (
            "model",
            "density, CPU s",
            "kernel, CPU s",
            "priors, CPU s",
            "check without compilation",
            "with",
            "share",
            "with",
        ),
        rows,
        "One check with all defaults in one process. Shares of density and kernel tests together.",
    )


def _seconds(number: int) -> dict[str, float]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    output = subprocess.run(
        [sys.executable, __file__, str(number)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    seconds: dict[str, float] = json.loads(output.splitlines()[-1])
    return seconds


if __name__ == "__main__":
    if len(sys.argv) > 1:
        model, settings = CASES[int(sys.argv[1])][1]()
        print(json.dumps(by_phase(model, **settings)))
    else:
        run()
