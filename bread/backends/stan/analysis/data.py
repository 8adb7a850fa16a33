"""What an analysis asks of the program and of the user's data before it reads statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bread.backends.stan.language.scopes import Scopes, Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.simulator.requirements import PRIOR_ONLY
from bread.backends.stan.split import rewriting
from bread.errors import InvalidArgumentError, UnsupportedModelError


def check_program(source: Source, scopes: Scopes) -> None:
    """Refuse reserved names and programs without parameters."""
    if rewriting.uses_reserved_names(source):
        raise UnsupportedModelError(
            f"{source.name!r} uses names that start with 'bread_', which bread adds itself. Rename them."
        )
    if not scopes.of_kind("parameter"):
        raise UnsupportedModelError(f"{source.name!r} has no parameters: there is nothing to infer.")


def check_data(source: Source, scopes: Scopes, data_names: Sequence[str] | None) -> None:
    """Refuse data that lack a variable of the data block."""
    if data_names is None:
        return
    for variable in scopes.of_kind("data"):
        if variable.name not in data_names:
            raise InvalidArgumentError(
                f"The data lack {variable.name!r}, which {source.origin(variable.line)} declares. Data given: "
                f"{', '.join(map(repr, data_names)) or 'none'}."
            )


def whole_numbers(scopes: Scopes, outcomes: Sequence[Variable], data: Mapping[str, Any]) -> dict[str, int]:
    """Return the values of scalar integers of the data that stay what they are, whatever is simulated."""
    held = (v for v in scopes.of_kind("data") if v not in outcomes and v.name != PRIOR_ONLY)
    values = {v.name: data[v.name] for v in held if v.type == "int" and not v.rank and v.name in data}
    return {name: int(value) for name, value in values.items() if _is_whole(value)}


def _is_whole(value: Any) -> bool:
    """Return whether a value is one whole number; what else it may be, such as nested lists, is for Stan to refuse."""
    if isinstance(value, np.ndarray):
        return not value.ndim and value.dtype.kind in "biu"
    return isinstance(value, (bool, int, np.bool_, np.integer))
