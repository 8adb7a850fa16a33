#!/usr/bin/env bash
# Expected: pm.logcdf of pm.Wald is the integral of its density (SciPy's invgauss), and pm.Censored and pm.Truncated of it
#   have the densities that follow.
# Happens: it is another function unless lam = 1: it multiplies by lam where it should divide. For mu = lam = 2 the
#   probability up to 2 is 0.762 where it is 0.668. The likelihood of a time that is censored at 2 is then 0.24
#   in place of 0.33, and a truncated density does not integrate to one. The density of Wald itself, and draws, are right. 6.4.0 is right.
# Versions: PyMC 5.28.5 with PyTensor 2.38.3; 6.0.0 to 6.3.2 have the same lines. 6.4.0 has them mended.
# Source: run here; `Wald.logcdf` in pymc/distributions/continuous.py.
# Why it matters: censored first-passage and reaction times are what the inverse Gaussian is used for; the posterior is
#   silently wrong, and NUTS converges to it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==5.28.5 pytensor==2.38.3 scipy
"$work/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
import pymc as pm
from scipy import stats

warnings.simplefilter("ignore")
print("pymc", pm.__version__)


def value(graph):
    return float(graph.eval(mode="FAST_COMPILE"))


for lam in (1.0, 2.0):
    law = pm.Wald.dist(2.0, lam)
    found, right = np.exp(value(pm.logcdf(law, 2.0))), stats.invgauss(2.0 / lam, scale=lam).cdf(2.0)
    points = np.linspace(1e-4, 2.0, 4001)
    inside = np.exp(pm.logp(law, points).eval(mode="FAST_COMPILE"))
    integral = np.trapezoid(inside, points)
    print(f"lam = {lam}: P(x <= 2) = {found:.4f}; integral of the density {integral:.4f}; SciPy {right:.4f}")
    assert abs(integral - right) < 1e-3
    assert (abs(found - right) > 0.05) == (lam != 1.0), "changed: the distribution function"
PYTHON
