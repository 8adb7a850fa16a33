"""The posterior of a PyMC model on one data set, annealed by PyMC's own step methods.

Chains follow Grosse, Ghahramani & Adams (2015), section 2.3, and Grosse, Ancha & Roy (2016), section 2.2: forward
from a prior draw through kernels at beta_2, ..., beta_T = 1; reverse from an exact posterior draw through the
reversals of the same kernels at beta_T, ..., beta_2. Chains run one after another, each on random numbers of its
own seed alone, so results do not depend on how chains are batched or on what the objects did before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import (
    Adaptation,
    AnnealRun,
    Direction,
    Evolution,
    FloatArray,
    Kernel,
    Settings,
)
from bread.backends.pymc.kernels.chains import Chain
from bread.backends.pymc.kernels.engine import Engine
from bread.backends.support.arguments import check_run
from bread.backends.support.base_draws import StateSimulator, draw_many, draw_reference, states_at_once
from bread.backends.support.independence import Proposals, draw_proposals
from bread.errors import DensityError, InvalidArgumentError, UnsupportedKernelError
from bread.paths.kinds import Path, PriorPath, ReferencePath


@dataclass(frozen=True)
class PyMCPosterior:
    """A PyMC model with one data set; implements `bread.backends.base.Posterior`.

    Parameters
    ----------
    engine : Engine
        Shared by all data sets of the model. Not for use by several threads at once.
    simulator : StateSimulator
        Draws from the prior.
    data : dict of str to ndarray
        Values of the observed variables.
    """

    engine: Engine
    simulator: StateSimulator
    data: Mapping[str, NDArray[Any]]

    def load(self, path: Path) -> Engine:
        """Set path and data of the engine, whatever it did before.

        Raises
        ------
        InvalidArgumentError
            Model or kernel cannot be annealed along the path.
        """
        self.engine.set_path(path)
        self.engine.controls.set_data(self.data)
        return self.engine

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior or the path's reference, one state per seed; shape (len(seeds), dim)."""
        if not isinstance(path, PriorPath):  # draws from the prior serve pilots of every path
            self.load(path)
        if not isinstance(path, ReferencePath):
            return self.simulator.draw_states(seeds)
        return draw_reference(path.reference, seeds, self.engine.layout.dim)

    def draw_prior_batch(self, n: int, seed: SeedSequence) -> FloatArray | None:
        """Draw many from the prior with one seed, shape (n, dim), where that is faster than one by one."""
        return states_at_once(self.simulator, n, seed)

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 - log f_0 (nats) at each state, shape (n,); an exception becomes NaN."""
        return self._terms(path, states)[:, 1]

    def log_density(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 (nats) at each state, shape (n,); an exception becomes NaN."""
        return np.asarray(self._terms(path, states).sum(axis=1))

    def log_base(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_0 (nats) at each state, shape (n,); an exception becomes NaN."""
        return self._terms(path, states)[:, 0]

    def _terms(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_0 and log ratio at each state, shape (n, 2)."""
        engine = self.load(path)
        result = np.full((len(states), 2), np.nan)
        with np.errstate(all="ignore"):
            at_once = engine.terms_at_once(path, states)
            if at_once is not None:
                return at_once
            for index, state in enumerate(states):
                with suppress(Exception):
                    result[index] = engine.terms(state)
        return result

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 (nats) and its gradient; see `bread.backends.base.Posterior.end_gradient`."""
        engine = self.engine
        if engine.loaded is None or engine.loaded[0] is not path or engine.loaded[1] is not self.data:
            self.load(path)  # an optimisation asks thousands of times in a row
            engine.loaded = path, self.data
        try:
            with np.errstate(all="ignore"):
                return engine.end_gradient(state)
        except Exception as error:
            raise DensityError(f"The log density raises at {state}: {error}") from error

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log prior + beta * log likelihood and its gradient; see `bread.backends.base.Posterior`.

        Raises
        ------
        UnsupportedKernelError
            The kernel has no gradient of all continuous variables.
        """
        engine = self.engine
        engine.loaded = None  # inverse temperature and data become others
        engine.controls.set_data(self.data)
        values, gradients = np.full(len(states), np.nan), np.full((len(states), engine.layout.dim), np.nan)
        with np.errstate(all="ignore"):
            for row, state in enumerate(states):
                try:
                    values[row], gradients[row] = engine.density_gradient(beta, state)
                except UnsupportedKernelError:
                    raise
                except Exception:  # a density may raise anything; NaN says so
                    continue
        return values, gradients

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Adapt the kernel at ``beta`` with PyMC's own adaptation for ``n_steps`` from ``state``.

        NUTS and HMC estimate a diagonal metric and average the step size; Metropolis tunes its scaling, Slice its
        widths. log_ratio is recorded in the second half.

        Returns
        -------
        Adaptation
            ``state`` is the last state whose likelihood is not zero, so that the next knot can start from it.

        Raises
        ------
        DensityError
            If ``state`` has density zero or NaN at ``beta``, or a step method fails.
        """
        engine = self.load(path)
        gradients, evaluations = engine.counts
        log_ratios = np.empty(n_steps)
        with np.errstate(all="ignore"):
            log_ratio = self._require_density(path, beta, state)
            engine.start_adapting(beta, state, n_steps, previous, seed)
            position = last = engine.position_of(state)
            try:
                for index in range(n_steps):
                    position, log_ratio, _ = engine.move(position)
                    log_ratios[index] = log_ratio
                    last = position if np.isfinite(log_ratio) else last
                settings = engine.settings()
            except Exception as error:
                raise DensityError(
                    f"Adapting the kernel {engine.name} at inverse temperature {beta:.6g} failed: {error}"
                ) from error
            finally:
                engine.reset(seed)
        return Adaptation(
            settings=settings,
            state=engine.state_of(last),
            log_ratio=log_ratios[n_steps // 2 :],
            n_gradients=engine.counts[0] - gradients,
            n_evaluations=engine.counts[1] - evaluations,
        )

    def _require_density(self, path: Path, beta: float, state: FloatArray) -> float:
        """Return the log ratio of a state that a chain at ``beta`` may start from."""
        log_base, log_ratio = self.engine.terms(state)
        if not np.isfinite(log_base) or (beta > 0 and not np.isfinite(log_ratio)):
            raise DensityError(
                f"A chain at inverse temperature {beta:.6g} cannot start at a state of log {path.base_name} "
                f"{log_base} and {path.ratio_name} {log_ratio}: both must be finite. Start it from a "
                "state inside the support."
            )
        return log_ratio

    def _require_run(
        self, betas: FloatArray, direction: Direction, initial: FloatArray, seeds: Sequence[SeedSequence]
    ) -> None:
        check_run(betas, direction, initial, seeds)
        dim = self.engine.layout.dim
        if initial.shape != (len(seeds), dim):
            raise InvalidArgumentError(
                f"initial must have one row of {dim} coordinates for each of {len(seeds)} seeds but has the shape "
                f"{initial.shape}."
            )

    def _require_settings(self, kernel: Kernel) -> None:
        if set(kernel.settings) != set(self.engine.setting_names):
            raise InvalidArgumentError(
                f"The kernel must have the settings of {self.engine.name}, {sorted(self.engine.setting_names)}, but "
                f"has {sorted(kernel.settings)}. Adapt it on this model with the same kernel=."
            )

    @property
    def takes_correlation(self) -> bool:
        """See `bread.backends.base.Posterior.takes_correlation`."""
        return self.engine.takes_correlation

    def stretch(self, settings: Settings, factor: FloatArray) -> Settings:
        """Return settings with a stretched metric; see `bread.backends.base.Posterior.stretch`."""
        return self.engine.stretch(settings, factor)

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

        A chain that fails stops there: its later log ratios are NaN and its end state is the last one reached.
        Within a kernel a density that is NaN or raises is a rejected proposal.
        """
        began = time.perf_counter()
        initial, betas = np.asarray(initial, dtype=np.float64), np.asarray(betas, dtype=np.float64)
        self._require_run(betas, direction, initial, seeds)
        engine = self.load(path)
        self._require_settings(kernel)
        prepared = [engine.prepare(settings) for settings in kernel.along(betas)]
        chains = []
        with np.errstate(all="ignore"):
            for state, seed in zip(initial, seeds, strict=True):
                engine.reset(seed)
                proposals = partial(self._proposals, kernel, path, len(betas) - 1, seed)
                chain = Chain(engine, path, betas, prepared, direction, state, proposals, kernel.every)
                chain.run()
                chains.append(chain)
        shape = (len(chains), engine.layout.dim)
        return AnnealRun(
            log_weight=np.array([chain.log_weight for chain in chains]),
            log_ratio=np.array([chain.log_ratio for chain in chains]).reshape(len(chains), len(betas)),
            state_at_base=np.array([chain.state_at_base for chain in chains]).reshape(shape),
            state_at_end=np.array([chain.state_at_end for chain in chains]).reshape(shape),
            log_base_density=np.array([chain.log_base_density for chain in chains]).reshape(len(chains), 2),
            n_gradients=np.array([chain.n_gradients for chain in chains], dtype=np.int64),
            n_evaluations=np.array([chain.n_evaluations for chain in chains], dtype=np.int64),
            n_divergences=np.array([chain.n_divergences for chain in chains], dtype=np.int64),
            failure=np.array([chain.failure for chain in chains], dtype=np.int64),
            seconds=time.perf_counter() - began,
            message=next((chain.message for chain in chains if chain.message), ""),
        )

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain of the frozen kernel at ``beta`` from ``state``; return the states after ``keep`` steps.

        Raises
        ------
        DensityError
            If ``state`` has density zero or NaN at ``beta``.
        """
        engine = self.load(path)
        self._require_settings(kernel)
        gradients, evaluations = engine.counts
        states = np.empty((len(keep), engine.layout.dim))
        with np.errstate(all="ignore"):
            proposals = self._proposals(kernel, path, max(keep, default=0), seed)
            log_ratio = self._require_density(path, beta, state)
            engine.reset(seed)
            engine.apply(beta, kernel.at(beta))
            position, n_done = engine.position_of(np.asarray(state, dtype=np.float64)), 0
            for index, n_steps in enumerate(keep):
                while n_done < n_steps:
                    if proposals is None:
                        position = engine.step(position)
                    else:
                        if proposals.accepts(n_done, beta, log_ratio):
                            position = engine.position_of(proposals.states[n_done])
                        position, log_ratio, _ = engine.move(position)
                    n_done += 1
                states[index] = engine.state_of(position)
        return Evolution(states, engine.counts[0] - gradients, engine.counts[1] - evaluations)

    def _proposals(self, kernel: Kernel, path: Path, n_steps: int, seed: SeedSequence) -> Proposals | None:
        """Return the proposals of a chain, where its kernel has them; leaves the inverse temperature undefined."""
        if not (self.engine.proposes_base or kernel.proposes_base):
            return None
        return draw_proposals(
            lambda seeds: draw_many(self, path, seeds), lambda states: self.log_ratio(path, states), n_steps, seed
        )
