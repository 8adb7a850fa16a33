"""Attributes of the report that count chains of weight zero on the real data."""

from __future__ import annotations

import numpy as np

from bread.backends.base import Failure
from bread.running.state.results import OBSERVED, CheckResult


def zero_weight_attributes(result: CheckResult, n_temperatures: int) -> dict[str, int]:
    """Return `n_observed_zero` and `n_observed_chains`: at this T, those of the annealed draws included."""
    n_zero, n_chains = result.n_draws_zero, result.n_draws_dropped
    n_chains += 0 if result.observed_draws is None else len(result.observed_draws)
    run = result.runs.get((OBSERVED, "forward", n_temperatures))
    if run is not None:
        n_zero += int(np.count_nonzero(run.failure == Failure.ZERO_RATIO))
        n_chains += len(run.failure)
    return {"n_observed_zero": n_zero, "n_observed_chains": n_chains}
