"""Group `bounds` of the report: bounds of the log evidence and of divergences at every T, in nats."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import FloatArray, IntArray
from bread.report.runs import ran_temperatures, role_coordinate
from bread.running.state.results import CheckResult
from bread.statistics.bounds import bounds, tails
from bread.statistics.bounds.certificate import conditional_gaps
from bread.statistics.bounds.intervals import Interval, mean_interval
from bread.statistics.bounds.tails import TailIndex, centred_tail_index

CI_BOUND = np.array(["lower", "upper"])
_NO_TAIL = TailIndex(float("nan"), float("nan"), 0)
_ONE_SIDED = ("kl_exact_approx", "kl_approx_exact", "jeffreys_resampled")
_INTERVALS = ("jeffreys", "jeffreys_raw", *_ONE_SIDED)


def finished_simulations(result: CheckResult, n_temperatures: int, role: str | None = None) -> IntArray:
    """Return the simulations (of one role) that have finished both directions at this T, up to the first that has not.

    In the order in which they were planned: an interrupted check does not select those that were fast.
    """
    wanted = [index for index, own in enumerate(result.roles) if role is None or own == role]
    return np.array(result.attempts.finished(result.runs, n_temperatures, wanted), dtype=np.int64)


def bound_simulations(result: CheckResult, n_temperatures: int) -> tuple[str, IntArray]:
    """Return role and indices of the simulations that give the bounds at this T.

    At the final T the confirming ones, which did not choose it; at every other T the searching ones. The other role
    stands in where there is none (a check with a fixed T confirms at all of them; an interrupted one may only have
    searched).
    """
    first, second = ("confirm", "search") if n_temperatures == result.n_temperatures else ("search", "confirm")
    for role in (first, second):
        found = finished_simulations(result, n_temperatures, role)
        if len(found):
            return role, found
    return "", np.empty(0, dtype=np.int64)


def final_temperatures(result: CheckResult) -> int:
    """Return the T that the report is about: the final one, or the largest that was finished; 0 if none was."""
    if len(bound_simulations(result, result.n_temperatures)[1]):
        return result.n_temperatures
    finished = [int(n) for n in ran_temperatures(result) if len(bound_simulations(result, int(n))[1])]
    return max(finished, default=0)


def base_tail(result: CheckResult) -> TailIndex:
    """Return the lower-tail index of the log ratio at the path's base.

    From the pilots' draws; without them from the first log ratio of every forward chain.
    """
    draws = result.base_log_ratio
    if not draws:
        draws = [run.log_ratio[:, 0] for key, run in result.runs.items() if key[1] == "forward" and run.log_ratio.size]
    return centred_tail_index(draws)


def is_end_fine(result: CheckResult) -> bool:
    """Return whether the reverse log weights have a finite mean, which every bound takes."""
    return tails.is_end_calm(result.end_log_ratio) and tails.is_end_reliable(result.exact_end_log_ratio)


def is_one_sided_reliable(base: TailIndex, log_weights: TailIndex, n_chains: int) -> bool:
    """Return whether lower_K, and so the forward part of the bound of KL(p||q), has a finite mean.

    The largest of K forward log weights with a lower tail of shape k has a tail of shape k / K: its mean is finite
    if and only if K > k. Asked of both tails, with the confidence of `bread.statistics.bounds.tails.is_mean_reliable`.
    """
    base_objects = base.shape + tails.NORMAL_QUANTILE * base.standard_error >= n_chains
    weights_object = log_weights.shape - tails.NORMAL_QUANTILE * log_weights.standard_error >= n_chains
    return not (base_objects or weights_object)


def bounds_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `bounds`; None when nothing has finished.

    `jeffreys` (B, bounds KL(q||p) + KL(p||q); each gap replaced by its expectation given its size), `jeffreys_raw`
    (the same from the gaps themselves: more variance, no use of Crooks' relation), `kl_exact_approx` (KL(p||q), large
    when draws miss mass), `kl_approx_exact` (KL(q||p)) and `jeffreys_resampled`, each (n_temperatures) with
    `<name>_ci` (n_temperatures, ci_bound). Evidence bounds are (n_temperatures, simulation), NaN where a direction is
    missing. `used` (n_temperatures, simulation) and `role_used` say which simulations gave the bounds; `role` of each
    simulation is "search", "confirm" or "forward". B means nothing where `jeffreys_reliable` is False.
    """
    temperatures = ran_temperatures(result)
    if not len(result.roles) or not len(temperatures):
        return None
    base = base_tail(result)
    rows = [_bounds_at(result, int(n), base) for n in temperatures]
    variables: dict[str, Any] = {}
    for name in _INTERVALS:
        attributes = {"units": "nats"}
        variables[name] = ("n_temperatures", np.array([row[name].estimate for row in rows]), attributes)
        limits = np.array([row[name][1:] for row in rows])
        variables[f"{name}_ci"] = (("n_temperatures", "ci_bound"), limits, {"units": "nats", "level": result.level})
    for name in ("jeffreys_reliable", "kl_exact_approx_reliable", "role_used", "n_simulations"):
        variables[name] = ("n_temperatures", np.array([row[name] for row in rows]))
    variables["tail_index"] = ("n_temperatures", np.array([row["tail"].shape for row in rows]))
    variables["tail_index_se"] = ("n_temperatures", np.array([row["tail"].standard_error for row in rows]))
    variables["start_tail_index"] = ((), np.float64(base.shape))
    variables["start_tail_index_se"] = ((), np.float64(base.standard_error))
    used = np.array([np.isin(np.arange(len(result.roles)), row["simulations"]) for row in rows])
    variables["used"] = (("n_temperatures", "simulation"), used)
    for name, values in _evidence(result, temperatures).items():
        variables[name] = (("n_temperatures", "simulation"), values, {"units": "nats"})
    variables["role"] = role_coordinate(result)
    return xr.Dataset(
        variables,
        coords={
            "n_temperatures": temperatures,
            "simulation": np.arange(len(result.roles)),
            "ci_bound": CI_BOUND,
        },
    )


