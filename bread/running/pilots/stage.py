"""What fits and tunes before chains are annealed: simulated data sets, pilots, and tasks run and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from typing import Any

from numpy.typing import NDArray

from bread.backends.base import Model, Simulations
from bread.errors import DensityError
from bread.jobs.interrupts import interruptible
from bread.jobs.task import Task
from bread.running.pilots.fitted_hyperparameters import HeldDraws
from bread.running.pilots.parallel_pilots import run_side_by_side
from bread.running.pilots.tasks import PilotTask
from bread.running.pilots.tuning import Pilot
from bread.running.state.ledger import Ledger
from bread.running.state.results import OBSERVED, CheckResult
from bread.seeds import Purpose, seed_sequence

MOST_HELD = 20  # random draws of the fit, after which it is none that data can be simulated from: 0.5^20 if half are


class Stage:
    """Draws data sets of a model, and runs tasks on them.

    Parameters
    ----------
    model : Model
    root : int
        Of the random numbers.
    result : CheckResult
        Says what was passed over, and has the data sets of the check.
    ledger : Ledger

    Attributes
    ----------
    held : HeldDraws or None
        Hyperparameters of data sets, under "fitted", once there is a fit.
    """

    def __init__(self, model: Model, root: int, result: CheckResult, ledger: Ledger) -> None:
        self.held: HeldDraws | None = None
        self._model, self._root, self._result, self._ledger = model, root, result, ledger

    def draw_simulations(self, n: int, simulation: int) -> Simulations:
        """Draw ``n`` parameters and data sets; ``simulation`` names their random numbers."""
        with interruptible():
            if self.held is None:
                return self._model.simulate(n, fixed=None, seed=seed_sequence(self._root, Purpose.SIMULATE, simulation))
            return reduce(Simulations.joined, (self._draw_held(self.held, simulation, index) for index in range(n)))

    def _draw_held(self, held: HeldDraws, simulation: int, index: int) -> Simulations:
        """Draw one data set at a draw of the fit; where none can be had, at another one, and say so."""
        seed = seed_sequence(self._root, Purpose.SIMULATE, simulation, 0, index)
        for attempt in range(MOST_HELD):
            fixed = held.of(simulation, index, attempt)
            try:
                return self._model.simulate(1, fixed=fixed, seed=seed)
            except DensityError as error:
                if attempt == MOST_HELD - 1:
                    raise
                why = f"Draws of the fit at which no data can be simulated were passed over: {error}"
                if not any(said.startswith(why.partition(":")[0]) for said in self._result.warnings):
                    self._result.warnings.append(why)
        raise AssertionError

    def data(self, simulation: int) -> dict[str, NDArray[Any]]:
        """Return a data set: simulated, or the real one."""
        if simulation == OBSERVED:
            return dict(self._model.info.data.observed)
        return self._result.simulations.data_of(simulation)

    def run_pilots(self, tasks: Sequence[PilotTask]) -> list[Pilot | DensityError]:
        """Run pilots of the choice and record them in the order of the tasks; chains of a fit run side by side."""
        pilots = run_side_by_side(tasks, self.run_round)
        for pilot in pilots:
            if isinstance(pilot, Pilot):
                self.count("tune", pilot.n_gradients)
        return pilots

    def run_round(self, tasks: Sequence[Task], phase: str = "tune") -> list[Any]:
        """Return the results of pilots, or parts of them, in the order of the tasks."""
        with self.phase("tuning", phase, len(tasks)):
            return self._ledger.in_order(tasks)

    def run_tasks(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Run tasks and yield (position, result) as they finish."""
        return self._ledger.run_tasks(tasks)

    def count(self, phase: str, n_gradients: int) -> None:
        """Add gradient evaluations to a phase."""
        self._ledger.count(phase, n_gradients)

    def phase(self, name: str, phase: str, n_chains: int | None = None) -> AbstractContextManager[None]:
        """Show a phase and add its wall time to the result."""
        return self._ledger.phase(name, phase, n_chains)
