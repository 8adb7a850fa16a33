#!/usr/bin/env bash
# Expected: a hurdle draws a truncated count only where the hurdle is crossed, and a Poisson count of one or more can be
#   drawn whatever its mean: for a small mean it is nearly always 1.
# Happens: pm.HurdlePoisson draws a truncated count for every row, crossed or not, by drawing all rows again until the last
#   one is at least 1, 10,000 times at most. From a mean of about 1e-4 in one row on, pm.draw and prior or posterior
#   predictive draws of the whole model stop with TruncationError, though the density is right. Gamma and log-normal
#   hurdles, whose truncation inverts a distribution function, draw.
# Versions: PyMC 6.4.0 (5.28.5 the same) and PyTensor 3.3.8, Python 3.12 or newer.
# Source: run here; `TruncatedRV.rv_op` in pymc/distributions/truncated.py, `_hurdle_mixture` in mixture.py.
# Why it matters: a regression of log rates meets such means under ordinary priors: pm.sample works, and predictive checks
#   and simulation-based calibration of the same model do not, or only on some draws of the parameters.
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


def counts(distribution):
    """Return counts of draws, or the name of the error."""
    try:
        return np.bincount(pm.draw(distribution, 2000, random_seed=1).ravel()).tolist()
    except pm.exceptions.TruncationError as error:
        print("   ", str(error).splitlines()[0])
        return "TruncationError"


found = {}
for mean in (1.0, 1e-2, 1e-5):
    hurdle = pm.HurdlePoisson.dist(psi=0.5, mu=mean)
    found[mean] = counts(hurdle), float(pm.logp(hurdle, 1).eval())
    print(f"mean {mean:g}: draws {found[mean][0]}, log density at 1 {found[mean][1]:.4f}")
never_crossed = counts(pm.HurdlePoisson.dist(psi=[1e-9, 0.5], mu=[1e-5, 2.0]))
print("a row of small mean that is practically never crossed:", never_crossed)
gamma = pm.draw(pm.HurdleGamma.dist(psi=0.5, alpha=2.0, beta=1.0), 2000, random_seed=1)
print("share of zeros of a gamma hurdle:", np.mean(gamma == 0))
assert isinstance(found[1e-2][0], list)
assert abs(found[1e-5][1] - np.log(0.5)) < 1e-4
assert found[1e-5][0] == "TruncationError", "changed: rare counts are drawn"
assert never_crossed == "TruncationError", "changed: only rows that cross draw a count"
assert 0.4 < np.mean(gamma == 0) < 0.6
PYTHON
