"""Functions of the user's, of the parameters of one draw and of the data that belong to it, on many draws."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.errors import BreadError, InvalidArgumentError

Quantity = Callable[..., Any]
Values = Mapping[str, NDArray[Any]]
_RULE = (
    "A quantity is a function of the parameters of one draw, a dict of arrays, or of (parameters, data), that returns "
    "one number."
)


def checked_quantities(quantities: Any) -> dict[str, Quantity]:
    """Return the user's functions by name; InvalidArgumentError unless they are functions with names."""
    if not isinstance(quantities, Mapping) or not quantities:
        raise InvalidArgumentError(
            f'quantities must be a dict of functions by name, such as {{"range": f}}, got '
            f"{'an empty one' if isinstance(quantities, Mapping) else type(quantities).__name__}. {_RULE}"
        )
    for name, function in quantities.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"quantities must be named by text, got {name!r}.")
        if not callable(function):
            raise InvalidArgumentError(f"quantity {name!r} must be a function, got {type(function).__name__}. {_RULE}")
        takes_data(name, function)
    return dict(quantities)


def takes_data(name: str, function: Quantity) -> bool:
    """Return whether a quantity takes the data too; InvalidArgumentError unless it takes one argument or two."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions of C
        return False
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in places if one.default is one.empty]
    has_keyword = any(one.kind == one.KEYWORD_ONLY and one.default is one.empty for one in parameters)
    has_many = any(one.kind == one.VAR_POSITIONAL for one in parameters)
    if len(needed) > 2 or has_keyword or not (places or has_many):
        raise InvalidArgumentError(f"quantity {name!r} takes {inspect.signature(function)}. {_RULE}")
    return len(needed) == 2


def evaluate(name: str, function: Quantity, parameters: Values, n: int, data: Values, where: str) -> FloatArray:
    """Return the quantity at ``n`` draws of one data set.

    Parameters
    ----------
    name : str
    function : callable
    parameters : mapping of str to ndarray, each (n, ...)
    n : int
    data : mapping of str to ndarray
        The data set that the draws belong to, and covariates.
    where : str
        Which draws these are, for messages.

    Returns
    -------
    ndarray, shape (n,)
        Infinite values are allowed.

    Raises
    ------
    InvalidArgumentError
        The function raises, or does not return one number.
    """
    frozen = _read_only(data) if takes_data(name, function) else None
    values = np.empty(n)
    for row in range(n):
        draw = _read_only({key: array[row] for key, array in parameters.items()})
        try:
            value = function(draw) if frozen is None else function(draw, dict(frozen))
        except BreadError:
            raise
        except Exception as error:
            known = ", ".join(parameters) + ("" if frozen is None else f"; data: {', '.join(frozen)}")
            raise InvalidArgumentError(
                f"quantity {name!r} failed at {where}: {type(error).__name__}: {error}. Parameters: {known}. {_RULE}"
            ) from error
        values[row] = _number(name, value, where)
    return values


def _read_only(values: Values) -> dict[str, NDArray[Any]]:
    """Return views that a function cannot write to."""
    views = {}
    for key, array in values.items():
        view = np.asarray(array).view()
        view.flags.writeable = False
        views[key] = view
    return views


def _number(name: str, value: Any, where: str) -> float:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        what = f"an array of shape {array.shape}" if array.size != 1 else f"{value!r}"
        raise InvalidArgumentError(f"quantity {name!r} returned {what} at {where}. {_RULE}")
    number = float(array.reshape(()))
    if np.isnan(number):
        raise InvalidArgumentError(
            f"quantity {name!r} is NaN at {where}, and NaN has no rank. Return a number for every draw."
        )
    return number
