#!/usr/bin/env bash
# Expected: pm.VonMises with a large concentration is nearly normal about mu: log density at mu of 0.5 log(kappa / 2 pi).
# Happens: the logarithm is taken of the Bessel function itself, which overflows: the density is 0 everywhere from
#   kappa = 713 on, and already from 92 on where kappa is a plain Python number, because PyTensor stores that in single
#   precision. Random draws are right. 6.4.0 is right.
# Versions: PyMC 5.28.5 with PyTensor 2.38.3; 6.0.0 to 6.3.2 have the same line. 6.4.0 has it mended.
# Source: run here; `VonMises.logp` in pymc/distributions/continuous.py.
# Why it matters: a compass good to six degrees has kappa = 93. Written as 93.0, the model cannot start ("initial evaluation
#   failed"); with a free kappa, NUTS meets a wall that no data made.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==5.28.5 pytensor==2.38.3
"$work/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
import pymc as pm

warnings.simplefilter("ignore")
print("pymc", pm.__version__)
found = {}
for kappa in (90.0, 93.0, np.float64(93.0), np.float64(700.0), np.float64(714.0)):
    law = pm.VonMises.dist(0.0, kappa)
    density = float(pm.logp(law, np.float64(0.0)).eval(mode="FAST_COMPILE"))
    draws = pm.draw(law, 2000, random_seed=1, mode="FAST_COMPILE")
    kind = type(kappa).__name__
    print(f"kappa = {kappa} ({kind}): log density at mu {density:.3f}, nearly {0.5 * np.log(kappa / 2 / np.pi):.3f}; "
          f"sd of draws times sqrt(kappa) {draws.std() * np.sqrt(kappa):.2f}")
    found[kind, float(kappa)] = density
    assert abs(draws.std() * np.sqrt(kappa) - 1.0) < 0.1
finite = [key for key, density in found.items() if np.isfinite(density)]
assert finite == [("float", 90.0), ("float64", 93.0), ("float64", 700.0)], "changed: where the density is finite"
PYTHON
