"""What a conjugate model supplies: its densities, draws and exact evidence, written out by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray, IntArray
from bread.errors import UnsupportedKernelError, UnsupportedModelError
from tests.models.reference.arrays import Statistics


class Formulae(ABC):
    """The formulae of a conjugate model.

    Densities take states of shape (..., row, dim) and must use elementwise operations and sums over the last axis
    alone, so that results are bit-equal for any batching of chains.

    Attributes
    ----------
    label_index : int or None
        Coordinate of the discrete label, where there is one.
    """

    label_index: ClassVar[int | None] = None

    @property
    @abstractmethod
    def coordinates(self) -> tuple[str, ...]:
        """Label of each unconstrained coordinate."""

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return len(self.coordinates)

    @property
    def continuous(self) -> IntArray:
        """Indices of the continuous coordinates."""
        return np.array([i for i in range(self.dim) if i != self.label_index], dtype=np.int64)

    @property
    @abstractmethod
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """Dimension names of each parameter."""

    @property
    @abstractmethod
    def observed_data(self) -> dict[str, NDArray[Any]]:
        """The real data."""

    @property
    def observed(self) -> dict[str, tuple[str, ...]]:
        """Dimension names of each observed variable."""
        return {name: ("observation",) for name in self.observed_data}

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Coordinate values of the dimensions."""
        return {"observation": np.arange(len(next(iter(self.observed_data.values()))))}

    @property
    def constant_data(self) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """Covariates."""
        return {}

    @abstractmethod
    def summarise(self, data: Data) -> Statistics:
        """Return what the densities need of the data; each array of ``data`` has a leading row axis."""

    @abstractmethod
    def log_prior(self, states: FloatArray) -> FloatArray:
        """Return the log prior in unconstrained coordinates, Jacobian included; shape ``states.shape[:-1]``."""

    @abstractmethod
    def log_likelihood(self, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log likelihood, shape ``states.shape[:-1]``."""

    @abstractmethod
    def gradient_log_density(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the gradient of log prior + beta * log likelihood, zero at discrete coordinates."""

    @abstractmethod
    def draw_state(self, generator: Generator, fixed: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Draw one state, shape (dim,), from the prior; named parameters in ``fixed`` are held."""

    @abstractmethod
    def draw_data(self, parameters: Mapping[str, NDArray[Any]], generator: Generator) -> dict[str, NDArray[Any]]:
        """Draw one data set given one set of named parameters."""

    def draw_data_rows(
        self, parameters: Mapping[str, NDArray[Any]], n: int, generator: Generator
    ) -> dict[str, NDArray[Any]]:
        """Draw ``n`` data sets given one set of named parameters, each (n, ...)."""
        sets = [self.draw_data(parameters, generator) for _ in range(n)]
        return {name: np.array([one[name] for one in sets]) for name in self.observed_data}

    @abstractmethod
    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to named parameters (n, ...)."""

    @abstractmethod
    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map named parameters (n, ...) to states (n, dim)."""

    @abstractmethod
    def log_evidence_of_rows(self, statistics: Statistics) -> FloatArray:
        """Return the exact log evidence of every row of data, shape (rows,)."""

    @abstractmethod
    def draw_posterior_of(self, statistics: Statistics, n: int, generator: Generator) -> FloatArray:
        """Draw ``n`` exact posterior states given one row of data, shape (n, dim)."""

    def draw_tempered_of(self, beta: float, statistics: Statistics, generator: Generator) -> FloatArray:
        """Draw one exact state of the law at ``beta`` given one row of data, shape (dim,).

        Raises
        ------
        UnsupportedModelError
            By default: there is no closed form.
        """
        raise UnsupportedModelError(f"{type(self).__name__} has no closed form of its tempered laws to draw from.")

    def gaussian_targets(self, betas: FloatArray, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Return mean and Cholesky factor of the continuous coordinates at each inverse temperature.

        Returns
        -------
        mean : ndarray, shape (len(betas), label, row, n_continuous)
        cholesky : ndarray, shape (len(betas), label, n_continuous, n_continuous)
            One entry of ``label`` for a model without a discrete label.

        Raises
        ------
        UnsupportedKernelError
            The tempered densities of this model are not Gaussian.
        """
        raise UnsupportedKernelError(
            f"AutoregressiveKernel needs Gaussian tempered densities, which {type(self).__name__} has not. "
            "Use kernel=HMCKernel()."
        )

    def label_log_odds(self, beta: float, states: FloatArray, statistics: Statistics) -> FloatArray:
        """Return the log odds of label 1 given the other coordinates at ``beta``; models with a label only."""
        raise UnsupportedKernelError(
            f"GibbsLabelKernel needs a discrete label, which {type(self).__name__} has not. Leave it out."
        )
