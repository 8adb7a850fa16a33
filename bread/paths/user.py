"""References of the user's: any object that draws and has a normalised log density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from bread.errors import InvalidArgumentError
from bread.paths.mixture import FloatArray, MixtureReference

_DIFFERENCE = 1e-5  # step of a central difference, relative to the size of the coordinate


@dataclass(frozen=True)
class UserReference:
    """A reference of the user's: an object with ``sample(n, rng)`` and ``log_density(states)``.

    Its ``gradient(states)`` is used where it has one; else gradients are central differences, which leave every kernel
    valid (a trajectory that follows another field than the gradient is still reversible and keeps volume) and cost
    2 dim densities.

    Attributes
    ----------
    source : object
    label : str
    doubt : str
        Why it is not known that the density is normalised; empty where it is.
    """

    is_own: ClassVar[Literal[False]] = False

    source: Any
    label: str = "the user's reference"
    doubt: str = ""

    def sample(self, n: int, rng: Generator) -> FloatArray:
        """Return ``n`` independent draws, shape (n, dim)."""
        draws = np.asarray(self.source.sample(n, rng), dtype=float)
        if draws.ndim != 2 or len(draws) != n or not np.isfinite(draws).all():
            raise InvalidArgumentError(
                f"sample({n}, rng) of the reference must return finite draws of shape ({n}, dim), but returned "
                f"shape {draws.shape}."
            )
        return draws

    def log_density(self, states: FloatArray) -> FloatArray:
        """Return the normalised log density (nats), shape ``states.shape[:-1]``."""
        rows = np.asarray(states, dtype=float).reshape(-1, np.shape(states)[-1])
        values = np.asarray(self.source.log_density(rows), dtype=float)
        if values.shape != (len(rows),):
            raise InvalidArgumentError(
                f"log_density(states) of the reference must return one number per row, shape ({len(rows)},), but "
                f"returned {values.shape}."
            )
        return values.reshape(np.shape(states)[:-1])

    def gradient(self, states: FloatArray) -> FloatArray:
        """Return the gradient of the log density, shape ``states.shape``."""
        states = np.asarray(states, dtype=float)
        if hasattr(self.source, "gradient"):
            rows = states.reshape(-1, states.shape[-1])
            return np.asarray(self.source.gradient(rows), dtype=float).reshape(states.shape)
        result = np.empty(states.shape)
        for index in range(states.shape[-1]):
            step = _DIFFERENCE * np.maximum(1.0, np.abs(states[..., index]))
            up, down = states.copy(), states.copy()
            up[..., index] += step
            down[..., index] -= step
            result[..., index] = (self.log_density(up) - self.log_density(down)) / (2 * step)
        return result


def as_reference(value: Any) -> MixtureReference | UserReference:
    """Return a reference of the user's, checked.

    Raises
    ------
    InvalidArgumentError
        It lacks ``sample`` or ``log_density``.
    """
    if isinstance(value, MixtureReference | UserReference):
        return value
    for name in ("sample", "log_density"):
        if not callable(getattr(value, name, None)):
            raise InvalidArgumentError(
                f"a reference must have the methods sample(n, rng) and log_density(states), but the "
                f"{type(value).__name__} given has no {name}."
            )
    return UserReference(value)
