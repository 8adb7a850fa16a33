"""Where a few simulated data sets carry the bound: how many of how many, which, and what to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bread.report.compat import read_group
from bread.statistics.bounds.certificate import conditional_gaps
from bread.statistics.bounds.concentration import Carriers, carriers, set_apart

_MOST_NAMED = 6  # simulations that a sentence lists


@dataclass(frozen=True)
class CarriersFound:
    """The few data sets that carry the bound that decides, at the final T.

    Attributes
    ----------
    simulations : tuple of int
        Their numbers in the report (coordinate `simulation`).
    share : float
        Of the bound that they hold, in (0, 1].
    n_simulations : int
        Data sets that give the bound.
    parameter, is_large, nearest : str, bool, float
        A parameter whose exact draws in them are all above, or all below, those of the other data sets, and the
        nearest of these others; "" where there is none that could not be chance.
    """

    simulations: tuple[int, ...]
    share: float
    n_simulations: int
    parameter: str = ""
    is_large: bool = False
    nearest: float = float("nan")


def carriers_at(report: Any, n_temperatures: int, decides: str) -> tuple[Carriers, NDArray[np.int64]] | None:
    """Return which data sets carry V or B ("V", "B") at one T, and the numbers of all that give it; None without any.

    Those that give the bound are the ones that `bread.report.bounds` used.
    """
    bounds, certificate = read_group(report, "bounds"), read_group(report, "certificate")
    if bounds is None or certificate is None or n_temperatures not in bounds["n_temperatures"].values:
        return None
    used = np.flatnonzero(bounds["used"].sel(n_temperatures=n_temperatures).values.astype(bool))
    if decides == "V":
        values = certificate["error_by_simulation"].sel(n_temperatures=n_temperatures).values[used]
    else:
        weights = [_log_weights(report, name, n_temperatures, used) for name in ("forward", "reverse")]
        if weights[0] is None or weights[1] is None or np.isnan(weights[0]).any() or not np.isfinite(weights[1]).all():
            return None
        values = conditional_gaps(weights[0], weights[1])
    if not len(used) or np.isnan(values).any():
        return None
    return carriers(values), used


def read_carriers(report: Any, n_temperatures: int, decides: str) -> CarriersFound | None:
    """Return the few data sets that carry the bound that decides; None where they are not few."""
    found = carriers_at(report, n_temperatures, decides)
    if found is None or not found[0].are_few:
        return None
    held, used = found
    numbers = tuple(int(number) for number in used[held.positions])
    truth = read_group(report, "truth")
    apart = None if truth is None else _what_sets_apart(truth, used, held.positions)
    return CarriersFound(numbers, held.share, len(used), *(apart or ()))


def carriers_sentence(found: CarriersFound | None, name: str) -> str:
    """Say how many data sets carry the bound called ``name``, and what to look at; "" where they are not few."""
    if found is None:
        return ""
    n_carrying = len(found.simulations)
    listed = ", ".join(str(number) for number in found.simulations[:_MOST_NAMED])
    listed += ", ..." if n_carrying > _MOST_NAMED else ""
    one = n_carrying == 1
    apart = ""
    if found.parameter:
        side = "above" if found.is_large else "below"
        apart = f", {'' if one else 'all '}with {found.parameter} {side} {found.nearest:.3g}, where no other has it"
    return (
        f"{n_carrying} of {found.n_simulations} simulated data sets carr{'ies' if one else 'y'} "
        f"{100 * found.share:.0f}% of {name} (simulation{'' if one else 's'} {listed}{apart}): more simulations narrow "
        f"its limits slowly. Look at {'that one' if one else 'those'} in the groups truth and simulated_data of the "
        f"report, and whether your data are like {'it' if one else 'them'}; more temperatures, or a prior under which "
        "such data are rarer, lower the bound."
    )


def n_carrying(report: Any, temperatures: NDArray[np.int64]) -> NDArray[Any]:
    """Return for every T how many data sets hold most of V; `pandas.NA` where V is not known or zero."""
    counts = np.full(len(temperatures), pd.NA, dtype=object)
    for row, number in enumerate(temperatures):
        found = carriers_at(report, int(number), "V")
        if found is not None and len(found[0].positions):
            counts[row] = len(found[0].positions)
    return counts


def _log_weights(report: Any, name: str, n_temperatures: int, used: NDArray[np.int64]) -> NDArray[np.float64] | None:
    runs = read_group(report, name)
    if runs is None:
        return None
    return np.asarray(runs["log_weight"].sel(n_temperatures=n_temperatures).values[used])


def _what_sets_apart(
    truth: xr.Dataset, used: NDArray[np.int64], positions: NDArray[np.int64]
) -> tuple[str, bool, float] | None:
    """Return a parameter, whether it is large in the chosen data sets, and the nearest value among the others."""
    names: list[str] = []
    columns: list[NDArray[np.float64]] = []
    for name, array in truth.data_vars.items():
        if array.dims[:1] != ("simulation",) or array.dtype.kind not in "iuf":
            continue
        flat = np.asarray(array.values, dtype=np.float64).reshape(array.shape[0], -1)[used]
        names += [_element(str(name), array, number) for number in range(flat.shape[1])]
        columns.append(flat)
    if not columns:
        return None
    table = np.concatenate(columns, axis=1)
    found = set_apart(table, positions)
    if found is None:
        return None
    column, is_large = found
    others = np.delete(table[:, column], positions)
    return names[column], is_large, float(others.max() if is_large else others.min())


def _element(name: str, array: xr.DataArray, number: int) -> str:
    if array.ndim == 1:
        return name
    place = np.unravel_index(number, array.shape[1:])
    labels = [str(array[dim].values[at]) for dim, at in zip(array.dims[1:], place, strict=True)]
    return f"{name}[{', '.join(labels)}]"
