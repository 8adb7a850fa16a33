"""PyMC step methods made into frozen, reversible, repeatable kernels.

Each class wraps one step method object of PyMC that stays the one that moves the chain; the wrapper seeds it,
returns it to a known state before every chain, sets and adapts its settings, and turns it round.

Reversals: the reversal of a sweep over coordinates in a fixed order is the sweep in the opposite order, if the
update of each coordinate is reversible (Grosse, Ghahramani & Adams (2015), section 2.3). NUTS, HMC with a fixed
step size, and sweeps in a uniformly random order are reversible as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from pymc.blocking import DictToArrayBijection
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiag, QuadPotentialDiagAdapt

from bread.backends.base import FloatArray, Settings
from bread.backends.pymc import internals
from bread.backends.pymc.correlated import AdaptedMetric, Correlation, FrozenMetric
from bread.backends.pymc.density.gradients import TemperedGradient
from bread.backends.pymc.versions import seed_step
from bread.backends.support.arguments import within_limits
from bread.backends.values import CORRELATION
from bread.errors import UnsupportedKernelError

Point = dict[str, Any]

# PyMC's adaptation in a long run; a short pilot uses a share of its length.
LONGEST_METRIC_WINDOW, LONGEST_TUNE_INTERVAL = 101, 100


class FrozenStep:
    """One PyMC step method as a kernel with frozen settings.

    Parameters
    ----------
    step : BlockedStep
        An object of one of PyMC's step methods, built on the tempered density.

    Attributes
    ----------
    setting_names : tuple of str
        Keys of `settings`; all values are positive.
    """

    setting_names: tuple[str, ...] = ()

    def __init__(self, step: Any) -> None:
        self.step = step
        self.name = type(step).__name__
        self.reverse = False
        internals.forget_model(step)  # or it would send the user's model with it

    @property
    def n_gradients(self) -> int:
        """Gradient evaluations so far."""
        return 0

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the density alone so far."""
        return 0

    def seed(self, seed: SeedSequence) -> None:
        """Set the random numbers of the next chain; they depend on ``seed`` alone."""
        seed_step(self.step, Generator(PCG64(seed)))

    def freeze(self) -> None:
        """End adaptation and forget all history, so that a used object repeats a new one bit by bit."""
        self.step.tune = False

    def prepare(self, settings: Settings) -> Any:
        """Return settings in the form that `apply` takes: computed once for all chains of a batch."""
        return settings

    def apply(self, prepared: Any, *, reverse: bool) -> None:
        """Set frozen settings, as `prepare` returned them, and the direction of the kernel."""
        self.reverse = reverse

    def start_adapting(self, point: Mapping[str, Any], n_steps: int, previous: Settings | None) -> None:
        """Begin PyMC's own adaptation for ``n_steps`` of the forward kernel, warm-started from ``previous``."""
        self.step.tune = True
        self.reverse = False

    def settings(self) -> Settings:
        """Return the present settings, positive."""
        return {}

    def move(self, point: Point) -> tuple[Point, bool]:
        """Run the kernel once; return the new point and whether the transition diverged."""
        point, _ = self.step.step(point)
        return point, False


class AsItIsStep(FrozenStep):
    """Any step method, run as ``pm.sample`` runs it after tuning: to find out whether it is right.

    It keeps its settings itself. Every chain begins, as those of ``pm.sample`` do, from the sampling state that PyMC
    knows of the step method after tuning. What else the object keeps may act on later chains: that is tested. Nothing
    is known of its reversal.
    """

    def __init__(self, step: Any) -> None:
        super().__init__(step)
        self._state: Any = None

    def freeze(self) -> None:
        """End tuning, as ``pm.sample`` does, or return to the state in which it was ended."""
        self.step.stop_tuning()
        if self._state is None:
            self._state = internals.sampling_state(self.step)
        else:
            self.step.sampling_state = self._state

    def start_adapting(self, point: Mapping[str, Any], n_steps: int, previous: Settings | None) -> None:
        """Begin PyMC's own adaptation; chains then begin from the state in which it ends."""
        self._state = None
        super().start_adapting(point, n_steps, previous)

    def apply(self, prepared: Any, *, reverse: bool) -> None:
        """Leave everything as it is.

        Raises
        ------
        UnsupportedKernelError
            The reversal is asked for.
        """
        if reverse:
            raise UnsupportedKernelError(f"{self.name} runs as it is: its reversal is not known.")


