"""The report of `bread.debug`: one group, `debug`, with every test and every comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bread.backends.info import Identity
from bread.debugging.results import BatteryResult, Detectable
from bread.report.compat import make_container
from bread.report.provenance import provenance_attributes, stamp
from bread.report.types import Report

GROUP = "debug"
JOINT = "joint test of Geweke"  # the test that has P-P plots


def debug_container(
    result: BatteryResult,
    name: str,
    root: int,
    settings: Mapping[str, Any],
    seconds: float,
    identity: Identity | None = None,
) -> Report:
    """Return the report.

    Parameters
    ----------
    result : BatteryResult
    name : str
        Of the model, or of the targets.
    root : int
        Root entropy.
    settings : mapping
        Arguments, as JSON can hold them.
    seconds : float
        Wall time.
    identity : Identity, optional
        Of the model, with its kernel and the versions of what ran it; None for targets without one.

    Returns
    -------
    InferenceData or DataTree
        With the group ``debug``; see `debug_dataset`.
    """
    attributes = {
        **stamp(root),
        "model": name,
        "settings": json.dumps(dict(settings)),
        "seconds": float(seconds),
        **({} if identity is None else {"kernel": identity.kernel, "versions": json.dumps(identity.versions)}),
        **provenance_attributes(),
        "warnings": "[]",
        "notes": json.dumps(list(result.notes)),
    }
    return make_container({GROUP: debug_dataset(result)}, attributes)


def debug_dataset(result: BatteryResult) -> xr.Dataset:
    """Return the tests (test) and their comparisons (comparison).

    Returns
    -------
    Dataset
        `alarm` (), 1 if a test failed of which a right subject passes all; `p_value` (), the smallest of them;
        `is_reversible` (). By test: `subject`, `name`, `about`, `checks`, `law`, `test_p_value` (adjusted for all that
        was tested, so that one at most `level` fails), `fails`, `is_random` (0: nothing is left to chance), `n`
        (independent draws), `rounds`, `seconds`, `effect_unit`, `note`. By comparison: `of_test` (its number),
        `quantity`, `function`, `comparison_p_value` (not adjusted) and `effect`. Attributes: `level`, `diagnosis` and
        `left_out` (JSON), `spent`, `budget`, and what would have been seen with probability 0.95, where least is seen
        (`kernel_shift`, `kernel_scale`, `draws_shift`, `draws_scale`). By what was tested (`of_subject`, its name):
        `seen_kernel_shift`, ..., the same of each; NaN where it is not known. Of the joint test, where it was made, P-P
        plots of functions of parameters and data (pp_function: `pp_quantity`, `pp_name`), smallest p-values first, at
        19 thresholds (pp_point): `pp_before`, `pp_after`, the shares of draws at or below before and after kernel and
        simulator took turns, and `pp_error`, the standard error of their difference.
    """
    tests, by = result.tests, result.detectable_by

    def text(values: list[str]) -> Any:
        return np.array(values, dtype=np.str_)

    rows = [(i, label, p, size) for i, one in enumerate(tests) for label, p, size in zip(
        one.labels, one.p_values, one.effect, strict=True)]  # fmt: skip
    left_out = [[subject, test, why] for (subject, test), why in result.left_out.items()]
    return xr.Dataset(
        {
            "alarm": ((), np.int64(result.alarm)),
            "p_value": ((), np.float64(result.p_value)),
            "is_reversible": ((), np.int64(result.is_reversible)),
            "subject": ("test", text([one.subject for one in tests])),
            "name": ("test", text([one.name for one in tests])),
            "about": ("test", text([one.test.about for one in tests])),
            "checks": ("test", text([one.test.checks for one in tests])),
            "law": ("test", text([one.test.law for one in tests])),
            "effect_unit": ("test", text([one.test.effect_unit for one in tests])),
            "note": ("test", text([one.finding.note for one in tests])),
            "test_p_value": ("test", np.array([one.p_value for one in tests], dtype=np.float64)),
            "fails": ("test", np.array([one.fails for one in tests], dtype=np.int64)),
            "is_random": ("test", np.array([one.test.is_random for one in tests], dtype=np.int64)),
            "n": ("test", np.array([one.n for one in tests], dtype=np.int64)),
            "rounds": ("test", np.array([one.rounds for one in tests], dtype=np.int64)),
            "seconds": ("test", np.array([one.seconds for one in tests], dtype=np.float64)),
            "of_test": ("comparison", np.array([row[0] for row in rows], dtype=np.int64)),
            "quantity": ("comparison", text([row[1].quantity for row in rows])),
            "function": ("comparison", text([row[1].function for row in rows])),
            "comparison_p_value": ("comparison", np.array([row[2] for row in rows], dtype=np.float64)),
            "effect": ("comparison", np.array([row[3] for row in rows], dtype=np.float64)),
            **{
                f"seen_{name}": ("of_subject", np.array([getattr(one, name) for one in by.values()], dtype=np.float64))
                for name in Detectable._fields
            },
            **_curves(result),
        },
        coords={"of_subject": text(list(by))},
        attrs={
            "level": float(result.level),
            "diagnosis": json.dumps(list(result.diagnosis)),
            "left_out": json.dumps(left_out),
            "spent": int(result.spent),
            "budget": int(result.budget),
            **{name: float(value) for name, value in result.detectable._asdict().items()},
        },
    )


def _curves(result: BatteryResult) -> dict[str, Any]:
    """Return the P-P plots of the test that has some; single precision is more than a plot shows."""
    for one in result.tests:
        curves = one.finding.curves
        if curves is not None and curves.labels:
            return {
                "pp_quantity": ("pp_function", np.array([label.quantity for label in curves.labels], dtype=np.str_)),
                "pp_name": ("pp_function", np.array([label.function for label in curves.labels], dtype=np.str_)),
                **{
                    f"pp_{name}": (("pp_function", "pp_point"), values.astype(np.float32))
                    for name, values in curves.plot._asdict().items()
                },
            }
    return {}
