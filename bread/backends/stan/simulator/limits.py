"""Whether data tell the limit of every observation of a censored outcome, also of those that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.syntax import Node, nodes, number, strip
from bread.backends.stan.language.variates import Variate


class Range(Protocol):
    """A range of values of which only that they lie there is recorded (`forms.censored.Cell`)."""

    @property
    def side(self) -> str: ...  # noqa: D102

    @property
    def ends(self) -> tuple[Node, ...]: ...  # noqa: D102

    @property
    def own(self) -> bool: ...  # noqa: D102


def why_unknown(
    flow: Dataflow, outcome: Variate, flag: Variate | None, cells: Sequence[Range], codes: Sequence[int]
) -> str:
    """Return why limits are not known; "" where they are.

    Parameters
    ----------
    flow : Dataflow
        With the user's data.
    outcome, flag : Variate
        One element of each; None where the program looks at the outcome itself.
    cells : sequence of Range
    codes : sequence of int
        Values of the flag: of each cell, and last of an outcome that is seen.
    """
    if flag is None:
        return ""
    y, marks = (_array(flow, one) for one in (outcome, flag))
    if y is None or marks is None or y.shape != marks.shape or y.ndim != 1:
        is_own = any(cell.own for cell in cells)
        return "the limits of those that are not censored are not known without the data." if is_own else ""
    if not np.isin(marks, codes).all():
        other = marks[~np.isin(marks, codes)][0]
        return f"its flag has other values in the data ({other:g}) than the program tells apart."
    seen = marks == codes[-1]
    for cell, code in zip(cells, codes, strict=False):
        why = (_shared if cell.own else _given)(flow, outcome, cell, y, seen, marks == code)
        if why:
            return why
    return ""


Rows = NDArray[np.bool_]


def _shared(flow: Dataflow, outcome: Variate, cell: Range, y: NDArray[Any], seen: Rows, censored: Rows) -> str:
    """Return why the limit that the outcome holds, for those that are censored, is not that of all; "" if it is."""
    name, limits = outcome.variable.name, np.unique(y[censored])
    if len(limits) > 1:
        named = ", ".join(f"{value:.6g}" for value in limits[:3])
        return (
            f"the limits, which {name!r} holds for the censored observations, differ ({named}"
            f"{', ...' if len(limits) > 3 else ''}): those of the others are not among the data."
        )
    beyond = seen & _beyond(cell.side, y, limits) if len(limits) else np.zeros(len(y), dtype=bool)
    if not beyond.any():
        return ""
    n = int(np.argmax(beyond))
    return (
        f"an observation that is not censored ({name}[{n + 1}] = {y[n]:.6g}) lies beyond the limit of the others on "
        f"the {cell.side} ({limits[0]:.6g}): what censors is not known."
    )


def _given(flow: Dataflow, outcome: Variate, cell: Range, y: NDArray[Any], seen: Rows, censored: Rows) -> str:
    """Return why limits that are data of their own are not those of all observations; "" where nothing says so."""
    name, ends = outcome.variable.name, [_values(flow, end, outcome) for end in cell.ends]
    known = [one for one in ends if one is not None]
    if len(known) < len(ends):
        return ""
    values = [np.broadcast_to(end, y.shape) for _, end in known]
    limit = known[0][0]
    missing = seen & np.any(np.isnan(values), axis=0)
    if missing.any():
        return f"{limit!r} is NaN at {int(np.argmax(missing)) + 1}, for an observation that is not censored."
    beyond = seen & _beyond(cell.side, y, *values)
    if not beyond.any() and cell.side != "interval" and outcome.variable.plain != "int":
        beyond = seen & (y == values[0])  # of probability zero
    if beyond.any():
        n = int(np.argmax(beyond))
        lies = "is its own limit" if cell.side != "interval" and y[n] == values[0][n] else "lies beyond its limit"
        at = ", ".join(f"{value[n]:.6g}" for value in values)
        return (
            f"an observation that is not censored ({name}[{n + 1}] = {y[n]:.6g}) {lies} on the {cell.side} ({at} in "
            f"{limit!r}): what censors is not known."
        )
    if cell.side != "interval" and seen.sum() > 1 and censored.any():
        shared = np.unique(values[0][seen])
        if len(shared) == 1 and not np.isin(values[0][censored], shared).any():
            return (
                f"{limit!r} is {shared[0]:.6g} for all observations that are not censored, and for no other: it seems "
                "to hold limits of the censored ones alone."
            )
    return ""


def _beyond(side: str, y: NDArray[Any], *ends: NDArray[Any]) -> NDArray[np.bool_]:
    if side == "interval":
        return np.asarray((y > ends[0]) & (y < ends[1]))
    return np.asarray(y > ends[0] if side == "right" else y < ends[0])


def _array(flow: Dataflow, variate: Variate) -> NDArray[Any] | None:
    values = flow.values.get(variate.variable.name)
    return None if values is None else _numbers(values)


def _numbers(values: Any) -> NDArray[Any] | None:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # what else data may hold is for Stan to refuse
        return None
    return array


def _values(flow: Dataflow, end: Node, outcome: Variate) -> tuple[str, NDArray[Any]] | None:
    """Return a limit, named, with its values: a number, a scalar of the data, or one for each outcome."""
    end = strip(end)
    literal = number(end)
    if literal is not None:
        return f"{literal:g}", np.asarray(literal)
    base = nodes(end)[0] if end.data == "indexed" else end
    variable = flow.scopes.variable(base) if base.data == "variable" else None
    if variable is None or variable.kind != "data" or variable.name not in flow.values:
        return None
    array = _numbers(flow.values[variable.name])
    if array is None or array.ndim > 1 or (end.data == "indexed") != (array.ndim == 1):
        return None
    size = _array(flow, outcome)
    same = array.ndim == 0 or (size is not None and array.shape == size.shape)
    return (variable.name, array) if same else None
