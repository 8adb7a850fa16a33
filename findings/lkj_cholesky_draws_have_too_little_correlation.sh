#!/usr/bin/env bash
# Expected: pm.draw of an LKJCholeskyCov gives correlation matrices of the LKJ law: each correlation r of n dimensions has
#   (r + 1) / 2 ~ Beta(eta - 1 + n / 2, eta - 1 + n / 2), so a variance of 1 / (2 eta + n - 1).
# Happens: with n = 2 it does. With n = 3 and more only the first correlation does; the others have about 0.86 of that
#   variance. The same random variable makes prior predictive draws. 6.4.0 draws all of them rightly.
# Versions: PyMC 6.3.1 (wrong), 6.4.0 (right), Python 3.12 or newer.
# Source: run here; pymc/distributions/multivariate.py, and the release notes of PyMC 6.4.0.
# Why it matters: prior predictive checks, simulation-based calibration and tests of samplers on such models compare a right
#   posterior with wrong draws of the prior, and blame the sampler.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/draws.py" <<'PYTHON'
import sys

import numpy as np
import pymc as pm

ETA, DRAWS = 2.0, 20_000
is_right = pm.__version__ != "6.3.1"
print("pymc", pm.__version__)
for n in (2, 3, 4):
    law = pm.LKJCholeskyCov.dist(n=n, eta=ETA, sd_dist=pm.HalfNormal.dist(1.0, shape=n))
    factor = np.asarray(pm.draw(law, DRAWS, random_seed=1)[0])
    covariance = factor @ factor.swapaxes(1, 2)
    sd = np.sqrt(np.einsum("kii->ki", covariance))
    rows, columns = np.tril_indices(n, -1)
    r = covariance[:, rows, columns] / (sd[:, rows] * sd[:, columns])
    ratio = r.var(axis=0) * (2.0 * ETA + n - 1.0)
    print(f"n = {n}: variances of the correlations, as multiples of the law's:", ratio.round(3))
    error = np.sqrt(2.0 / DRAWS)  # of a variance of a law with lighter tails than a normal one's: less than this
    right = np.abs(ratio - 1.0) < 5.0 * error
    expected = np.full(len(ratio), is_right)
    expected[0] = True
    if not np.array_equal(right, expected):
        sys.exit("changed: other correlations are right")
PYTHON
for version in 6.3.1 6.4.0; do
    "${PYTHON:-python3.13}" -m venv "$work/$version"
    "$work/$version/bin/pip" install --quiet "pymc==$version"
    "$work/$version/bin/python" "$work/draws.py"
done
