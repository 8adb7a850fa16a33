"""The posterior of a Stan program on one data set, annealed by Stan's own samplers.

Chains follow Grosse, Ghahramani & Adams (2015), section 2.3, and Grosse, Ancha & Roy (2016), section 2.2: forward
from a draw of the path's base through kernels at beta_2, ..., beta_T = 1; reverse from an exact posterior draw
through the same kernels, which are reversible, at beta_T, ..., beta_2. A call runs whole chains in C++, each on random
numbers of its own seed alone, so results do not depend on how chains are batched or on what ran before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import (
    Adaptation,
    AnnealRun,
    Direction,
    Evolution,
    Failure,
    FloatArray,
    IntArray,
    Kernel,
    Settings,
)
from bread.backends.stan.native.kernels import TARGET_ACCEPTANCE, StanKernel, adaptation_windows
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.native.runs import Schedule
from bread.backends.support.arguments import check_run, within_limits
from bread.backends.support.base_draws import StateSimulator, draw_many, draw_reference, states_at_once
from bread.backends.support.independence import Proposals, draw_proposals
from bread.backends.support.stretching import stretched_metric
from bread.errors import DensityError, InvalidArgumentError
from bread.paths.kinds import Path
from bread.paths.mixture import MixtureReference
from bread.paths.nested import NestedReference

FIRST_STEP_SIZE = 1.0  # Stan's default; its search for a first step size starts here


@dataclass(frozen=True)
class StanPosterior:
    """A Stan program with one data set; implements `bread.backends.base.Posterior`.

    Parameters
    ----------
    instance : StanInstance
        The tempered program with the data.
    simulator : StateSimulator
        Draws from the prior.
    kernel : StanKernel
        The sampler that moves the chains.
    path_refusals : mapping of str to str
        Kinds of path that the program does not allow, and why.
    log_integral : float
        Log of what the prior integrates to, as the program states it (nats): it is taken off, so that the prior is
        normalised.
    """

    native_references: ClassVar[tuple[type, ...]] = (MixtureReference, NestedReference)  # others call back to Python

    instance: StanInstance
    simulator: StateSimulator
    kernel: StanKernel
    path_refusals: Mapping[str, str] = field(default_factory=dict)
    log_integral: float = 0.0

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior or the path's reference, one state per seed; shape (len(seeds), dim)."""
        if path.reference is None:
            return self.simulator.draw_states(seeds)
        return draw_reference(path.reference, seeds, self.instance.dim)

    def draw_prior_batch(self, n: int, seed: SeedSequence) -> FloatArray | None:
        """Draw many from the prior with one seed, shape (n, dim), where the simulator can."""
        return states_at_once(self.simulator, n, seed)

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 - log f_0 (nats) at each state, shape (n,).

        -inf where the program rejects the state (``reject()``, an argument that Stan's checks refuse): Stan too takes
        such a state for one of density zero. NaN after any other exception.
        """
        self._check_path(path)
        return self.instance.terms(states, path)[1] - self._in_ratio(path)

    def log_density(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 (nats) at each state, shape (n,); -inf where the program rejects it, NaN where it raises."""
        self._check_path(path)
        log_base, log_ratio, _ = self.instance.terms(states, path)
        return np.asarray(log_base + log_ratio - self.log_integral)

    def log_base(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_0 (nats) at each state, shape (n,); -inf where the program rejects it, NaN where it raises."""
        self._check_path(path)
        return np.asarray(self.instance.terms(states, path)[0] - (self.log_integral - self._in_ratio(path)))

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 (nats) and its gradient; see `bread.backends.base.Posterior.end_gradient`."""
        self._check_path(path)
        value, _, gradient = self.instance.gradient(state, 1.0)  # every path ends there
        return value - self.log_integral, gradient

    def end_gradients(self, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log f_1 (nats) and its gradient at several states; see `bread.backends.base.Posterior`."""
        self._check_path(path)
        values, gradients = self.instance.gradients(states, 1.0)
        return values - self.log_integral, gradients

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log prior + beta * log likelihood and its gradient; see `bread.backends.base.Posterior`.

        -inf where the program rejects the state or raises.
        """
        values, gradients = self.instance.gradients(states, beta)
        return np.where(np.isnan(values), -np.inf, values) - self.log_integral, gradients

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Adapt step size and diagonal metric at ``beta`` with Stan's own adaptation for ``n_steps`` from ``state``.

        Returns
        -------
        Adaptation
            ``state`` is the last state whose log ratio is finite, so that the next knot can start from it.

        Raises
        ------
        DensityError
            If ``state`` has density zero or NaN at ``beta``, or the program or the adaptation raises.
        """
        self._check_path(path)
        step_size = FIRST_STEP_SIZE if previous is None else float(previous["step_size"])
        metric = np.ones(self.instance.dim) if previous is None else previous["inverse_metric"]
        windows = adaptation_windows(n_steps, is_warm=previous is not None)
        try:
            adapted = self.instance.adapt(
                self.kernel.struct(path),
                beta,
                step_size,
                metric,
                state,
                seed,
                n_steps,
                windows,
                TARGET_ACCEPTANCE,
                path=path,
            )
        except DensityError as error:
            raise DensityError(
                f"Adapting Stan's {self.kernel.name} at inverse temperature {beta:.6g} failed: {error}"
            ) from error
        return Adaptation(
            settings={
                "step_size": within_limits(np.array(adapted.step_size)),
                "inverse_metric": within_limits(adapted.inverse_metric),
            },
            state=adapted.state,
            log_ratio=adapted.log_ratio[n_steps // 2 :] - self._in_ratio(path),
            n_gradients=adapted.n_gradients,
            n_evaluations=adapted.n_evaluations,
        )

    def stretch(self, settings: Settings, factor: FloatArray) -> Settings:
        """Return settings with a stretched metric; see `bread.backends.base.Posterior.stretch`."""
        return stretched_metric(settings, factor)

    def anneal(
        self,
        path: Path,
        betas: FloatArray,
        kernel: Kernel,
        *,
        direction: Direction,
        initial: FloatArray,
        seeds: Sequence[SeedSequence],
    ) -> AnnealRun:
        """Run one chain per row of ``initial``, one seed per chain; see `bread.backends.base.Posterior.anneal`.

        Within a kernel a density that is NaN, or rejected by the program, is a rejected proposal. A chain at density
        zero, and one whose program raises anything else, stops there: its later log ratios are NaN and its end state
        is the last one reached.

        Raises
        ------
        InvalidArgumentError
            ``betas`` does not increase from 0 to 1, ``direction`` is unknown, or the number of seeds is wrong.
        """
        began = time.perf_counter()
        self._check_path(path)
        betas = np.asarray(betas, dtype=np.float64)
        check_run(betas, direction, initial, seeds)
        does_propose = self.kernel.proposes_base or kernel.proposes_base
        proposals = [self._proposals(path, len(betas) - 1, seed) for seed in seeds] if does_propose else []
        chains = self.instance.anneal(
            self.kernel.struct(path),
            _schedule(betas, kernel),
            direction,
            initial,
            seeds,
            path=path,
            proposals=proposals,
        )
        failure = chains.counts[:, 3].copy()
        log_ratio = chains.log_ratio - self._in_ratio(path)
        return AnnealRun(
            log_weight=_log_weights(path, betas, log_ratio, failure),
            log_ratio=log_ratio,
            state_at_base=chains.state_at_base,
            state_at_end=chains.state_at_end,
            log_base_density=chains.log_base - (self.log_integral - self._in_ratio(path)),
            n_gradients=chains.counts[:, 0].copy(),
            n_evaluations=chains.counts[:, 1] + (len(betas) - 1 if proposals else 0),
            n_divergences=chains.counts[:, 2].copy(),
            failure=failure,
            seconds=time.perf_counter() - began,
            message=chains.message,
        )

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain of the frozen kernel at ``beta`` from ``state``; return the states after ``keep`` steps.

        Raises
        ------
        DensityError
            If ``state`` has density zero or NaN at ``beta``, or the program raises.
        """
        self._check_path(path)
        settings = kernel.at(beta)
        n_steps = max(keep, default=0)
        does_propose = self.kernel.proposes_base or kernel.proposes_base
        proposals = self._proposals(path, n_steps, seed) if does_propose else None
        try:
            states, n_gradients, n_evaluations = self.instance.evolve(
                self.kernel.struct(path),
                beta,
                float(settings["step_size"]),
                settings["inverse_metric"],
                state,
                keep,
                seed,
                path=path,
                proposals=proposals,
            )
        except DensityError as error:
            raise DensityError(
                f"A chain of Stan's {self.kernel.name} at inverse temperature {beta:.6g} failed: {error}"
            ) from error
        return Evolution(states, n_gradients, n_evaluations + (0 if proposals is None else n_steps))

    def _proposals(self, path: Path, n_steps: int, seed: SeedSequence) -> Proposals:
        """Return the proposals of a chain; log ratios as the driver has them, without the integral of the prior."""
        return draw_proposals(
            lambda seeds: draw_many(self, path, seeds),
            lambda states: self.instance.terms(states, path)[1],
            n_steps,
            seed,
        )

    def _in_ratio(self, path: Path) -> float:
        """Return the part of the log integral that is in the log ratio: on a path from a reference, all of it."""
        return 0.0 if path.reference is None else self.log_integral

    def _check_path(self, path: Path) -> None:
        if path.name in self.path_refusals:
            raise InvalidArgumentError(f"{self.path_refusals[path.name]} The path is {path!r}.")


def _schedule(betas: FloatArray, kernel: Kernel) -> Schedule:
    settings = kernel.along(betas)
    return Schedule(
        betas,
        np.array([float(one["step_size"]) for one in settings]),
        np.stack([one["inverse_metric"] for one in settings]),
        kernel.every,
    )


def _log_weights(path: Path, betas: FloatArray, log_ratio: FloatArray, failure: IntArray) -> FloatArray:
    """Return the path's log weights; -inf after a zero ratio, NaN after another failure."""
    with np.errstate(invalid="ignore"):
        log_weight = path.log_weight(betas, log_ratio)
    log_weight[failure == Failure.ZERO_RATIO] = -np.inf
    log_weight[failure > Failure.ZERO_RATIO] = np.nan
    return log_weight
