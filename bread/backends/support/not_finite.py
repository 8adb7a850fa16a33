"""Which data are NaN or infinite, and where: named when a model cannot use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_finite(values: Any) -> bool:
    """Return whether no number among ``values`` is NaN or infinite; True for what holds no real numbers."""
    array = np.asarray(values)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def describe_not_finite(arrays: Mapping[str, NDArray[Any]], first_index: int) -> str:
    """Return which arrays hold NaN or infinite values, each with the first place; "" if none does.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        By what a message calls them.
    first_index : {0, 1}
        How the language counts.

    Returns
    -------
    str
        One sentence, such as "Not finite: 'x' is nan at [2,1] (3 values in all).", with its full stop.
    """
    found = []
    for name, array in arrays.items():
        if is_finite(array):
            continue
        values = np.asarray(array)
        wrong = np.argwhere(~np.isfinite(values))
        count = f"{len(wrong)} value{'' if len(wrong) == 1 else 's'} in all"
        place = f" at {bracketed_index(wrong[0], first_index)} ({count})" if values.ndim else ""
        found.append(f"{name} is {values[tuple(wrong[0])]}{place}")
    return f"Not finite: {'; '.join(found)}." if found else ""


def bracketed_index(index: Sequence[int] | NDArray[np.int64], first_index: int) -> str:
    """Return a place in an array as the language writes it: "[2,1]"."""
    return f"[{','.join(str(int(i) + first_index) for i in index)}]"
