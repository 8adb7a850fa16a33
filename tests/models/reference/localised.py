"""Reference models with another prior: a normalised density for some parameters, or the posterior given the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray, IntArray
from bread.errors import InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError
from bread.paths.mixture import Reference
from tests.models.reference.arrays import Statistics
from tests.models.reference.kernels import ReferenceKernel
from tests.models.reference.model import ReferenceModel


@dataclass(frozen=True, eq=False)
class DerivedModel(ReferenceModel):
    """``base`` with another prior; its likelihood and its coordinates stay.

    Parameters
    ----------
    base : ReferenceModel
    """

    base: ReferenceModel

    @property
    def kernel(self) -> ReferenceKernel:  # type: ignore[override]
        """The kernel of ``base``."""
        return self.base.kernel

    @property
    def hyperparameter_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Those of ``base``."""
        return self.base.hyperparameter_names

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Those of ``base``."""
        return self.base.coordinates

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """Those of ``base``."""
        return self.base.parameters

    @property
    def transformed(self) -> NDArray[np.bool_]:
        """Those of ``base``."""
        return self.base.transformed

    @property
    def observed(self) -> dict[str, tuple[str, ...]]:
        """Those of ``base``."""
        return self.base.observed

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Those of ``base``."""
        return self.base.coords

    @property
    def constant_data(self) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """Those of ``base``."""
        return self.base.constant_data

    @property
    def observed_data(self) -> dict[str, NDArray[Any]]:
        """The real data."""
        return self.base.observed_data

    def summarise(self, data: Data) -> Statistics:
        """Return what ``base`` needs of the data."""
        return self.base.summarise(data)

    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log likelihood of ``base``."""
        return self.base.log_likelihood(states, statistics)

    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw data as ``base`` does."""
        return self.base.draw_data(parameters, generator)

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states to named parameters as ``base`` does."""
        return self.base.constrain(states)

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map named parameters to states as ``base`` does."""
        return self.base.unconstrain(parameters)

    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Refuse: the evidence of such a model has no closed form here."""
        raise UnsupportedModelError(f"{type(self).__name__} has no exact evidence. Use the annealed bounds.")

    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Refuse: exact posterior draws of such a model come with simulated data alone."""
        raise UnsupportedModelError(
            f"{type(self).__name__} has no exact posterior draws given data. Use those of simulate()."
        )


@dataclass(frozen=True, eq=False)
class LocalisedModel(DerivedModel):
    """``base`` with ``reference`` as the law of the coordinates of ``names``; everything given them stays.

    Its log prior is that of ``base`` minus the part that `ReferenceModel.log_prior_of` names, plus the log density of
    the reference. Exact evidence and posterior draws are not known in general.

    Parameters
    ----------
    base : ReferenceModel
        Its kernel must not need closed forms.
    names : tuple of str
        Parameters.
    reference : Reference
        Normalised density on their unconstrained coordinates, in the order of the state.

    Raises
    ------
    UnsupportedModelError
        The prior of ``names`` is no factor of the model's prior.
    UnsupportedKernelError
        The kernel draws exactly from densities of the model as it was.
    """

    names: tuple[str, ...]
    reference: Reference

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.names) - set(self.base.parameters)):
            raise InvalidArgumentError(
                f"names holds {unknown}, which are no parameters of {type(self.base).__name__}; "
                f"it has {list(self.base.parameters)}."
            )
        if not self.base.has_own_prior(self.names):
            raise UnsupportedModelError(
                f"{type(self.base).__name__} does not say which part of its prior is the law of "
                f"{', '.join(self.names)}. Use simulate_from='prior'."
            )
        if self.base.kernel.draws_exactly or self.base.label_index is not None:
            raise UnsupportedKernelError(
                f"A localised model needs kernel=HMCKernel() and no discrete label; {type(self.base).__name__} has "
                f"{self.base.kernel!r}."
            )

    @cached_property
    def local(self) -> IntArray:
        """Indices of the coordinates that the reference governs."""
        return np.sort(np.concatenate([self.base.positions[name] for name in self.names]))

    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return the log prior of ``base`` with the reference in place of the prior of ``names``."""
        own = self.reference.log_density(np.ascontiguousarray(states[..., self.local]))
        if set(self.names) == set(self.parameters):
            return own
        return np.asarray(self.base.log_prior(states) - self.base.log_prior_of(self.names, states) + own)

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the gradient of log prior + beta * log likelihood."""
        whole = self.base.gradient_log_density(beta, states, statistics)
        if set(self.names) == set(self.parameters):
            result = whole - self.base.gradient_log_density(0.0, states, statistics)
        else:
            result = whole - self.base.gradient_log_prior_of(self.names, states)
        result[..., self.local] += self.reference.gradient(np.ascontiguousarray(states[..., self.local]))
        return result

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw the coordinates of ``names`` from the reference, then the other parameters given them."""
        state = self.base.draw_state(generator, fixed)
        state[self.local] = self.reference.sample(1, generator)[0]
        held = {name: value[0] for name, value in self.base.constrain(state[None, :]).items() if name in self.names}
        return self.base.draw_state(generator, held | dict(fixed))


@dataclass(frozen=True, eq=False)
class GivenDataModel(DerivedModel):
    """``base`` with its posterior given the real data in place of its prior, up to a constant."""

    @cached_property
    def _real(self) -> Statistics:
        return self.base.summarise({name: values[None] for name, values in self.base.observed_data.items()})

    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return the log density of prior and real data."""
        return np.asarray(self.base.log_prior(states) + self.base.log_likelihood(states, self._real))

    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the gradient of log prior + log likelihood of the real data + beta * log likelihood."""
        whole = self.base.gradient_log_density(1.0, states, self._real)
        prior = self.base.gradient_log_density(0.0, states, statistics)
        return np.asarray(whole + self.base.gradient_log_density(beta, states, statistics) - prior)

    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the parameters, all of which must be held."""
        return self.base.draw_state(generator, fixed)
