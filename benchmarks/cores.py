"""One core against two: wall time of the annealing phases, with bit-equal log weights.

By the local pool, and by one and two workers of dask over TCP.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Measure and print, by the local pool and, where it is installed, by dask."""
    model = build_model(MODEL)
    posterior = fit(model)
    _compare(model, posterior, "the local pool", _local)
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError:
        print("Dask's package distributed is not installed: its efficiency is left out.")
        return
    _compare(model, posterior, "dask", _dask)


@contextmanager
def _local(cores: int) -> Iterator[dict[str, Any]]:
    """Give the arguments of a check on so many processes of its own."""
    yield {"cores": cores}


@contextmanager
def _dask(cores: int) -> Iterator[dict[str, Any]]:
    """Give the arguments of a check on so many workers of a cluster on this machine."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=cores, threads_per_worker=1, dashboard_address=None, protocol="tcp", silence_logs=logging.ERROR
        ) as cluster,
        Client(cluster) as client,
    ):
        yield {"executor": client.get_executor()}


def _compare(model: Any, posterior: Any, by: str, given: Any) -> None:
    """Run with one and two workers in turn, and print."""
    seconds: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    log_weights: list[dict[str, np.ndarray]] = []
    loads = []
    for _ in range(ROUNDS):
        loads.append(load())
        for cores in (1, 2):
            with given(cores) as arguments:
                check(
                    model, posterior=posterior, n_temperatures=2, simulations=2, draws=0, **arguments
                )  # workers start
                report = check(model, posterior=posterior, **arguments, **SETTINGS)
            seconds[cores].append(_seconds(report))
            log_weights.append(_log_weights(report))
    _require_equal(log_weights)
    rows: list[tuple[Any, ...]] = []
    for phase in (*PHASES, "annealing"):
        one, two = (np.array([each[phase] for each in seconds[cores]]) for cores in (1, 2))
        ratio = median(one / two)
        rows.append((phase, median(one), median(two), ratio, float(np.max(one / two)), f"{50 * ratio:.0f}%", "", ""))
    busy = [median([each["work"] / (cores * each["recorded"]) for each in seconds[cores]]) for cores in (1, 2)]
    rows[-1] = (*rows[-1][:6], f"{busy[0]:.3f}, {busy[1]:.3f}", "yes" if ratio >= GOAL else "NO")
    print_table(
        f"One core against two by {by}, {MODEL}: seconds of `bread.check(n_temperatures=(64, 128))`",
        (
            "phase",
            "one core",
            "two cores",
            "ratio",
            "best ratio",
            "efficiency",
            "busy with chains: one, two",
            f"ratio >= {GOAL}",
        ),
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
