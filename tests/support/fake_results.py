"""Finished checks made of random numbers: a Gaussian work model whose truth is known in closed form.

``log w_forward ~ N(logZ - B/2, B)`` and ``log w_reverse ~ N(logZ + B/2, B)`` obey Crooks' relation exactly, and their
Jeffreys gap is B. States are independent of the weights, so weighted ranks are uniform.
"""

from __future__ import annotations

import datetime
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from bread.backends.base import AnnealRun, Fit, Identity, Kernel, Layout, ModelInfo, Node, RealData, Simulations
from bread.paths.kinds import PriorPath
from bread.running.model_fit.fit_check import FitCheck, NodeTest
from bread.running.state.consistency import REPEATS
from bread.running.state.results import OBSERVED, SHARED, CheckResult
from bread.statistics.bounds.goal import Goal

SCHOOLS = np.array(["Choate", "Deerfield", "Exeter"])
DAYS = np.array([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], dtype=object)


def model_info(**changes: Any) -> ModelInfo:
    """A small hierarchical model with dims, coords, dates and a discrete coordinate, each change in its part."""
    identity = Identity(
        name="schools",
        backend="pymc",
        engine="pymc",
        kernel="NUTS",
        versions={"pymc": "9.9.9", "numpy": np.__version__},
        notes=("The log evidence leaves out a constant.",),
    )
    layout = Layout(
        coordinates=("mu", "tau_log__", "theta[0]", "theta[1]", "theta[2]", "kind"),
        discrete=np.array([False] * 5 + [True]),
        hyperparameters=("mu", "tau"),
        parameters={"mu": (), "tau": (), "theta": ("school",), "kind": ()},
    )
    data = RealData(
        observed={"y": np.arange(6.0).reshape(3, 2)},
        observed_dims={"y": ("school", "day")},
        constants={"sigma": (("school",), np.array([15.0, 10.0, 16.0]))},
        coords={"school": SCHOOLS, "day": DAYS},
    )
    parts = []
    for part in (identity, layout, data):
        own = {field.name for field in fields(part)} & set(changes)
        parts.append(replace(part, **{name: changes.pop(name) for name in own}))
    return ModelInfo(*parts, **changes)


def constrain(states: np.ndarray) -> dict[str, np.ndarray]:
    """Map states (n, 6) to named parameters."""
    return {
        "mu": states[:, 0],
        "tau": np.exp(states[:, 1]),
        "theta": states[:, 2:5],
        "kind": states[:, 5].astype(np.int64),
    }


