"""Reports of verbs that have one group of their own: the root attributes, and the tests of exact draws beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from bread.backends.base import Model
from bread.report.compat import make_container
from bread.report.direct_tests import direct_notes, direct_tests_dataset
from bread.report.provenance import provenance_attributes, stamp
from bread.report.types import Report
from bread.running.state.exactness_results import DirectTests


def verb_container(
    group: str,
    dataset: xr.Dataset,
    model: Model,
    root: int,
    settings: Mapping[str, Any],
    seconds: float,
    direct: DirectTests | None = None,
    more: Mapping[str, Any] | None = None,
) -> Report:
    """Return the report.

    Parameters
    ----------
    group : str
        Name of the verb's own group.
    dataset : xarray.Dataset
        What is in it.
    model : Model
    root : int
        Root entropy.
    settings : mapping
        Arguments, as JSON can hold them.
    seconds : float
        Wall time.
    direct : DirectTests, optional
        Tests of exact draws, for the group ``direct_tests``; see `bread.report.direct_tests.direct_tests_dataset`.
    more : mapping, optional
        Other attributes.

    Returns
    -------
    InferenceData or DataTree
    """
    identity = model.info.identity
    notes = [*identity.notes, *(() if direct is None else direct_notes(direct))]
    attributes = {
        **stamp(root),
        "model": identity.name,
        "backend": identity.backend,
        "versions": json.dumps(identity.versions),
        "settings": json.dumps(dict(settings)),
        "seconds": float(seconds),
        **provenance_attributes(),
        "warnings": "[]",
        "notes": json.dumps(notes),
        **(more or {}),
    }
    tested = direct_tests_dataset(direct)
    return make_container({group: dataset, **({} if tested is None else {"direct_tests": tested})}, attributes)
