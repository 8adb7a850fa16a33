"""Angles: coordinates on the real line that stand for points of a circle.

PyMC's circular transform maps x and x + 2 pi to the same angle, and the density of the coordinate is periodic. A
kernel may leave [-pi, pi), exact draws never do: states are wrapped before anything compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Evolution, FloatArray
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.pymc.posterior import PyMCPosterior


def read_periodic(model: Any, layout: StateLayout, localised: Sequence[str] = ()) -> NDArray[np.bool_]:
    """Return which coordinates are angles, shape (dim,); ``localised`` variables, with a law on the line, are none."""
    from pymc.distributions.transforms import CircularTransform

    def is_angle(transform: Any) -> bool:
        return isinstance(getattr(transform, "transform_list", [transform])[-1], CircularTransform)

    angles = [
        variable.name not in localised and is_angle(model.rvs_to_transforms[variable]) for variable in model.free_RVs
    ]
    return np.repeat(angles, layout.sizes)


def refuse_reference(coordinates: Sequence[str], periodic: NDArray[np.bool_]) -> dict[str, str]:
    """Return why no reference path leads to a density with angles: its integral over the line does not exist."""
    names = ", ".join(name for name, is_angle in zip(coordinates, periodic, strict=True) if is_angle)
    if not names:
        return {}
    return {
        "reference": f"{names} is an angle, whose density repeats along the whole line, where a reference has one "
        "mass. Use path='prior'."
    }


@dataclass(frozen=True)
class PeriodicPosterior(PyMCPosterior):
    """A posterior whose states are returned with their angles in [-pi, pi).

    Attributes
    ----------
    periodic : ndarray of bool, shape (dim,)
    """

    periodic: NDArray[np.bool_]

    def _wrap(self, states: FloatArray) -> FloatArray:
        wrapped = np.array(states)
        wrapped[..., self.periodic] = (wrapped[..., self.periodic] + np.pi) % (2 * np.pi) - np.pi
        return wrapped

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return density and gradient, NaN for angles; see `PyMCPosterior.density_gradient`."""
        values, gradients = super().density_gradient(beta, states)
        gradients[:, self.periodic] = np.nan
        return values, gradients

    def anneal(self, *args: Any, **kwargs: Any) -> AnnealRun:
        """Run annealed chains; see `PyMCPosterior.anneal`."""
        run = super().anneal(*args, **kwargs)
        return replace(run, state_at_base=self._wrap(run.state_at_base), state_at_end=self._wrap(run.state_at_end))

    def evolve(self, *args: Any, **kwargs: Any) -> Evolution:
        """Run one chain at one inverse temperature; see `PyMCPosterior.evolve`."""
        evolution = super().evolve(*args, **kwargs)
        return replace(evolution, states=self._wrap(evolution.states))