def _bounds_at(result: CheckResult, n_temperatures: int, base: TailIndex) -> dict[str, Any]:
    """Return everything `bounds` says about one T."""
    role, simulations = bound_simulations(result, n_temperatures)
    forward = result.log_weights("forward", n_temperatures, simulations)
    reverse = result.log_weights("reverse", n_temperatures, simulations)
    row: dict[str, Any] = {"role_used": role, "simulations": simulations, "n_simulations": len(simulations)}
    if not len(simulations) or not usable_simulations(forward, reverse).all():
        missing = Interval(float("nan"), float("nan"), float("nan"))
        row |= dict.fromkeys(_INTERVALS, missing)
        row |= {"jeffreys_reliable": False, "kl_exact_approx_reliable": False}
        return row | {"tail": _NO_TAIL}
    tail = centred_tail_index(list(forward))
    has_end = is_end_fine(result)
    is_reliable = has_end and tails.is_mean_reliable(base, tail)
    is_certificate = has_end and is_one_sided_reliable(base, tail, result.n_chains)
    row["jeffreys"] = mean_interval(conditional_gaps(forward, reverse), result.level)
    row["jeffreys_raw"] = bounds.jeffreys_bound(forward, reverse, result.level)
    for name in _ONE_SIDED:
        row[name] = getattr(bounds, name)(forward, reverse, result.level)
    return row | {"tail": tail, "jeffreys_reliable": is_reliable, "kl_exact_approx_reliable": is_certificate}


def usable_simulations(forward: FloatArray, reverse: FloatArray) -> NDArray[np.bool_]:
    """Return which simulations have no failed (or missing) chain; bounds of the others are NaN, shape (simulation,)."""
    return np.asarray(_has_forward(forward) & np.isfinite(reverse).all(axis=1))


def _has_forward(forward: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(~(np.isnan(forward) | np.isposinf(forward)).any(axis=1))


def _evidence(result: CheckResult, temperatures: IntArray) -> dict[str, NDArray[np.float64]]:
    """Return bounds of the log evidence of every simulation at every T (n_temperatures, simulation)."""
    shape = (len(temperatures), len(result.roles))
    names = ("lower", "upper", "lower_many", "upper_many", "harmonic")
    tables = {f"log_evidence_{name}": np.full(shape, np.nan) for name in names}
    for row, n_temperatures in enumerate(temperatures):
        forward = result.log_weights("forward", int(n_temperatures))
        reverse = result.log_weights("reverse", int(n_temperatures))
        has_forward, has_reverse = _has_forward(forward), np.isfinite(reverse).all(axis=1)
        has_both = usable_simulations(forward, reverse)
        if has_forward.any():
            tables["log_evidence_lower"][row, has_forward] = bounds.log_evidence_lower(forward[has_forward])
            tables["log_evidence_lower_many"][row, has_forward] = bounds.log_evidence_lower_many(forward[has_forward])
        if has_reverse.any():
            tables["log_evidence_upper"][row, has_reverse] = bounds.log_evidence_upper(reverse[has_reverse])
            harmonic = -bounds.log_evidence_lower_many(-reverse[has_reverse])
            tables["log_evidence_harmonic"][row, has_reverse] = harmonic
        if has_both.any():
            many = bounds.log_evidence_upper_many(forward[has_both], reverse[has_both])
            tables["log_evidence_upper_many"][row, has_both] = many
    return tables
