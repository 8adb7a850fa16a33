#!/usr/bin/env bash
# Expected: every draw of pm.Truncated.dist(law, lower, upper) lies between the bounds, wherever its log density is finite.
# Happens: far above the median of the law the draws are infinite, past the upper bound too, or below the lower one. They
#   invert the distribution function, which is 1 to the last digit there; the density, right, takes differences of
#   logarithms. An exponential time truncated at 38 of its means is the constant inf; a Student t has draws at 0.998
#   where the bound is 1.
# Versions: PyMC 6.4.0 and PyTensor 3.3.8, Python 3.12 or newer (5.28.5 the same).
# Source: run here; `TruncatedRV.rv_op` in pymc/distributions/truncated.py.
# Why it matters: prior and posterior predictive draws of models of delayed entry or of exceedances are infinite or
#   impossible at parameters that NUTS visits, and simulation-based calibration of a right model fails.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.13}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==6.4.0 pytensor==3.3.8
"$work/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
import pymc as pm

warnings.simplefilter("ignore")
print("pymc", pm.__version__)


def show(name, law, at):
    draws = pm.draw(law, 1000, random_seed=1, mode="FAST_COMPILE")
    log_density = float(pm.logp(law, np.float64(at)).eval(mode="FAST_COMPILE"))
    print(f"{name}: from {draws.min():.4f} to {draws.max()}; log density at {at}: {log_density:.3f}")
    assert np.isfinite(log_density)
    return draws


near = show("Exponential(20) in [1, 3]", pm.Truncated.dist(pm.Exponential.dist(20.0), lower=1.0, upper=3.0), 1.01)
assert (near >= 1.0).all() and (near <= 3.0).all()
far = show("Exponential(38) in [1, 3]", pm.Truncated.dist(pm.Exponential.dist(38.0), lower=1.0, upper=3.0), 1.01)
assert np.isinf(far).all(), "changed: draws are finite"
heavy = show("StudentT(3, 0, 1e-5) from 1", pm.Truncated.dist(pm.StudentT.dist(3.0, 0.0, sigma=1e-5), lower=1.0), 1.2)
assert (heavy < 1.0).any(), "changed: no draw is below the lower bound"
PYTHON
