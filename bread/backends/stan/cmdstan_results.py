"""Draws in the results of `cmdstanpy`: of its sampler, and of its approximations (Pathfinder, Laplace, ADVI)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.errors import InvalidArgumentError


def is_result(value: Any) -> bool:
    """Return whether a value is a result of `cmdstanpy` (CmdStanMCMC, CmdStanPathfinder, ...)."""
    return hasattr(value, "stan_variable")


def is_csv(value: Any) -> bool:
    """Return whether a value is the path of a file, or a list of them."""
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return all(isinstance(one, (str, os.PathLike)) for one in (value if is_list else (value,)))


def read_csv(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Any:
    """Read CSV files that CmdStan wrote.

    Raises
    ------
    InvalidArgumentError
        `cmdstanpy` cannot read them.
    """
    import cmdstanpy

    wanted = os.fspath(paths) if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    named = ", ".join(map(repr, [wanted] if isinstance(wanted, str) else wanted))
    try:
        found = cmdstanpy.from_csv(wanted)
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise InvalidArgumentError(f"posterior= {named} cannot be read as CSV files of CmdStan: {reason}") from error
    if not is_result(found):
        raise InvalidArgumentError(f"posterior= {named}: these are not CSV files of CmdStan's sampler.")
    return found


def draws_of(result: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return (chain, draw, ...) arrays of those names that the result has.

    A CmdStanMCMC holds all draws of a chain, then those of the next; an approximation's draws are one chain.

    Raises
    ------
    InvalidArgumentError
        The result is the point that CmdStan's optimizer found.
    """
    if hasattr(result, "optimized_params_np"):
        raise InvalidArgumentError(
            f"a {type(result).__name__} is one point, not draws. Pass what CmdStanModel.sample, pathfinder, "
            "laplace_sample or variational returned."
        )
    # CmdStanVB returns means unless it is asked for draws.
    options = {"mean": False} if hasattr(result, "variational_sample") else {}
    draws = {}
    for name in names:
        try:
            values = np.asarray(result.stan_variable(name, **options))
        except ValueError:
            continue  # the reader names what is missing
        draws[name] = values.reshape((getattr(result, "chains", 1), -1, *values.shape[1:]))
    return draws
