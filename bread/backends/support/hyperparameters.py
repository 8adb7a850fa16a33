"""Which free variables are held or localised, by what depends on what."""

from __future__ import annotations

from collections.abc import Mapping

from bread.backends.support.arguments import require_parameters
from bread.errors import InvalidArgumentError

Parents = Mapping[str, tuple[str, ...]]


def choose_hyperparameters(parents: Parents, chosen: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the free variables to hold: by default those that others depend on, all where there are none.

    Raises
    ------
    InvalidArgumentError
        A chosen one is unknown, or depends on one that is not chosen: forward draws would not be draws given it.
    """
    if chosen is None:
        found = {name for names in parents.values() for name in names}
        return tuple(name for name in parents if name in found) or tuple(parents)
    require_parameters(chosen, tuple(parents))
    for name in chosen:
        for parent in parents[name]:
            if parent not in chosen:
                raise InvalidArgumentError(
                    f"hyperparameters={list(chosen)}: {name!r} depends on {parent!r}, which must then be held too. "
                    f"Add {parent!r}."
                )
    return chosen
