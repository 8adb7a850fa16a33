"""The arguments of `bread.check`: what is allowed, what stands for a default, and how a report keeps them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import ModelInfo
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths import schedules
from bread.running.choice import AUTO


def model_in_context(model: Any) -> Any:
    """Return the model, or the one whose ``with`` block surrounds the call."""
    if model is not None:
        return model
    pymc = sys.modules.get("pymc")
    found = pymc.Model.get_context(error_if_none=False) if pymc is not None else None
    if found is None:
        raise InvalidArgumentError(
            "No model: pass one, bread.check(model), or call bread.check() inside `with model:`."
        )
    return found


def read_temperatures(n_temperatures: Any, schedule: Any, max_temperatures: int) -> tuple[int, ...] | None:
    """Return the numbers of temperatures to run, in increasing order; None where T is to grow."""
    require_count("max_temperatures", max_temperatures, 2)
    if not isinstance(schedule, str):
        length = len(schedules.explicit(schedule))
        if n_temperatures is not None and n_temperatures != length:
            raise InvalidArgumentError(
                f"schedule is an array of {length} inverse temperatures, so n_temperatures must be {length} or None, "
                f"got {n_temperatures!r}."
            )
        return (length,)
    require_choice("schedule", schedule, schedules.NAMES)
    if n_temperatures is None:
        return None
    values = [n_temperatures] if np.ndim(n_temperatures) == 0 else list(n_temperatures)
    if not values:
        raise InvalidArgumentError(
            "n_temperatures must be a whole number, a sequence of them or None, got an empty one."
        )
    for value in values:
        require_count("n_temperatures", value, 2)
    return tuple(sorted({int(value) for value in values}))


def require_count(name: str, value: Any, least: int) -> None:
    """Raise InvalidArgumentError unless ``value`` is a whole number of at least ``least``."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
        raise InvalidArgumentError(f"{name} must be a whole number >= {least}, got {value!r}.")


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise InvalidArgumentError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def require_parameters(names: Sequence[str] | None, info: ModelInfo) -> None:
    """Raise InvalidArgumentError unless the names are free variables of the model."""
    unknown = [name for name in names or () if name not in info.parameters]
    if unknown:
        raise InvalidArgumentError(
            f"hyperparameters names {unknown[0]!r}, which is no free variable of the model; it has "
            f"{', '.join(info.parameters)}."
        )


def require_path(path: str, info: ModelInfo) -> None:
    """Refuse a path that the model or its kernel cannot follow."""
    if path == AUTO:
        if not info.paths:
            raise UnsupportedModelError(" ".join(info.path_refusals.values()))
    elif path not in info.paths:
        raise UnsupportedModelError(f"path={path!r}: {info.path_refusals[path]}")


def plain_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings that JSON can hold."""

    def plain(value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, (list, tuple, range)):
            return [plain(item) for item in value]
        if isinstance(value, np.ndarray):
            array: NDArray[Any] = value
            return array.tolist()
        return getattr(value, "__name__", type(value).__name__)

    return {name: (value is not None) if name == "posterior" else plain(value) for name, value in settings.items()}
