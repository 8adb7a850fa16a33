"""The report of `bread.compare`: each model's V, B, costs and tests, and paired contrasts between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.report.bounds import CI_BOUND, bounds_dataset
from bread.report.certificate import certificate_dataset
from bread.report.compat import make_container
from bread.report.direct_tests import direct_notes, direct_tests_dataset
from bread.report.model import observed_data_dataset, simulated_data_dataset, truth_dataset
from bread.report.provenance import library_attributes, provenance_attributes, stamp
from bread.report.runs import ran_temperatures
from bread.report.tests import alarm_dataset
from bread.report.types import Report
from bread.running.compare.compared import Entry
from bread.running.state.results import CheckResult
from bread.statistics.bounds.certificate import conditional_gaps
from bread.statistics.compare.contrasts import Contrast, Curves, axes_of, contrast

GROUP = "comparison"
CONTRASTS = "contrasts"
COSTS = ("steps", "gradients", "evaluations", "seconds")
_NAN = float("nan")


def compare_container(
    entries: Sequence[Entry],
    root: int,
    settings: Mapping[str, Any],
    seconds: float,
    *,
    level: float,
    is_interrupted: bool,
) -> Report:
    """Return the report.

    Parameters
    ----------
    entries : sequence of Entry
        In the order in which they were given; the first simulated.
    root : int
        Root entropy.
    settings : mapping
        Arguments that all share, as JSON can hold them.
    seconds : float
        Wall time.
    level : float
        Of all paired intervals together.
    is_interrupted : bool

    Returns
    -------
    InferenceData or DataTree
        With the groups ``comparison``, ``contrasts``, ``truth``, ``simulated_data`` and ``observed_data``; see
        `comparison_dataset` and `contrasts_dataset`.
    """
    first = entries[0].result
    attributes = {
        **library_attributes(first.info.identity),
        **stamp(root),
        "simulate_from": "prior",
        "model": entries[0].name,
        "settings": json.dumps(dict(settings) | {entry.name: entry.result.settings for entry in entries}, default=str),
        "level": float(level),
        "is_interrupted": int(is_interrupted),
        "seconds": float(seconds),
        **provenance_attributes(),
        "warnings": json.dumps([f"{entry.name}: {text}" for entry in entries for text in _warnings(entry.result)]),
        "notes": json.dumps([f"{entry.name}: {text}" for entry in entries for text in _notes(entry)]),
    }
    table = comparison_dataset(entries)
    groups = {
        GROUP: table,
        CONTRASTS: contrasts_dataset(table, level),
        "truth": truth_dataset(first),
        "simulated_data": simulated_data_dataset(first),
        "observed_data": observed_data_dataset(first),
    }
    return make_container({name: group for name, group in groups.items() if group is not None}, attributes)


def comparison_dataset(entries: Sequence[Entry]) -> xr.Dataset:
    """Return the group `comparison`: what each model or kernel gave.

    Returns
    -------
    Dataset
        By (model, n_temperatures): `error` (V), `error_ci`, `error_limit_exact`, `jeffreys` (B, nats), `jeffreys_ci`,
        `jeffreys_reliable`, and the cost of one chain, `steps`, `gradients`, `evaluations`, `seconds`. By data set as
        well: `error_by_simulation`, `gap_by_simulation` (nats), `log_evidence_lower`, `log_evidence_upper`,
        and by chain `forward_log_weight`, `reverse_log_weight` (nats). By model: p-values of the tests that something
        is broken, `direct_p_value`, `alarm_p_value`, `forms_p_value`, `rank_p_value`; `kernel`, `backend`, `path`;
        `same_by`, how it was seen that it is the first model ("" for the first). NaN at a T that a model has not run.
    """
    temperatures = np.array(sorted({int(n) for entry in entries for n in ran_temperatures(entry.result)}), np.int64)
    bounds = [_aligned(bounds_dataset(entry.result), temperatures) for entry in entries]
    errors = [_aligned(certificate_dataset(entry.result), temperatures) for entry in entries]
    by_t, by_simulation = ("model", "n_temperatures"), ("model", "n_temperatures", "simulation")

    def stacked(tables: Sequence[xr.Dataset], name: str) -> NDArray[Any]:
        return np.array([np.asarray(one[name].values, dtype=np.float64) for one in tables])

    forward, reverse = (
        np.array([entry.log_weights(way, temperatures) for entry in entries]) for way in ("forward", "reverse")
    )
    variables: dict[str, Any] = {
        "error": (by_t, stacked(errors, "error")),
        "error_ci": ((*by_t, "ci_bound"), stacked(errors, "error_ci"), {"level": 0.95, "sides": 1}),
        "error_limit_exact": (by_t, stacked(errors, "error_limit_exact")),
        "error_by_simulation": (by_simulation, stacked(errors, "error_by_simulation")),
        "jeffreys": (by_t, stacked(bounds, "jeffreys"), {"units": "nats"}),
        "jeffreys_ci": ((*by_t, "ci_bound"), stacked(bounds, "jeffreys_ci"), {"units": "nats", "level": 0.95}),
        "jeffreys_reliable": (by_t, np.nan_to_num(stacked(bounds, "jeffreys_reliable")).astype(bool)),
        "gap_by_simulation": (by_simulation, _gaps(forward, reverse), {"units": "nats"}),
        "forward_log_weight": ((*by_simulation, "chain"), forward, {"units": "nats"}),
        "reverse_log_weight": ((*by_simulation, "chain"), reverse, {"units": "nats"}),
    }
    for name in ("log_evidence_lower", "log_evidence_upper"):
        variables[name] = (by_simulation, stacked(bounds, name), {"units": "nats"})
    costs = [entry.costs(temperatures) for entry in entries]
    for name in COSTS:
        variables[name] = (by_t, np.array([one[name] for one in costs]))
    tests = [_p_values(entry.result) for entry in entries]
    variables |= {name: ("model", np.array([one[name] for one in tests])) for name in tests[0]}
    variables |= {
        "kernel": ("model", _text(entry.result.info.identity.kernel for entry in entries)),
        "backend": ("model", _text(entry.result.info.identity.backend for entry in entries)),
        "path": ("model", _text(entry.result.path.name for entry in entries)),
        "same_by": ("model", _text("" if entry.compared is None else entry.compared.by for entry in entries)),
    }
    coords = {
        "model": _text(entry.name for entry in entries),
        "n_temperatures": temperatures,
        "simulation": np.arange(forward.shape[2]),
        "chain": np.arange(forward.shape[3]),
        "ci_bound": CI_BOUND,
    }
    return xr.Dataset(variables, coords=coords)


def contrasts_dataset(table: xr.Dataset, level: float) -> xr.Dataset:
    """Return the group `contrasts`: every pair of models at equal steps, work and seconds.

    Parameters
    ----------
    table : Dataset
        The group `comparison`.
    level : float
        Of all intervals together; each has its share (Bonferroni).

    Returns
    -------
    Dataset
        By contrast: `first`, `second` (names), `axis` ("steps", "gradients", "evaluations", "seconds"), `cost` (of a
        chain, where they are compared), `n_temperatures` (at equal steps; 0 else), `jeffreys_ratio`, `error_ratio`
        (first over second), `error_difference`, each with `<name>_ci`; `jeffreys_pair`, `error_pair` (contrast,
        place); `decides` ("B", "V" or ""), `margin`, `better` (-1: the first, 1: the second, 0: cannot tell).
    """
    names = [str(name) for name in table["model"].values]
    curves = [
        Curves(
            table["gap_by_simulation"].values[i],
            table["error_by_simulation"].values[i],
            {name: table[name].values[i] for name in COSTS},
            table["jeffreys_reliable"].values[i].astype(bool),
        )
        for i in range(len(names))
    ]
    axes, pairs = axes_of(curves), list(combinations(range(len(names)), 2))
    share = 1.0 - (1.0 - level) / max(1, len(axes) * len(pairs))
    rows = [(i, j, axis) for i, j in pairs for axis in axes]
    found: list[Contrast] = [contrast(curves[i], curves[j], axis, share) for i, j, axis in rows]
    variables: dict[str, Any] = {
        "first": ("contrast", _text(names[i] for i, _, _ in rows)),
        "second": ("contrast", _text(names[j] for _, j, _ in rows)),
        "axis": ("contrast", _text(axis for *_, axis in rows)),
        "cost": ("contrast", np.array([one.cost for one in found], dtype=np.float64)),
        "n_temperatures": (
            "contrast",
            np.array([one.cost + 1 if row[2] == "steps" and one.cost == one.cost else 0 for row, one in zip(
                rows, found, strict=True)], dtype=np.int64),
        ),
        "jeffreys_pair": (("contrast", "place"), np.array([one.gaps for one in found]).reshape(-1, 2)),
        "error_pair": (("contrast", "place"), np.array([one.errors for one in found]).reshape(-1, 2)),
        "decides": ("contrast", _text(one.decides for one in found)),
        "margin": ("contrast", np.array([one.margin for one in found], dtype=np.float64)),
        "better": ("contrast", np.array([one.better for one in found], dtype=np.int64)),
    }  # fmt: skip
    intervals = {
        "jeffreys_ratio": [one.gap_ratio for one in found],
        "error_ratio": [one.error_ratio for one in found],
        "error_difference": [one.error_difference for one in found],
    }
    for name, values in intervals.items():
        variables[name] = ("contrast", np.array([one.estimate for one in values], dtype=np.float64))
        variables[f"{name}_ci"] = (("contrast", "ci_bound"), np.array([one[1:] for one in values]).reshape(-1, 2))
    return xr.Dataset(variables, coords={"ci_bound": CI_BOUND}, attrs={"level": float(level), "each": float(share)})


def _aligned(table: xr.Dataset | None, temperatures: NDArray[np.int64]) -> xr.Dataset:
    assert table is not None  # an entry has run
    return table.reindex(n_temperatures=temperatures)


def _gaps(forward: NDArray[np.float64], reverse: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return gaps (model, n_temperatures, simulation), NaN where a run is missing."""
    gaps = np.full(forward.shape[:3], _NAN)
    has_both = ~np.isnan(forward).any(axis=-1) & np.isfinite(reverse).all(axis=-1)
    if has_both.any():
        gaps[has_both] = conditional_gaps(forward[has_both], reverse[has_both])
    return gaps


def _p_values(result: CheckResult) -> dict[str, float]:
    alarm, direct = alarm_dataset(result), direct_tests_dataset(result.direct_tests)
    return {
        "direct_p_value": _NAN if direct is None else float(direct["p_value"]),
        "alarm_p_value": _NAN if alarm is None else float(alarm["p_value"]),
        "forms_p_value": _NAN if alarm is None else float(alarm["forms_p_value"]),
        "rank_p_value": _NAN if alarm is None else float(alarm["weighted_rank_p_value_combined"]),
    }


def _warnings(result: CheckResult) -> list[str]:
    unfitted = result.unfitted_message()
    return [*result.warnings, *([unfitted] if unfitted else [])]


def _notes(entry: Entry) -> list[str]:
    said = [*entry.result.info.identity.notes, *direct_notes(entry.result.direct_tests)]
    if entry.compared is not None and entry.compared.note:
        said.append(f"Densities were not compared with those of the first model: {entry.compared.note}.")
    return said


def _text(values: Any) -> NDArray[np.str_]:
    return np.array(list(values), dtype=np.str_)
