#!/usr/bin/env bash
# Expected: pm.HalfStudentT.dist(nu=3, sigma=25) has the scale 25, as with sigma=25.0; a Python integer is a number.
# Happens: PyTensor makes a Python integer an int8 constant, and PyMC's density squares it in int8: 25 ** 2 = 113 (mod 256).
#   The density silently has the scale 10.63. pm.Uniform.dist(-100, 100) has a NaN density, since 200 overflows too.
# Versions: PyMC 5.28.5 with PyTensor 2.38.3.
# Source: run here; PyMC's issue 7678 was closed in favour of PyTensor's 1073.
# Why it matters: a prior written in whole numbers is another prior, and the sampler, which sees the density alone, does not
#   notice. Random draws use 25. Write 25.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==5.28.5 pytensor==2.38.3
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np
import pymc as pm
import pytensor
from scipy.stats import t

print("pymc", pm.__version__, "pytensor", pytensor.__version__)
def density(law, x):
    return float(pm.logp(law, x).eval(mode="FAST_COMPILE"))

at = np.float64(30.0)
found = density(pm.HalfStudentT.dist(nu=3, sigma=25), at)
with_point = density(pm.HalfStudentT.dist(nu=3, sigma=25.0), at)
scale = np.sqrt(np.int8(113))
print(f"HalfStudentT(3, 25) at 30: {found:.4f}; with 25.0: {with_point:.4f}; with the scale {scale:.2f}: "
      f"{np.log(2) + t.logpdf(30.0, 3, scale=scale):.4f}")
assert np.isclose(with_point, np.log(2) + t.logpdf(30.0, 3, scale=25.0))
assert not np.isclose(found, with_point), "changed: whole numbers are right now"
uniform = density(pm.Uniform.dist(-100, 100), np.float64(3.0))
print("Uniform(-100, 100) at 3:", uniform, "; by hand:", -np.log(200))
assert not np.isclose(uniform, -np.log(200)), "changed: the uniform density is right now"
PYTHON
