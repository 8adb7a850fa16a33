"""What a report of `bread.debug` says: verdict, table, and one plot for each test."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.errors import KNOWN_DEFECT
from bread.reading.comparison_words import in_words
from bread.reading.words import p_words
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


def debug_text(report: Any) -> tuple[str, str, float]:
    """Return status, sentences and the smallest p-value of a report of `bread.debug`."""
    found = require_group(report, GROUP)
    p_value = float(found["p_value"])
    if bool(found["alarm"]):
        return "bug", " ".join([*_bug(found), *_known(report)]), p_value
    untested = _untested(found)
    if untested:
        return "inconclusive", " ".join(["Inconclusive.", untested, *_known(report)]), p_value
    return "no bug found", " ".join(_no_bug(found, read_attributes(report))), p_value


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


def _bug(found: xr.Dataset) -> list[str]:
    failed = np.flatnonzero(found["fails"].values)
    counted = [i for i in failed if str(found["about"].values[i]) != "reversibility"]
    first = min(counted or failed, key=lambda i: float(found["test_p_value"].values[i]))
    names = list(dict.fromkeys(str(found["name"].values[i]) for i in failed))
    of = _of(found, int(first))
    which = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    fail = "fails" if len(failed) == 1 else "fail"
    sentences = [
        f"Bug. Something is wrong: {_counted(len(failed), 'test')} of {found.sizes['test']} {fail} ({which}).",
        f"Most plainly {names_of(found, int(first))}, by {of} ({_p(found, int(first))}).",
    ]
    culprits = json.loads(found.attrs["diagnosis"])
    if culprits:
        sentences.append("Likely: " + " Or: ".join(culprits[:NAMED]))
    return sentences


def _p(found: xr.Dataset, index: int) -> str:
    if not bool(found["is_random"].values[index]):
        return "nothing is left to chance there"
    return f"{p_words(float(found['test_p_value'].values[index]))} after correction for all that was tested"


def names_of(found: xr.Dataset, index: int) -> str:
    """Return a test with its subject, as a phrase."""
    return f"'{found['name'].values[index]!s}' of {found['subject'].values[index]!s}"


def _of(found: xr.Dataset, index: int) -> str:
    rows = np.flatnonzero(found["of_test"].values == index)
    p_values = np.nan_to_num(found["comparison_p_value"].values[rows], nan=2.0)
    worst = rows[int(np.argmin(p_values))]
    return in_words(str(found["function"].values[worst]), str(found["quantity"].values[worst]))


def _no_bug(found: xr.Dataset, attributes: Any) -> list[str]:
    n_tests = int(found.sizes["test"])
    sentences = [f"No bug found. {_counted(n_tests, 'test')} of {_subjects(found)} passed."]
    seen = []
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
        sentences.append(
            "In the coordinate where it sees least it would, with probability 0.95, have seen "
            f"{', and '.join(seen)}; smaller defects may be there.{_by_subject(found)}"
        )
    if not bool(found["is_reversible"]):
        sentences.append(
            "The kernel is not reversible, which a right one need not be: reversed chains need its steps turned round."
        )
    left_out = json.loads(found.attrs["left_out"])
    if left_out:
        sentences.append(f"Not tested: {_counted(len(left_out), 'part')}, for reasons that bread.summary lists.")
    sentences += json.loads(attributes.get("notes", "[]"))
    return sentences


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


def _counted(n: int, word: str) -> str:
    return f"{n} {word}" + ("" if n == 1 else "s")


def debug_json(report: Any) -> dict[str, Any]:
    """Return what a pipeline wants of a report of `bread.debug`: status, sentences, and a row for each test."""
    status, text, p_value = debug_text(report)
    attributes, found = read_attributes(report), require_group(report, GROUP)
    return {
        "status": status,
        "verdict": text,
        "p_values": {"debug": p_value},
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
