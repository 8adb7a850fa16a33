"""Models with a defect put in on purpose, for the tests of exact draws, and a way to run those tests alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import Discarded, Simulations
from bread.jobs.executors import open_executor
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath
from bread.running.check.preparation import Preparation
from bread.running.exactness.phase import DirectPhase
from bread.running.state.exactness_results import DirectTests
from bread.running.state.ledger import Ledger
from bread.running.state.plan import PathRequest, Plan
from bread.running.state.results import CheckResult
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.bounds.goal import Goal
from tests.models.reference import HMCKernel, NormalMean

Y = np.array([0.3, -1.0, 2.0, 0.5])


@dataclass(frozen=True, eq=False)
class WidePriorDraws(NormalMean):
    """Draws the mean with the variance in place of the standard deviation."""

    def draw_state(self, generator, fixed):
        state = super().draw_state(generator, fixed)
        return self.prior_mean + self.prior_sd * (state - self.prior_mean)


@dataclass(frozen=True, eq=False)
class WideDataDraws(NormalMean):
    """Draws the data with the variance in place of the standard deviation."""

    def draw_data(self, parameters, generator):
        drawn = super().draw_data(parameters, generator)["y"]
        mean = float(parameters["mean"])
        return {"y": mean + self.noise_sd * (drawn - mean)}


@dataclass(frozen=True, eq=False)
class LimitedData(NormalMean):
    """Outcomes above 3 cannot be represented: joint draws with one are made again, and counted."""

    def simulate(self, n, *, fixed, seed):
        drawn, root = super().simulate(0, fixed=fixed, seed=seed), SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
        for child in root.spawn(n):
            for attempt in child.spawn(30):
                one = super().simulate(1, fixed=fixed, seed=attempt)
                if one.data["y"].max() <= 3.0:
                    drawn = drawn.joined(one)
                    break
                again = super().simulate(1, fixed={"mean": one.states[0, 0]}, seed=attempt.spawn(1)[0])
                by_chance = float(again.data["y"].max() <= 3.0)
                states = () if by_chance else (one.states[0],)
                lost = Discarded(n_outcomes=1, n_by_chance=by_chance, states=states, reason="y is too large")
                drawn = replace(drawn, discarded=drawn.discarded + lost)
        return drawn


@dataclass(frozen=True, eq=False)
class NoDataAbove(NormalMean):
    """No outcomes can be drawn where the mean is above ``limit``."""

    limit: float = 2.0

    def draw_data(self, parameters, generator):
        if float(parameters["mean"]) > self.limit:
            raise ValueError("no draws here")
        return super().draw_data(parameters, generator)


@dataclass(frozen=True)
class UncorrectedDrift(HMCKernel):
    """One coarse leapfrog step that is always accepted: Langevin's drift without Metropolis' correction."""

    n_leapfrog: int = 1
    jitter: float = 0.0

    def step_sizes(self, settings, states):
        return np.full(len(states), 3.0 / np.sqrt(settings["inverse_metric"][0]))  # 3, whatever was adapted

    def transition(self, run):
        uniforms = run.random.uniforms.copy()
        uniforms[..., 1] = 1.0
        return super().transition(replace(run, random=replace(run.random, uniforms=uniforms)))


@dataclass(frozen=True)
class StateDependentHMC(HMCKernel):
    """Step size that grows with the distance from the origin, without a correction."""

    n_leapfrog: int = 2

    def step_sizes(self, settings, states):
        return super().step_sizes(settings, states) * (0.1 + np.abs(states).max(axis=1))


CLEAN = NormalMean(Y, prior_mean=1.0, prior_sd=2.0, noise_sd=1.5, kernel=HMCKernel(n_leapfrog=4))
PLANTED = {
    "sd for variance in the prior": WidePriorDraws(Y, 1.0, 2.0, 1.5, HMCKernel(n_leapfrog=4)),
    "sd for variance in the likelihood": WideDataDraws(Y, 1.0, 2.0, 1.5, HMCKernel(n_leapfrog=4)),
    "a drift without correction": replace(CLEAN, noise_sd=6.0, kernel=UncorrectedDrift()),
    "a step size that depends on the state": replace(CLEAN, kernel=StateDependentHMC()),
}


def direct_tests(
    model: Any, seed: int, *, n_temperatures: int = 1024, cores: int = 1, pilots: Any = None, **changes: Any
) -> DirectTests:
    """Run the tests of exact draws alone, as a check from the prior would at this number of temperatures.

    ``pilots`` simulates the data sets that kernels are tuned on; by default ``model`` does.
    """
    plan = Plan(
        simulate_from="prior", hyperparameters=(), init_steps=100, simulations=20, chains=4,
        n_temperatures=(n_temperatures,), max_temperatures=1024, goal=Goal(), schedule="adaptive",
        path=PathRequest("prior"), tune=100, tune_each=False, draws=0, root=seed,
    )  # fmt: skip
    plan = replace(plan, **changes)
    none = Simulations(np.empty((0, model.info.layout.dim)), {}, {})
    result = CheckResult(model.info, PriorPath(), {}, plan.goal, none, plan.chains, plan.root)
    with Display(is_visible=False) as display, open_executor(model, cores) as executor:
        ledger = Ledger(result, executor, display)
        Preparation(pilots or model, plan, result, ledger).choose_path()
        DirectPhase(model, plan, result, ledger).run()
    assert result.direct_tests is not None
    return result.direct_tests


def combined(found: DirectTests) -> float:
    """Return one p-value for all that was tested."""
    return float(combined_p_value(np.concatenate([test.p_values.ravel() for test in found.tests])))
