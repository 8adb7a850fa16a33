"""One core against two: wall time of the annealing phases, with bit-equal log weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import build_model, check, fit, load, median, print_table

from bread.report.compat import read_group

MODEL = "logistic 532 x 7"
ROUNDS = 3  # one core and two cores, one after the other
SETTINGS = {"n_temperatures": (64, 128), "simulations": 20}
PHASES = ("confirm", "consistency", "draws")
GROUPS = ("forward", "reverse", "observed_forward")
GOAL = 1.7


def run() -> None:
    """Measure and print."""
    model = build_model(MODEL)
    posterior = fit(model)
    check(model, posterior=posterior, cores=2, n_temperatures=2, simulations=2, draws=0)  # workers start
    seconds: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    log_weights: list[dict[str, np.ndarray]] = []
    loads = []
    for _ in range(ROUNDS):
        loads.append(load())
        for cores in (1, 2):
            report = check(model, posterior=posterior, cores=cores, **SETTINGS)
            seconds[cores].append(_seconds(report))
            log_weights.append(_log_weights(report))
    _require_equal(log_weights)
    rows: list[tuple[Any, ...]] = []
    for phase in (*PHASES, "annealing"):
        one, two = (np.array([each[phase] for each in seconds[cores]]) for cores in (1, 2))
        rows.append((phase, median(one), median(two), median(one / two), float(np.max(one / two)), "", ""))
    ratio = rows[-1][3]
    busy = [median([each["work"] / (cores * each["recorded"]) for each in seconds[cores]]) for cores in (1, 2)]
    rows[-1] = (*rows[-1][:5], f"{busy[0]:.3f}, {busy[1]:.3f}", "yes" if ratio >= GOAL else "NO")
    print_table(
        f"One core against two, {MODEL}: seconds of `bread.check(n_temperatures=(64, 128))`",
        ("phase", "one core", "two cores", "ratio", "best ratio", "busy with chains: one, two", f"ratio >= {GOAL}"),
        rows,
        f"Log weights are equal bit by bit in all {2 * ROUNDS} runs. Medians of {ROUNDS} interleaved rounds; "
        f"before each: {', '.join(loads)}. The ratio is right only while nothing else runs on the machine. Busy: share "
        "of the time that a process spent in chains (confirm and consistency), which a busy machine changes less; "
        f"twice the quotient of the two shares, {2 * busy[1] / busy[0]:.2f}, is the ratio that this division allows.",
    )


def _seconds(report: Any) -> dict[str, float]:
    """Return the seconds of each phase; ``work``: spent in chains, summed over processes, in ``recorded`` seconds."""
    cost = _group(report, "cost")
    result = {phase: float(cost["seconds"].sel(phase=phase)) for phase in PHASES}
    work = sum(float(np.nansum(_group(report, name)["seconds"].values)) for name in GROUPS)
    recorded = result["confirm"] + result["consistency"]
    return {**result, "annealing": sum(result.values()), "work": work, "recorded": recorded}


def _group(report: Any, name: str) -> Any:
    group = read_group(report, name)
    assert group is not None
    return group


def _log_weights(report: Any) -> dict[str, np.ndarray]:
    return {name: _group(report, name)["log_weight"].values for name in GROUPS}


def _require_equal(log_weights: list[dict[str, np.ndarray]]) -> None:
    for other in log_weights[1:]:
        for name, values in log_weights[0].items():
            if not np.array_equal(values, other[name], equal_nan=True):
                raise AssertionError(f"The log weights of the group {name} differ between runs of one seed.")
