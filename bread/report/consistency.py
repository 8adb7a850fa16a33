"""Group `consistency` of the report: whether the real data anneal like simulated data."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from bread.running.state import consistency as shape
from bread.running.state.results import OBSERVED, CheckResult
from bread.statistics.real_data import consistency


def consistency_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `consistency`: whether the real data are harder, or plainly different, to sample.

    Compares the median forward log weight of each data set's chains as curves over T (Grosse, Ancha & Roy 2016,
    section 3.2 and figure 1, which has quartiles for the outliers that forward chains have), and what the same chains
    tell of the sampler's effort. Its T are those at which the real data and *all* confirming and forward-only
    simulations have run, at least two; None otherwise.

    `shape_p_value`: curves and effort together; read it where `is_final` is 1 (more simulations are added until it
    is, unless the check was interrupted). Where the first chains of the real data give 0.05 or less, it is the largest
    of their p-value and those of `n_repeats` more sets of chains, with the `p_value_by_measure` (measure) that belongs
    to it, not adjusted. All else is by the first chains. `p_value`: of the curves alone, with `p_value_harder` and
    `p_value_different`. `effect` (n_temperatures) in nats, positive where the real data are harder.
    `log_evidence_rank`: how many simulated data sets have a smaller estimate of the log evidence at the largest T;
    `log_evidence_p_value`, two-sided: exact under simulate_from="prior" alone.
    """
    items = shape.items(result)
    if items is None:
        return None
    test = consistency.consistency_test(items.curves[:-1], items.curves[-1])
    found = items.shape
    rank, rank_p_value = _log_evidence_rank(result, items)
    variables: dict[str, Any] = {
        "shape_p_value": ((), np.float64(found.p_value)),
        "is_final": ((), np.int64(found.is_final)),
        "p_value_by_measure": ("measure", np.array(list(found.p_value_by_measure.values()))),
        "n_simulations": ((), np.int64(len(items.simulations))),
        "n_repeats": ((), np.int64(len(items.repeats))),
        "log_evidence_rank": ((), np.int64(rank)),
        "log_evidence_p_value": ((), np.float64(rank_p_value)),
        "p_value": ((), np.float64(test.p_value)),
        "p_value_harder": ((), np.float64(test.p_value_harder)),
        "p_value_different": ((), np.float64(test.p_value_different)),
        "p_value_by_temperature": ("n_temperatures", np.asarray(test.p_value_by_temperature)),
        "effect": ("n_temperatures", np.asarray(test.effect), {"units": "nats"}),
        "simulated_curve": (("simulation", "n_temperatures"), np.asarray(test.simulated_curves), {"units": "nats"}),
        "observed_curve": ("n_temperatures", np.asarray(test.observed_curve), {"units": "nats"}),
    }
    coords = {
        "n_temperatures": items.temperatures,
        "simulation": items.simulations,
        "measure": np.array(list(found.p_value_by_measure), dtype=np.str_),
    }
    return xr.Dataset(variables, coords=coords)


def _log_evidence_rank(result: CheckResult, items: shape.Items) -> tuple[int, float]:
    """Return how many simulations have a smaller log evidence than the real data, and the two-sided p-value."""
    largest = int(items.temperatures[-1])
    weights = result.log_weights("forward", largest, np.array([*items.simulations, OBSERVED]))
    estimates = logsumexp(weights, axis=1)  # all have the same number of chains
    simulated, observed = estimates[:-1], estimates[-1]
    low, high = (1 + int((side).sum()) for side in (simulated <= observed, simulated >= observed))
    return int((simulated < observed).sum()), min(1.0, 2.0 * min(low, high) / (len(simulated) + 1))
