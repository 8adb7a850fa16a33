#!/usr/bin/env bash
# Expected: the density of a right-censored time is the survival function. Its logarithm is a power for Weibull and
#   exponential times; SciPy has that of a Gamma time at e^-104.
# Happens: pm.Censored takes log(1 - exp(log cdf)). Of a Gamma time that is -inf, its gradient infinite or NaN, once the
#   survival probability is under the rounding of 1 (about 1e-16): a state where it is e^-104 is impossible. Of Weibull and
#   exponential times, whose log survival is a power, -inf and NaN begin at e^-745. Normal and logistic times are right.
# Versions: PyMC 6.4.0 and PyTensor 3.3.8, Python 3.12 or newer.
# Source: run here; `_logccdf_helper` in pymc/logprob/abstract.py.
# Why it matters: starts, warm-up and variational fits of survival models meet such states; pm.fit stops at the first NaN,
#   pm.sample rejects, and a wall stands where the density only falls.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.13}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==6.4.0 pytensor==3.3.8 scipy
"$work/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
import pymc as pm
from scipy import stats

warnings.simplefilter("ignore")
print("pymc", pm.__version__)
TIME = 2.0
TIMES = {
    "gamma": (lambda s: pm.Gamma.dist(2.0, pm.math.exp(-s)), lambda s: stats.gamma(2.0, scale=np.exp(s))),
    "exponential": (lambda s: pm.Exponential.dist(scale=pm.math.exp(s)), lambda s: stats.expon(scale=np.exp(s))),
    "weibull": (
        lambda s: pm.Weibull.dist(1.3, pm.math.exp(s)),
        lambda s: stats.weibull_min(1.3, scale=np.exp(s)),
    ),
    "normal": (lambda s: pm.Normal.dist(s, 0.5), lambda s: stats.norm(s, 0.5)),
}
found = {}
for name, (distribution, exact) in TIMES.items():
    with pm.Model() as model:
        s = pm.Normal("s", 0, 10)
        pm.Censored("y", distribution(s), lower=None, upper=TIME, observed=np.array([TIME]))
    density = model.compile_logp(vars=model.observed_RVs)
    gradient = model.compile_dlogp()
    for at in (-2.0, -4.0, -6.0):
        value, slope = float(density({"s": at})), float(gradient({"s": at})[0])
        found[name, at] = value, slope
        print(f"{name:12} log scale {at:4}: log survival {value:10.2f}, exact {exact(at).logsf(TIME):10.2f}, slope {slope:10.2f}")
assert found["gamma", -2.0][0] > -13.0 and found["normal", -6.0][0] > -132.0
assert found["gamma", -4.0][0] == -np.inf, "changed: a censored gamma time is right at e^-104"
assert not np.isfinite(found["gamma", -4.0][1]), "changed: its gradient is finite"
for name in ("exponential", "weibull"):
    assert np.isfinite(found[name, -4.0][0])
    assert found[name, -6.0][0] == -np.inf and np.isnan(found[name, -6.0][1]), f"changed: a censored {name} time is right far out"
PYTHON
