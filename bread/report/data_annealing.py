"""The report of `bread.lab.data_annealing`: one group, with estimates by data set and run, and limits by data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import Model
from bread.report.types import Report
from bread.report.verb import verb_container
from bread.running.particles.particles import Estimates
from bread.running.state.exactness_results import DirectTests
from bread.statistics.bounds.intervals import mean_interval
from bread.statistics.evidence.sandwich import real_limit, sandwich

GROUP = "data_annealing"


@dataclass(frozen=True)
class DataAnnealingRun:
    """What `bread.lab.data_annealing` has computed: runs on the real data, and a list by simulation of each kind.

    Attributes
    ----------
    real : Estimates
    forward, reverse, harmonic : list of Estimates
        One a simulated data set; ``harmonic`` is empty unless it was asked for.
    direct : DirectTests
        Tests of exact draws: all else rests on them.
    """

    real: Estimates
    direct: DirectTests = field(default_factory=DirectTests)
    forward: list[Estimates] = field(default_factory=list)
    reverse: list[Estimates] = field(default_factory=list)
    harmonic: list[Estimates] = field(default_factory=list)


def data_annealing_container(
    model: Model, run: DataAnnealingRun, ends: Sequence[int], root: int, settings: Mapping[str, Any], seconds: float
) -> Report:
    """Return the report.

    Parameters
    ----------
    model : Model
    run : DataAnnealingRun
    ends : sequence of int
        Observations up to the end of each block.
    root : int
        Root entropy.
    settings : mapping
        Arguments, as JSON can hold them.
    seconds : float
        Wall time.

    Returns
    -------
    InferenceData or DataTree
        With the groups ``data_annealing``, see `data_annealing_dataset`, and ``direct_tests``, see
        `bread.report.direct_tests.direct_tests_dataset`.
    """
    dataset = data_annealing_dataset(run, ends, settings)
    return verb_container(GROUP, dataset, model, root, settings, seconds, run.direct)


def data_annealing_dataset(run: DataAnnealingRun, ends: Sequence[int], settings: Mapping[str, Any]) -> xr.Dataset:
    """Return estimates (simulation, run), limits and gaps (simulation), and those of the real data (run).

    Returns
    -------
    Dataset
        `forward`, `reverse`, `harmonic`: log evidence in nats, NaN where a run failed; `*_gradients`, `*_evaluations`:
        their cost. `log_evidence`, `lower`, `upper`, `gap`: see `bread.statistics.evidence.sandwich.Sandwich`.
        `real_forward`. `observations` by `block`: how many are known after it. Attributes: `level`, `max_gap`,
        `particles`, `real_log_evidence`, `real_lower`, `mean_gap` with `mean_gap_lower` and `mean_gap_upper`,
        `n_failed`.
    """
    level, n_runs = float(settings["level"]), len(run.real.log_evidence)
    columns: dict[str, Any] = {
        "real_forward": ("run", run.real.log_evidence),
        "real_forward_gradients": ("run", run.real.n_gradients),
        "real_forward_evaluations": ("run", run.real.n_evaluations),
        "observations": ("block", np.array(ends, dtype=np.int64)),
    }
    for name in ("forward", "reverse", "harmonic"):
        found: list[Estimates] = getattr(run, name)
        if found or name != "harmonic":
            columns[name] = (("simulation", "run"), _stacked([one.log_evidence for one in found], n_runs))
            columns[f"{name}_gradients"] = (("simulation", "run"), _stacked([one.n_gradients for one in found], n_runs))
            columns[f"{name}_evaluations"] = (
                ("simulation", "run"), _stacked([one.n_evaluations for one in found], n_runs),
            )  # fmt: skip
    both = [sandwich(f.log_evidence, r.log_evidence, level) for f, r in zip(run.forward, run.reverse, strict=True)]
    for name in ("log_evidence", "lower", "upper", "gap"):
        columns[name] = ("simulation", np.array([getattr(one, name) for one in both], dtype=np.float64))
    every = [run.real, *run.forward, *run.reverse, *run.harmonic]
    gaps = columns["gap"][1]
    gap = mean_interval(gaps, level) if len(gaps) and not np.isnan(gaps).any() else None
    nan = float("nan")
    real = real_limit(run.real.log_evidence, level)
    return xr.Dataset(
        columns,
        coords={
            "simulation": np.arange(len(both)), "run": np.arange(n_runs), "block": np.arange(1, len(ends) + 1),
        },
        attrs={
            "level": level,
            "max_gap": float(settings["max_gap"]),
            "particles": int(settings["particles"]),
            "real_log_evidence": real.value,
            "real_lower": real.lower,
            "mean_gap": nan if gap is None else float(gap.estimate),
            "mean_gap_lower": nan if gap is None else float(gap.lower),
            "mean_gap_upper": nan if gap is None else float(gap.upper),
            "n_failed": int(sum(np.isnan(one.log_evidence).sum() for one in every)),
        },
    )  # fmt: skip


def _stacked(rows: Sequence[NDArray[Any]], n_runs: int) -> NDArray[Any]:
    return np.array(rows).reshape(len(rows), n_runs)
