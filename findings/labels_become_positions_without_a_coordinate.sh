#!/usr/bin/env bash
# Expected: Dataset.sel(n=8) on a dimension `n` that has no coordinate raises, since there are no labels to look 8 up in.
# Happens: the label is taken for a position, without a warning: the ninth row comes back. A container that lost a coordinate
#   on its way through a file (a dropped variable, a group written by hand) then gives other numbers, not an error.
# Versions: xarray 2026.9.0.
# Source: run here.
# Why it matters: results indexed by settings (a number of temperatures, draws, a seed) are read from the wrong row. Look for
#   the coordinate before `sel`.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet xarray==2026.9.0
"$work/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
import xarray as xr

warnings.simplefilter("error")
print("xarray", xr.__version__)
labels = np.array([2, 4, 8, 0, 1, 3, 5, 6, 7])
whole = xr.Dataset({"value": ("n", labels * 10)}, coords={"n": labels})
right, lost = whole.sel(n=8), whole.drop_vars("n").sel(n=8)
print("with the coordinate:", int(right["value"]), "; without it:", int(lost["value"]))
assert int(right["value"]) == 80
assert int(lost["value"]) == 70, "changed: a label is no longer taken for a position"
PYTHON
