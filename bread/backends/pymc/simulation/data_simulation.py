"""Data drawn from a PyMC model given its parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.pymc.density.compiling import detach, first_line, interpret_function, replace
from bread.backends.pymc.simulation.streams import Part, generators
from bread.errors import UnsupportedModelError

# What NumPy 2, SciPy 1.16 and PyTensor say of parameters outside their domain, as of a negative scale.
_DOMAIN = re.compile(r"<=? ?0|[Dd]omain error|not between 0 and 1|[Pp]arameters? must be|definite")


class ExtremeDataError(UnsupportedModelError):
    """Parameters drawn from the prior give data that cannot be drawn; other parameters may not."""


@dataclass(frozen=True)
class DataSimulator:
    """Draws all observed variables given all free ones.

    Attributes
    ----------
    observed : dict of str to (shape, dtype)
        Observed variables as the model has them.
    """

    observed: dict[str, tuple[tuple[int, ...], str]]
    _function: Callable[..., list[Any]]
    _n_generators: int

    def draw(self, values: Mapping[str, NDArray[Any]], seed: SeedSequence) -> dict[str, NDArray[Any]]:
        """Draw one data set given the free variables, which must be in the model's order.

        Raises
        ------
        UnsupportedModelError
            If PyMC cannot draw the data at all, or draws another shape.
        ExtremeDataError
            If these parameters give data that cannot be drawn or are not finite.
        """
        names = ", ".join(map(repr, self.observed))
        try:
            with np.errstate(all="ignore"):
                outputs = self._function(*values.values(), *generators(seed, Part.DATA, 0, self._n_generators))
        except (TypeError, NotImplementedError) as error:
            raise UnsupportedModelError(
                f"PyMC cannot simulate {names} given parameters: {first_line(error)}. Every observed variable must be "
                "one that pm.sample_prior_predictive can draw."
            ) from error
        except Exception as error:
            if _DOMAIN.search(str(error)):
                raise ExtremeDataError(
                    f"Simulating {names} given parameters fails: {first_line(error)}. A parameter of a distribution is "
                    "outside its domain there, or NaN, which the priors allow: give what it is computed from a prior "
                    "that cannot leave it (such as pm.HalfNormal for a scale), or a link (such as pm.math.exp); "
                    'or use simulate_from="fitted".'
                ) from error
            raise ExtremeDataError(
                f"Simulating {names} given parameters fails: {first_line(error)}. Tighten the priors that make the "
                'data extreme, or use simulate_from="fitted".'
            ) from error
        draw = dict(zip(self.observed, outputs, strict=True))
        for name, (shape, _) in self.observed.items():
            if draw[name].shape != shape:
                raise UnsupportedModelError(
                    f"Simulated data of {name!r} have shape {draw[name].shape}, the real data {shape}. Make random= or "
                    "dist= return draws of the shape asked for."
                )
            if not np.all(np.isfinite(draw[name])):
                raise ExtremeDataError(
                    f"Simulated data of {name!r} are not finite. Tighten the priors that make the data extreme, or use "
                    'simulate_from="fitted".'
                )
        return draw


def build_data_simulator(model: Any, observed: Mapping[str, NDArray[Any]]) -> DataSimulator:
    """Build the simulator of a model's data; ``observed`` are the real data."""
    free = list(model.free_RVs)
    placeholders = [variable.type(name=variable.name) for variable in free]
    graph = detach(replace(model.observed_RVs, dict(zip(free, placeholders, strict=True))))
    return DataSimulator(
        observed={name: (value.shape, str(value.dtype)) for name, value in observed.items()},
        _function=interpret_function([*placeholders, *graph.generators], graph.outputs),
        _n_generators=len(graph.generators),
    )
