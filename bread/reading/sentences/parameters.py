"""The report as a table, one row per parameter: your draws, and how far they may be off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.reading.sentences.numbers import SIGNIFICANT_DIGITS, rounded
from bread.report.compat import read_group
from bread.report.first_look import GROUP as FIRST_LOOK
from bread.report.labels import safe_name
from bread.report.quantities import COMPARISON
from bread.statistics.agreement.agreement import LOG_DENSITY

_OF_LOOK = ("shift", "shift_se", "sd_ratio", "sd_ratio_se")
_POWER = ("detectable_shift", "detectable_sd_ratio")
_DECIMALS = {"mean": "sd", "shift": "shift_se", "sd_ratio": "sd_ratio_se"}
_ORDER = ("mean", "sd", "in_90", *_OF_LOOK, *_POWER, "error_limit")


def parameter_table(report: Any) -> pd.DataFrame | None:
    """Return your draws parameter by parameter, in the model's order; None for a report that has none.

    Rows of the first look and of the comparison with certified draws are one where they are the same component of a
    parameter: the first look numbers components, the comparison names them by the model's labels.
    """
    comparisons = (read_group(report, name) for name in ("agreement", COMPARISON))
    compared = pd.concat([pd.DataFrame(), *(_compared(group) for group in comparisons if group is not None)])
    look = read_group(report, FIRST_LOOK)
    looked = pd.DataFrame()
    if look is not None and "parameter" in look.coords:
        looked = _looked(look, is_alone=compared.empty)
    if looked.empty and compared.empty:
        return None
    looked_names, names = [list(map(str, table.index)) for table in (looked, compared)]
    looked.index, compared.index = pd.Index(_keys(looked_names, names)), pd.Index(_keys(names, looked_names))
    label = dict(zip(looked.index, looked_names, strict=True)) | dict(zip(compared.index, names, strict=True))
    table = looked.combine_first(compared).loc[list(label)]
    table.index = pd.Index(list(label.values()), name="parameter")
    table = table[[name for name in _ORDER if name in table]]
    pairs = [(value, size) for value, size in _DECIMALS.items() if value in table]
    for value, size in pairs:
        table[value] = [_as_precise_as(*both) for both in zip(table[value], table[size], strict=True)]
    others = table.columns.drop([value for value, _ in pairs])
    table[others] = table[others].apply(rounded)
    return table


def _looked(look: xr.Dataset, *, is_alone: bool) -> pd.DataFrame:
    """Return what the first look says of each parameter; what it would have seen, where there is nothing else."""
    names = ("mean", "sd", *_OF_LOOK, *(_POWER if is_alone else ()))
    return _frame(look, {name: name for name in names})


def _compared(agreement: xr.Dataset) -> pd.DataFrame:
    """Return what the comparison with certified draws says of each parameter, or added quantity."""
    is_parameter = agreement["parameter"].values != LOG_DENSITY
    names = {"mean": "fit_mean", "sd": "fit_sd", "in_90": "central_content", "error_limit": "error_limit"}
    return _frame(agreement.isel(parameter=is_parameter), names)


def _frame(group: xr.Dataset, names: dict[str, str]) -> pd.DataFrame:
    missing = np.full(group.sizes["parameter"], np.nan)
    columns = {name: group[source].values if source in group else missing for name, source in names.items()}
    return pd.DataFrame(columns, index=[str(name) for name in group["parameter"].values])


def _keys(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return what identifies each component: variable and place, where both lists have as many of that variable."""
    here, there = Counter(map(_variable, names)), Counter(map(_variable, others))
    seen: Counter[str] = Counter()
    keys = []
    for name in names:
        variable = _variable(name)
        known = name if there[variable] and here[variable] != there[variable] else variable
        keys.append(f"{known}\0{seen[known]}")  # unique, whatever the labels
        seen[known] += 1
    return keys


def _variable(component: str) -> str:
    return safe_name(component.partition("[")[0])


def _as_precise_as(value: float, size: float) -> float:
    """Return a number with the decimals of three significant digits of its standard deviation, or standard error."""
    if not (np.isfinite(value) and np.isfinite(size) and size > 0.0):
        return float(rounded(np.array([value]))[0])
    return round(float(value), SIGNIFICANT_DIGITS - 1 - int(np.floor(np.log10(size))))
