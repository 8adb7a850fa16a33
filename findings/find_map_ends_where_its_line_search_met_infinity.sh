#!/usr/bin/env bash
# Expected: an optimiser that steps where the density is zero steps back and goes on; if it cannot, it says so. A result
#   with success=True and "CONVERGENCE" is a point where the gradient is about zero.
# Happens: SciPy's L-BFGS-B interpolates between the value here and infinity (or 1e300), so its next step is of length zero;
#   the function then "no longer falls", and it returns success=True, message "CONVERGENCE: RELATIVE REDUCTION OF F",
#   wherever it stood. pm.find_MAP, which puts 1e100 in place of what is not finite, does the same: from an ordinary start
#   it returns a state with a slope of 30 to 65 as the maximum a posteriori, and no warning. A value that is only somewhat
#   worse than all before, or NaN (which at least ends as a failure or goes on), has no such end.
# Versions: SciPy 1.18.1; PyMC 6.4.0 with PyTensor 3.3.8; Python 3.12 or newer.
# Source: run here; `nan_to_high` in pymc/tuning/starting.py, the line search dcsrch/dcstep of L-BFGS-B.
# Why it matters: MAP estimates, Laplace approximations, Pathfinder-like starts and searches for modes take the end of this
#   optimiser at its word; a false end looks like another mode.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.13}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==6.4.0 pytensor==3.3.8 scipy==1.18.1
"$work/venv/bin/python" - <<'PYTHON'
import logging
import warnings

import numpy as np
import pymc as pm
import scipy
from scipy import stats
from scipy.optimize import minimize

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
print("scipy", scipy.__version__, "pymc", pm.__version__)
EDGE, MINIMUM = 1.3, np.log(3.0)


def walled(x, outside):
    """Return exp(x) - 3 x, whose minimum is log 3, and its slope; beyond the edge another value."""
    if x[0] > EDGE:
        return outside, np.zeros(1)
    return float(np.exp(x[0]) - 3.0 * x[0]), np.exp(x) - 3.0


slopes = {}
for outside in (np.inf, 1e300, 100.0):
    found = minimize(walled, [-1.0], args=(outside,), jac=True, method="L-BFGS-B")
    slopes[outside] = abs(float(found.jac[0]))
    print(f"{outside:g} beyond the edge: success {found.success}, x {found.x[0]:.4f} ({MINIMUM:.4f}), slope {slopes[outside]:.1e}, {found.message}")
    assert found.success, "changed: no false success"
assert slopes[100.0] < 1e-4
assert min(slopes[np.inf], slopes[1e300]) > 1.0, "changed: L-BFGS-B goes on after infinity"

times = np.minimum(stats.gamma(2.0, scale=np.exp(0.5)).rvs(60, random_state=np.random.default_rng(1)), 3.0)
with pm.Model() as model:
    s = pm.Normal("s", 0.0, 3.0)
    pm.Censored("y", pm.Gamma.dist(2.0, pm.math.exp(-s)), lower=None, upper=3.0, observed=times)
density, slope = model.compile_logp(), model.compile_dlogp()
ends = {}
for start in (1.0, 2.0, 3.0, 4.0, 6.0, 8.0):
    point, raw = pm.find_MAP(start={"s": np.array(start)}, model=model, progressbar=False, return_raw=True)
    ends[start] = float(point["s"]), abs(float(slope({"s": point["s"]})[0]))
    print(f"find_MAP from {start:g}, log density {density({'s': start}):.1f}: s = {ends[start][0]:.4f}, slope {ends[start][1]:.2g}, success {raw.success}")
    assert raw.success
assert max(ends[2.0][1], ends[4.0][1]) < 1e-3 and abs(ends[2.0][0] - ends[4.0][0]) < 1e-4
assert min(ends[start][1] for start in (3.0, 6.0, 8.0)) > 10.0, "changed: find_MAP arrives from these starts"
PYTHON
