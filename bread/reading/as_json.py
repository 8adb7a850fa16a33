"""A report as one JSON object, for pipelines: verdict, the numbers behind it, and how the check was made."""

from __future__ import annotations

import json
import math
from typing import Any

from bread.reading.command_line import as_options, held_parameters
from bread.reading.evidence.evidence import Evidence
from bread.reading.other_verbs.debug import debug_json, is_debug
from bread.reading.other_verbs.other_reports import refuse_other_reports
from bread.reading.sentences.prior_integrals import smallest_p_value
from bread.reading.summary import summary
from bread.reading.verdict import verdict_of
from bread.report.compat import read_attributes, read_group

_OF_INTEGRALS = ("log_integral", "standard_error", "p_value", "varies_p_value", "draws_p_value")


def as_json(report: Any) -> dict[str, Any]:
    """Return verdict, numbers and circumstances of a report, as what JSON can hold.

    Parameters
    ----------
    report : InferenceData or DataTree

    Returns
    -------
    dict
        ``status``, ``verdict`` (its lines), ``details``, ``n_temperatures``, ``n_simulations``, ``bound`` ("V" or "B",
        which decides); ``V`` (``error``, ``error_limit``, ``error_limit_exact``, ``max_error``) and ``B``
        (``jeffreys``, ``lower``, ``upper``, ``is_reliable``, ``target``; nats), None where nothing was finished;
        ``p_values`` by test; ``fit``, ``comparison``, ``agreement``, ``n_missed_modes`` as the attributes of
        `bread.verdict`;
        ``prior_integrals``, a row for each prior that is not known to be normalised; ``path``, ``simulate_from``,
        ``held``, ``observed``, ``kernel``, ``model``, ``seed``, ``versions``, ``notes``, ``warnings``;
        ``temperatures``, the rows of `bread.summary` of the kind "bounds". A number that was not computed is None; an
        infinite one, which JSON has no number for, is the text "Infinity" or "-Infinity". Of a report of `bread.debug`:
        ``status``, ``verdict``, ``details``, ``p_values``, ``level``, ``is_reversible``, ``model``, ``seed``,
        ``diagnosis``, and ``tests``, the rows of `bread.summary`.
    """
    if is_debug(report):
        tests: dict[str, Any] = _plain(debug_json(report))
        return tests
    refuse_other_reports(report, "report", "bread.check or bread.debug")
    attributes, frame = read_attributes(report), summary(report, kind="bounds")
    is_stan = str(attributes.get("inference_library", "")) == "stan"  # spelt as on the command line
    found = verdict_of(report, as_options if is_stan else str)
    frame = frame if "n_simulations" in frame else frame.iloc[:0]  # nothing was annealed
    rows = [{"n_temperatures": n, **row} for n, row in zip(frame.index, frame.to_dict("records"), strict=True)]
    row = next((row for row in rows if row["n_temperatures"] == found.n_temperatures), None)
    agreement, observed = read_group(report, "agreement"), read_group(report, "observed_data")
    integrals = read_group(report, "prior_integrals")
    error = ("error", "error_limit", "error_limit_exact")
    numbers = {
        "status": found.status,
        "verdict": str(found),
        "details": found.details,
        "bound": found.bound,
        "n_temperatures": found.n_temperatures,
        "n_simulations": found.n_simulations,
        "V": row and {**{name: row[name] for name in error}, "max_error": attributes.get("max_error")},
        "B": row and {
            **{name: row[name] for name in ("jeffreys", "lower", "upper")},
            "is_reliable": row["reliable"],
            "target": attributes.get("target"),
        },
        "p_values": {
            "consistency": found.consistency_p_value, "fit": found.fit_p_value, "alarm": found.alarm_p_value,
            "forms": found.forms_p_value, "ranks": found.rank_p_value, "direct": found.direct_p_value,
            "agreement": None if agreement is None else float(agreement["p_value_combined"]),
            "prior_integrals": smallest_p_value(integrals),
        },
        "fit": found.fit,
        "comparison": found.comparison or None,
        "agreement": found.agreement,
        "n_missed_modes": found.n_missed_modes,
        "prior_integrals": [] if integrals is None else [
            {"variable": name, **{column: integrals[column].values[i] for column in _OF_INTEGRALS}}
            for i, name in enumerate(integrals["variable"].values)
        ],
        "path": attributes.get("path"),
        "simulate_from": attributes.get("simulate_from"),
        "held": held_parameters(attributes),
        "observed": [] if observed is None else list(map(str, observed.data_vars)),
        "kernel": attributes.get("kernel"),
        "model": attributes.get("model"),
        "seed": attributes.get("seed"),
        "versions": {"bread": attributes.get("bread_version"), **json.loads(str(attributes.get("versions", "{}")))},
        "notes": json.loads(str(attributes.get("notes", "[]"))),
        "warnings": json.loads(str(attributes.get("warnings", "[]"))),
        "temperatures": rows,
    }  # fmt: skip
    plain: dict[str, Any] = _plain(numbers)
    return plain


def evidence_json(found: Evidence) -> dict[str, Any]:
    """Return what `bread.evidence` found, as what JSON can hold.

    Parameters
    ----------
    found : Evidence

    Returns
    -------
    dict
        Its numbers by the names of its attributes, ``sentence``, and ``estimators``, the rows of its table; NaN and
        infinity as in `as_json`.
    """
    names = (
        "log_evidence", "lower", "upper", "kind", "reasons", "level", "n_chains", "n_effective", "tail_index",
        "allowance", "n_temperatures", "path", "simulate_from",
    )  # fmt: skip
    rows = [
        {"estimator": name, **row} for name, row in zip(found.table.index, found.table.to_dict("records"), strict=True)
    ]
    numbers = {name: getattr(found, name) for name in names}
    plain: dict[str, Any] = _plain({"sentence": found.sentence(), **numbers, "estimators": rows})
    return plain


def _plain(value: Any) -> Any:
    """Return a value of Python's own types; see `as_json` for NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if not isinstance(value, float):  # a scalar of NumPy or pandas, whose "not available" has no item
        return _plain(value.item()) if hasattr(value, "item") else None
    if math.isfinite(value):
        return float(value)
    return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
