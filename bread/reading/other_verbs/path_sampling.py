"""What a report of `bread.lab.path_sampling` says: the log evidence or scores, or why no interval can be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.reading.sentences.direct import bug_answer
from bread.reading.sentences.lines import Answer, Row, counted, fitted
from bread.reading.sentences.words import NOT_EXCLUDED
from bread.report.compat import read_group, require_group
from bread.report.path_sampling import GROUP

_DIGITS = 5
_MOST_NAMED = 5


def is_path_sampling(report: Any) -> bool:
    """Return whether a report is one of `bread.lab.path_sampling`."""
    return read_group(report, GROUP) is not None


def path_sampling_answer(report: Any) -> Answer:
    """Return status and sentences: "bug", "estimated", or "inconclusive" with the reason."""
    if (bug := bug_answer(report)) is not None:
        return bug
    found = require_group(report, GROUP)
    told = found.attrs
    if told["n_unmet"]:
        return _unmet(found)
    doubtful = np.flatnonzero(found["doubts"].values != "")
    if len(doubtful):
        return _doubtful(found, doubtful)
    unseen = f"{100 * (1.0 - 0.05 ** (1.0 / int(told['n_pairs']))):.2g}%"
    index = float(found["tail_index"].max())
    about = (
        f"Their tails look light enough for a standard error (index {index:.2f}, and 0.5 "
        f"is the limit). What fewer than {unseen} of pairs show may go unseen, above all a mode that no start "
        "leads to: its mass would be missing. bread.check looks for such modes."
    )
    line, sentence = _scores(found) if told["is_leave_one_out"] else _log_evidence(found)
    tails = f"tails light (index {index:.2f} < 0.5)"
    rows = (
        *line,
        ("Estimates", f"{told['n_pairs']}, unbiased on the log scale; all pairs met; {tails}"),
        (NOT_EXCLUDED, f"modes that no chain from the prior finds; what fewer than {unseen} of pairs show"),
    )
    details = f"Estimated, if chains from the prior find every mode. {sentence} {about}"
    return Answer("estimated", "if chains from the prior find every mode", rows, details=details)


def _log_evidence(found: xr.Dataset) -> tuple[tuple[Row, ...], str]:
    told, row = found.attrs, found.isel(target=0)
    value = f"{float(row['value']):.2f} nats (standard error {float(row['standard_error']):.2g}"
    limits = f"{100 * told['level']:g}% interval {float(row['lower']):.2f} to {float(row['upper']):.2f}"
    return (("Log evidence", f"{value})"),), (
        f"Log evidence {value}, {limits}), the mean of "
        f"{told['n_pairs']} independent estimates that are unbiased on the log scale. All pairs of chains met."
    )


def _scores(found: xr.Dataset) -> tuple[tuple[Row, ...], str]:
    told, n = found.attrs, found.sizes["target"]
    worst = str(found["target"].values[int(found["value"].values.argmin())])
    lowest, error = float(found["value"].min()), f"{told['total_standard_error']:.2g}"
    rows = (
        ("Scores", f"{n} log predictive densities sum to {told['total']:.2f} nats (standard error {error})"),
        ("", fitted(f"the lowest is that of observation {worst}: {lowest:.2f}", worst)),
    )
    return rows, (
        "Log predictive densities of "
        f"{counted(n, 'observation')}, each given all others, sum to {told['total']:.2f} nats "
        f"(standard error of the sampling {error}, {100 * told['level']:g}% interval "
        f"{told['total_lower']:.2f} to {told['total_upper']:.2f}; {-told['total'] / n:.3f} is the mean score). The "
        f"lowest is that of observation {worst}, {lowest:.2f}. {told['n_pairs']} independent "
        "estimates of each are unbiased on the log scale, and all pairs of chains met."
    )


def _unmet(found: xr.Dataset) -> Answer:
    told = found.attrs
    which = f"pair{'s' if told['n_unmet'] > 1 else ''}{' of the pilots' if told['is_pilot'] else ''}"
    unmet = f"{told['n_unmet']} {which} did not meet in {told['horizon']} iterations, at inverse temperature"
    return Answer(
        "inconclusive",
        "no estimate",
        (
            ("Meetings", f"{unmet} {told['unmet_at']:.2g}"),
            ("", "a mean over pairs that met would be biased"),
        ),
        advice="raise max_iterations, use another form of the model, or bread.check and bread.evidence",
        details=f"Inconclusive: {unmet} {told['unmet_at']:.2g}, and a mean over those that met would be biased. Chains "
        "mix slowly there (several modes, narrow or curved shapes), or the coupling does not draw them together. Raise "
        "max_iterations, use another form of the model, or bread.check and bread.evidence, which need no meeting.",
    )


def _doubtful(found: xr.Dataset, doubtful: np.ndarray[Any, Any]) -> Answer:
    named = [str(found["target"].values[i]) for i in doubtful[:_MOST_NAMED]]
    which, of = "of the log evidence", "the log evidence"
    if found.attrs["is_leave_one_out"]:
        more = f" and {len(doubtful) - len(named)} others" if len(doubtful) > len(named) else ""
        which = f"of observation{'s' if len(doubtful) > 1 else ''} {', '.join(named)}{more}"
        of = counted(len(doubtful), "observation")
    reason = str(found["doubts"].values[doubtful[0]])
    return Answer(
        "inconclusive",
        f"no interval of {of} is given",
        (
            ("Estimates", f"they may have no variance: {reason}"),
            ("", "their mean is not to be trusted either, however many there are"),
        ),
        advice="use other parameters or priors with lighter tails, or bread.check and bread.evidence",
        details=f"Inconclusive: no interval {which} is given, because the estimates may have no variance: {reason}. "
        "Their mean is not to be trusted either, however many there are. Use other parameters or priors with lighter "
        "tails, or bread.check and bread.evidence.",
    )


def path_sampling_summary(report: Any) -> pd.DataFrame:
    """Return the table over targets: value, standard error and limits in nats, tail index, what pairs cost."""
    found = require_group(report, GROUP)
    table = found[["value", "standard_error", "lower", "upper", "tail_index"]].to_dataframe()
    table = table.map(lambda value: float(f"{value:.{_DIGITS}g}"))
    unmet = np.isinf(found["meeting_time"].values).sum(axis=1)
    table["n_unmet"] = found.attrs["n_unmet"] if found.attrs["is_pilot"] else unmet
    times = found["meeting_time"].values - found["lag"].values
    table["longest_meeting"] = times.max(axis=1) if times.shape[1] else np.nan
    table["doubts"] = found["doubts"].values.astype(object)
    return table
