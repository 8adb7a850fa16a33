"""Values that cross the border between core and backends; see `bread.backends.base`, which states the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Data = Mapping[str, NDArray[Any]]
Settings = dict[str, FloatArray]
Direction = Literal["forward", "reverse"]


class Failure(IntEnum):
    """Why a chain has no finite log weight. Failures are recorded per chain, never dropped."""

    NONE = 0
    ZERO_RATIO = 1  # forward: f_1 / f_0 is zero at a state of the chain, the log weight is -inf (legal)
    ZERO_INITIAL = 2  # reverse: the exact draw has density zero (an error of model or simulator)
    NAN = 3  # a density was NaN outside a kernel
    EXCEPTION = 4  # a density raised outside a kernel


CORRELATION = "correlation"  # name of the setting that is neither positive nor interpolated


@dataclass(frozen=True)
class Discarded:
    """Joint draws that were thrown away because numbers cannot represent them: the others are conditioned on that.

    Draws outside of the support that the model itself states are none of these: its law is the one without them.

    Attributes
    ----------
    n_parameters : float
        Draws whose parameters cannot be represented, whatever the outcomes.
    n_outcomes : float
        Draws of other parameters, whose outcomes could not be drawn or represented. Given the parameters kept outcomes
        are conditioned as well, unless outcomes can be drawn there always or never.
    n_by_chance : float
        Of these, the draws at whose parameters a second try did give outcomes, or nobody knows whether it would have.
        Per draw that is kept, the mean change of a probability of outcomes given their parameters.
    states : tuple of ndarray, each (dim,)
        Parameters of some draws whose outcomes could not be drawn at a second try either; NaN where they are not known.
    reason : str
        Of the first of them.
    """

    n_parameters: float = 0.0
    n_outcomes: float = 0.0
    n_by_chance: float = 0.0
    states: tuple[FloatArray, ...] = ()
    reason: str = ""

    def __add__(self, other: Discarded) -> Discarded:
        return Discarded(
            self.n_parameters + other.n_parameters,
            self.n_outcomes + other.n_outcomes,
            self.n_by_chance + other.n_by_chance,
            self.states + other.states,
            self.reason or other.reason,
        )


@dataclass(frozen=True)
class Simulations:
    """Exact joint draws of parameters and data.

    Attributes
    ----------
    states : ndarray, shape (n, dim)
        Parameters in unconstrained coordinates.
    parameters : dict of str to ndarray, each (n, ...)
        Parameters (and deterministics) in the model's own coordinates, keys as Layout.parameters.
    data : dict of str to ndarray, each (n, ...)
        Observed variables, keys as RealData.observed, dtypes as the model's own data.
    acceptance : float
        Fraction of whole joint draws that the simulator kept (1 unless it rejects).
    discarded : Discarded
        Draws that it made again although the model gives them mass.
    """

    states: FloatArray
    parameters: dict[str, NDArray[Any]]
    data: dict[str, NDArray[Any]]
    acceptance: float = 1.0
    discarded: Discarded = Discarded()

    def __len__(self) -> int:
        return len(self.states)

    def joined(self, other: Simulations) -> Simulations:
        """Return these draws followed by others of the same model."""
        n, m = len(self), len(other)
        if n == 0:
            return replace(other, discarded=self.discarded + other.discarded)
        return Simulations(
            np.concatenate([self.states, other.states]),
            {name: np.concatenate([values, other.parameters[name]]) for name, values in self.parameters.items()},
            {name: np.concatenate([values, other.data[name]]) for name, values in self.data.items()},
            acceptance=(n + m) / (n / self.acceptance + m / other.acceptance),
            discarded=self.discarded + other.discarded,
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
    proposes_base : bool
        Whether draws from the path's base are proposed before each transition, where the backend offers it
        (`bread.backends.info.ModelInfo.may_propose`); also where the posterior's own kernel does not.
    every : int
        Where draws are proposed: of so many temperatures the kernel itself moves an annealed chain at one only, counted
        down from the last, at which it does. At the others the proposal is the whole transition.
    correlation : ndarray, shape (dim, dim), optional
        Correlations of the inverse metric in the order of a state, the same at all inverse temperatures; settings that
        `along` returns hold it as `CORRELATION`. Only for a posterior that takes them
        (`bread.backends.base.Posterior.takes_correlation`).
    """

    betas: FloatArray
    settings: Settings
    log_ratio: tuple[FloatArray, ...] = ()
    source: str = ""
    n_gradients: int = 0
    n_evaluations: int = 0
    proposes_base: bool = False
    every: int = 1
    correlation: FloatArray | None = None

    def at(self, beta: float) -> Settings:
        """Return settings at ``beta``, interpolated in the log between the two nearest knots.

        The weight is linear in log(beta + first knot above 0), so that knots which grow geometrically near 0
        are interpolated evenly.
        """
        return self.along(np.array([beta]))[0]

    def along(self, betas: FloatArray) -> list[Settings]:
        """Return the settings at each of ``betas``, as `at` does."""
        constant = {} if self.correlation is None else {CORRELATION: self.correlation}
        if len(self.betas) == 1:
            return [{**{name: values[0] for name, values in self.settings.items()}, **constant} for _ in betas]
        shift = self.betas[1]
        position = np.interp(np.log(betas + shift), np.log(self.betas + shift), np.arange(len(self.betas), dtype=float))
        low = np.minimum(position.astype(np.int64), len(self.betas) - 2)
        weight = position - low
        table = {}
        for name, values in self.settings.items():
            share = weight.reshape(-1, *[1] * (values.ndim - 1))
            logs = np.log(values)  # before rows are repeated
            table[name] = np.exp((1 - share) * logs[low] + share * logs[low + 1])
        return [{**{name: values[index] for name, values in table.items()}, **constant} for index in range(len(betas))]


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
        temperature whatever the direction.
    state_at_base : ndarray, shape (chain, dim)
        The path's end at beta = 0: theta_1 (forward: the draw from the base; reverse: where the chain ended).
    state_at_end : ndarray, shape (chain, dim)
        theta_T (forward: after the last kernel, at beta = 1; reverse: the exact draw it started from).
    log_base_density : ndarray, shape (chain, 2)
        log f_0 (log prior, or log density of the reference) at state_at_base and at state_at_end.
    n_gradients, n_evaluations, n_divergences, failure : ndarray of int, shape (chain,)
        Gradient evaluations; evaluations of the density alone; divergent transitions; `Failure`.
    seconds : float
        Wall time of the call.
    message : str
        Text of the first exception, for Failure.EXCEPTION.
    """

    log_weight: FloatArray
    log_ratio: FloatArray
    state_at_base: FloatArray
    state_at_end: FloatArray
    log_base_density: FloatArray
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
        Free variables in the model's own coordinates; where some are missing, what depends on them too.
    source : str
        "pm.sample", "posterior=".
    seconds : float
        Wall time of the fit (0 for the user's draws).
    n_divergences : int or None
        Divergent transitions among these draws; None where nobody counted.
    distinct_share : float
        What effective sample sizes are multiplied by, because draws are copies of others; see
        `bread.statistics.agreement.repeats`.
    notes : tuple of str
        What was done to the user's draws before they were those of the model's free variables.
    data : dict of str to array_like
        Data that came with the user's draws, by name.
    missing : tuple of str
        Free variables that the user's draws lack, and that nothing among them determines.
    remedy : str
        What to do about them.
    """

    draws: dict[str, NDArray[Any]]
    source: str
    seconds: float = 0.0
    n_divergences: int | None = None
    distinct_share: float = 1.0
    notes: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    remedy: str = "Pass draws of all free variables."

    def lacks(self) -> str:
        """Return what is missing and what to do, as a sentence; "" where nothing is."""
        if not self.missing:
            return ""
        names = ", ".join(map(repr, self.missing))
        return (
            f"{self.source} has no variable {names}, and holds nothing that determines "
            f"{'it' if len(self.missing) == 1 else 'them'}. {self.remedy}"
        )

    def flat_draws(self) -> dict[str, NDArray[Any]]:
        """Return the draws with chains joined, each (n, ...)."""
        return {name: values.reshape((-1, *values.shape[2:])) for name, values in self.draws.items()}