def draw_states(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.column_stack([rng.standard_normal((n, 5)), rng.integers(0, 3, n)])


def work_run(
    rng: np.random.Generator, betas: np.ndarray, n_chains: int, direction: str, log_evidence: float, gap: float
) -> AnnealRun:
    """One batch of chains: log weights from the Gaussian work model; the hysteresis lies near beta = 0.2."""
    sign = -0.5 if direction == "forward" else 0.5
    log_weight = log_evidence + sign * gap + np.sqrt(gap) * rng.standard_normal(n_chains)
    bump = np.exp(-0.5 * ((betas - 0.2) / 0.05) ** 2)
    area = float(np.sum(np.diff(betas) * bump[:-1])) or 1.0
    equilibrium = log_evidence - 300.0 * np.exp(-betas / 0.02)
    log_ratio = equilibrium + sign * gap * bump / area + 0.3 * rng.standard_normal((n_chains, len(betas)))
    return AnnealRun(
        log_weight=log_weight,
        log_ratio=log_ratio,
        state_at_base=draw_states(rng, n_chains),
        state_at_end=draw_states(rng, n_chains),
        log_base_density=rng.standard_normal((n_chains, 2)),
        n_gradients=np.full(n_chains, 10 * len(betas)),
        n_evaluations=np.full(n_chains, len(betas)),
        n_divergences=np.arange(n_chains) % 2,
        failure=np.zeros(n_chains, dtype=np.int64),
        seconds=0.01 * len(betas),
    )


def fake_result(
    seed: int = 1,
    *,
    gap: float = 0.02,
    rate: float = 1.0,
    temperatures: tuple[int, ...] = (16, 32, 64),
    n_search: int = 6,
    n_confirm: int = 20,
    n_forward: int = 19,
    n_chains: int = 4,
    simulate_from: str = "prior",
    goal: Goal = Goal(),  # noqa: B008  (a frozen value)
    observed_extra: float = 0.0,
    n_draws: int = 1000,
    posterior_shift: float | None = None,
    info: ModelInfo | None = None,
    misfit: bool = False,
) -> CheckResult:
    """A finished check. ``gap`` is B at the largest T; it falls as T^-rate.

    ``observed_extra`` makes the real data harder by so many nats per halving of T; ``posterior_shift`` adds the
    user's own draws, whose mu is shifted by so many standard deviations. ``misfit`` makes Deerfield's second day an
    outlier of 12 standard deviations, and everything 2 nats less probable.
    """
    rng = np.random.default_rng(seed)
    info = model_info() if info is None else info
    roles = ["search"] * n_search + ["confirm"] * n_confirm + ["forward"] * n_forward
    states = draw_states(rng, len(roles))
    data = {"y": rng.standard_normal((len(roles), 3, 2))}
    result = CheckResult(
        info=info,
        path=PriorPath(),
        settings={
            "simulate_from": simulate_from,
            "target": goal.target,
            "max_error": goal.max_error,
            "hyperparameters": ["mu", "tau"],
            "kernel": None,
            "posterior": False,
            "draws": n_draws,
        },
        goal=goal,
        simulations=Simulations(states, constrain(states), data),
        n_chains=n_chains,
        seed=seed,
        roles=roles,
        n_temperatures=temperatures[-1],
    )
    log_evidence = rng.normal(-50.0, 10.0, len(roles))
    for n_temperatures in temperatures:
        betas = np.linspace(0.0, 1.0, n_temperatures)
        result.schedules[n_temperatures] = betas
        both_ways = [i for i, role in enumerate(roles) if role == "search"]
        if n_temperatures == temperatures[-1]:
            both_ways += [i for i, role in enumerate(roles) if role == "confirm"]
        result.attempts.plan(both_ways, n_temperatures, "first")
        here = gap * (temperatures[-1] / n_temperatures) ** rate
        for index, role in enumerate(roles):
            directions = ["forward"]
            if role == "search" or (role == "confirm" and n_temperatures == temperatures[-1]):
                directions.append("reverse")
            for direction in directions:
                run = work_run(rng, betas, n_chains, direction, log_evidence[index], here)
                result.runs[index, direction, n_temperatures] = run
        harder = observed_extra * np.log2(temperatures[-1] / n_temperatures)
        run = work_run(rng, betas, n_chains, "forward", -45.0, here)
        result.runs[OBSERVED, "forward", n_temperatures] = replace(run, log_weight=run.log_weight - harder)
        for repeat in range(REPEATS):  # random numbers of their own
            own = np.random.default_rng([seed, 2, repeat, n_temperatures])
            run = work_run(own, betas, n_chains, "forward", -45.0, here)
            result.repeats[repeat, n_temperatures] = replace(run, log_weight=run.log_weight - harder)
    knots = np.array([0.0, 0.01, 0.1, 1.0])
    settings = {"step_size": np.array([1.0, 0.8, 0.5, 0.3]), "inverse_metric": np.full((4, info.layout.dim), 0.5)}
    result.kernels[SHARED] = Kernel(knots, settings, source="an extra simulated data set")
    result.base_log_ratio = [rng.normal(-300.0, 20.0, 1000)]
    result.observed_draws = draw_states(rng, n_draws) if n_draws else None
    if n_draws:  # random numbers of their own
        own = np.random.default_rng([seed, 1])
        result.draw_temperatures = temperatures[-1]
        result.observed_log_weight = -45.0 - gap / 2 + np.sqrt(gap) * own.standard_normal(n_draws)
        result.observed_log_ratio = np.column_stack(
            [own.normal(-300.0, 20.0, n_draws), own.normal(-43.0, 1.0, n_draws)]
        )
    result.fit_check = fake_fit_check(is_poor=misfit)
    result.seconds = {"compile": 1.5, "tune": 0.5, "search": 2.0, "confirm": 3.0}
    result.n_gradients = {"tune": 1000, "search": 4000, "confirm": 9000}
    if n_draws:
        result.observed_log_density = -0.5 * (result.observed_draws[:, :5] ** 2).sum(axis=1) - 45.0
    if posterior_shift is not None:
        states = draw_states(rng, 800)
        states[:, 0] += posterior_shift
        own = constrain(states)
        result.fit_log_density = (-0.5 * (states[:, :5] ** 2).sum(axis=1) - 45.0).reshape(4, 200)
        draws = {name: values.reshape(4, 200, *values.shape[1:]) for name, values in own.items()}
        result.fit = Fit(draws, "posterior=")
        result.settings["posterior"] = True
    return result


def fake_fit_check(*, is_poor: bool) -> FitCheck:
    """A fit test of 20 draws: data, latents and a parameter; one node left out."""
    draw = np.linspace(0.02, 0.6, 20)
    data = np.column_stack([draw, draw[::-1], np.full(20, np.nan)])
    if is_poor:
        data[:, :2] = 1e-4
    deviation = np.array([0.3, -0.2, 1.0, 12.0 if is_poor else 1.1, -3.5 if is_poor else -1.0, 0.1])
    effect = np.full(20, 12.0 if is_poor else 0.1)
    latent = np.column_stack([draw[::-1], draw, np.full(20, np.nan)])
    rank = np.column_stack([np.full((20, 2), np.nan), draw])
    number = np.full(20, 4799)
    return FitCheck(
        (
            NodeTest(Node("y", "data", {"y": (3, 2)}), data, effect, number, deviation),
            NodeTest(
                Node("theta", "latent", {"theta": (3,)}), latent, 0.0 * effect, number, np.array([0.1, 1.2, -0.4])
            ),
            NodeTest(Node("mu", "parameter", {"mu": ()}), rank, np.full(20, np.nan), number, np.array([0.2])),
        ),
        {"tau": "its transform restricts its support, which its distribution does not know when it draws."},
    )


def awkward_coords() -> dict[str, Any]:
    """Coordinates that netCDF refuses."""
    mixed = np.empty(3, dtype=object)
    mixed[:] = ["a", 1, None]
    pairs = np.empty(3, dtype=object)
    pairs[:] = [("a", 1), ("b", 2), ("c", 3)]
    return {
        "categorical": pd.Categorical(["low", "mid", "high"]),
        "interval": pd.interval_range(0, 3),
        "period": pd.period_range("2024-01", periods=3, freq="M"),
        "dates": [datetime.date(2024, 1, day) for day in (1, 2, 3)],
        "times": pd.date_range("2024-01-01", periods=3, tz="UTC"),
        "stamps": pd.date_range("2024-01-01", periods=3),
        "deltas": pd.timedelta_range("1 day", periods=3),
        "mixed": mixed,
        "tuples": pairs,
        "multi": pd.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3)]),
        "strings": pd.Index(["x", "y", "z"], dtype="string"),
        "numbers": np.array([1, 2, 3], dtype=object),
    }


def shift_reverse_starts(result):
    """Let reverse chains start from a wrong draw: the weighted ranks must reject it."""
    for index in result.indices("confirm"):
        run = result.runs[int(index), "reverse", 64]
        wrong = run.state_at_end.copy()
        wrong[:, 0] += 3.0
        result.runs[int(index), "reverse", 64] = replace(run, state_at_end=wrong)
    return result
