"""What a report of `bread.lab.unbiased` says: the first iteration at which plain MCMC is near, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.reading.sentences.lines import Answer
from bread.reading.sentences.words import NOT_EXCLUDED
from bread.report.compat import read_group, require_group
from bread.report.unbiased import GROUP

_ROWS = 12
_CHAINS, _MEETINGS = "Chains", "Meetings"
_DIGITS = 3
ABOUT = (
    "This is about bread's own kernel from that start, on the real data, not about draws of another sampler; a mode "
    "that no start leads to is not seen."
)


def is_unbiased(report: Any) -> bool:
    """Return whether a report is one of `bread.lab.unbiased`."""
    return read_group(report, GROUP) is not None


def unbiased_answer(report: Any) -> Answer:
    """Return status and sentences: "bounded", or "inconclusive" with the reason."""
    found = require_group(report, GROUP)
    told = found.attrs
    start = "the prior" if told["start"] == "prior" else f"Normal(0, {told['start']}^2)"
    if told["n_unmet"]:
        return _unmet(told, start)
    if told["is_heavy"]:
        return _heavy(found, start)
    longest = int(found["meeting_time"].max()) - int(told["lag"])
    first = int(told["first_iteration"])
    met = f"all {told['n_pairs']} pairs from {start} met, the last {longest} iterations after the start"
    if first < 0:
        smallest = float(found["limit"].min())
        return Answer(
            "inconclusive",
            f"the limit is never below {told['max_error']:g}",
            (
                (_CHAINS, f"total variation limit {smallest:.2g} at best (asked: {told['max_error']:g})"),
                (_MEETINGS, met),
            ),
            advice="run more pairs",
            details=f"Inconclusive. All {told['n_pairs']} pairs met, the last {longest} iterations after the start, "
            f"but the limit of the total variation is never below {told['max_error']:g}; the smallest is "
            f"{smallest:.2g}. Run more pairs. {ABOUT}",
        )
    row = found.sel(iteration=first)
    bound, error, limit, exact = (float(row[name]) for name in ("bound", "standard_error", "limit", "limit_exact"))
    unseen = f"{100 * (1.0 - 0.05 ** (1.0 / int(told['n_pairs']))):.2g}%"
    details = (
        f"Bounded, if longer meeting times are as rare as those seen let expect. From iteration {first} on, from "
        f"{start}, no probability is off by more than {told['max_error']:g}: the total variation is at most "
        f"{bound:.2g} (standard error {error:.1g}, 95% limit {limit:.2g}). All {told['n_pairs']} pairs met, the last "
        f"{longest} iterations after the start. The bound is an expectation, and rare long meeting times carry it: "
        f"what happens to fewer than {unseen} of pairs may go unseen, such as a second mode that few starts "
        f"lead to. Without that assumption: the law after {first} iterations is within {exact:.2g} of that after "
        f"{first + int(told['lag'])}. {ABOUT}"
    )
    rows = (
        (_CHAINS, f"total variation at most {limit:.2g} from iteration {first} on (asked: {told['max_error']:g})"),
        ("", "if longer meeting times are as rare as those seen let expect"),
        (_MEETINGS, met),
        (NOT_EXCLUDED, f"what happens to fewer than {unseen} of pairs; a mode that no start leads to"),
    )
    return Answer("bounded", f"chains are near from iteration {first} on", rows, details=details)


def _unmet(told: Any, start: str) -> Answer:
    which = "pilot pairs" if told["is_pilot"] else "pairs"
    share = f"{told['n_unmet']} of {told['n_pairs']} {which} from {start} did not meet in {told['horizon']} iterations"
    return Answer(
        "inconclusive",
        "the bound is not known",
        (
            (_MEETINGS, share),
            ("", "chains mix slowly, or the coupling does not draw them together: this cannot tell"),
        ),
        advice="raise max_iterations, use another form of the model, or bread.check",
        details=f"Inconclusive: the bound is not known. {share}: chains mix slowly (several modes, narrow or curved "
        "shapes), or the coupling does not draw them together, which this cannot tell apart. Raise max_iterations, use "
        "another form of the model, or bread.check, which needs no meeting. A bound from pairs that met would be too "
        "small.",
    )


def _heavy(found: xr.Dataset, start: str) -> Answer:
    times = found["meeting_time"].values - int(found.attrs["lag"])
    half = f"half of them within {int(np.median(times))} iterations after the start"
    return Answer(
        "inconclusive",
        "no limit can be given",
        (
            (_MEETINGS, f"all {len(times)} pairs from {start} met, {half}"),
            ("", f"the last took {int(times.max())}: rarer and longer ones must be expected"),
        ),
        advice="raise pairs and lag, use another form of the model, or bread.check",
        details=f"Inconclusive: no limit of the bound can be given. All {len(times)} pairs from {start} met, {half}, "
        f"but the last took {int(times.max())}: a few take so long that rarer and longer ones must be expected "
        "(several modes, or narrow shapes). Raise pairs and lag, use another form of the model, or bread.check.",
    )


def unbiased_summary(report: Any) -> pd.DataFrame:
    """Return the table over iterations: at most 12, the first below ``max_error`` among them."""
    found = require_group(report, GROUP)
    n = found.sizes["iteration"]
    rows = np.unique(np.round(np.linspace(0, n - 1, min(n, _ROWS))).astype(np.int64)) if n else np.zeros(0, dtype=int)
    first = int(found.attrs["first_iteration"])
    if first >= 0:
        rows = np.unique(np.append(rows, np.flatnonzero(found["iteration"].values == first)))
    table = found[["bound", "standard_error", "limit", "limit_exact"]].isel(iteration=rows).to_dataframe()
    return table.map(lambda value: float(f"{value:.{_DIGITS}g}"))
