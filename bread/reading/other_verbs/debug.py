"""What a report of `bread.debug` says: verdict, table, and one plot for each test."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.errors import KNOWN_DEFECT
from bread.reading.other_verbs.comparison_words import in_words
from bread.reading.sentences.lines import Answer, counted, fitted
from bread.reading.sentences.words import NOT_EXCLUDED, p_words
from bread.report.compat import read_attributes, read_group, require_group
from bread.report.debug import GROUP

KERNEL = "kernel at beta"  # subjects of bread.debug that stand for the whole kernel
NAMED = 3  # culprits that a verdict names
MUCH = 2.0  # times what is seen on one subject: less is not worth a sentence


def is_debug(report: Any) -> bool:
    """Return whether a report is one of `bread.debug`."""
    return read_group(report, GROUP) is not None


def is_drawn(found: xr.Dataset, index: int) -> bool:
    """Return whether a test has comparisons to draw: all of chance, and of those without it those that failed."""
    tested = np.isfinite(found["comparison_p_value"].values[found["of_test"].values == index]).any()
    return bool(tested and (found["is_random"].values[index] or found["fails"].values[index]))


def debug_answer(report: Any) -> Answer:
    """Return what a report of `bread.debug` says; the smallest p-value is among its numbers."""
    found = require_group(report, GROUP)
    p_value, known = float(found["p_value"]), _known(report)
    if bool(found["alarm"]):
        answer = _bug(found)
    elif untested := _untested(found):
        reason = untested.split(". ")[0].rstrip(".")
        rows = (("Not tested", f"{reason[:1].lower()}{reason[1:]}"),)
        answer = Answer("inconclusive", "not all could be tested", rows, details=f"Inconclusive. {untested}")
    else:
        answer = _no_bug(found, read_attributes(report))
    return replace(
        answer,
        warnings=(*answer.warnings, *known),
        details=" ".join([answer.details, *known]),
        numbers={"direct_p_value": p_value},
    )


def _known(report: Any) -> list[str]:
    """Return the notes on defects of installed packages, which every verdict names."""
    notes: list[str] = json.loads(read_attributes(report).get("notes", "[]"))
    return [note for note in notes if note.startswith(KNOWN_DEFECT)]


def _untested(found: xr.Dataset) -> str:
    """Return what was to be tested and could not be at all; "" where there is nothing."""
    reasons = [f"the {test} could not be tested: {why}" for _, test, why in json.loads(found.attrs["left_out"])
               if test.startswith(KERNEL)]  # fmt: skip
    if not np.isfinite(found["test_p_value"].values).any():
        reasons = reasons or ["nothing could be tested; bread.summary says why"]
    return "".join(f"{reason[0].upper()}{reason[1:].rstrip('.')}. " for reason in reasons).strip()


def _bug(found: xr.Dataset) -> Answer:
    failed = np.flatnonzero(found["fails"].values)
    counting = [i for i in failed if str(found["about"].values[i]) != "reversibility"]
    first = int(min(counting or failed, key=lambda i: float(found["test_p_value"].values[i])))
    names = list(dict.fromkeys(str(found["name"].values[i]) for i in failed))
    which = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    fail = f"{counted(len(failed), 'test')} of {found.sizes['test']} {'fails' if len(failed) == 1 else 'fail'}"
    culprits = json.loads(found.attrs["diagnosis"])
    of, named = _of(found, first), names_of(found, first)
    details = [
        f"Bug. Something is wrong: {fail} ({which}).",
        f"Most plainly {named}, by {of} ({_p(found, first)} after correction for all that was tested)."
        if bool(found["is_random"].values[first])
        else f"Most plainly {named}, by {of} ({_p(found, first)}).",
        f"Likely: {' Or: '.join(culprits[:NAMED])}" if culprits else "",
    ]
    rows = (
        ("Tests", fitted(f"{which}; most plainly {named}", which)),
        ("", fitted(f"by {of} ({_p(found, first)})", of)),
        ("Likely", culprits[0].rstrip(".") if culprits else ""),
        ("Or", culprits[1].rstrip(".") if len(culprits) > 1 else ""),
    )
    advice = "mend that, and run bread.debug again: until then no draw of it means anything"
    return Answer("bug", fail, rows, advice=advice, details=" ".join(one for one in details if one))


def _p(found: xr.Dataset, index: int) -> str:
    if not bool(found["is_random"].values[index]):
        return "nothing is left to chance there"
    return p_words(float(found["test_p_value"].values[index]))


def names_of(found: xr.Dataset, index: int) -> str:
    """Return a test with its subject, as a phrase."""
    return f"'{found['name'].values[index]!s}' of {found['subject'].values[index]!s}"


def _of(found: xr.Dataset, index: int) -> str:
    rows = np.flatnonzero(found["of_test"].values == index)
    p_values = np.nan_to_num(found["comparison_p_value"].values[rows], nan=2.0)
    worst = rows[int(np.argmin(p_values))]
    return in_words(str(found["function"].values[worst]), str(found["quantity"].values[worst]))


def _no_bug(found: xr.Dataset, attributes: Any) -> Answer:
    passed = f"{counted(int(found.sizes['test']), 'test')} of {_subjects(found)} passed"
    details, seen = [f"No bug found. {passed}."], []
    for what, kind in (("chains", "kernel"), ("exact draws", "draws")):
        shift, scale = float(found.attrs[f"{kind}_shift"]), float(found.attrs[f"{kind}_scale"])
        parts = []
        if math.isfinite(shift):
            parts.append(f"shifted by {shift:.2g} standard deviations")
        if math.isfinite(scale):
            parts.append(f"of a scale wrong by {100 * scale:.2g}%")
        if parts:
            seen.append(f"{what} {' or '.join(parts)}")
    if seen:
        details.append(
            "In the coordinate where it sees least it would, with probability 0.95, have seen "
            f"{', and '.join(seen)}; smaller defects may be there.{_by_subject(found)}"
        )
    turned = "reversed chains need its steps turned round"
    is_reversible = bool(found["is_reversible"])
    if not is_reversible:
        details.append(f"The kernel is not reversible, which a right one need not be: {turned}.")
    left_out = len(json.loads(found.attrs["left_out"]))
    if left_out:
        details.append(f"Not tested: {counted(left_out, 'part')}, for reasons that bread.summary lists.")
    details += [one for one in json.loads(attributes.get("notes", "[]")) if not one.startswith(KNOWN_DEFECT)]
    short = [one.replace("standard deviations", "sd") for one in seen]
    untested = f"; {counted(left_out, 'part')} could not be tested (bread.summary)" if left_out else ""
    rows = (
        ("Tests", passed),
        *(("Would be seen" if not i else "", one) for i, one in enumerate(short)),
        (NOT_EXCLUDED, f"smaller defects{untested}"),
    )
    warnings = () if is_reversible else (f"the kernel is not reversible, which a right one need not be: {turned}",)
    return Answer("no bug found", "", rows, warnings, details=" ".join(details))


def _by_subject(found: xr.Dataset) -> str:
    """Return between which subjects the shifts lie that chains would have shown; "" where all see about the same."""
    if "seen_kernel_shift" not in found:  # a report of an earlier version
        return ""
    shifts = found["seen_kernel_shift"].dropna("of_subject")
    if shifts.sizes["of_subject"] < 2:
        return ""
    shifts = shifts.sortby(shifts)
    if float(shifts[-1]) < MUCH * float(shifts[0]):
        return ""
    least, most = shifts["of_subject"].values[[0, -1]]
    return (
        f" It differs by what was tested: chains shifted by {float(shifts[0]):.2g} standard deviations would have been "
        f"seen on {least}, by {float(shifts[-1]):.2g} on {most}."
    )


def _subjects(found: xr.Dataset) -> str:
    names = list(dict.fromkeys(str(name) for name in found["subject"].values))
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def debug_json(report: Any) -> dict[str, Any]:
    """Return what a pipeline wants of a report of `bread.debug`: status, sentences, and a row for each test."""
    answer = debug_answer(report)
    attributes, found = read_attributes(report), require_group(report, GROUP)
    return {
        "status": answer.status,
        "verdict": "\n".join(answer.lines()),
        "details": answer.details,
        "p_values": {"debug": answer.numbers["direct_p_value"]},
        "level": float(found.attrs["level"]),
        "is_reversible": bool(found["is_reversible"]),
        "model": attributes.get("model"),
        "seed": attributes.get("seed"),
        "diagnosis": json.loads(found.attrs["diagnosis"]),
        "tests": debug_summary(report).to_dict("records"),
    }


def debug_summary(report: Any) -> pd.DataFrame:
    """Return a table of the tests, worst first; what was left out stands at its end with the reason."""
    found = require_group(report, GROUP)
    order = np.argsort(np.nan_to_num(found["test_p_value"].values, nan=2.0), kind="stable")
    rows = [
        {
            "subject": str(found["subject"].values[i]),
            "test": str(found["name"].values[i]),
            "p_value": float(found["test_p_value"].values[i]),
            "fails": bool(found["fails"].values[i]),
            "worst": _of(found, int(i)) if np.isfinite(found["test_p_value"].values[i]) else "",
            "n": int(found["n"].values[i]),
            "left_out": "",
        }
        for i in order
    ]
    rows += [
        {"subject": subject, "test": test, "p_value": math.nan, "fails": False, "worst": "", "n": 0, "left_out": why}
        for subject, test, why in json.loads(found.attrs["left_out"])
    ]
    columns = ["subject", "test", "p_value", "fails", "worst", "n", "left_out"]
    return pd.DataFrame(rows, columns=columns)
