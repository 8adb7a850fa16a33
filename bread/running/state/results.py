"""Everything that one check computed, as plain arrays: what the runner fills and the report is built from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Direction, Fit, FloatArray, Kernel, ModelInfo, Simulations
from bread.fitting.search.reference_fit import ReferenceFit
from bread.paths.kinds import Path
from bread.paths.mixture import MixtureReference
from bread.running.check.first_look import FirstLookResult
from bread.running.model_fit.fit_check import FitCheck
from bread.running.state.attempts import Attempts
from bread.running.state.budget import BudgetResult
from bread.running.state.exactness_results import DirectTests
from bread.running.state.mode_results import ModeResults
from bread.running.state.prior_integral_results import PriorIntegrals
from bread.statistics.agreement.lower_bound import ToldApart
from bread.statistics.bounds.goal import Goal
from bread.statistics.exactness.normalisation import Normalisation

OBSERVED = -1  # the real data, as a "simulation" index
RACE = -20  # extra simulated data sets that choose the path: -20, -21, ...
END = -60  # the exact draws at which a user's reference is tested
SHARED = -2  # the extra simulated data set that one kernel for all was tuned on: -2, -3, -4
DIRECT = -61  # the draws with held parameters that simulator and density are compared on
OTHERS = (-10, -13)  # others, on which a reference is looked for where none was found there: -10, -11, -12; -13, ...


@dataclass
class CheckResult:
    """All that was run, whether finished or interrupted.

    Attributes
    ----------
    info : ModelInfo
    path : Path
        The path of the extra simulated data set; its kind is that of all.
    settings : dict
        Every argument of the check after defaults were filled in; JSON can hold it.
    goal : Goal
        What is to be reached.
    level : float
        Two-sided confidence level of intervals, after alpha was spent on failed confirmations.
    error_level : float
        One-sided confidence level of the limits of V.
    simulations : Simulations
        All simulated data sets, in the order of their index.
    roles : list of str, one per simulation
        "search" (chose T), "confirm" (fresh ones: only those give B, interval, verdict and alarm) or
        "forward" (forward chains only, for the consistency test).
    schedules : dict of int to ndarray
        T -> inverse temperatures of shape (T,).
    runs : dict of (simulation, direction, T) to AnnealRun
        simulation is an index or `OBSERVED`. What is missing was not run or not finished.
    repeats : dict of (repeat, T) to AnnealRun
        More forward chains of the real data, for the consistency test.
    attempts : Attempts
        What was to be annealed both ways, in order.
    n_chains : int
        Chains per simulation and direction (K).
    kernels : dict of int to Kernel
        By simulation index, `OBSERVED`, or `SHARED` for one kernel for all.
    paths : dict of int to Path
        Path of each data set that has its own (a reference is fitted to its data), by simulation index or `OBSERVED`.
    reference_fit : ReferenceFit or None
        The fit to the extra simulated data set, for a reference path.
    unfitted : list of int
        Data sets to which no reference could be fitted: they anneal from that of the extra one, moved to them.
    path_costs : dict of str to float
        For each kind of path that was considered: predicted gradient evaluations per data set, fit included.
    localisation : MixtureReference or None
        Law of the hyperparameters in place of their prior, under ``simulate_from="localised"``.
    base_log_ratio, end_log_ratio : list of ndarray, each (n_draws,)
        log_ratio at draws from the path's base and at pilot draws at beta = 1, one array a simulated data set: for
        the tail diagnostic.
    exact_end_log_ratio : ndarray, shape (n,)
        log_ratio at exact draws, each with a data set of its own: for a reference of the user's, which may be too
        narrow. Empty for other paths.
    observed_draws : ndarray (n, dim) or None
        End points of annealed chains on the real data at the largest T.
    direct_tests : DirectTests or None
        Score and invariance tests of exact draws; None before they have run.
    observed_log_density : ndarray (n,) or None
        Log density of the posterior there, up to a constant, nats.
    observed_log_weight : ndarray (n,) or None
        Log weights of all chains that were annealed for those draws, at `draw_temperatures`, nats; -inf where one met a
        ratio of zero, NaN where one failed.
    observed_log_ratio : ndarray (n, 2) or None
        Their log ratios at the base and at the end of the path.
    draw_temperatures : int
    n_draws_dropped : int
        Chains among them that failed or met a ratio of zero, and so end nowhere.
    n_draws_zero : int
        Those that met a ratio of zero.
    prior_integrals : PriorIntegrals or None
        Whether each prior integrates to one; None before that was looked at.
    fit : Fit or None
        Draws on the real data by the PPL's own sampler, or the user's: of all free variables.
    first_look : FirstLookResult or None
        Those draws against the gradient of the density at them; None before that was looked at.
    partial : Fit or None
        The user's draws where they lack free variables: they are compared, and serve nothing else.
    observed_derived : dict of str to ndarray, each (n, ...)
        Of the annealed draws, what depends on them that only the user's draws ask for (generated quantities of Stan).
    fit_check : FitCheck or None
        Whether the real data look like the model's.
    is_shape_left_out : bool
        Whether the real data cannot be compared with simulated ones; a warning says why.
    fit_log_density : ndarray (chain, draw) or None
        Log density of the posterior at the fit's draws, up to the same constant.
    told_apart : ToldApart or None
        How well a classifier tells the fit's draws, or the user's, from the certified ones; None where it did not look.
    bridge : Normalisation or None
        Log evidence by bridge sampling from the fit's draws.
    modes : ModeResults or None
        The search for modes on the real data that the annealed draws miss.
    seconds, n_gradients : dict of str to number
        By phase: "compile", "fit", "look", "tune", "start", "search", "confirm", "consistency", "draws", "compare",
        "replicate", "modes", "prior integrals".
    n_temperatures : int
        The T that B, verdict and alarm are about.
    is_interrupted : bool
    not_certified : str
        Why nothing was annealed, and what would allow it; "" where something was.
    budget : BudgetResult or None
        What was predicted and spent, where the check had a budget.
    warnings : list of str
    seed : int
        Root entropy.
    """

    info: ModelInfo
    path: Path
    settings: dict[str, Any]
    goal: Goal
    simulations: Simulations
    n_chains: int
    seed: int
    level: float = 0.95
    error_level: float = 0.95
    roles: list[str] = field(default_factory=list)
    schedules: dict[int, FloatArray] = field(default_factory=dict)
    runs: dict[tuple[int, Direction, int], AnnealRun] = field(default_factory=dict)
    repeats: dict[tuple[int, int], AnnealRun] = field(default_factory=dict)
    attempts: Attempts = field(default_factory=Attempts)
    kernels: dict[int, Kernel] = field(default_factory=dict)
    paths: dict[int, Path] = field(default_factory=dict)
    reference_fit: ReferenceFit | None = None
    unfitted: list[int] = field(default_factory=list)
    path_costs: dict[str, float] = field(default_factory=dict)
    localisation: MixtureReference | None = None
    base_log_ratio: list[FloatArray] = field(default_factory=list)
    end_log_ratio: list[FloatArray] = field(default_factory=list)
    exact_end_log_ratio: FloatArray = field(default_factory=lambda: np.zeros(0))
    observed_draws: FloatArray | None = None
    direct_tests: DirectTests | None = None
    observed_log_density: FloatArray | None = None
    observed_log_weight: FloatArray | None = None
    observed_log_ratio: FloatArray | None = None
    draw_temperatures: int = 0
    n_draws_dropped: int = 0
    n_draws_zero: int = 0
    prior_integrals: PriorIntegrals | None = None
    fit: Fit | None = None
    first_look: FirstLookResult | None = None
    partial: Fit | None = None
    observed_derived: dict[str, NDArray[Any]] = field(default_factory=dict)
    fit_check: FitCheck | None = None
    is_shape_left_out: bool = False
    fit_log_density: FloatArray | None = None
    told_apart: ToldApart | None = None
    bridge: Normalisation | None = None
    modes: ModeResults | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    n_gradients: dict[str, int] = field(default_factory=dict)
    n_temperatures: int = 0
    is_interrupted: bool = False
    not_certified: str = ""
    budget: BudgetResult | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def compared(self) -> Fit | None:
        """The draws that are compared with annealed ones: the user's, or those of the fit."""
        return self.partial or self.fit

    @property
    def is_about_fit(self) -> bool:
        """Whether what is asked of draws on the real data is asked of the fit's: no others are of the user's model."""
        return self.localisation is not None or bool(self.not_certified)

    def path_of(self, simulation: int) -> Path:
        """Return the path of one data set."""
        return self.paths.get(simulation, self.path)

    def unfitted_message(self) -> str | None:
        """Return a sentence on the data sets to which no reference could be fitted; None where there are none."""
        if not self.unfitted:
            return None
        real = " (the real data among them)" if OBSERVED in self.unfitted else ""
        return (
            f"No reference could be fitted to {len(self.unfitted)} of {len(self.paths)} data sets{real}: these anneal "
            "from the reference of an extra simulated data set, moved to them. The bound holds, and may be large."
        )

    def log_weights(
        self, direction: Direction, n_temperatures: int, simulations: NDArray[np.int64] | None = None
    ) -> FloatArray:
        """Return log weights (simulation, chain) at one T; NaN rows where a run is missing."""
        indices = np.arange(len(self.roles)) if simulations is None else simulations
        values = np.full((len(indices), self.n_chains), np.nan)
        for row, index in enumerate(indices):
            run = self.runs.get((int(index), direction, n_temperatures))
            if run is not None:
                values[row] = run.log_weight
        return values

    def indices(self, role: str) -> NDArray[np.int64]:
        """Return the indices of the simulations with this role."""
        return np.flatnonzero(np.array(self.roles, dtype=str) == role)
