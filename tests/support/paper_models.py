"""Small data for the programs of `stan_models/`, and the Jacobian of their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np


def small_data(name: str) -> dict[str, Any]:
    """Return a small data block with arbitrary values."""
    rng = np.random.default_rng(1)
    factors = {"N": 3, "K": 1, "D": 2}
    data: dict[str, dict[str, Any]] = {
        "linear_regression": {"N": 6, "K": 2, "x": rng.normal(size=(6, 2)), "y": rng.normal(size=6)},
        "logistic_regression": {"N": 6, "K": 2, "x": rng.normal(size=(6, 2)), "y": np.array([0, 1, 1, 0, 1, 0])},
        "clustering": {"N": 7, "K": 3, "y1": rng.normal(size=7), "y2": rng.normal(size=7)},
        "time_series": {"N": 5, "y": 3.0 + rng.normal(size=5)},
        "movielens": {"N": 3, "L": 2, "D": 4, "M": 5, "cell": np.array([1, 3, 4, 8, 12]), "y": rng.normal(size=5)},
        "matrix_factorisation": {**factors, "y": rng.normal(size=(3, 2))},
        "collapsed_matrix_factorisation": {**factors, "y": rng.normal(size=(3, 2))},
    }
    return data[name]


def log_jacobian(p: dict[str, Any]) -> float:
    """Log Jacobian of Stan's transforms: logarithms of variances, and of a simplex the product of its elements.

    Stan 2.35 (stick breaking) and 2.39 (isometric log ratio) differ by a constant there, log(K) / 2.
    """
    result = sum(float(np.log(value)) for key, value in p.items() if key.endswith("_sq"))
    return result + (float(np.log(p["weight"]).sum()) if "weight" in p else 0.0)