class GradientStep(FrozenStep):
    """NUTS or HMC: step size, and the inverse of a diagonal metric (one value per coordinate of the step).

    A metric that the user fixed (``scaling=`` or a constant ``potential=``) is kept and is no setting. Else settings
    may hold correlations too, of shape (n, n) in the order of a position: they are never adapted.
    """

    setting_names: tuple[str, ...] = ("step_size", "inverse_metric")

    def __init__(self, step: Any) -> None:
        super().__init__(step)
        internals.leave_out_details(step)  # which it would ask the user's model for
        self.gradient: TemperedGradient = internals.gradient_of(step)
        internals.use_leapfrog(step, self.gradient)
        self._dual_averaging = internals.read_dual_averaging(step)
        self.adapts_metric = isinstance(step.potential, QuadPotentialDiagAdapt)
        if not self.adapts_metric:
            self.setting_names = ("step_size",)
        self._size = self.gradient.size
        self._correlation: tuple[FloatArray, Correlation] | None = None  # last given, and what is made of it
        self.freeze()

    @property
    def n_gradients(self) -> int:
        """Gradient evaluations so far."""
        return self.gradient.n_gradients

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the model's density alone so far: what a log ratio took where the kernel did not need it."""
        return self.gradient.n_evaluations

    def freeze(self) -> None:
        """End adaptation, forget history."""
        super().freeze()
        step = self.step
        if self.adapts_metric and not isinstance(step.potential, QuadPotentialDiag):
            internals.set_metric(step, QuadPotentialDiag(np.ones(self._size), dtype=self.gradient.dtype))
        internals.forget_history(step)
        self.gradient.forget()

    def prepare(self, settings: Settings) -> tuple[Any, ...]:
        """Return the log of the step size and, if there is a metric, its inverse, the root and the inverse root."""
        log_step = np.log(settings["step_size"])
        if not self.adapts_metric:
            return (log_step,)
        variance = np.asarray(settings["inverse_metric"], dtype=self.gradient.dtype)
        deviation = np.sqrt(variance)
        return log_step, variance, deviation, 1.0 / deviation, self._correlation_in(settings)

    def _correlation_in(self, settings: Settings) -> Correlation | None:
        given = settings.get(CORRELATION)
        if given is None:
            return None
        if self._correlation is None or self._correlation[0] is not given:
            self._correlation = given, Correlation(given, self.gradient.dtype)
        return self._correlation[1]

    def apply(self, prepared: Any, *, reverse: bool) -> None:
        """Set step size and metric; the kernel is its own reversal."""
        internals.set_log_step_size(self.step, prepared[0])
        if self.adapts_metric:
            potential, (_, variance, deviation, inverse, correlation) = self.step.potential, prepared
            if correlation is not getattr(potential, "correlation", None):
                rng, dtype = potential.rng, self.gradient.dtype
                potential = (
                    QuadPotentialDiag(variance, dtype=dtype)
                    if correlation is None
                    else FrozenMetric(variance, correlation, dtype)
                )
                potential.rng = rng  # seeded before kernels are set
                internals.set_metric(self.step, potential)
            potential.v, potential.s, potential.inv_s = variance, deviation, inverse

    def start_adapting(self, point: Mapping[str, Any], n_steps: int, previous: Settings | None) -> None:
        """Begin dual averaging of the step size and the estimation of the posterior variances."""
        super().start_adapting(point, n_steps, previous)
        self.step.iter_count = 0
        initial_step = self._dual_averaging.initial_step if previous is None else float(previous["step_size"])
        self.step.step_adapt = self._dual_averaging.start(initial_step)
        if self.adapts_metric:
            position = DictToArrayBijection.map({name: np.asarray(point[name]) for name in self.gradient.names}).data
            variance = np.ones(self._size) if previous is None else previous["inverse_metric"]
            window = min(LONGEST_METRIC_WINDOW, max(n_steps // 3, 1))
            correlation = None if previous is None else self._correlation_in(previous)
            make = QuadPotentialDiagAdapt if correlation is None else partial(AdaptedMetric, correlation)
            internals.set_metric(
                self.step,
                make(
                    self._size,
                    position.astype(np.float64),
                    np.array(variance, dtype=np.float64),
                    initial_weight=10,
                    adaptation_window=window,
                    discard_window=window // 2,
                    dtype=self.gradient.dtype,
                ),
            )

    def settings(self) -> Settings:
        """Return step size, shape (), and inverse metric, shape (n,)."""
        result = {"step_size": within_limits(np.exp(internals.read_log_step_size(self.step)))}
        if self.adapts_metric:
            potential = self.step.potential
            is_frozen = isinstance(potential, QuadPotentialDiag)
            variance = potential.v if is_frozen else internals.adapted_variance(potential)
            result["inverse_metric"] = within_limits(variance)
        return result

    def move(self, point: Point) -> tuple[Point, bool]:
        """Run one trajectory."""
        point, statistics = self.step.step(point)
        self.gradient.forget()
        return point, bool(statistics[0]["diverging"])
