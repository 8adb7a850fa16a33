"""Hamiltonian Monte Carlo with a static path length, and its adaptation in the pilot."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bread.backends.base import FloatArray, IntArray, Settings
from bread.errors import InvalidArgumentError
from tests.models.reference.arrays import row_dot
from tests.models.reference.kernels import Run, Transition

DIVERGENCE = 1000.0  # error of the energy, in nats, beyond which a trajectory counts as divergent
TARGET_ACCEPTANCE = 0.8  # as Stan and PyMC
_PRIOR_WEIGHT = 5.0  # draws that the metric of the knot before is worth


@dataclass(frozen=True)
class HMCKernel:
    """Hamiltonian Monte Carlo: fresh momentum, ``n_leapfrog`` leapfrog steps, Metropolis correction.

    Reversible. Step size and diagonal inverse metric are settings per knot. The step size of a transition is
    multiplied by a uniform number in (1 - jitter, 1 + jitter) that does not depend on the state, so that a path
    length equal to a period of the target does no lasting harm (Neal 2011, section 5.4.2.2); a mixture of
    reversible kernels is reversible. Labels stay where they are.

    Parameters
    ----------
    n_leapfrog : int
        Leapfrog steps of a transition, at least 1.
    jitter : float
        0 <= jitter < 1.

    Raises
    ------
    InvalidArgumentError
        A parameter is out of range.
    """

    n_leapfrog: int = 10
    jitter: float = 0.2
    name: str = field(default="HMC", init=False, repr=False)
    moves_label: bool = field(default=False, init=False, repr=False)
    is_tunable: bool = field(default=True, init=False, repr=False)
    draws_exactly: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.n_leapfrog < 1:
            raise InvalidArgumentError(f"n_leapfrog must be at least 1; received {self.n_leapfrog!r}.")
        if not 0.0 <= self.jitter < 1.0:
            raise InvalidArgumentError(f"jitter must be at least 0 and below 1; received {self.jitter!r}.")

    def n_random(self, dim: int) -> tuple[int, int]:
        """One normal number a coordinate; two uniform ones (jitter, acceptance)."""
        return dim, 2

    def step_sizes(self, settings: Settings, states: FloatArray) -> FloatArray:
        """Return the step size of every chain before the jitter; it must not depend on ``states``."""
        return np.full(len(states), float(settings["step_size"]))

    def transition(self, run: Run) -> Transition:
        """Return the transitions."""
        target, tally, normals, uniforms = run.target, run.tally, run.random.normals, run.random.uniforms
        log_uniforms = np.log1p(-uniforms[..., 1])
        factors = 1.0 + self.jitter * (2.0 * uniforms[..., 0] - 1.0)
        is_continuous = np.zeros(target.formulae.dim)
        is_continuous[target.formulae.continuous] = 1.0
        last = self.n_leapfrog - 1

        def step(i: int, states: FloatArray) -> FloatArray:
            beta, settings = float(run.betas[i]), run.settings[i]
            scale = np.sqrt(settings["inverse_metric"]) * is_continuous
            length = (self.step_sizes(settings, states) * factors[i])[:, None] * scale
            start = target.log_density(beta, states) - 0.5 * row_dot(normals[i], normals[i])
            position, momentum = states, normals[i] + 0.5 * length * target.gradient(beta, states)
            for leapfrog in range(self.n_leapfrog):
                position = position + length * momentum
                kick = length * target.gradient(beta, position)
                momentum = momentum + (0.5 * kick if leapfrog == last else kick)
            log_accept = target.log_density(beta, position) - 0.5 * row_dot(momentum, momentum) - start
            is_accepted = log_uniforms[i] < log_accept  # a NaN is a rejection
            tally.n_gradients += self.n_leapfrog + 1
            tally.n_evaluations += 2
            tally.n_divergences += ~(log_accept > -DIVERGENCE)
            tally.acceptance = np.exp(np.minimum(0.0, np.where(np.isnan(log_accept), -np.inf, log_accept)))
            return np.where(is_accepted[:, None], position, states)

        return step


class DualAveraging:
    """Step size that reaches a mean acceptance probability (Hoffman & Gelman 2014, section 3.2.1)."""

    def __init__(self, step_size: float) -> None:
        self._centre = np.log(10.0 * step_size)
        self._error, self._count = 0.0, 0
        self.log_step, self._log_average = np.log(step_size), 0.0

    def update(self, acceptance: float) -> None:
        """Take the acceptance probability of a transition into account."""
        self._count += 1
        rate = 1.0 / (self._count + 10.0)
        self._error = (1.0 - rate) * self._error + rate * (TARGET_ACCEPTANCE - acceptance)
        self.log_step = self._centre - np.sqrt(self._count) / 0.05 * self._error
        decay = self._count**-0.75
        self._log_average = decay * self.log_step + (1.0 - decay) * self._log_average

    @property
    def step_size(self) -> float:
        """Step size of the next transition."""
        return float(np.exp(self.log_step))

    @property
    def average(self) -> float:
        """Step size to freeze."""
        return float(np.exp(self._log_average)) if self._count else self.step_size


class HMCAdaptation:
    """Adaptation at one knot: a quarter for the step size, a quarter for the metric, half for the step size."""

    def __init__(self, dim: int, n_steps: int, previous: Settings | None) -> None:
        self.metric = np.ones(dim) if previous is None else previous["inverse_metric"].copy()
        self._averaging = DualAveraging(dim**-0.25 if previous is None else float(previous["step_size"]))
        self._n_steps, self._step = n_steps, 0
        self._window: list[FloatArray] = []

    @property
    def settings(self) -> Settings:
        """Settings of the next transition."""
        return {"step_size": np.array(self._averaging.step_size), "inverse_metric": self.metric}

    @property
    def frozen(self) -> Settings:
        """Settings to freeze."""
        return {"step_size": np.array(self._averaging.average), "inverse_metric": self.metric}

    def update(self, state: FloatArray, acceptance: float, continuous: IntArray) -> None:
        """Take one transition into account: the new state, shape (dim,), and its acceptance probability."""
        self._averaging.update(acceptance)
        self._step += 1
        if self._n_steps // 4 < self._step <= self._n_steps // 2:
            self._window.append(state)
        if self._step == self._n_steps // 2 and len(self._window) > 1:
            n, metric = len(self._window), self.metric.copy()
            variance = np.var(np.array(self._window), axis=0, ddof=1)
            updated = (n * variance + _PRIOR_WEIGHT * metric) / (n + _PRIOR_WEIGHT)
            metric[continuous] = updated[continuous]
            self.metric = metric
            self._averaging = DualAveraging(self._averaging.average)
