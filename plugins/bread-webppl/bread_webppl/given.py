"""The data of a WebPPL program: what travels to it, and where it observes each number of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread_webppl.bridge import pack, unpack
from bread_webppl.wrapper import Model

TAG = 1e-300  # the data of number i carry the tag (i + 1) * TAG


@dataclass(frozen=True)
class Given:
    """The user's data: those that are observed, and those that stay.

    Attributes
    ----------
    observed : dict of str to ndarray
        In the types that simulated ones have too: bool, int64 or float64.
    constants : dict of str to object
        Everything else, as JSON takes it.
    """

    observed: dict[str, NDArray[Any]]
    constants: dict[str, Any]

    def flat(self, data: Data) -> FloatArray:
        """Return the observed variables of a data set as one vector.

        Raises
        ------
        InvalidArgumentError
            One is missing or has another shape than the real one.
        """
        parts = []
        for name, real in self.observed.items():
            if name not in data or np.shape(data[name]) != real.shape:
                received = f"shape {np.shape(data[name])}" if name in data else "nothing"
                raise InvalidArgumentError(f"data must hold {name!r} of shape {real.shape}; received {received}.")
            parts.append(np.asarray(data[name], dtype=np.float64).ravel())
        return np.concatenate(parts)

    def named(self, flat: FloatArray) -> dict[str, NDArray[Any]]:
        """Return rows of such vectors, shape (n, number of numbers), as variables (n, ...) of the real data's types."""
        found, low = {}, 0
        for name, real in self.observed.items():
            part = flat[:, low : low + real.size].reshape(len(flat), *real.shape)
            found[name] = part.astype(real.dtype)
            low += real.size
        return found

    @property
    def size(self) -> int:
        """How many numbers are observed."""
        return sum(real.size for real in self.observed.values())

    def description(self) -> list[dict[str, Any]]:
        """Return names, shapes and kinds of the observed variables, for the driver."""
        return [
            {"name": name, "shape": list(real.shape), "kind": "boolean" if real.dtype == bool else "number"}
            for name, real in self.observed.items()
        ]

    def where(self, place: int) -> str:
        """Return the name of a number of the data, such as "y[3]"."""
        for name, real in self.observed.items():
            if place < real.size:
                index = [int(one) for one in np.unravel_index(place, real.shape)] if real.ndim else []
                return f"data.{name}{''.join(f'[{one}]' for one in index)}"
            place -= real.size
        raise IndexError(place)


def read_data(model: Model) -> Given:
    """Return the data of a model, checked.

    Raises
    ------
    InvalidArgumentError
        An observed variable holds no numbers or booleans or has missing values, or another one is nothing that JSON
        can hold.
    """
    observed = {name: _observed(name, model.data[name]) for name in model.names_observed}
    constants = {name: _plain(value) for name, value in model.data.items() if name not in observed}
    for name, value in constants.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"data[{name!r}] cannot be passed to WebPPL: {error}. Pass finite numbers, booleans, text, and lists "
                "or dicts of them."
            ) from error
    return Given(observed, constants)


def _observed(name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(f"data[{name!r}] is no array: {error}. Its rows must have one length.") from error
    if array.dtype.kind not in "biuf":
        raise InvalidArgumentError(
            f"data[{name!r}] is observed and must hold numbers or booleans; received values of type {array.dtype}. "
            "Code other values as whole numbers."
        )
    if array.size == 0 or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise InvalidArgumentError(
            f"data[{name!r}] must hold finite numbers; received {array.size} of which "
            f"{int((~np.isfinite(array.astype(float))).sum())} are NaN or infinite. Leave missing data out."
        )
    return array.astype(bool if array.dtype.kind == "b" else np.float64 if array.dtype.kind == "f" else np.int64)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "to_numpy"):
        return value.to_numpy().tolist()
    return value


def tags(given: Given) -> str:
    """Return numbers that tell the places of the data apart, packed."""
    return pack(TAG * np.arange(1, given.size + 1))


def slots(given: Given, observations: Sequence[Mapping[str, Any]]) -> NDArray[np.int64]:
    """Return the place in the flat data of each number that is observed, in the order of a run with tags.

    Raises
    ------
    UnsupportedModelError
        A value is none of the data's, or an element of the data is observed twice or never.
    """
    known = {float(tag): place for place, tag in enumerate(TAG * np.arange(1, given.size + 1))}
    found: list[int] = []
    for number, one in enumerate(observations):
        values = [] if one["given"] is None else unpack(one["given"]).tolist()
        size = len(unpack(one["value"]))
        if len(values) != size or any(value not in known for value in values):
            raise UnsupportedModelError(
                f"Observation {number + 1} of the program ({one['law']}) is given no element of the observed data "
                f"({', '.join(given.observed)}) as it is. Write observe(distribution, data.y[i]); transform data "
                "before they are passed, and pass booleans for Bernoulli."
            )
        found += [known[value] for value in values]
    counts = np.bincount(np.array(found, dtype=np.int64), minlength=given.size)
    if (counts != 1).any():
        place = int(np.argmax(counts != 1))
        raise UnsupportedModelError(
            f"{given.where(place)} is observed {counts[place]} times by the program; each element of an observed "
            "variable must be observed once. Leave it out of the data, or of observed=."
        )
    return np.array(found, dtype=np.int64)
