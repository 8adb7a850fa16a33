"""What every engine checks of its arguments, and the limits of a kernel's settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import FloatArray
from bread.errors import InvalidArgumentError

SMALLEST_SETTING, LARGEST_SETTING = 1e-12, 1e12  # those of PyMC's own metric


def within_limits(values: Any) -> FloatArray:
    """Return settings of a kernel, kept where their logs can be interpolated."""
    return np.asarray(np.clip(np.array(values, dtype=np.float64), SMALLEST_SETTING, LARGEST_SETTING))


def check_run(betas: FloatArray, direction: str, initial: FloatArray, seeds: Sequence[SeedSequence]) -> None:
    """Check what `bread.backends.base.Posterior.anneal` was given.

    Raises
    ------
    InvalidArgumentError
        ``betas`` does not increase from 0 to 1, ``direction`` is unknown, or the number of seeds is wrong.
    """
    if betas.ndim != 1 or len(betas) < 2 or betas[0] != 0.0 or betas[-1] != 1.0 or (np.diff(betas) <= 0).any():
        raise InvalidArgumentError(f"betas must increase from 0 to 1, both ends counted; received {betas!r}.")
    if direction not in ("forward", "reverse"):
        raise InvalidArgumentError(f"direction must be 'forward' or 'reverse'; received {direction!r}.")
    if len(initial) != len(seeds):
        raise InvalidArgumentError(
            f"initial has {len(initial)} rows and seeds has {len(seeds)} entries; give one seed per chain."
        )


def require_parameters(names: Sequence[str], known: Collection[str]) -> None:
    """Check names of hyperparameters against the parameters of a model.

    Raises
    ------
    InvalidArgumentError
        There are none, or one is no parameter.
    """
    if not names:
        raise InvalidArgumentError(f"hyperparameters is empty; name at least one of {', '.join(known)}.")
    for name in names:
        if name not in known:
            raise InvalidArgumentError(
                f"hyperparameters names {name!r}, which is no parameter of the program; it has {', '.join(known)}."
            )
