#!/usr/bin/env bash
# Expected: the draws of a Bambi model hold every coefficient of the formula.
# Happens: Model.fit drops, by default, every variable whose name ends in `_offset`: meant for the standardised effects of
#   non-centred groups, it also drops the coefficient of a predictor of the user's that is called so. With an intercept, fit
#   then samples to the end and raises KeyError, because moving the intercept back needs that coefficient: the draws are
#   lost. Without one the coefficient is silently missing. omit_offsets=False keeps it.
# Versions: Bambi 0.21.0 with PyMC 6.4.0, Python 3.12 or newer.
# Source: run here; `omit_offsets` in bambi/models.py and bambi/backend/pymc.py.
# Why it matters: hours of sampling are lost to the name of a column, or a table of coefficients misses a predictor.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.13}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet bambi==0.21.0 pymc==6.4.0
"$work/venv/bin/python" - <<'PYTHON'
import logging

import bambi as bmb
import numpy as np
import pandas as pd

logging.disable(logging.CRITICAL)
print("bambi", bmb.__version__)
rng = np.random.default_rng(1)
data = pd.DataFrame({"clock_offset": rng.normal(size=30), "y": rng.normal(size=30)})


def fitted(formula, **options):
    model = bmb.Model(formula, data)
    draws = model.fit(draws=20, tune=20, chains=1, random_seed=1, progressbar=False, **options)
    return sorted(map(str, draws["posterior"].data_vars))


kept = fitted("y ~ clock_offset", omit_offsets=False)
silent = fitted("y ~ 0 + clock_offset")
print("omit_offsets=False:", kept)
print("default, no intercept:", silent)
try:
    fitted("y ~ clock_offset")
except KeyError as error:
    print("default, with an intercept: KeyError:", str(error)[:60])
else:
    raise SystemExit("changed: fit returns")
assert "clock_offset" in kept
assert "clock_offset" not in silent, "changed: a predictor of the user's is kept"
PYTHON
