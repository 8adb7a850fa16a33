"""Bad input of every kind for the Stan backend, and what the error must say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bread.errors import BreadError, InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError

PROGRAM = """data {
  int<lower=0> N;
  vector[N] y;
  vector<lower=0>[N] error;
}
parameters {
  real mu;
  real<lower=0> tau;
}
model {
  mu ~ normal(0, 5);
  tau ~ normal(0, 5);
  y ~ normal(mu, sqrt(square(error) + square(tau)));
}
"""
DATA = {"N": 3, "y": [1.0, 2.0, 0.5], "error": [1.0, 1.0, 2.0]}
LIKELIHOOD = "  y ~ normal(mu, sqrt(square(error) + square(tau)));\n"


@dataclass(frozen=True)
class Bad:
    """Input, and what the error must say.

    Attributes
    ----------
    words : str
        A pattern; Stan's own words wherever Stan has any.
    place : str
        A pattern of the place in the user's file; "" where there is none.
    """

    words: str
    place: str = ""
    program: Any = PROGRAM
    data: Any = field(default_factory=lambda: DATA)
    files: dict[str, str | bytes] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    kind: type[BreadError] = InvalidArgumentError


def edited(old: str, new: str) -> str:
    assert PROGRAM.count(old) == 1
    return PROGRAM.replace(old, new)


def changed(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in {**DATA, **values}.items() if value is not ...}


def line(number: int, file: str = "user.stan") -> str:
    return rf"'{re.escape(file)}', line {number}\b"


def at(number: int, column: int, to: int, file: str = "user.stan") -> str:
    return rf"{line(number, file)}, column {column} to column {to}\b"


PRIOR = "mu ~ normal(0, 5);"
REFUSED = {"kind": UnsupportedModelError}

PROGRAMS = {
    "semicolon": Bad("Syntax error.*;. (expected )?after variable", line(8), edited("real mu;", "real mu")),
    "end of file": Bad("Syntax error.*[Ee]xpected", line(14), PROGRAM.rstrip().removesuffix("}")),
    "character": Bad("Syntax error.*[Ii]nvalid character found", line(7), edited("real mu;", "real \N{MICRO SIGN};")),
    "old arrays": Bad("Syntax error.*array", line(3), edited("vector[N] y;", "real y[N];")),
    "two programs": Bad("Syntax error.*end of file after end of model block", line(15), PROGRAM + PROGRAM),
    "order of blocks": Bad("Syntax error.*Expected", line(2), "model { }\ndata { int N; }\n"),
    "name": Bad("Semantic error.*Identifier .nu. not in scope", at(11, 2, 4), edited(PRIOR, "nu ~ normal(0, 5);")),
    "type": Bad("Semantic error.*Ill-typed arguments", line(11), edited(PRIOR, "mu ~ normal(0, 5, tau);")),
    "distribution": Bad("Semantic error.*normale", line(11), edited(PRIOR, "mu ~ normale(0, 5);")),
    "assignment to data": Bad("Semantic error.*Cannot assign to global", line(11), edited(PRIOR, "N = 3;")),
    "error in an included file": Bad(
        "Semantic error.*Identifier .nu. not in scope", line(2, "priors.stan"),
        edited(PRIOR, "#include priors.stan"), files={"priors.stan": "// priors\nnu ~ normal(0, 5);\n"},
    ),
    "no included file": Bad(
        "#include priors.stan was not found", line(11), edited(PRIOR, "#include priors.stan"), **REFUSED
    ),
    "includes in a circle": Bad(
        "#include a.stan includes itself", line(2, "b.stan"), edited(PRIOR, "#include a.stan"),
        files={"a.stan": "#include b.stan\n", "b.stan": "mu ~ normal(0, 5);\n#include a.stan\n"}, **REFUSED,
    ),
    "empty": Bad("'user.stan' has no parameters", "", "", **REFUSED),
    "a comment": Bad("'user.stan' has no parameters", "", "// {}\n", **REFUSED),
    "no parameters": Bad(
        "'user.stan' has no parameters", "", "data {\n  int N;\n}\nmodel {\n  N ~ poisson(3);\n}\n", **REFUSED
    ),
    "no outcome": Bad("cannot tell which data are outcomes.*'y'", "'user.stan'", edited(LIKELIHOOD, ""), **REFUSED),
    "flat prior": Bad("'mu' has no prior.*`mu ~ normal", line(7), edited(PRIOR, ""), **REFUSED),
    "half flat prior": Bad("'tau' has no prior.*`tau ~ ", line(8), edited("tau ~ normal(0, 5);", ""), **REFUSED),
    "a name of the report": Bad("'chain', which is a dimension", "", PROGRAM.replace("mu", "chain"), **REFUSED),
    "unknown file": Bad("There is no Stan program at .*none.stan", "", Path("none.stan")),
    "a folder": Bad("cannot be read: Is a directory", "", Path(".")),
    "no text": Bad("cannot be read: it is not UTF-8 text", "", b"data {\xff\xfe }"),
}  # fmt: skip

STAN_DIMENSIONS = "mismatch in (number )?dimensions? declared and found in context.*variable name="
DATA_CASES = {
    "none": Bad("The data lack 'N'", line(2), data=None),
    "missing": Bad("The data lack 'y'.*Data given: 'N', 'error'", line(3), data=changed(y=...)),
    "real for an int": Bad("int variable contained non-int values.*variable name=N", line(2), data=changed(N=2.5)),
    "shape": Bad(rf"{STAN_DIMENSIONS}y; .*declared=\(3\); dims found=\(2\)", at(3, 2, 14), data=changed(y=[1.0, 2.0])),
    "one axis more": Bad(f"{STAN_DIMENSIONS}y", line(3), data=changed(y=[[1.0, 2.0, 3.0]])),
    "scalar for a vector": Bad(f"{STAN_DIMENSIONS}y", line(3), data=changed(y=1.0)),
    "complex": Bad(f"{STAN_DIMENSIONS}y", line(3), data=changed(y=[1j, 2.0, 3.0])),
    "bound": Bad("N is -1, but must be greater than or equal to 0", line(2), data=changed(N=-1)),
    "bound of an element": Bad(r"error\[2\] is -1", at(4, 2, 27), data=changed(error=[1.0, -1.0, 2.0])),
    "NaN in a predictor": Bad(r"error\[2\] is nan", line(4), data=changed(error=[1.0, np.nan, 2.0])),
    "NaN in an outcome": Bad(
        r"'y' .* is NaN at y\[2\] \(1 in all\). Stan has no missing", line(3), data=changed(y=[1.0, np.nan, 2.0])
    ),
    "text": Bad("data 'N' must be numbers", data=changed(N="three")),
    "None": Bad("data 'y' must be numbers", data=changed(y=[1.0, None, 2.0])),
    "ragged": Bad("data 'y' must be a rectangular array", data=changed(y=[[1.0], [1.0, 2.0]])),
    "a name that is no text": Bad("the name 3", data={**DATA, 3: 4}),
    "a list": Bad("data must be a dict, or the path of a JSON file", data=[1, 2]),
    "no file": Bad("There is no data file at '.*none.json'", data=Path("none.json")),
    "malformed JSON": Bad(
        r"cannot be read as JSON: .*line 2 column", data=Path("d.json"), files={"d.json": '{"N": 3,\n"y": [1, 2'}
    ),
    "a list in JSON": Bad("must hold one JSON object", data=Path("d.json"), files={"d.json": "[1]"}),
    "null in JSON": Bad(
        r"'y\[2\]' hold null, which is no number. Stan has no missing values",
        data=Path("d.json"), files={"d.json": '{"N": 3, "y": [1, null, 2], "error": [1, 1, 1]}'},
    ),
    "text in JSON": Bad(
        r"'N' hold \"3\", which is no number. Write numbers without quotes",
        data=Path("d.json"), files={"d.json": '{"N": "3"}'},
    ),
}  # fmt: skip

OPTIONS = {
    "observed is a parameter": Bad("observed='mu' is a parameter", line(7), options={"observed": "mu"}),
    "observed is unknown": Bad("observed='Y' is not declared.*'N', 'y', 'error'", options={"observed": "Y"}),
    "observed is empty": Bad("observed= is empty", options={"observed": []}),
    "observed is a number": Bad("observed must be a name", options={"observed": 3}),
    "observed without a density": Bad(
        "no contribution to the log density depends on the observed 'y'", line(11), edited(LIKELIHOOD, ""),
        options={"observed": "y"}, **REFUSED,
    ),
    "observed is a size": Bad(
        "the size of 'y' is itself observed", line(3), options={"observed": ["y", "N"]}, **REFUSED
    ),
    "an outcome that is not named": Bad(
        r"gives a density to data that are not observed \(y\)", line(13), options={"observed": "error"}, **REFUSED
    ),
    "likelihood is no line": Bad("likelihood must be line numbers", options={"likelihood": "13"}),
    "likelihood is a real": Bad("likelihood must be line numbers", options={"likelihood": 13.5}),
    "likelihood is empty": Bad("likelihood must be line numbers", options={"likelihood": []}),
    "likelihood is another line": Bad(
        r"likelihood=7: no statement .* starts on line 7 of 'user.stan'. Lines that do: 11, 12, 13",
        options={"likelihood": 7},
    ),
    "likelihood is a prior": Bad(
        r"Or likelihood=\[11\] does not name the likelihood", options={"likelihood": [11]}, **REFUSED
    ),
    "kernel": Bad("'nuts' or 'hmc'", options={"kernel": "gibbs"}, kind=UnsupportedKernelError),
    "hyperparameters": Bad("'theta', which is no parameter.*mu, tau", options={"hyperparameters": ("theta",)}),
}  # fmt: skip

# Every block can fail, with words that must come out again, and so can Stan's functions inside of it.
BLOCKS = """functions {
  real checked(real x, int mode) {
    if (mode == 7) {
      reject("the function refuses x = ", x);
    }
    if (mode == 11) {
      array[2] real pair = {x, x};
      return pair[mode];
    }
    return x;
  }
}
data {
  int<lower=0> mode;
  int<lower=1> N;
  vector[N] y;
}
transformed data {
  array[2] int table = {1, 2};
  int picked = 1;
  if (mode == 1) {
    reject("transformed data refuse mode = ", mode);
  }
  if (mode == 2) {
    picked = table[mode + 1];
  }
  if (mode == 3) {
    matrix[2, 2] root = cholesky_decompose([[1, 2], [2, 1]]);
  }
}
parameters {
  real mu;
  real<lower=0> s;
}
transformed parameters {
  real<lower=(mode == 6 ? 1000 : negative_infinity())> shifted = mu;
  if (mode == 4) {
    reject("transformed parameters refuse mu = ", mu);
  }
  if (mode == 5) {
    shifted = y[mode];
  }
}
model {
  mu ~ normal(0, 1);
  s ~ normal(0, mode == 8 ? -1 : 1);
  if (mode == 9) {
    reject("the model refuses s = ", s);
  }
  y ~ normal(checked(shifted, mode), mode == 10 ? -s : s);
#include positive.stan
}
generated quantities {
  real twice = 2 * mu;
  if (mode == 13) {
    reject("generated quantities refuse mode = ", mode);
  }
}
"""
INCLUDED = """if (mode == 12 && mu > 0) {
  reject("the included file refuses positive mu = ", mu);
}
"""
RANGE = "accessing element out of range. index {} out of range; expecting index to be between 1 and {}"
THROWN = {
    1: ("transformed data refuse mode = 1", at(22, 4, 52), InvalidArgumentError),
    2: (RANGE.format(3, 2), at(25, 4, 29), InvalidArgumentError),
    3: ("cholesky_decompose: Matrix m is not positive definite", at(28, 4, 61), InvalidArgumentError),
    4: (r"transformed parameters refuse mu = -?\d", at(38, 4, 54), UnsupportedModelError),
    5: (RANGE.format(5, 3), at(41, 4, 22), UnsupportedModelError),
    6: ("shifted is -?[0-9.]+, but must be greater than or equal to 1000", at(36, 2, 68), UnsupportedModelError),
    7: (r"the function refuses x = -?\d", at(4, 6, 45), UnsupportedModelError),
    8: ("normal_lpdf: Scale parameter is -1, but must be positive", at(46, 2, 36), UnsupportedModelError),
    9: (r"the model refuses s = \d", at(48, 4, 40), UnsupportedModelError),
    10: ("normal_lpdf: Scale parameter is -[0-9.]+, but must be positive", at(50, 2, 58), UnsupportedModelError),
    11: (RANGE.format(11, 2), at(8, 6, 24), UnsupportedModelError),
}


Y = np.zeros(3)


def law(rng: Any, data: Any) -> Any:
    """Parameters of the prior, and outcomes with another mean."""
    mu = rng.normal(0, 5)
    return {"mu": mu, "tau": abs(rng.normal(0, 5))}, {"y": rng.normal(mu + 10, 1, 3)}


def simulated(
    words: str, simulator: Any, place: str = "", kind: type[BreadError] = InvalidArgumentError, data: Any = DATA
) -> Bad:
    options = {"observed": "y", "simulator": simulator, "simulate_from": "prior"}
    return Bad(words, place, data=data, options=options, kind=kind)


def generated(body: str) -> str:
    return f"data {{\n  int N;\n  int M;\n}}\ngenerated quantities {{\n  {body}\n}}\n"


OUTCOME = "vector[N + M] y = to_vector(normal_rng(rep_vector(0, N + M), 1));"
DRAWS = generated(
    f"""real mu = normal_rng(0, 5);
  real tau = abs(normal_rng(0, 5));
  {OUTCOME}
  if (M == 9) reject("the simulator refuses M = ", M);"""
)
SIMULATORS = {
    "no function": simulated("simulator= must be a function", 3),
    "raises": simulated("simulator= failed: ZeroDivisionError: division by zero", lambda rng, data: 1 / 0),
    "one dict": simulated("must return two dicts", lambda rng, data: {"mu": 1.0}),
    "one argument": simulated("simulator= failed: TypeError", lambda data: 1),
    "no parameter": simulated("returned no parameter 'tau'; it returned mu", lambda rng, data: ({"mu": 1.0}, {"y": Y})),
    "no outcome": simulated("no observed variable 'y'", lambda rng, data: ({"mu": 1.0, "tau": 1.0}, {})),
    "shape of a parameter": simulated(
        r"parameter 'mu' of shape \(2,\); the model declares \(\)",
        lambda rng, data: ({"mu": np.zeros(2), "tau": 1.0}, {"y": Y}),
    ),
    "shape of an outcome": simulated(
        r"'y' of shape \(4,\); the model declares \(3,\)",
        lambda rng, data: ({"mu": 1.0, "tau": 1.0}, {"y": np.zeros(4)}),
    ),
    "text": simulated("'mu' as str 'a'; it must be numbers", lambda rng, data: ({"mu": "a", "tau": 1.0}, {"y": Y})),
    "outside the support": simulated(
        "outside its declared support: .*Lower bounded variable is -1",
        lambda rng, data: ({"mu": 1.0, "tau": -1.0}, {"y": Y}), line(8), UnsupportedModelError,
    ),
    "NaN": simulated(
        "'y' as ndarray '.nan nan nan.'; it must be finite",
        lambda rng, data: ({"mu": 1.0, "tau": 1.0}, {"y": Y + np.nan}),
    ),
    "another law": simulated("The simulator and the program disagree", law, "", UnsupportedModelError),
    "a program with an error": simulated(
        "simulator=.*Syntax error", generated("real mu = normal_rng(0, 5)"), line(7, "simulator.stan")
    ),
    "a program that lacks a parameter": simulated(
        "does not declare 'tau'", generated(f"real mu = normal_rng(0, 5); {OUTCOME}"), data=changed(M=0)
    ),
    "a program with other data": simulated("variable name=M", DRAWS, line(3, "simulator.stan")),
    "a program that rejects": simulated(
        "the simulator refuses M = 9", DRAWS, line(9, "simulator.stan"), UnsupportedModelError, changed(M=9)
    ),
    "a program with another shape": simulated(
        r"refuses a draw of the simulator: .*variable name=y.*dims found=\(4\)", DRAWS, line(3),
        UnsupportedModelError, changed(M=1),
    ),
    "a program that is not there": simulated("There is no Stan program at 'none.stan'", "none.stan"),
}  # fmt: skip


def mean_and_scale(**changes: Any) -> dict[str, Any]:
    draws = {"mu": np.zeros((2, 5)), "tau": np.ones((2, 5)), **changes}
    return {name: values for name, values in draws.items() if values is not ...}


POSTERIORS = {
    "no parameter is there": ({"m": np.zeros((2, 5))}, "no variable of the model.*mu, tau.*'m'"),
    "one axis": (mean_and_scale(mu=np.zeros(5)), "'mu'.*shape"),
    "shape": (mean_and_scale(mu=np.zeros((2, 5, 3))), "'mu'.*shape"),
    "chains differ": (mean_and_scale(mu=np.zeros((3, 5))), "chain"),
    "NaN": (mean_and_scale(mu=np.full((2, 5), np.nan)), "'mu'.*(NaN|finite)"),
    "outside the support": (mean_and_scale(tau=-np.ones((2, 5))), f"draws outside the support .*{line(8)}"),
    "a number": (3, "posterior"),
    "no file": ("none.csv", "none.csv.*cannot be read as tables of draws"),
    "an empty list": ([], "posterior"),
}
