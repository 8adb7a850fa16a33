"""Tasks that prepare chains: pilots, references and their looks, one pair of chains for a comparison of paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Model
from bread.errors import DensityError
from bread.fitting.search.before_chains import Look, finds_reference
from bread.fitting.search.found_references import FitRequest
from bread.fitting.search.pilot_chains import PilotChain, run_chain
from bread.fitting.search.reference_fit import BegunFit, ReferenceFit, begin_fit, continue_fit
from bread.paths.kinds import Path
from bread.running.pilots.tuning import Pilot, moved_pilot, run_pilot
from bread.running.state.plan import PathRequest
from bread.seeds import Purpose, chain_seeds
from bread.statistics.bounds.certificate import conditional_gaps, error_by_simulation


@dataclass(frozen=True)
class PilotTask:
    """Tune a kernel on one data set.

    Where no reference can be fitted to it, that of the pilot ``shared`` is moved to it: a choice that sees the data
    alone. Without one the error is raised, or returned where the pilot ``may_fail``. A reference that has been fitted
    to it is ``fit``.
    """

    simulation: int
    data: dict[str, NDArray[Any]]
    request: PathRequest
    root: int
    n_steps: int
    shows_tail: bool
    source: str
    may_fail: bool = False
    shared: Pilot | None = None
    fit: ReferenceFit | None = None
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> Pilot | DensityError:
        """Return the frozen kernel, the path and the pilot's draws; where it may fail, the error instead."""
        posterior = model.condition(self.data)
        try:
            return run_pilot(
                posterior,
                self.request,
                root=self.root,
                simulation=self.simulation,
                n_steps=self.n_steps,
                shows_tail=self.shows_tail,
                source=self.source,
                fit=self.fit,
            )
        except DensityError as error:
            if self.shared is not None and self.shared.fit is not None:
                return moved_pilot(posterior, self.shared, root=self.root, simulation=self.simulation)
            if not self.may_fail:
                raise
            return error


@dataclass(frozen=True)
class FitTask:
    """Begin the fit of a reference, or go on with one that has been given the chains that it wanted."""

    simulation: int
    data: dict[str, NDArray[Any]]
    request: FitRequest
    root: int
    begun: BegunFit | None = None
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> ReferenceFit | BegunFit | DensityError:
        """Return the fit, or what it has so far where it wants more chains; the error where there is none."""
        posterior = model.condition(self.data)
        try:
            if self.begun is None:
                return begin_fit(posterior, self.request, root=self.root, simulation=self.simulation)
            return continue_fit(posterior, self.begun, root=self.root, simulation=self.simulation)
        except DensityError as error:
            return error


@dataclass(frozen=True)
class PilotChainTask:
    """Run one pilot chain of the fit of a reference."""

    simulation: int
    data: dict[str, NDArray[Any]]
    root: int
    index: int
    initial: FloatArray
    n_steps: int
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> PilotChain:
        """Return its draws, or why there are none."""
        posterior = model.condition(self.data)
        return run_chain(
            posterior, self.initial, self.index, self.n_steps, root=self.root, simulation=self.simulation
        )  # fmt: skip


@dataclass(frozen=True)
class LookTask:
    """Look whether optimisation finds a reference near the posterior."""

    simulation: int
    data: dict[str, NDArray[Any]]
    request: FitRequest
    root: int
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> Look:
        """Return the answer, the gradient evaluations that it took, and what it found."""
        return finds_reference(model.condition(self.data), self.request, root=self.root, simulation=self.simulation)


@dataclass(frozen=True)
class MoveTask:
    """Move the reference of a pilot on another data set to this one."""

    simulation: int
    data: dict[str, NDArray[Any]]
    shared: Pilot
    root: int
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> Pilot:
        """Return the pilot along the moved reference."""
        return moved_pilot(model.condition(self.data), self.shared, root=self.root, simulation=self.simulation)


@dataclass(frozen=True)
class DensityTask:
    """Evaluate the log density at draws that someone else made."""

    simulation: int
    data: dict[str, NDArray[Any]]
    path: Path
    states: FloatArray
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> FloatArray:
        """Return log f_1 up to a constant (nats), shape (n,)."""
        return model.condition(self.data).log_density(self.path, self.states)


@dataclass(frozen=True)
class RaceResult:
    """The gap of one pair of chains (nats) and its V, what it cost, and the path that they followed.

    Both are infinite where no path can be given to the data set.
    """

    gap: float
    error: float
    n_gradients: int
    n_other_gradients: int
    pilot: Pilot


@dataclass(frozen=True)
class RaceTask:
    """Anneal one pair of chains along a path that may be chosen, on an extra simulated data set.

    The reverse chain begins at the exact draw itself. The data set serves for the choice alone. In the first round
    ``pilot`` is that of another data set, and this one is given a path of its own; in later rounds it is that path.
    """

    simulation: int
    data: dict[str, NDArray[Any]]
    request: PathRequest
    root: int
    n_steps: int
    pilot: Pilot
    is_first: bool
    tune_each: bool
    betas: FloatArray
    exact: FloatArray
    n_chains: int = field(default=1, init=False)

    def run(self, model: Model) -> RaceResult:
        """Return reverse minus forward log weight; infinity where the data set gets no path, or a chain fails."""
        pilot = self._own_pilot(model) if self.is_first else self.pilot
        if isinstance(pilot, DensityError):
            return RaceResult(float("inf"), float("inf"), 0, 0, self.pilot)
        n_other = pilot.n_gradients if self.is_first and pilot is not self.pilot else 0
        posterior = model.condition(self.data)
        path, kernel, number = pilot.path, pilot.kernel, len(self.betas)
        bases, forwards, reverses = (
            chain_seeds(self.root, purpose, self.simulation, number, range(1))
            for purpose in (Purpose.RACE_BASE, Purpose.RACE_FORWARD, Purpose.RACE_REVERSE)
        )
        base = posterior.draw_base(path, bases)
        forward = posterior.anneal(path, self.betas, kernel, direction="forward", initial=base, seeds=forwards)
        exact = self.exact[None, :]
        reverse = posterior.anneal(path, self.betas, kernel, direction="reverse", initial=exact, seeds=reverses)
        weights = forward.log_weight[None, :], reverse.log_weight[None, :]
        spent = int(forward.n_gradients.sum() + reverse.n_gradients.sum())
        if np.isnan(weights).any():  # an error to report where the path is annealed in earnest
            return RaceResult(float("inf"), float("inf"), spent, n_other, pilot.without_draws())
        gap, error = float(conditional_gaps(*weights)[0]), float(error_by_simulation(*weights)[0])
        return RaceResult(gap if np.isfinite(gap) else float("inf"), error, spent, n_other, pilot.without_draws())

    def _own_pilot(self, model: Model) -> Pilot | DensityError:
        """Return the path and the kernel of this data set."""
        if self.tune_each:
            task = PilotTask(
                self.simulation, self.data, self.request, self.root, self.n_steps,
                shows_tail=False, source="", may_fail=True, shared=self.pilot,
            )  # fmt: skip
            return task.run(model)
        if self.pilot.fit is None:
            return self.pilot
        return MoveTask(self.simulation, self.data, self.pilot, self.root).run(model)
