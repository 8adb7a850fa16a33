"""A model given by tables: a prior over finitely many states, and the law of an outcome in each of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng
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
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.exact.chain import FiniteChain
from bread.exact.transitions import Transition
from tests.models.finite.posterior import NO_REFERENCE, FinitePosterior, as_indices, as_states, draw

FIT_CHAINS, FIT_DRAWS = 4, 500
MOST_DATA_SETS = 100_000
TOLERANCE = 1e-9  # of sums of probabilities


@dataclass(frozen=True, eq=False)
class FiniteModel(Model):
    """A state on a line or grid with a prior, and independent outcomes in 0, ..., m - 1 given the state.

    Parameters
    ----------
    prior : ndarray, shape (n,) or the shape of a grid
        Probabilities of the states. Each axis is a coordinate, which holds whole numbers.
    likelihood : ndarray, shape (*prior.shape, m)
        Probabilities of an outcome in each state; the last axis sums to 1, zeros are allowed.
    data : ndarray of int, shape (n_observations,)
        The real data.
    transition : Transition
        Kernels (`bread.exact`), and how they are run in reverse. They are taken as they are: one that is not invariant,
        or is not turned round, is a bug for `bread.check` to find.

    Raises
    ------
    InvalidArgumentError
        A table holds no probabilities, or the data no outcomes that the prior allows.
    """

    prior: FloatArray
    likelihood: FloatArray
    data: IntArray
    transition: Transition

    def __post_init__(self) -> None:
        prior, likelihood, data = np.asarray(self.prior), np.asarray(self.likelihood), np.asarray(self.data)
        for name, table in (("prior", prior.reshape(1, -1)), ("likelihood", likelihood)):
            if table.ndim < 2 or not (table >= 0).all() or np.abs(table.sum(axis=-1) - 1).max() > TOLERANCE:
                raise InvalidArgumentError(
                    f"{name} must hold probabilities that sum to 1 (likelihood: in each state); received an array of "
                    f"shape {np.shape(getattr(self, name))} with sums {table.sum(axis=-1)}. Divide by the sums."
                )
        if prior.ndim < 1 or prior.shape != likelihood.shape[:-1]:
            raise InvalidArgumentError(
                f"prior must have one number for each row of likelihood; received shapes {prior.shape} and "
                f"{likelihood.shape}."
            )
        n_outcomes = likelihood.shape[-1]
        fits = data.ndim == 1 and np.issubdtype(data.dtype, np.integer) and ((data >= 0) & (data < n_outcomes))
        if not np.all(fits):
            raise InvalidArgumentError(
                f"data must be a vector of whole numbers from 0 to {n_outcomes - 1}; received {data!r}."
            )

    @property
    def info(self) -> ModelInfo:
        """Names, dimensions, data."""
        name, versions = type(self).__name__, {"numpy": np.__version__}
        dim = len(self._shape)
        return ModelInfo(
            Identity(name, "finite", "numpy", self.transition.name, versions, runs_compiled=True),
            Layout(
                coordinates=("state",) if dim == 1 else tuple(f"state[{axis}]" for axis in range(dim)),
                discrete=np.ones(dim, dtype=bool),
                hyperparameters=("state",),
                parameters={"state": () if dim == 1 else ("axis",)},
                positions={"state": np.arange(dim)},
                transformed=np.zeros(dim, dtype=bool),
            ),
            RealData({"y": np.asarray(self.data)}, {"y": ("observation",)}),
            {"reference": NO_REFERENCE},
        )

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw states and data jointly, exactly; draw i uses ``seed.spawn(n)[i]`` alone.

        Raises
        ------
        InvalidArgumentError
            ``fixed`` names something else than "state".
        """
        held = dict(fixed or {})
        if unknown := sorted(set(held) - {"state"}):
            raise InvalidArgumentError(f"fixed names {unknown}; the one parameter of a FiniteModel is 'state'.")
        root = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        size = 1 + len(self.data)
        uniforms = np.array([default_rng(child).random(size) for child in root.spawn(n)]).reshape(n, size)
        index = draw(np.broadcast_to(self._prior, (n, len(self._prior))), uniforms[:, 0])
        states = as_states(index, self._shape)
        if "state" in held:
            states[:] = held["state"]
            index = as_indices(states, self._shape)
        return Simulations(states, self.constrain(states), {"y": self._outcomes(index, uniforms[:, 1:])})

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Draw from the exact posterior on the real data: 4 chains of 500 independent draws."""
        began = time.perf_counter()
        law = self.chain({"y": self.data}).laws([1.0])
        uniforms = default_rng(seed).random(FIT_CHAINS * FIT_DRAWS)
        draws = draw(np.broadcast_to(law[0], (len(uniforms), law.shape[1])), uniforms)
        named = self.constrain(as_states(draws, self._shape))["state"]
        split = named.reshape((FIT_CHAINS, FIT_DRAWS, *named.shape[1:]))
        return Fit({"state": split}, "exact posterior draws", time.perf_counter() - began)

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the states as whole numbers."""
        places = np.asarray(states).astype(np.int64)
        return {"state": places[:, 0] if len(self._shape) == 1 else places}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return them as floats, an axis a column."""
        places = np.asarray(parameters["state"], dtype=np.float64)
        return places.reshape(len(places), len(self._shape))

    def condition(self, data: Data) -> FinitePosterior:
        """Return the posterior given one data set.

        Raises
        ------
        InvalidArgumentError
            The data lack "y", have another shape than the real ones, or cannot occur.
        """
        return FinitePosterior(self.chain(data))

    def n_observations(self) -> int:
        """Return the number of outcomes."""
        return len(self.data)

    def condition_first(self, data: Data, n: int) -> FinitePosterior:
        """Return the posterior given the first ``n`` outcomes; see `bread.backends.observations`."""
        return FinitePosterior(self.chain(data, n))

    def condition_without(self, data: Data, index: int) -> FinitePosterior:
        """Return the posterior without one outcome; see `bread.backends.observations`. Their order does not matter."""
        values = np.asarray(data["y"])
        moved = np.append(np.delete(values, index), values[index])
        return FinitePosterior(self.chain({"y": moved}, len(values) - 1))

    def nodes(self) -> tuple[Node, ...]:
        """Return the data and the state."""
        shape = () if len(self._shape) == 1 else (len(self._shape),)
        return (Node("y", "data", {"y": np.shape(self.data)}), Node("state", "parameter", {"state": shape}))

    def replicate(
        self, state: FloatArray, node: str, n: int, *, seed: SeedSequence, data: Data | None = None
    ) -> Replicates:
        """Draw replicates of the data given the state, or of the state from its prior.

        Raises
        ------
        UnsupportedModelError
            There is no such node.
        """
        rng, index = default_rng(seed), as_indices(state[None], self._shape)
        if node == "state":
            drawn = draw(np.broadcast_to(self._prior, (n, len(self._prior))), rng.random(n))
            return Replicates(as_states(np.concatenate([index, drawn]), self._shape))
        if node != "y":
            raise UnsupportedModelError(f"{node!r} cannot be replicated: there is no such node.")
        copies = self._outcomes(np.repeat(index, n), rng.random((n, len(self.data))))
        real = np.asarray((data or {"y": self.data})["y"], dtype=np.int64)
        rows: IntArray = np.concatenate([real[None], copies.astype(np.int64)])
        return Replicates(rows.astype(np.float64), self._log_likelihood(rows)[:, index[0]])

    # ---- exact answers ----------------------------------------------------------------------------------------

    def chain(self, data: Data, n: int | None = None) -> FiniteChain:
        """Return the annealing of one data set, or of its first ``n`` outcomes, as a chain of `bread.exact`.

        Raises
        ------
        InvalidArgumentError
            The data lack "y", have another shape than the real ones, or cannot occur.
        """
        given = np.asarray(data["y"]) if "y" in data else np.full(1, -1)
        values, n_outcomes = given.astype(np.int64), np.shape(self.likelihood)[-1]
        is_outcome = (values == given) & (values >= 0) & (values < n_outcomes)
        if values.shape != np.shape(self.data) or not is_outcome.all():
            raise InvalidArgumentError(
                f"data must have 'y' of the real data's shape {np.shape(self.data)}, whole numbers from 0 to "
                f"{n_outcomes - 1}; received {dict(data)!r}."
            )
        with np.errstate(divide="ignore"):
            log_prior = np.log(np.asarray(self.prior, dtype=np.float64))
        log_likelihood = self._log_likelihood(values[None, :n])[0].reshape(self._shape)
        return FiniteChain(log_prior, log_likelihood, self.transition, type(self).__name__)

    def log_evidence(self, data: Data) -> float:
        """Return the exact log evidence of one data set, in nats."""
        return self.chain(data).log_evidence

    def data_sets(self) -> tuple[IntArray, FloatArray]:
        """Return all data sets that can occur, shape (k, n_observations), and their probabilities, shape (k,).

        Means over them of exact J, B and V are what a check with ``simulate_from="prior"`` estimates.

        Raises
        ------
        UnsupportedModelError
            There are more than 100,000.
        """
        n_outcomes, n_observations = np.shape(self.likelihood)[-1], len(self.data)
        if n_outcomes**n_observations > MOST_DATA_SETS:
            raise UnsupportedModelError(
                f"{n_outcomes} outcomes in {n_observations} observations make more than {MOST_DATA_SETS} data sets. "
                "Take fewer observations."
            )
        rows = np.array(list(product(range(n_outcomes), repeat=n_observations)), dtype=np.int64)
        probability = np.exp(self._log_likelihood(rows)) @ self._prior
        return rows[probability > 0], probability[probability > 0]

    @property
    def _shape(self) -> tuple[int, ...]:
        return np.shape(self.prior)

    @property
    def _prior(self) -> FloatArray:
        return np.asarray(self.prior, dtype=np.float64).ravel()

    @property
    def _table(self) -> FloatArray:
        """The law of an outcome in each state, shape (n, m)."""
        likelihood = np.asarray(self.likelihood, dtype=np.float64)
        return likelihood.reshape(-1, likelihood.shape[-1])

    def _log_likelihood(self, rows: IntArray) -> FloatArray:
        """Return the log likelihood of each row of outcomes in each state, shape (row, state)."""
        with np.errstate(divide="ignore"):
            table = np.log(self._table)
        return np.asarray(table[:, rows].sum(axis=2).T)

    def _outcomes(self, index: IntArray, uniforms: FloatArray) -> IntArray:
        """Draw outcomes for each state by uniform numbers (n, n_observations)."""
        rows = self._table[np.repeat(index, uniforms.shape[1])]
        return draw(rows, uniforms.ravel()).astype(np.asarray(self.data).dtype).reshape(uniforms.shape)
