"""Write a report, or read one that another Python wrote: python exchange_reports.py {write,read} FILE.

Beside the report lies what its writer read from it (FILE.json); the reader must read the same words and numbers.
"""

from __future__ import annotations

import json
import math
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import bread

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `tests` of this repository, not an installed one
from tests.models.reference import NormalMean

SETTINGS: dict[str, Any] = {
    "simulations": 10, "n_temperatures": [4, 32], "draws": 100, "cores": 1, "random_seed": 1, "progressbar": False
}  # fmt: skip


def read(report: Any) -> dict[str, Any]:
    """Return what a user reads from a report; NaN as None."""
    table = bread.summary(report, kind="bounds")
    numbers = {
        name: [None if math.isnan(value) else float(value) for value in table[name].to_numpy(float)]
        for name in table.columns
        if table[name].dtype.kind in "fiu"
    }
    return {
        "verdict": str(bread.verdict(report)),
        "status": bread.verdict(report).status,
        "index": [int(label) for label in table.index],
        "numbers": numbers,
    }


def main(what: str, path: Path) -> None:
    """Write or read."""
    here = f"Python {platform.python_version()}, ArviZ {version('arviz')}, xarray {version('xarray')}"
    beside = path.with_suffix(".json")
    if what == "write":
        report = bread.check(NormalMean(np.array([0.4, 1.9, 1.1])), **SETTINGS)
        report.to_netcdf(str(path))
        beside.write_text(json.dumps({"by": here, **read(report)}), encoding="utf-8")
        print(f"written by {here}")
        return
    expected = json.loads(beside.read_text(encoding="utf-8"))
    by = expected.pop("by")
    found = json.loads(json.dumps(read(path)))
    if found != expected:
        raise SystemExit(f"Written by {by}, and read otherwise by {here}:\n{expected}\n{found}")
    print(f"written by {by}, read alike by {here}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
