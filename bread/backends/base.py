"""The contract between the core and a backend.

In one sentence: a backend simulates exactly, conditions on data, adapts a kernel into frozen settings, and
returns log ratios along annealed chains; everything else is core.

States are rows of a float array of shape (n, dim) in *unconstrained* coordinates; the Jacobian of the map to
the constrained parameters belongs to the prior. Discrete variables are coordinates that hold whole numbers.
Log quantities are in nats.

The number of coordinates is fixed: one ``dim`` for all states of a model, whatever the data. State spaces of varying
dimension (a mixture with an unknown number of components, reversible jump, programs whose control flow decides which
variables exist) are outside the contract, and a backend refuses such models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.errors import InvalidArgumentError
from bread.paths.kinds import Path
from bread.paths.mixture import Reference

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Data = Mapping[str, NDArray[Any]]
Settings = dict[str, FloatArray]
Direction = Literal["forward", "reverse"]


class Failure(IntEnum):
    """Why a chain has no finite log weight. Failures are recorded per chain, never dropped."""

    NONE = 0
    ZERO_RATIO = 1  # forward: f_1 / f_0 is zero at a state of the chain, the log weight is -inf (legal)
    ZERO_START = 2  # reverse: the exact draw has density zero (an error of model or simulator)
    NAN = 3  # a density was NaN outside a kernel
    EXCEPTION = 4  # a density raised outside a kernel


@dataclass(frozen=True)
class ModelInfo:
    """What the core and the report need to know of a model.

    Attributes
    ----------
    name, backend, engine, kernel : str
        Names for the report, such as "pymc", "pymc", "NUTS".
    versions : dict of str to str
        Versions of the packages that computed, such as {"pymc": "6.4.0"}.
    coordinates : tuple of str, length dim
        Label of each unconstrained coordinate, such as "tau_log__" or "theta[3]".
    discrete : ndarray of bool, shape (dim,)
        True for coordinates that hold whole numbers.
    hyperparameters : tuple of str
        Free variables that other free variables depend on; all of them where there are none.
    parameters : dict of str to tuple of str
        Dimension names of each constrained free variable (and deterministic), in the model's order.
    observed : dict of str to tuple of str
        Dimension names of each observed variable.
    coords : dict of str to ndarray
        Coordinate values of the dimensions named above (only those that the model names).
    observed_data : dict of str to ndarray
        The real data.
    constant_data : dict of str to tuple of (tuple of str, ndarray)
        Covariates: name -> (dimension names, values).
    notes : tuple of str
        Facts that a reader of the report must know (rejection rate of the simulator, a constant that the
        log evidence leaves out, ...).
    paths : tuple of str
        Kinds of path that the backend can anneal this model along, of `bread.paths`: "prior" (needs prior and
        likelihood apart), "reference" (needs the joint density alone, and kernels that move all coordinates by its
        gradient).
    path_refusals : dict of str to str
        For each kind that is missing in ``paths``, why, and what to do about it: one sentence.
    transformed : ndarray of bool, shape (dim,), or None
        True for coordinates of a constrained parameter: one of them may be the logarithm of a scale, and a reference
        must not have a heavy tail there. None: all may be.
    positions : dict of str to ndarray of int
        Indices of the coordinates of each free variable.
    """

    name: str
    backend: str
    engine: str
    kernel: str
    versions: dict[str, str]
    coordinates: tuple[str, ...]
    discrete: NDArray[np.bool_]
    hyperparameters: tuple[str, ...]
    parameters: dict[str, tuple[str, ...]]
    observed: dict[str, tuple[str, ...]]
    coords: dict[str, NDArray[Any]]
    observed_data: dict[str, NDArray[Any]]
    constant_data: dict[str, tuple[tuple[str, ...], NDArray[Any]]]
    notes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ("prior", "reference")
    path_refusals: Mapping[str, str] = field(default_factory=dict)
    transformed: NDArray[np.bool_] | None = None
    positions: Mapping[str, IntArray] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return len(self.coordinates)


@dataclass(frozen=True)
class Simulations:
    """Exact joint draws of parameters and data.

    Attributes
    ----------
    states : ndarray, shape (n, dim)
        Parameters in unconstrained coordinates.
    parameters : dict of str to ndarray, each (n, ...)
        Parameters (and deterministics) in the model's own coordinates, keys as ModelInfo.parameters.
    data : dict of str to ndarray, each (n, ...)
        Observed variables, keys as ModelInfo.observed, dtypes as the model's own data.
    acceptance : float
        Fraction of whole joint draws that the simulator kept (1 unless it rejects).
    """

    states: FloatArray
    parameters: dict[str, NDArray[Any]]
    data: dict[str, NDArray[Any]]
    acceptance: float = 1.0

    def __len__(self) -> int:
        return len(self.states)

    def joined(self, other: Simulations) -> Simulations:
        """Return these draws followed by others of the same model."""
        n, m = len(self), len(other)
        if n == 0:
            return other
        return Simulations(
            np.concatenate([self.states, other.states]),
            {name: np.concatenate([values, other.parameters[name]]) for name, values in self.parameters.items()},
            {name: np.concatenate([values, other.data[name]]) for name, values in self.data.items()},
            acceptance=(n + m) / (n / self.acceptance + m / other.acceptance),
        )

    def data_of(self, index: int) -> dict[str, NDArray[Any]]:
        """Return data set ``index``."""
        return {name: values[index] for name, values in self.data.items()}


@dataclass(frozen=True)
class Adaptation:
    """Result of adapting the kernel at one inverse temperature: settings to freeze, and the pilot's draws.

    Attributes
    ----------
    settings : dict of str to ndarray
        All positive numbers that the kernel needs: "step_size" of shape (), "inverse_metric" of shape (dim,), ...
        Interpolated between knots in the log by the core. Empty for a kernel without settings.
    state : ndarray, shape (dim,)
        Last state, where the adaptation at the next knot starts.
    log_ratio : ndarray, shape (n_draws,)
        log_ratio at draws of the second half of the adaptation, at this inverse temperature.
    n_gradients, n_evaluations : int
        Cost.
    """

    settings: Settings
    state: FloatArray
    log_ratio: FloatArray
    n_gradients: int
    n_evaluations: int


@dataclass(frozen=True)
class Kernel:
    """A frozen kernel: settings at knots of inverse temperature. Forward and reverse receive this same value.

    Attributes
    ----------
    betas : ndarray, shape (n_knots,)
        Increasing inverse temperatures of the knots, from 0 to 1.
    settings : dict of str to ndarray, shape (n_knots, ...)
        Positive kernel settings at the knots.
    log_ratio : tuple of ndarray
        For every knot, log_ratio at the pilot's draws. They place temperatures and are used for nothing else.
    source : str
        Which data the kernel was tuned on, such as "an extra simulated data set".
    """

    betas: FloatArray
    settings: Settings
    log_ratio: tuple[FloatArray, ...] = ()
    source: str = ""
    n_gradients: int = 0
    n_evaluations: int = 0

    def at(self, beta: float) -> Settings:
        """Return settings at ``beta``, interpolated in the log between the two nearest knots.

        The weight is linear in log(beta + first knot above 0), so that knots which grow geometrically near 0
        are interpolated evenly.
        """
        return self.along(np.array([beta]))[0]

    def along(self, betas: FloatArray) -> list[Settings]:
        """Return the settings at each of ``betas``, as `at` does."""
        if len(self.betas) == 1:
            return [{name: values[0] for name, values in self.settings.items()} for _ in betas]
        shift = self.betas[1]
        position = np.interp(np.log(betas + shift), np.log(self.betas + shift), np.arange(len(self.betas), dtype=float))
        low = np.minimum(position.astype(np.int64), len(self.betas) - 2)
        weight = position - low
        table = {}
        for name, values in self.settings.items():
            share = weight.reshape(-1, *[1] * (values.ndim - 1))
            logs = np.log(values)  # before rows are repeated
            table[name] = np.exp((1 - share) * logs[low] + share * logs[low + 1])
        return [{name: values[index] for name, values in table.items()} for index in range(len(betas))]


@dataclass(frozen=True)
class AnnealRun:
    """Annealed chains of one data set, one direction, one schedule of T inverse temperatures.

    Attributes
    ----------
    log_weight : ndarray, shape (chain,)
        ``path.log_weight(betas, log_ratio)``: the sum over t = 2..T of (beta_t - beta_{t-1}) * log_ratio(theta_{t-1});
        in both directions, so that the forward mean is a lower bound and the reverse mean an upper bound of the log
        evidence.
        -inf for Failure.ZERO_RATIO, NaN for the other failures.
    log_ratio : ndarray, shape (chain, knot)
        log_ratio(theta_t) for every t = 1..T (also theta_T, which no weight uses), in order of inverse
        temperature whatever the direction; or at the ``knots`` asked for.
    state_at_start : ndarray, shape (chain, dim)
        The path's end at beta = 0: theta_1 (forward: the draw from the start; reverse: where the chain ended).
    state_at_end : ndarray, shape (chain, dim)
        theta_T (forward: after the last kernel, at beta = 1; reverse: the exact draw it started from).
    log_start_density : ndarray, shape (chain, 2)
        log f_0 (log prior, or log density of the reference) at state_at_start and at state_at_end.
    n_gradients, n_evaluations, n_divergences, failure : ndarray of int, shape (chain,)
        Gradient evaluations; evaluations of the density alone; divergent transitions; `Failure`.
    seconds : float
        Wall time of the call.
    message : str
        Text of the first exception, for Failure.EXCEPTION.
    """

    log_weight: FloatArray
    log_ratio: FloatArray
    state_at_start: FloatArray
    state_at_end: FloatArray
    log_start_density: FloatArray
    n_gradients: IntArray
    n_evaluations: IntArray
    n_divergences: IntArray
    failure: IntArray
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class Evolution:
    """States of one chain of the frozen kernel at one inverse temperature, and its cost."""

    states: FloatArray  # (len(keep), dim)
    n_gradients: int = 0
    n_evaluations: int = 0


@dataclass(frozen=True)
class Fit:
    """Draws from the posterior on the real data, by the PPL's own sampler or the user's.

    Attributes
    ----------
    draws : dict of str to ndarray, each (chain, draw, ...)
        Free variables in the model's own coordinates.
    source : str
        "pm.sample", "posterior=".
    seconds : float
        Wall time of the fit (0 for the user's draws).
    """

    draws: dict[str, NDArray[Any]]
    source: str
    seconds: float = 0.0

    def flat_draws(self) -> dict[str, NDArray[Any]]:
        """Return the draws with chains joined, each (n, ...)."""
        return {name: values.reshape((-1, *values.shape[2:])) for name, values in self.draws.items()}


class Posterior(Protocol):
    """A model with one data set. Stateless for the caller: equal arguments give bit-equal results.

    Every method takes the path (`bread.paths`), whose tempered density is ``log f_0 + beta * log_ratio``.
    For a reference path f_0 is ``path.reference``; at beta = 0 the model's density is not evaluated by a kernel, and at
    beta = 1 the reference plays no part in one. ``draw_start(PriorPath(), ...)`` works for every model, whatever
    ``ModelInfo.paths`` says: prior draws are where pilots begin.
    """

    def draw_start(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the path's start, one state per seed; shape (len(seeds), dim)."""
        ...

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log_ratio at each of ``states``, shape (n,); -inf is legal, exceptions become NaN."""
        ...

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 (nats) and its gradient, shape (dim,), at one state; for reference paths.

        Raises
        ------
        DensityError
            The model rejects the state or raises.
        """
        ...

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Adapt the kernel at ``beta`` with the PPL's own adaptation for ``n_steps`` from ``state``.

        ``previous`` are the settings of the knot before, a warm start.
        """
        ...

    def anneal(
        self,
        path: Path,
        betas: FloatArray,
        kernel: Kernel,
        *,
        direction: Direction,
        start: FloatArray,
        seeds: Sequence[SeedSequence],
        knots: IntArray | None = None,
    ) -> AnnealRun:
        """Run one chain per row of ``start`` (design section 2, "Chains"); one seed per chain."""
        ...

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain of the frozen kernel at ``beta`` from ``state``; return the states after ``keep`` steps.

        ``keep`` is non-decreasing; 0 stands for ``state`` itself.
        """
        ...


@runtime_checkable
class Model(Protocol):
    """A user's model, read and checked: everything that must be refused was refused before this exists.

    Picklable with cloudpickle (workers receive it once). Never changes the user's object.
    """

    @property
    def info(self) -> ModelInfo:
        """Names, dimensions, data."""
        ...

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly, exactly; ``fixed`` are named parameters held at these values.

        Draw i uses ``seed.spawn(n)[i]`` alone (spawned from a fresh copy of ``seed``).
        """
        ...

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Sample the posterior on the real data with the PPL's own sampler and its defaults."""
        ...

    def read_posterior(self, posterior: Any) -> Fit:
        """Read the user's own draws (the `posterior=` argument of `bread.check`)."""
        ...

    def point_estimate(self, fit: Fit, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Posterior mean of the named parameters in unconstrained coordinates, mapped back (mode if discrete)."""
        ...

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to named parameters (n, ...), keys as ModelInfo.parameters."""
        ...

    def condition(self, data: Data) -> Posterior:
        """Return the posterior given ``data``; cheap, no compilation."""
        ...

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map named free variables (n, ...) to states (n, dim): the inverse of `constrain`."""
        ...

    def localise(self, names: Sequence[str], reference: Reference) -> Model:
        """Return this model with another law of the named parameters: ``reference`` in place of their prior.

        ``reference`` is a normalised density on the unconstrained coordinates of the named parameters, in the order of
        the state's coordinates (``positions``). Their prior statements and their Jacobians are left out, also where
        the prior is flat; everything that depends on them (the law of the other parameters, the likelihood) stays.
        `simulate`, `condition` and all densities of the returned model are those of the new model.

        Raises
        ------
        UnsupportedModelError
            The law of the named parameters cannot be told from that of the others.
        """
        ...


@dataclass(frozen=True)
class OpenOptions:
    """What a backend is told when it opens a model: arguments of `bread.check`, as the user gave them.

    A backend refuses by name what means nothing to it (`refuse`).

    Attributes
    ----------
    kernel : object
        The kernel asked for; None for the backend's own choice.
    engine : str or None
        What is to run the chains.
    hyperparameters : tuple of str or None
        Free variables to hold or to localise; None for the backend's own choice.
    data : object
        The data of a model that does not hold its own: a dict, or the path of a file.
    observed : str, sequence of str or None
        Which of the data are outcomes.
    simulator : object
        What draws parameters and data jointly, in place of the model's own simulator.
    likelihood : int, sequence of int or None
        Lines of the model's text that are its likelihood.
    simulate_from : {"prior", "fitted", "localised"}
        Where data sets come from. "fitted": the simulator must be able to hold the hyperparameters. "localised":
        `Model.localise` follows, and only then need the hyperparameters have a law.
    """

    kernel: Any = None
    engine: str | None = None
    hyperparameters: tuple[str, ...] | None = None
    data: Any = None
    observed: str | Sequence[str] | None = None
    simulator: Any = None
    likelihood: int | Sequence[int] | None = None
    simulate_from: str = "prior"

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Raise InvalidArgumentError for the first option among ``names`` that was given."""
        for name in names:
            if getattr(self, name) is not None:
                raise InvalidArgumentError(f"{name}= {why}. Leave it out.")
