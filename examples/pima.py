"""Logistic regression of diabetes on the complete Pima data, or on a CSV file with a column `outcome` (--csv)."""

from __future__ import annotations

import sys

import numpy as np
from card import arguments, run
from models import logistic_regression, pima

if __name__ == "__main__":
    csv = None
    if "--csv" in sys.argv:
        position = sys.argv.index("--csv")
        csv = sys.argv[position + 1]
        del sys.argv[position : position + 2]
    options = arguments(__doc__)
    if csv is None:
        run("pima", pima(), options)
    else:
        table = np.genfromtxt(csv, delimiter=",", names=True)
        names = [name for name in table.dtype.names if name != "outcome"]
        predictors = np.column_stack([table[name] for name in names])
        run("pima csv", logistic_regression(predictors, table["outcome"].astype(int), names), options)
