"""The contract's `Posterior`: annealed chains of a reference model on one data set, or on one data set per row."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import SeedSequence, default_rng

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
from bread.backends.support.arguments import check_run
from bread.backends.support.gradients import one_by_one
from bread.backends.support.stretching import stretched_metric
from bread.errors import DensityError, InvalidArgumentError
from bread.paths.kinds import Path, PriorPath
from bread.paths.mixture import Reference
from tests.models.reference.arrays import Statistics
from tests.models.reference.density import TargetDensity
from tests.models.reference.formulae import Formulae
from tests.models.reference.hmc import HMCAdaptation
from tests.models.reference.kernels import ReferenceKernel, Run, Tally, draw_random_numbers


class ReferencePosterior:
    """A reference model with its data; made by ``condition`` or ``condition_rows`` of the model.

    Parameters
    ----------
    formulae : Formulae
        The model's densities.
    statistics : dict of str to ndarray
        What they need of the data.
    spec : ReferenceKernel
        How chains move.
    refusals : dict of str to str
        Paths that they cannot follow, and why.
    """

    def __init__(
        self, formulae: Formulae, statistics: Statistics, spec: ReferenceKernel, refusals: Mapping[str, str]
    ) -> None:
        self._formulae = formulae
        self._statistics = statistics
        self._spec = spec
        self._refusals = refusals

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior or the path's reference, one state per seed; shape (len(seeds), dim)."""
        states = np.empty((len(seeds), self._formulae.dim))
        for row, seed in enumerate(seeds):
            rng = default_rng(seed)
            if path.reference is None:
                states[row] = self._formulae.draw_state(rng, {})
            else:
                states[row] = path.reference.sample(1, rng)[0]
        return states

    def draw_prior_batch(self, n: int, seed: SeedSequence) -> None:
        """Draw one by one: that is fast."""

    def draw_tempered(self, beta: float, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw exactly from the tempered law of one data set, one state per seed; shape (len(seeds), dim).

        Raises
        ------
        UnsupportedModelError
            The model has no closed form of it.
        """
        states = [self._formulae.draw_tempered_of(beta, self._statistics, default_rng(seed)) for seed in seeds]
        return np.array(states).reshape(len(seeds), self._formulae.dim)

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 - log f_0 at each of ``states``, shape (n,); -inf is legal, exceptions become NaN."""
        with np.errstate(all="ignore"):
            return self._target(path).log_ratio(np.ascontiguousarray(states, dtype=float))

    def log_density(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 (nats) at each of ``states``, shape (n,); exceptions become NaN."""
        with np.errstate(all="ignore"):
            return self._target(path).log_density(1.0, np.ascontiguousarray(states, dtype=float))

    def log_base(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_0 (nats) at each of ``states``, shape (n,); exceptions become NaN."""
        with np.errstate(all="ignore"):
            return self._target(path).log_base(np.ascontiguousarray(states, dtype=float))

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 (nats) and its gradient; see `bread.backends.base.Posterior.end_gradient`."""
        target, states = self._target(path), np.asarray(state, dtype=float)[None, :]
        with np.errstate(all="ignore"):
            value, gradient = target.log_density(1.0, states), target.gradient(1.0, states)
        if target.raised:
            raise DensityError(f"The log density raises at {state}: {target.message}")
        return float(value[0]), gradient[0]

    def end_gradients(self, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log f_1 (nats) and its gradient at several states; see `bread.backends.base.Posterior`."""
        target, states = self._target(path), np.asarray(states, dtype=float)
        with np.errstate(all="ignore"):
            values, gradients = target.log_density(1.0, states), target.gradient(1.0, states)
        return one_by_one(self, path, states) if target.raised else (values, np.array(gradients))

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log prior + beta * log likelihood and its gradient; see `bread.backends.base.Posterior`."""
        target = TargetDensity(self._formulae, self._statistics, PriorPath())
        states = np.ascontiguousarray(states, dtype=float)
        with np.errstate(all="ignore"):
            values, gradients = target.log_density(beta, states), np.array(target.gradient(beta, states))
        gradients[:, np.setdiff1d(np.arange(self._formulae.dim), self._formulae.continuous)] = np.nan
        return values, gradients

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the log likelihood of each row; see `bread.backends.support.rows.Rows`."""
        return self.log_ratio(PriorPath(), states)

    def move(
        self, path: Path, kernel: Kernel, beta: float, states: FloatArray, n_steps: int, seeds: Sequence[SeedSequence]
    ) -> Evolution:
        """Move one chain a row; see `bread.backends.support.rows.Rows`."""
        moved, tally = self._evolve(path, kernel, beta, states, [n_steps], seeds)
        return Evolution(moved[:, 0], int(tally.n_gradients.sum()), int(tally.n_evaluations.sum()))

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Adapt step size and metric by dual averaging at ``beta``; a kernel without settings just runs."""
        formulae, spec, target, tally = self._formulae, self._spec, self._target(path), Tally.of(1)
        random = draw_random_numbers(spec, formulae.dim, n_steps, [seed])
        adaptation = HMCAdaptation(formulae.dim, n_steps, previous if spec.is_tunable and previous else None)
        settings: list[Settings] = [adaptation.settings for _ in range(n_steps)]
        run = Run(target, np.full(n_steps, float(beta)), settings, random, "forward", tally)
        chain = np.empty((n_steps, formulae.dim))
        current = np.array(state, dtype=float)[None, :]
        with np.errstate(all="ignore"):
            transition = spec.transition(run)
            for i in range(n_steps):
                settings[i] = adaptation.settings
                current = transition(i, current)
                chain[i] = current[0]
                if spec.is_tunable:
                    adaptation.update(current[0], float(tally.acceptance[0]), formulae.continuous)
            kept = chain[n_steps // 2 :]
            log_ratio = target.log_ratio(kept[:, None, :])[:, 0]
        return Adaptation(
            settings=adaptation.frozen if spec.is_tunable else {},
            state=current[0],
            log_ratio=log_ratio,
            n_gradients=int(tally.n_gradients[0]),
            n_evaluations=int(tally.n_evaluations[0]) + len(kept),
        )

    def takes_reference(self, reference: Reference) -> bool:
        """Yes: see `bread.backends.base.Posterior.takes_reference`."""
        return True

    @property
    def takes_correlation(self) -> bool:
        """No: see `bread.backends.base.Posterior.takes_correlation`."""
        return False

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
        """Run one chain per row of ``initial``, with the seed of the same place.

        Forward: for t = 2..T weight theta_{t-1}, then move by the kernel at beta_t. Reverse: for t = T..2 move by the
        reversal of the kernel at beta_t, then weight theta_{t-1} (Grosse, Ancha & Roy 2016, equations 5 and 6).

        Raises
        ------
        InvalidArgumentError
            ``betas`` does not increase from 0 to 1, ``direction`` is unknown, or the number of seeds is wrong.
        """
        began = time.perf_counter()
        betas = np.asarray(betas, dtype=float)
        check_run(betas, direction, initial, seeds)
        dim, target, tally = self._formulae.dim, self._target(path), Tally.of(len(seeds))
        last = len(betas) - 1
        applied = betas[1:] if direction == "forward" else betas[:0:-1]
        settings = kernel.along(applied) if kernel.settings else [{}] * last
        random = draw_random_numbers(self._spec, dim, last, seeds)
        states = np.empty((last + 1, len(seeds), dim))
        with np.errstate(all="ignore"):
            transition = self._spec.transition(Run(target, applied, settings, random, direction, tally))
            if direction == "forward":
                states[0] = initial
                for i in range(last):
                    states[i + 1] = transition(i, states[i])
            else:
                states[last] = initial
                for i in range(last):
                    states[last - i - 1] = transition(i, states[last - i])
            target.raised, target.message = set(), ""  # inside a kernel a failure is a rejection
            log_ratio = np.ascontiguousarray(target.log_ratio(states).T)
            log_base = np.ascontiguousarray(target.log_base(states[[0, last]]).T)
            failure = _failures(log_ratio, log_base, direction, target.raised)
            log_weight = path.log_weight(betas, log_ratio)
        log_weight[failure >= Failure.ZERO_INITIAL] = np.nan
        return AnnealRun(
            log_weight=log_weight,
            log_ratio=log_ratio,
            state_at_base=states[0].copy(),
            state_at_end=states[last].copy(),
            log_base_density=log_base,
            n_gradients=tally.n_gradients,
            n_evaluations=tally.n_evaluations + last + 1,
            n_divergences=tally.n_divergences,
            failure=failure,
            seconds=time.perf_counter() - began,
            message=target.message,
        )

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain of the frozen kernel at ``beta`` from ``state``; return the states after ``keep`` steps."""
        states, tally = self._evolve(path, kernel, beta, np.asarray(state, dtype=float)[None, :], keep, [seed])
        return Evolution(states[0], int(tally.n_gradients[0]), int(tally.n_evaluations[0]))

    def evolve_rows(
        self,
        path: Path,
        kernel: Kernel,
        beta: float,
        states: FloatArray,
        keep: Sequence[int],
        seeds: Sequence[SeedSequence],
    ) -> FloatArray:
        """Do the same for one chain per row of ``states``; shape (n, len(keep), dim), each row as by ``evolve``."""
        return self._evolve(path, kernel, beta, states, keep, seeds)[0]

    def _evolve(
        self,
        path: Path,
        kernel: Kernel,
        beta: float,
        states: FloatArray,
        keep: Sequence[int],
        seeds: Sequence[SeedSequence],
    ) -> tuple[FloatArray, Tally]:
        n_steps = max(keep, default=0)
        tally = Tally.of(len(seeds))
        random = draw_random_numbers(self._spec, self._formulae.dim, n_steps, seeds)
        settings = [kernel.at(float(beta)) if kernel.settings else {}] * n_steps
        run = Run(self._target(path), np.full(n_steps, float(beta)), settings, random, "forward", tally)
        visited = np.empty((n_steps + 1, len(seeds), self._formulae.dim))
        visited[0] = states
        if n_steps:
            with np.errstate(all="ignore"):
                transition = self._spec.transition(run)
                for i in range(n_steps):
                    visited[i + 1] = transition(i, visited[i])
        return np.ascontiguousarray(visited[list(keep)].transpose(1, 0, 2)), tally

    def _target(self, path: Path) -> TargetDensity:
        if path.name in self._refusals:
            raise InvalidArgumentError(f"{self._refusals[path.name]} The path is {path!r}.")
        return TargetDensity(self._formulae, self._statistics, path)


def _failures(log_ratio: FloatArray, log_base: FloatArray, direction: Direction, raised: set[int]) -> IntArray:
    """Say why each chain has no finite log weight; the later reasons are the graver ones."""
    failure = np.full(len(log_ratio), int(Failure.NONE), dtype=np.int64)
    has_zero = (log_ratio[:, :-1] == -np.inf).any(axis=1)
    first = log_base[:, 0] if direction == "forward" else log_base[:, 1]
    if direction == "forward":
        failure[has_zero] = Failure.ZERO_RATIO
    else:
        failure[has_zero | (log_ratio[:, -1] == -np.inf) | (first == -np.inf)] = Failure.ZERO_INITIAL
    is_nan = np.isnan(log_ratio[:, :-1]).any(axis=1) | np.isnan(first)
    if direction == "reverse":
        is_nan |= np.isnan(log_ratio[:, -1])
    failure[is_nan] = Failure.NAN
    failure[[row for row in raised if is_nan[row]]] = Failure.EXCEPTION
    return failure
