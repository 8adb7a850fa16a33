#!/usr/bin/env bash
# Expected: pm.draw of pm.CAR has the covariance of its log density, the inverse of Q = tau * (D - alpha * W).
# Happens: the draws have the covariance Q^-2: the random method solves with Q where it should solve with Q's Cholesky factor.
# Versions: PyMC 5.28.5 (6.4.0 draws the same).
# Source: run here; CARRV.rng_fn in pymc/distributions/multivariate.py. No report of it was found in one search.
# Why it matters: prior and posterior predictive draws, and simulation-based calibration, of models with a CAR prior are wrong,
#   while NUTS, which uses the density, is right. pm.MvNormal(mu, tau=Q) is right in both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==5.28.5 pytensor==2.38.3
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np
import pymc as pm

print("pymc", pm.__version__)
W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
alpha, tau = 0.6, 2.0
Q = tau * (np.diag(W.sum(axis=1)) - alpha * W)
draws = pm.draw(pm.CAR.dist(mu=np.zeros(3), W=W, alpha=alpha, tau=tau), draws=20_000, random_seed=1)
found = np.cov(draws.T)
for name, matrix in (("draws", found), ("Q^-1", np.linalg.inv(Q)), ("Q^-2", np.linalg.inv(Q @ Q))):
    print(f"covariance, {name}: diagonal {np.round(np.diag(matrix), 3)}")
error = 6 * np.sqrt(2 / 20_000)  # six standard errors of a variance, relative
assert np.allclose(np.diag(found), np.diag(np.linalg.inv(Q @ Q)), rtol=error), "changed: no longer Q^-2"
assert not np.allclose(np.diag(found), np.diag(np.linalg.inv(Q)), rtol=error), "changed: draws are right now"
PYTHON
