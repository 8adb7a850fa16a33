"""Group `alarm` of the report: tests that something is broken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from bread.backends.base import AnnealRun, FloatArray, IntArray
from bread.report.bounds import CI_BOUND
from bread.report.ranked import RANKED_PATH, effective_share, meaning, ranked_paths, tested_runs
from bread.running.state.results import CheckResult
from bread.seeds import Purpose, seed_sequence
from bread.statistics.bounds import alarms
from bread.statistics.bounds.certificate import compare_forms

FEW_COORDINATES = 4  # all of whose pairs are ranked
MANY = 100  # simulations for the centre of a coordinate
_MAX_LOG = 700.0  # exp of more overflows


def alarm_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `alarm`: theory alarm, forms of V and weighted ranks; None without usable simulations.

    Exact when simulated from the prior: a small `p_value` (theory alarm), `forms_p_value` or
    `weighted_rank_p_value_combined` then means a bug. Under "posterior" it means that the draws which data were
    simulated at are not the posterior's. Under "fitted" it means that the reverse chains have not
    forgotten their start, or a bug; the ranks of the hyperparameters are then the diagnostic of `init_steps` (Grosse,
    Ancha & Roy 2016, section 3.2).

    Every simulation of every attempt counts, and those of the search: the last attempt alone is selected by its
    success. Where T was searched for, each counts at the first T at which it was annealed, which its own outcome cannot
    have chosen; where T was given, at all T, averaged, and its rank is that at the largest (`ranked_at`). Where a check
    was interrupted, those before the first that had not finished count. `n_rows` is how many pairs of simulation and T
    that is. Those with a failed chain are left out and counted in `n_excluded`; a function that is NaN somewhere is not
    ranked (NaN). Under "posterior" simulations share what is wrong by chance with the draws that they were taken from:
    in ranks they count as `effective_share` of their number, which is 1 elsewhere. `ranked_log_weight` (simulation,
    ranked_path) are the log weights that rank: of reverse chain 0, then of the forward chains; the group
    `ranked_paths` has the draws where these chains ended.
    """
    tested, ranked = tested_runs(result), ranked_paths(result)
    if tested is None or ranked is None:
        return None
    usable, share = tested.usable, effective_share(result, len(ranked.simulations))
    alarm = alarms.theory_alarm(tested.forward[usable], tested.reverse[usable], tested.rows[usable, 0])
    forms = compare_forms(tested.forward[usable], tested.reverse[usable], tested.rows[usable, 0])
    simulations, forward, reverse = ranked.simulations, ranked.forward, ranked.reverse
    names, h_forward, h_reverse = _functions(result, simulations, ranked.forward_runs, ranked.reverse_runs)
    ranks, p_values = np.full(h_reverse.shape, np.nan), np.full(len(names), np.nan)
    can_rank = ~np.isnan(h_forward).any(axis=(0, 1)) & ~np.isnan(h_reverse).any(axis=0)
    if can_rank.any():
        uniforms = _uniforms(result, simulations, len(names))[:, can_rank]
        ranks[:, can_rank] = alarms.weighted_ranks(
            forward, reverse, h_forward[..., can_rank], h_reverse[:, can_rank], uniforms
        )
        p_values[can_rank] = alarms.rank_p_values(ranks[:, can_rank], share)
    return xr.Dataset(
        {
            "e_value": ((), np.float64(np.exp(min(alarm.log_e_value, _MAX_LOG)))),
            "log_e_value": ((), np.float64(alarm.log_e_value), {"units": "nats"}),
            "p_value": ((), np.float64(alarm.p_value)),
            "forms_log_e_value": ((), np.float64(forms.log_e_value), {"units": "nats"}),
            "forms_p_value": ((), np.float64(forms.p_value)),
            "crooks_slope": ((), np.float64(alarm.crooks_slope), {"description": "1 in theory"}),
            "crooks_slope_ci": ("ci_bound", np.array([alarm.crooks_slope_lower, alarm.crooks_slope_upper])),
            "weighted_rank": (("simulation", "function"), ranks, {"description": "uniform in theory"}),
            "weighted_rank_p_value": ("function", p_values),
            "weighted_rank_p_value_combined": ((), np.float64(alarms.combined_p_value(p_values))),
            "ranked_at": ("simulation", ranked.n_temperatures, {"description": "number of temperatures"}),
            "ranked_log_weight": (
                ("simulation", "ranked_path"),
                ranked.log_weight,
                {"units": "nats", "description": RANKED_PATH},
            ),
            "effective_share": ((), np.float64(share)),
            "n_rows": ((), np.int64(np.count_nonzero(usable))),
            "n_excluded": ((), np.int64(np.count_nonzero(~usable))),
        },
        coords={"simulation": simulations, "function": np.array(names, dtype=np.str_), "ci_bound": CI_BOUND},
        attrs={"meaning": meaning(result)},
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
    result: CheckResult,
    simulations: IntArray,
    forward_runs: Sequence[AnnealRun],
    reverse_runs: Sequence[AnnealRun],
) -> tuple[list[str], FloatArray, FloatArray]:
    """Return names and values of the functions of a path that are ranked.

    Each coordinate of both ends, the log density of the path's base there, and the log ratio there; and products of
    both ends, of each coordinate and of pairs of them, which show a kernel that leaves its target invariant but is not
    run by its true reversal, such as a sweep that is not turned round. Values are (simulation, chain, function) for
    the forward chains and (simulation, function) for reverse chain 0.
    """
    names = [
        f"{name} ({end})"
        for end in ("beta=0", "beta=1")
        for name in (*result.info.layout.coordinates, f"log {result.path.base_name} density", result.path.ratio_name)
    ]
    coordinates = result.info.layout.coordinates
    names += [f"{name} (product of both ends)" for name in coordinates]
    names += [f"{coordinates[i]} (beta=0) times {coordinates[j]} (beta=1)" for i, j in _pairs(len(coordinates))]
    centres = [_centre(result, int(index)) for index in simulations]
    forward = [_values(run, centre) for run, centre in zip(forward_runs, centres, strict=True)]
    reverse = [_values(run, centre)[0] for run, centre in zip(reverse_runs, centres, strict=True)]
    return names, np.array(forward), np.array(reverse)


def _centre(result: CheckResult, simulation: int) -> FloatArray:
    """Return the median state of other simulations, of which no path of this one knows anything; zero without any."""
    indices = [index for index in range(min(MANY, len(result.simulations))) if index != simulation]
    others = result.simulations.states[indices]
    return np.median(others, axis=0) if len(others) else np.zeros(others.shape[1])


def _values(run: AnnealRun, centre: FloatArray) -> FloatArray:
    """Return the functions of each chain, (chain, function); products are of distances from ``centre``."""
    ends = []
    for place, states in enumerate((run.state_at_base, run.state_at_end)):
        ends += [states, run.log_base_density[:, [place]], run.log_ratio[:, [-place]]]
    base, end = run.state_at_base - centre, run.state_at_end - centre
    first, second = np.array(_pairs(base.shape[1]), dtype=np.int64).reshape(-1, 2).T
    return np.concatenate([*ends, base * end, base[:, first] * end[:, second]], axis=1)


def _pairs(dim: int) -> list[tuple[int, int]]:
    """Return pairs of different coordinates: all of a few, and of many each with its neighbours."""
    if dim <= FEW_COORDINATES:
        return [(i, j) for i in range(dim) for j in range(dim) if i != j]
    return [(i, j) for i in range(dim) for j in (i - 1, i + 1) if 0 <= j < dim]
