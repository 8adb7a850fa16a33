"""Base of the reference models: everything of the contract that does not depend on the formulae of one model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from bread.backends.base import (
    Data,
    Fit,
    FloatArray,
    Identity,
    IntArray,
    Layout,
    Model,
    ModelInfo,
    Node,
    RealData,
    Replicates,
    Simulations,
)
from bread.backends.observations import dependent
from bread.errors import InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError
from bread.paths.mixture import Reference
from tests.models.reference import replicating
from tests.models.reference.arrays import Statistics
from tests.models.reference.formulae import Formulae
from tests.models.reference.kernels import ReferenceKernel
from tests.models.reference.posterior import ReferencePosterior

FIT_CHAINS = 4
FIT_DRAWS = 500


class ReferenceModel(Formulae, Model):
    """A conjugate model: exact simulation, exact posterior draws, exact log evidence, gradients by hand.

    A subclass is a frozen dataclass whose fields are the real data, the constants of the prior and the kernel; it
    supplies the formulae. The contract is here. Where observations are independent given the state and do not enter the
    prior, ``per_observation`` names the fields (data and covariates) that are cut to condition on the first of them.
    """

    may_be_inherited: ClassVar[bool] = True

    kernel: ReferenceKernel
    hyperparameter_names: ClassVar[tuple[str, ...] | None] = None
    per_observation: ClassVar[tuple[str, ...]] = ()  # fields with a row for each independent observation

    def __post_init__(self) -> None:
        if (self.label_index is not None) != self.kernel.moves_label:
            has = "has a discrete label" if self.label_index is not None else "has no discrete label"
            raise UnsupportedKernelError(
                f"kernel={self.kernel!r} does not fit {type(self).__name__}, which {has}. A model with a label needs "
                "CompoundKernel((GibbsLabelKernel(), ...)), a model without one must not have GibbsLabelKernel."
            )

    @property
    def info(self) -> ModelInfo:
        """Names, dimensions, data."""
        return ModelInfo(
            Identity(
                type(self).__name__,
                "reference",
                "numpy",
                self.kernel.name,
                {"numpy": np.__version__},
                runs_compiled=True,  # NumPy moves all chains of a task together
            ),
            Layout(
                coordinates=self.coordinates,
                discrete=np.arange(self.dim) == (-1 if self.label_index is None else self.label_index),
                hyperparameters=self.hyperparameter_names or tuple(self.parameters),
                parameters=self.parameters,
                positions=self.positions,
                transformed=self.transformed,
            ),
            RealData(self.observed_data, self.observed, self.constant_data, self.coords),
            self.path_refusals,
        )

    @property
    def path_refusals(self) -> dict[str, str]:
        """Why the others cannot be followed."""
        refusals = {}
        if self.kernel.draws_exactly:
            reason = (
                f"The kernel {self.kernel.name} draws from densities of the prior path alone. Use kernel=HMCKernel()."
            )
            refusals = {"reference": reason}
        if self.label_index is not None:
            refusals["reference"] = (
                f"{type(self).__name__} has a discrete label, and a reference is a density. Use path='prior'."
            )
        return refusals

    @property
    def transformed(self) -> NDArray[np.bool_]:
        """Which coordinates are transforms of a constrained parameter."""
        return np.zeros(self.dim, dtype=bool)

    @property
    def positions(self) -> dict[str, IntArray]:
        """Indices of the coordinates of each parameter: those that carry its name."""
        names = tuple(self.parameters)
        return {
            name: np.array(
                [i for i, label in enumerate(self.coordinates) if _parameter_of(label, names) == name],
                dtype=np.int64,
            )
            for name in names
        }

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly, exactly; draw i uses ``seed.spawn(n)[i]`` alone.

        Raises
        ------
        InvalidArgumentError
            ``fixed`` names something that is no parameter.
        """
        held = {} if fixed is None else {name: np.asarray(value) for name, value in fixed.items()}
        if unknown := sorted(set(held) - set(self.parameters)):
            raise InvalidArgumentError(
                f"fixed names {unknown}, which are no parameters of {type(self).__name__}; "
                f"it has {list(self.parameters)}."
            )
        root = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        generators = [default_rng(child) for child in root.spawn(n)]
        states = np.empty((n, self.dim))
        for row, generator in enumerate(generators):
            states[row] = self.draw_state(generator, held)
        parameters = self.constrain(states)
        sets = [
            self.draw_data({name: value[row] for name, value in parameters.items()}, generator)
            for row, generator in enumerate(generators)
        ]
        data = {
            name: np.array([one[name] for one in sets], dtype=real.dtype).reshape((n, *real.shape))
            for name, real in self.observed_data.items()
        }
        return Simulations(states=states, parameters=parameters, data=data)

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Draw from the exact posterior on the real data: 4 chains of 500 independent draws."""
        began = time.perf_counter()
        draws = self.draw_posterior(self.observed_data, FIT_CHAINS * FIT_DRAWS, default_rng(seed))
        named = {
            name: value.reshape((FIT_CHAINS, FIT_DRAWS, *value.shape[1:]))
            for name, value in self.constrain(draws).items()
        }
        return Fit(draws=named, source="exact posterior draws", seconds=time.perf_counter() - began)

    def condition(self, data: Data) -> ReferencePosterior:
        """Return the posterior given one data set.

        Raises
        ------
        InvalidArgumentError
            An observed variable is missing or has another shape than the real one.
        """
        return self._posterior(self.summarise(self._checked(data, n_leading=0)))

    def condition_rows(self, data: Data) -> ReferencePosterior:
        """Return the posteriors of several data sets at once: row i of the states goes with row i of the data.

        All chains of many data sets then run in one call; every one is bit-equal to its own ``condition``.
        """
        return self._posterior(self.summarise(self._checked(data, n_leading=1)))

    def n_observations(self) -> int:
        """Return the length of the data; see `bread.backends.observations.Separable`.

        Raises
        ------
        UnsupportedModelError
            The model names no fields ``per_observation``.
        """
        if not self.per_observation:
            raise dependent(type(self).__name__)
        return len(next(iter(self.observed_data.values())))

    def condition_first(self, data: Data, n: int) -> ReferencePosterior:
        """Return the posterior of the model of the first ``n`` observations, which has the same states."""
        if not 1 <= n <= self.n_observations():
            raise InvalidArgumentError(f"n must be from 1 to {self.n_observations()}; received {n!r}.")
        return self._condition_some(data, np.arange(n))

    def condition_without(self, data: Data, index: int) -> ReferencePosterior:
        """Return the posterior of the model without one observation, which has the same states."""
        n = self.n_observations()
        if not (0 <= index < n and n > 1):
            raise InvalidArgumentError(f"index must be from 0 to {n - 1}, with two observations; received {index!r}.")
        return self._condition_some(data, np.delete(np.arange(n), index))

    def _condition_some(self, data: Data, kept: IntArray) -> ReferencePosterior:
        whole = {name: values[0] for name, values in self._checked(data, n_leading=0).items()}
        fields: dict[str, Any] = {name: np.asarray(getattr(self, name))[kept] for name in self.per_observation}
        some: ReferenceModel = replace(self, **fields)  # type: ignore[type-var]
        return some.condition({name: values[kept] for name, values in whole.items()})

    def rows(self, data: Data) -> ReferencePosterior:
        """Return the posteriors of several data sets; see `bread.backends.base.Model.rows`."""
        return self.condition_rows(data)

    def _posterior(self, statistics: Statistics) -> ReferencePosterior:
        return ReferencePosterior(self, statistics, self.kernel, self.path_refusals)

    def nodes(self) -> tuple[Node, ...]:
        """Return the data, the latents (what the hyperparameters govern) and the parameters; see `replicating`."""
        return replicating.nodes(self)

    def replicate(
        self, state: FloatArray, node: str, n: int, *, seed: SeedSequence, data: Data | None = None
    ) -> Replicates:
        """Draw replicates of a node; see `bread.backends.base.Model.replicate`."""
        return replicating.replicate(self, state, node, n, seed, self.observed_data if data is None else data)

    def has_own_prior(self, names: Sequence[str]) -> bool:
        """Whether the prior of the named parameters is a factor of the prior; that of all of them always is."""
        return set(names) == set(self.parameters)

    def log_prior_of(self, names: Sequence[str], states: FloatArray) -> FloatArray:
        """Return that factor in the log, Jacobian included; shape ``states.shape[:-1]``."""
        return self.log_prior(states)

    def gradient_log_prior_of(self, names: Sequence[str], states: FloatArray) -> FloatArray:
        """Return its gradient, shape ``states.shape``; models with a `has_own_prior` of their own only."""
        raise UnsupportedModelError(
            f"{type(self).__name__} has no gradient of the prior of {', '.join(names)}. Use simulate_from='prior'."
        )

    def localise(self, names: Sequence[str], reference: Reference) -> Model:
        """Return this model with ``reference`` as the law of the named parameters.

        Raises
        ------
        InvalidArgumentError
            An unknown name.
        UnsupportedModelError
            The model does not say which part of its prior is theirs.
        UnsupportedKernelError
            The kernel needs closed forms that the new model has not.
        """
        from tests.models.reference.localised import LocalisedModel  # it is a ReferenceModel itself

        return LocalisedModel(self, tuple(names), reference)

    def given_real_data(self) -> Model:
        """Return this model with its posterior given the real data as its prior; see `bread.backends.base.Model`.

        Raises
        ------
        UnsupportedKernelError
            The kernel needs closed forms that the new model has not.
        """
        from tests.models.reference.localised import GivenDataModel  # it is a ReferenceModel itself

        if self.kernel.draws_exactly or self.label_index is not None:
            raise UnsupportedKernelError(
                f"simulate_from='posterior' needs kernel=HMCKernel() and no discrete label; {type(self).__name__} has "
                f"{self.kernel!r}."
            )
        return GivenDataModel(self)

    # ---- exact answers ----------------------------------------------------------------------------------------

    def log_evidence(self, data: Data) -> float:
        """Return the exact log evidence of one data set, in nats."""
        return float(self.log_evidence_of_rows(self.summarise(self._checked(data, n_leading=0)))[0])

    def log_evidence_rows(self, data: Data) -> FloatArray:
        """Return the exact log evidence of every row of data, in nats."""
        return self.log_evidence_of_rows(self.summarise(self._checked(data, n_leading=1)))

    def draw_posterior(self, data: Data, n: int, rng: Generator) -> FloatArray:
        """Draw ``n`` independent exact posterior states given one data set, shape (n, dim)."""
        return self.draw_posterior_of(self.summarise(self._checked(data, n_leading=0)), n, rng)

    def draw_prior(self, n: int, rng: Generator) -> FloatArray:
        """Draw ``n`` independent prior states, shape (n, dim)."""
        return np.array([self.draw_state(rng, {}) for _ in range(n)]).reshape((n, self.dim))

    def _checked(self, data: Data, *, n_leading: int) -> dict[str, NDArray[Any]]:
        rows = {}
        for name, real in self.observed_data.items():
            if name not in data:
                raise InvalidArgumentError(f"data lack {name!r}; they must have {list(self.observed_data)}.")
            values = np.asarray(data[name])
            if values.shape[n_leading:] != real.shape or values.ndim != real.ndim + n_leading:
                raise InvalidArgumentError(
                    f"data have {name!r} of shape {values.shape[n_leading:]}; the real data have {real.shape}, and "
                    "simulated data must have the same shape."
                )
            rows[name] = values if n_leading else values[None]
        return rows


def _parameter_of(label: str, names: Sequence[str]) -> str:
    """Return the parameter that the coordinate ``label`` belongs to: the longest name that begins it."""
    return max((name for name in names if label == name or label.startswith((f"{name}[", f"{name}_"))), key=len)
