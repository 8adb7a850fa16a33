"""Group `alarm` of the report: tests that something is broken."""

from __future__ import annotations

import numpy as np
import xarray as xr

from bread.backends.base import Direction, FloatArray, IntArray
from bread.report.bounds import CI_BOUND, bound_simulations, usable_simulations
from bread.running.results import CheckResult
from bread.seeds import Purpose, seed_sequence
from bread.statistics import alarms

_MAX_LOG = 700.0  # exp of more overflows


def alarm_dataset(result: CheckResult, n_temperatures: int) -> xr.Dataset | None:
    """Return the group `alarm`: theory alarm and weighted ranks at one T; None without usable simulations.

    Exact when simulated from the prior: a small `p_value` (theory alarm) or `weighted_rank_p_value_combined` then
    means a bug. Under "fitted" it means that the reverse chains have not forgotten their start, or a bug; the ranks
    of the hyperparameters are then the diagnostic of `init_steps` (Grosse, Ancha & Roy 2016, section 3.2).

    Simulations with a failed chain are left out and counted in `n_excluded`; a function that is NaN somewhere is not
    ranked (NaN).
    """
    _, simulations = bound_simulations(result, n_temperatures)
    if not len(simulations):
        return None
    forward = result.log_weights("forward", n_temperatures, simulations)
    reverse = result.log_weights("reverse", n_temperatures, simulations)
    usable = usable_simulations(forward, reverse)
    if not usable.any():
        return None
    simulations, forward, reverse = simulations[usable], forward[usable], reverse[usable]
    alarm = alarms.theory_alarm(forward, reverse)
    names, h_forward, h_reverse = _functions(result, n_temperatures, simulations)
    ranks, p_values = np.full(h_reverse.shape, np.nan), np.full(len(names), np.nan)
    can_rank = ~np.isnan(h_forward).any(axis=(0, 1)) & ~np.isnan(h_reverse).any(axis=0)
    if can_rank.any():
        uniforms = _uniforms(result, simulations, len(names))[:, can_rank]
        ranks[:, can_rank] = alarms.weighted_ranks(
            forward, reverse[:, 0], h_forward[..., can_rank], h_reverse[:, can_rank], uniforms
        )
        p_values[can_rank] = alarms.rank_p_values(ranks[:, can_rank])
    is_exact = result.settings.get("simulate_from", "prior") != "fitted"
    return xr.Dataset(
        {
            "e_value": ((), np.float64(np.exp(min(alarm.log_e_value, _MAX_LOG)))),
            "log_e_value": ((), np.float64(alarm.log_e_value), {"units": "nats"}),
            "p_value": ((), np.float64(alarm.p_value)),
            "crooks_slope": ((), np.float64(alarm.crooks_slope), {"description": "1 in theory"}),
            "crooks_slope_ci": ("ci_bound", np.array([alarm.crooks_slope_lower, alarm.crooks_slope_upper])),
            "weighted_rank": (("simulation", "function"), ranks, {"description": "uniform in theory"}),
            "weighted_rank_p_value": ("function", p_values),
            "weighted_rank_p_value_combined": ((), np.float64(alarms.combined_p_value(p_values))),
            "n_excluded": ((), np.int64(np.count_nonzero(~usable))),
        },
        coords={"simulation": simulations, "function": np.array(names, dtype=np.str_), "ci_bound": CI_BOUND},
        attrs={
            "n_temperatures": int(n_temperatures),
            "meaning": "exact test" if is_exact else "diagnostic of init_steps, or a bug",
        },
    )


def _uniforms(result: CheckResult, simulations: IntArray, n_functions: int) -> FloatArray:
    """Return the uniforms that break ties, (simulation, function): one stream a simulation, whatever else ran."""
    return np.array(
        [
            np.random.default_rng(seed_sequence(result.seed, Purpose.RANK, int(index))).random(n_functions)
            for index in simulations
        ]
    )


def _functions(
    result: CheckResult, n_temperatures: int, simulations: IntArray
) -> tuple[list[str], FloatArray, FloatArray]:
    """Return names and values of the functions of a path that are ranked.

    Each coordinate of both ends, the log density of the path's start there, and the log ratio there; and the product
    of both ends of each coordinate, which shows a kernel that leaves its target invariant but is not run by its true
    reversal. Values are (simulation, chain, function) for the forward chains and (simulation, function) for reverse
    chain 0.
    """
    names = [
        f"{name} ({end})"
        for end in ("beta=0", "beta=1")
        for name in (*result.info.coordinates, f"log {result.path.start_name} density", result.path.ratio_name)
    ]
    names += [f"{name} (product of both ends)" for name in result.info.coordinates]

    def values(simulation: int, direction: Direction) -> FloatArray:
        run = result.runs[simulation, direction, n_temperatures]
        ends = []
        for end, states in enumerate((run.state_at_start, run.state_at_end)):
            ends += [states, run.log_start_density[:, [end]], run.log_ratio[:, [-end]]]
        ends.append(run.state_at_start * run.state_at_end)
        return np.concatenate(ends, axis=1)

    forward = np.array([values(int(index), "forward") for index in simulations])
    reverse = np.array([values(int(index), "reverse")[0] for index in simulations])
    return names, forward, reverse
