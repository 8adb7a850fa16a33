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
    seen = y[marks == codes[-1]]
    for cell, code in zip(cells, codes, strict=False):
        if cell.own:
            limits = np.unique(y[marks == code])
            if len(limits) > 1:
                named = ", ".join(f"{value:.6g}" for value in limits[:3])
                more = ", ..." if len(limits) > 3 else ""
                return (
                    f"the limits differ ({named}{more}): those of the observations that are not censored are not among "
                    "the data."
                )
            beyond = _beyond(cell.side, seen, limits) if len(limits) else np.zeros(0, dtype=bool)
        else:
            ends = [_values(flow, end, outcome) for end in cell.ends]
            known = [end for end in ends if end is not None]
            if len(known) < len(ends):
                continue
            at = [end if end.ndim == 0 else end[marks == codes[-1]] for end in known]
            beyond = _beyond(cell.side, seen, *at)
        if beyond.any():
            return (
                f"an observation that is not censored ({seen[np.argmax(beyond)]:.6g}) lies beyond its limit on the "
                f"{cell.side}: what censors is not known."
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


def _values(flow: Dataflow, end: Node, outcome: Variate) -> NDArray[Any] | None:
    """Return the values of a limit: a number, a scalar of the data, or a container as long as the outcome's."""
    end = strip(end)
    literal = number(end)
    if literal is not None:
        return np.asarray(literal)
    base = nodes(end)[0] if end.data == "indexed" else end
    variable = flow.scopes.variable(base) if base.data == "variable" else None
    if variable is None or variable.kind != "data" or variable.name not in flow.values:
        return None
    array = _numbers(flow.values[variable.name])
    if array is None or array.ndim > 1 or (end.data == "indexed") != (array.ndim == 1):
        return None
    size = _array(flow, outcome)
    same = array.ndim == 0 or (size is not None and array.shape == size.shape)
    return array if same and np.isfinite(array).all() else None
