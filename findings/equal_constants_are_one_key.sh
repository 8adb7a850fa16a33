#!/usr/bin/env bash
# Expected: graph_replace of the value of an observed variable (model.rvs_to_values[y], a Constant) in model.logp() gives the
#   density of other data, whatever the other numbers of the model are.
# Happens: building logp merges constants of the same type and value. Where sigma = 0.1 and the observed value is 0.1, they are
#   one node, which is not the value variable's own: the replacement finds nothing, and the density silently stays that of the
#   old data. With sigma = 0.2 the same lines are right.
# Versions: PyMC 5.28.5 with PyTensor 2.38.3 (PyMC 6.4.0 with PyTensor 3.3.7 merges them too).
# Source: run here; constants are compared by type and value when graphs are rewritten (MergeOptimizer in PyTensor).
# Why it matters: simulation-based calibration, cross-validation and tempering by graph surgery swap data this way. Give the
#   observed variable a fresh value variable before logp is built.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pymc==5.28.5 pytensor==2.38.3
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace
from scipy.stats import norm

print("pymc", pm.__version__, "pytensor", pytensor.__version__)
def density_of_new_data(sigma):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        y = pm.Normal("y", mu, sigma=sigma, observed=0.1)
    new = pt.dscalar("new")
    value = model.rvs_to_values[y]
    graph = graph_replace([model.logp(vars=[y])], {value: new}, strict=False)[0]
    function = pytensor.function(
        [new, model.rvs_to_values[mu]], graph, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return float(function(2.0, 0.0))


for sigma in (0.2, 0.1):
    found, old, right = density_of_new_data(sigma), norm.logpdf(0.1, 0.0, sigma), norm.logpdf(2.0, 0.0, sigma)
    print(f"sigma = {sigma}: log density of y = 2 is {found:.4f}; right {right:.4f}, of the old data {old:.4f}")
    if sigma == 0.2:
        assert np.isclose(found, right)
    else:
        assert np.isclose(found, old) and not np.isclose(found, right), "changed: equal constants are kept apart now"
PYTHON
