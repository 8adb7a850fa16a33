"""A NumPyro model with one data set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import (
    Adaptation,
    AnnealRun,
    Data,
    Direction,
    Evolution,
    Failure,
    FloatArray,
    Kernel,
    Posterior,
    Settings,
)
from bread.backends.numpyro.chains import PRIOR, Chains, Trace
from bread.backends.numpyro.precision import key_numbers
from bread.backends.support.arguments import check_run, within_limits
from bread.backends.support.base_draws import draw_reference
from bread.backends.support.jax_references import PackedReference, is_known, pack
from bread.errors import DensityError
from bread.paths.kinds import Path
from bread.paths.mixture import Reference

NO_REFERENCE = (
    "NumPyro's kernels run along the prior path alone here, but for simulate_from='posterior'. Use path='prior' (or "
    "leave path= out)."
)


@dataclass(frozen=True)
class NumPyroPosterior(Posterior):
    """Implements `bread.backends.base.Posterior`.

    Attributes
    ----------
    chains : Chains
    data : dict of str to ndarray
    """

    chains: Chains
    data: Data

    def takes_reference(self, reference: Reference) -> bool:
        """Return whether JAX is given the formula of a reference; see `bread.backends.base.Posterior`."""
        return is_known(reference)

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior or the path's reference, one state per seed."""
        if path.reference is not None:
            return draw_reference(path.reference, seeds, self.chains.program.dim)
        drawn = [self.chains.draw(key_numbers(seed), {})[0] for seed in seeds]
        return np.array(drawn).reshape((len(seeds), self.chains.program.dim))

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 - log f_0 at each state."""
        return self._ends(path, states)[1]

    def log_base(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_0 at each state."""
        return self._ends(path, states)[0]

    def log_density(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log prior + log likelihood at each state."""
        prior, likelihood = self.chains.densities(np.asarray(states, dtype=np.float64), self.data)
        return prior + likelihood

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 and its gradient; see `bread.backends.base.Posterior.end_gradient`."""
        values, gradients = self.density_gradient(1.0, np.asarray(state)[None])
        return float(values[0]), gradients[0]

    def end_gradients(self, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log f_1 and its gradient at several states; see `bread.backends.base.Posterior`."""
        return self.density_gradient(1.0, states)

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tempered log density and its gradient; see `bread.backends.base.Posterior`."""
        return self.chains.gradients(beta, np.asarray(states, dtype=np.float64), self.data)

    def _ends(self, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log f_0 and log f_1 - log f_0 at each state."""
        states = np.asarray(states, dtype=np.float64)
        prior, likelihood = self.chains.densities(states, self.data)
        if path.reference is None:
            return prior, likelihood
        base = path.reference.log_density(states)
        with np.errstate(invalid="ignore"):  # where both are infinite
            return base, np.asarray(prior + likelihood - base)

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Adapt step size and diagonal metric by NumPyro's own warm-up at ``beta``."""
        state = np.asarray(state, dtype=np.float64)
        step_size = float(previous["step_size"]) if previous else 1.0
        metric = np.asarray(previous["inverse_metric"]) if previous else np.ones(len(state))
        own = (state, beta, key_numbers(seed), n_steps, step_size, metric, self.data, _packed(path))
        found = self.chains.adapt(*own)
        return Adaptation(
            settings={
                "step_size": within_limits(found.step_size),
                "inverse_metric": within_limits(found.inverse_metric),
            },
            state=found.state,
            log_ratio=found.log_ratio[n_steps // 2 :],
            n_gradients=found.n_gradients,
            n_evaluations=n_steps,
        )

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
        """Run one chain per row of ``initial``; see `bread.backends.base.Posterior.anneal`.

        NumPyro's HMC and NUTS are reversible, so that each is its own reversal.

        Raises
        ------
        InvalidArgumentError
            ``betas`` does not increase from 0 to 1, ``direction`` is unknown, or the number of seeds is wrong.
        """
        began = time.perf_counter()
        packed = _packed(path)
        betas, initial = np.asarray(betas, dtype=np.float64), np.asarray(initial, dtype=np.float64)
        check_run(betas, direction, initial, seeds)
        applied = betas[1:] if direction == "forward" else betas[:0:-1]
        settings = _tables(kernel, applied)
        log_ratio = np.full((len(seeds), len(betas)), np.nan)
        log_base = np.full((len(seeds), 2), np.nan)
        ends = initial.copy()
        n_gradients, n_divergences, failure = np.zeros((3, len(seeds)), dtype=np.int64)
        n_evaluations = np.zeros(len(seeds), dtype=np.int64)
        first_base, first_ratio = self._ends(path, initial)
        for chain, seed in enumerate(seeds):
            base, ratios = np.full(2, first_base[chain]), np.array(first_ratio[chain : chain + 1])
            if np.isfinite(base[0]) and np.isfinite(ratios[0]):
                trace = self.chains.run(initial[chain], key_numbers(seed), applied, *settings, self.data, packed)
                ratios = np.concatenate([ratios, trace.log_ratio])
                ends[chain], base[1] = trace.states[-1], trace.log_base[-1]
                n_gradients[chain], n_divergences[chain] = trace.n_gradients, trace.n_divergences
            else:
                base[1] = np.nan
            n_evaluations[chain] = len(ratios)
            failure[chain] = _failure(base[0], ratios, len(betas), direction)
            whole = np.concatenate([ratios, np.full(len(betas) - len(ratios), np.nan)])
            log_ratio[chain] = whole if direction == "forward" else whole[::-1]
            log_base[chain] = base if direction == "forward" else base[::-1]
        with np.errstate(invalid="ignore"):
            log_weight = np.asarray(path.log_weight(betas, log_ratio), dtype=np.float64).reshape(len(seeds))
        log_weight[failure == Failure.ZERO_RATIO] = -np.inf
        log_weight[failure > Failure.ZERO_RATIO] = np.nan
        return AnnealRun(
            log_weight=log_weight,
            log_ratio=log_ratio,
            state_at_base=initial.copy() if direction == "forward" else ends,
            state_at_end=ends if direction == "forward" else initial.copy(),
            log_base_density=log_base,
            n_gradients=n_gradients,
            n_evaluations=n_evaluations,
            n_divergences=n_divergences,
            failure=failure,
            seconds=time.perf_counter() - began,
        )

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain of the frozen kernel at ``beta``; see `bread.backends.base.Posterior.evolve`.

        Raises
        ------
        DensityError
            The tempered density of ``state`` is zero or NaN.
        """
        state = np.asarray(state, dtype=np.float64)
        value = (self.log_base if beta == 0.0 else self.log_density)(path, state[None])[0]
        if not np.isfinite(value):
            raise DensityError(f"The log density at inverse temperature {beta} is {value} where a chain is to begin.")
        n_steps = max(keep, default=0)
        states, n_gradients = state[None], 0
        if n_steps:
            trace = self._run(path, state, kernel, beta, n_steps, seed)
            states, n_gradients = np.concatenate([states, trace.states]), trace.n_gradients
        return Evolution(states[list(keep)].reshape((len(keep), len(state))), n_gradients, n_steps + 1)

    def _run(
        self, path: Path, state: FloatArray, kernel: Kernel, beta: float, n_steps: int, seed: SeedSequence
    ) -> Trace:
        betas = np.full(n_steps, float(beta))
        trace = self.chains.run(state, key_numbers(seed), betas, *_tables(kernel, betas), self.data, _packed(path))
        if len(trace.states) < n_steps and beta != 0.0:
            raise DensityError(f"The log density at inverse temperature {beta} is not finite where a chain came to.")
        return trace


def _tables(kernel: Kernel, betas: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return step sizes and inverse metrics of transitions at ``betas``."""
    settings = kernel.along(betas)
    return np.array([one["step_size"] for one in settings]), np.array([one["inverse_metric"] for one in settings])


def _failure(log_base: float, ratios: FloatArray, n_temperatures: int, direction: Direction) -> Failure:
    """Say why a chain has no finite log weight; ``ratios`` are in the order in which they were met."""
    if not np.isfinite(log_base):
        return Failure.ZERO_INITIAL if log_base == -np.inf else Failure.NAN
    counted = ratios[: n_temperatures - 1] if direction == "forward" else ratios
    bad = np.flatnonzero(~np.isfinite(counted))
    if len(bad) == 0:
        return Failure.NONE
    is_zero = counted[bad[0]] == -np.inf
    if direction == "forward":
        return Failure.ZERO_RATIO if is_zero else Failure.NAN
    return Failure.ZERO_INITIAL if is_zero and bad[0] == 0 else Failure.NAN


def _packed(path: Path) -> PackedReference:
    return PRIOR if path.reference is None else pack(path.reference)
