"""What the first look found, in at most eight lines; and as a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.reading.fit_quality import doubt, read_fit_quality
from bread.reading.modes import missed_mode, read_modes
from bread.report.compat import read_attributes, read_group, require_group
from bread.report.first_look import GROUP
from bread.statistics.first_look import LEVEL

WIDTH = 100  # columns of a line
_NOT_EXCLUDED = "modes that no draw is in, wrong weights of separate modes: gradients see neither"
_PLAIN = 2.0  # standard errors, from which a difference is named
_SIGNIFICANT_DIGITS = 3


def is_first_look(report: Any) -> bool:
    """Return whether a report holds a first look and no bound, and was to hold no more."""
    is_alone = read_group(report, GROUP) is not None and read_group(report, "bounds") is None
    return is_alone and not read_attributes(report).get("is_interrupted", 0)


@dataclass(frozen=True)
class FirstLookFound:
    """What the first look of a check found.

    Attributes
    ----------
    status : {"disagreement", "no difference seen", "inconclusive"}
        "disagreement": the draws are not the posterior's, or are of other data.
    lines : list of str
        As `bread.verdict` says it of a report of `bread.look`, without the line of the status.
    p_value : float
    """

    status: str
    lines: list[str]
    p_value: float

    @property
    def is_disagreement(self) -> bool:
        """Whether the draws are not the posterior's, or are of other data."""
        return self.status == "disagreement"


def read_first_look(look: xr.Dataset) -> FirstLookFound:
    """Return the facts of the group `first_look`."""
    status, lines = _text(look, [])
    return FirstLookFound(status, lines[1:], float(look["p_value"]))


def first_look_text(report: Any) -> tuple[str, list[str], float]:
    """Return status, lines and p-value: "disagreement", "no difference seen" or "inconclusive"."""
    look = require_group(report, GROUP)
    quality = read_fit_quality(read_attributes(report))
    warnings = [] if quality is None or not (sign := doubt(quality)) else [_line("WARNING", sign)]
    status, lines = _text(look, warnings)
    why = str(read_attributes(report).get("not_certified", ""))
    if why:  # of a check, which looked for modes too
        modes = read_group(report, "modes")
        found = None if modes is None else read_modes(modes)
        lines = [line for line in lines if status == "disagreement" or not line.startswith("Do now")]
        if found is not None and found.n_missed:
            lines.append(_line("Your draws", " ".join(missed_mode(found))))
            if status != "disagreement":
                status, lines[0] = "not converged", "NOT CONVERGED: a mode is missed"
        lines.append(_line("Not certified", why))
    return status, lines, float(look["p_value"])


def _text(look: xr.Dataset, warnings: list[str]) -> tuple[str, list[str]]:
    """Return status and lines."""
    p_value = float(look["p_value"])
    other = json.loads(look.attrs["other_data"])
    if other:
        name, element, ours, theirs = other[0]
        where = f" (element {element})" if element else " values"
        lines = [
            "DISAGREEMENT: your draws are of other data",
            _line("Your draws", f"{name}: {ours:.4g} in the model, {theirs:.4g} where the draws are from{where}"),
            *_differences(look, p_value),
            _line("Do now", "pass the draws of this model, or the model of these draws"),
        ]
        return "disagreement", lines
    if p_value < LEVEL:
        lines = [
            "DISAGREEMENT: your draws are not the posterior's",
            *_differences(look, p_value),
            *warnings,
            _line("Do now", "sample this model again, longer, with another start or form; then look again"),
        ]
        return "disagreement", lines
    left_out = json.loads(look.attrs["left_out"])
    reasons = "; ".join(f"{name}: {why}" for name, why in list(left_out.items())[:2])
    more = f"; and {len(left_out) - 2} more" if len(left_out) > 2 else ""
    if not np.isfinite(p_value) or left_out:
        lines = [
            "INCONCLUSIVE: not all of your draws could be looked at",
            *([] if not np.isfinite(p_value) else [_line("Your draws", "no difference seen where they could")]),
            _line("Left out", f"{reasons}{more}"),
            *warnings,
            _line("Do now", "draw more, or bread.check(model, posterior=draws), which compares all parameters"),
        ]
        return "inconclusive", lines
    lines = [
        "NO DIFFERENCE SEEN",
        _line("Your draws", f"no difference seen: {_detectable(look)} would have been"),
        _line("Not excluded", _NOT_EXCLUDED),
        *warnings,
        _line("Do now", "bread.check(model, posterior=draws) bounds the error and looks for modes"),
    ]
    return "no difference seen", lines


def _line(title: str, text: str) -> str:
    line = f"{title:<16} {text}"
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def _detectable(look: xr.Dataset) -> str:
    """Return what would have been seen, of the parameter of which least is, and of which that is not known."""
    shift, ratio = (look[f"detectable_{name}"].values for name in ("shift", "sd_ratio"))
    untold = look["parameter"].values[np.isnan(shift)]
    if len(untold) == len(shift):
        return "how large a difference"
    but = "" if not len(untold) else f" (but of {', '.join(untold[:2])}{', ...' if len(untold) > 2 else ''})"
    return f"a shift of {np.nanmax(shift):.2g} sd or an sd off by {100 * np.nanmax(ratio, initial=0.0):.0f}%{but}"


def _differences(look: xr.Dataset, p_value: float) -> list[str]:
    """Return a line for each of the two parameters that are off by most, or for the test; none where it passes."""
    if not p_value < LEVEL:
        return []
    p_text = f"p < {LEVEL:g}"
    shift, shift_se, ratio, ratio_se = (look[name].values for name in ("shift", "shift_se", "sd_ratio", "sd_ratio_se"))
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.fmax(np.abs(shift) / shift_se, np.abs(ratio - 1.0) / ratio_se)
    size = np.nan_to_num(size, nan=0.0)
    lines = []
    for i in np.argsort(-size, kind="stable")[:2]:
        if size[i] < _PLAIN:
            continue
        parts = []
        if abs(shift[i]) >= _PLAIN * shift_se[i]:
            direction = "high" if shift[i] > 0 else "low"
            parts.append(f"mean too {direction} by {abs(shift[i]):.2g} ({shift_se[i]:.1g}) sd")
        if abs(ratio[i] - 1.0) >= _PLAIN * ratio_se[i]:
            direction = "large" if ratio[i] > 1 else "small"
            parts.append(f"sd too {direction} by {100 * abs(ratio[i] - 1.0):.2g}% ({100 * ratio_se[i]:.1g}%)")
        lines.append(_line("Your draws", f"{look['parameter'].values[i]}: {', '.join(parts)} (first look, {p_text})"))
    if lines:
        return lines
    worst = int(np.nanargmin(look["function_p_value"].values))
    return [_line("Your draws", f"they differ in {look['function_of'].values[worst]} (first look, {p_text})")]


def first_look_summary(report: Any) -> pd.DataFrame:
    """Return the table over parameters: shift and ratio of standard deviations, with errors and what would be seen."""
    look = require_group(report, GROUP)
    names = [name for name in look.data_vars if look[name].dims == ("parameter",)]
    table = look[names].to_dataframe() if names else pd.DataFrame()
    return table.map(lambda value: float(f"{value:.{_SIGNIFICANT_DIGITS}g}"))
