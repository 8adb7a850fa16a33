"""A Python function of the user's that draws parameters and data: how it is called, and what it must return."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import DTypeLike, NDArray

from bread.errors import BreadError, InvalidArgumentError

Values = dict[str, NDArray[Any]]
_CALL = "It is called as simulator(rng, data) and must return two dicts, (parameters, observed)."


@dataclass(frozen=True)
class UserFunction:
    """A function ``(rng, data) -> (parameters, observed)``.

    With a parameter called ``fixed`` it can hold hyperparameters: it is then given a dict of their values.

    Attributes
    ----------
    function : callable
    data : dict of str
        What it is given: covariates and the real data, by name; each call gets a copy.
    parameters : dict of str to tuple of int
        Shapes of the parameters.
    observed : dict of str to (tuple of int, dtype)
        Shape and type of each observed variable; it must be finite unless the real one is not.
    """

    function: Callable[..., tuple[Mapping[str, Any], Mapping[str, Any]]]
    data: dict[str, Any]
    parameters: dict[str, tuple[int, ...]]
    observed: dict[str, tuple[tuple[int, ...], DTypeLike]]

    @property
    def takes_fixed(self) -> bool:
        """Whether the function can hold parameters at a value."""
        try:
            return "fixed" in inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            return False

    def draw(self, seeds: Sequence[SeedSequence], fixed: Mapping[str, Any] | None = None) -> tuple[Values, Values]:
        """Return parameters and data, one draw a seed: each (len(seeds), ...).

        Raises
        ------
        InvalidArgumentError
            The function raises, or does not return what it must.
        """
        draws = [self._call(seed, fixed or {}) for seed in seeds]
        parameters = {
            name: np.array([draw[0][name] for draw in draws]).reshape(len(draws), *shape)
            for name, shape in self.parameters.items()
        }
        data = {
            name: np.array([draw[1][name] for draw in draws], dtype=dtype).reshape(len(draws), *shape)
            for name, (shape, dtype) in self.observed.items()
        }
        return parameters, data

    def _call(self, seed: SeedSequence, fixed: Mapping[str, Any]) -> tuple[Values, Values]:
        options = {"fixed": {name: np.array(value) for name, value in fixed.items()}} if fixed else {}
        inputs = {name: copy.copy(value) for name, value in self.data.items()}
        try:
            drawn = self.function(np.random.default_rng(seed), inputs, **options)
            parameters, observed = (dict(part) for part in drawn)
        except BreadError:
            raise
        except Exception as error:
            lines = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__
            raise InvalidArgumentError(f"simulator= failed: {reason}. {_CALL}") from error
        return (
            {name: _checked("parameter", name, parameters, shape) for name, shape in self.parameters.items()},
            {
                name: _checked(
                    "observed variable", name, observed, shape, is_whole=np.dtype(dtype).kind in "biu",
                    may_be_missing=_has_gaps(self.data.get(name)),
                )
                for name, (shape, dtype) in self.observed.items()
            },
        )  # fmt: skip


def _has_gaps(real: Any) -> bool:
    values = np.asarray(real)
    return values.dtype.kind == "f" and not np.isfinite(values).all()


def _checked(
    what: str, name: str, values: Mapping[str, Any], shape: tuple[int, ...], *,
    is_whole: bool = False, may_be_missing: bool = False,
) -> NDArray[Any]:  # fmt: skip
    if name not in values:
        raise InvalidArgumentError(
            f"simulator= returned no {what} {name!r}; it returned {', '.join(map(str, values)) or 'none'}. {_CALL}"
        )
    if np.shape(values[name]) != shape:
        raise InvalidArgumentError(
            f"simulator= returned the {what} {name!r} of shape {np.shape(values[name])}; the model declares {shape}."
        )
    value = np.asarray(values[name])
    wanted = ""
    if value.dtype.kind not in "biuf":
        wanted = "numbers"
    elif not (may_be_missing or np.isfinite(value).all()):
        wanted = "finite"
    elif is_whole and (value != np.rint(value)).any():
        wanted = "whole numbers"
    if wanted:
        raise InvalidArgumentError(
            f"simulator= returned the {what} {name!r} as {type(values[name]).__name__} {str(values[name])[:60]!r}; "
            f"it must be {wanted}."
        )
    return value
