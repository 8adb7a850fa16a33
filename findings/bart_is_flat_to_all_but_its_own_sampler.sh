#!/usr/bin/env bash
# Expected: a BART variable has a prior over sums of trees, and what cannot evaluate it raises an error: pm.fit, pm.find_MAP.
# Happens: its log density is 0 everywhere, so that everything but the package's own step method takes it for a free vector
#   with a flat prior. ADVI and the mode return the outcomes themselves, noise and all, without a word; pm.sample, whose
#   step method grows trees, shrinks the same noise towards its mean.
# Versions: pymc-bart 0.13.1 with PyMC 6.4.0, Python 3.12 or newer.
# Source: run here; the log probability that pymc_bart/bart.py registers for its variable.
# Why it matters: an approximation of a BART model looks finished and is interpolation: no regularisation is left in it, and
#   a tool that reads model.logp (bounds, bridge sampling, importance weights) has a likelihood in place of a posterior.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.13}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc-bart==0.13.1 pymc==6.4.0
"$work/venv/bin/python" - <<'PYTHON'
import logging
import warnings

import numpy as np
import pymc as pm
import pymc_bart

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
print("pymc-bart", pymc_bart.__version__, "pymc", pm.__version__)
rng = np.random.default_rng(1)
noise = rng.normal(size=60)  # nothing that a covariate could explain
with pm.Model() as model:
    mean = pymc_bart.BART("mean", rng.uniform(size=(60, 2)), noise, m=20)
    pm.Normal("y", mean, 1.0, observed=noise)
    prior = model.compile_logp(vars=[mean])
    levels = [float(prior({"mean": np.full(60, at)})) for at in (0.0, 1e6)]
    mode = pm.find_MAP(progressbar=False)["mean"]
    advi = pm.fit(20_000, random_seed=1, progressbar=False).sample(500, random_seed=1)
    trees = pm.sample(500, tune=500, chains=1, cores=1, random_seed=1, progressbar=False)


def slope(values):
    return float(np.polyfit(noise, values, 1)[0])


found = {
    "mode": slope(mode),
    "ADVI": slope(advi["posterior"]["mean"].mean(("chain", "draw")).values),
    "pm.sample": slope(trees["posterior"]["mean"].mean(("chain", "draw")).values),
}
print("log prior at 0 and at 1e6:", levels)
print("slope of the fitted mean on pure noise:", {name: round(value, 2) for name, value in found.items()})
assert levels == [0.0, 0.0], "changed: the prior depends on the value"
assert found["mode"] > 0.99 and found["ADVI"] > 0.95, "changed: they no longer follow the noise"
assert found["pm.sample"] < 0.5, "changed: trees follow the noise as well"
PYTHON
