"""A digest of the real data, by which two reports can be seen to be about the same ones."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.report.compat import read_group

_GROUPS = ("observed_data", "constant_data")


def data_digest(report: Any) -> str:
    """Return the SHA-256 of outcomes and covariates; "" where the report has none.

    Variables by group and name, each with its shape and its values: numbers as float64 in little-endian order (whole
    ones as int64), the rest as text. A report that was written and read again has the same digest.
    """
    digest, n_variables = hashlib.sha256(), 0
    for group in _GROUPS:
        data = read_group(report, group)
        for name in sorted(map(str, data.data_vars)) if data is not None else ():
            values = np.asarray(data[name].values)  # type: ignore[index]
            kind, content = _content(values)
            digest.update(repr((group, name, values.shape, kind, len(content))).encode(errors="replace"))
            digest.update(content)
            n_variables += 1
    return digest.hexdigest() if n_variables else ""


def _content(values: NDArray[Any]) -> tuple[str, bytes]:
    """Return the kind of the values, and the values as bytes that no file format changes."""
    if values.dtype.kind in "bi" or (values.dtype.kind == "u" and values.dtype.itemsize < 8):
        return "whole", np.ascontiguousarray(values, dtype="<i8").tobytes()
    if values.dtype.kind == "f":
        plain = np.ascontiguousarray(values, dtype="<f8") + 0.0  # no negative zero
        plain[np.isnan(plain)] = np.nan
        return "real", plain.tobytes()
    items = [item.decode(errors="replace") if isinstance(item, bytes) else str(item) for item in values.ravel()]
    return "text", repr(items).encode(errors="replace")
