"""Every supported program of the Stan corpus, compiled and opened: the density, the simulator and the ranks.

For each program: opening proves the rewrite (density equality) and tests gradients; the log density that the simulator
states for its own draws equals the program's but for a constant (exact: no tolerance of a statistical kind is
involved; the Jacobian is taken off numerically); the theory alarm is quiet; ranks of exact draws are uniform.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy.special import ndtr, ndtri

from bread.backends.base import OpenOptions
from bread.backends.stan.analysis.program import Parameter, Program
from bread.backends.stan.model import StanModel
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.open import open_model
from bread.backends.stan.simulation import Fixed, JointDraws, JointSimulator
from bread.backends.stan.simulator.derivation import ONLY_PARAMETERS
from bread.errors import DensityError
from tests.support.stan_corpus_table import SUPPORTED, Case
from tests.support.stan_ranks import calibration

pytestmark = [pytest.mark.slow, pytest.mark.stan, pytest.mark.statistical]
N_DRAWS = 12
# Central differences with a step of 1e-5 leave errors of about 1e-10 in each derivative.
PRIOR_TOLERANCE, LIKELIHOOD_TOLERANCE = 1e-3, 1e-6
LEVEL = 1e-4  # of each of two tests a program: a false alarm on the whole corpus has a probability below 2 %


@cache
def opened(name: str) -> StanModel:
    """Return a program of the corpus, proven by opening it."""
    case = next(case for case in SUPPORTED if case.name == name)
    return open_model(case.path, OpenOptions(data=case.data, observed=case.observed_argument))


def free(parameter: Parameter, value: np.ndarray) -> np.ndarray:
    """Return as many elements of a constrained parameter as it has unconstrained coordinates."""
    if parameter.type == "simplex":
        return value[..., :-1].ravel()
    if parameter.type in ("corr_matrix", "cholesky_factor_corr"):
        return value[(..., *np.tril_indices(value.shape[-1], -1))].ravel()
    if parameter.type in ("cov_matrix", "cholesky_factor_cov"):
        return value[(..., *np.tril_indices(value.shape[-1]))].ravel()
    return value.ravel()


def log_jacobian(instance: StanInstance, program: Program, state: np.ndarray, step: float = 1e-5) -> float:
    """Return the log absolute determinant of the map from unconstrained coordinates to free elements."""
    n = len(state)
    values = instance.constrain(np.concatenate([state + step * np.eye(n), state - step * np.eye(n)]))
    rows = [np.concatenate([free(p, values[p.name][i]) for p in program.parameters]) for i in range(2 * n)]
    return float(np.linalg.slogdet((np.array(rows[:n]) - np.array(rows[n:])) / (2 * step))[1])


def excess(model: StanModel) -> np.ndarray:
    """Return log density of the program minus that of the simulator, prior and likelihood, shape (draw, 2)."""
    program, observed = model.program, model.info.data.observed
    states = model.draws.draw_states(SeedSequence(7).spawn(1))
    rows: list[tuple[float, float]] = []
    for seed in SeedSequence(8).spawn(20 * N_DRAWS):
        if len(rows) == N_DRAWS:
            break
        try:
            draws = model.instance.constrain(states, "generated", [seed])
        except DensityError:  # an outcome too large for Stan's generators: such draws are made again
            continue
        parameters = {p.name: draws[f"bread_sim_{p.name}"] for p in program.parameters}
        state = model.instance.unconstrain(parameters)[0]
        if not (np.abs(state) < 1e3).all():  # differences of much larger, or smaller, numbers have no digits
            continue
        data = {name: draws[f"bread_sim_{name}"][0].astype(values.dtype) for name, values in observed.items()}
        posterior = model.condition_instance(data)
        log_prior, log_likelihood, _ = posterior.terms(state[None, :])
        if np.isneginf(log_prior[0]) and np.isneginf(log_likelihood[0]):  # rejected: such draws are made again
            continue
        prior = log_prior[0] - log_jacobian(posterior, program, state) - draws["bread_sim_log_prior"][0]
        rows.append((prior, log_likelihood[0] - draws["bread_sim_log_likelihood"][0]))
    assert len(rows) == N_DRAWS
    return np.array(rows)


@pytest.mark.parametrize("case", SUPPORTED, ids=lambda case: case.name)
def test_program_is_opened_and_simulated_by_its_law(case: Case) -> None:
    model = opened(case.name)
    assert model.program.is_automatic and model.info.data.observed.keys() == set(case.observed)
    notes = "\n".join(model.info.identity.notes)
    assert "The tempered program has the density of the original one" in notes
    assert "mean gradients of log prior and log likelihood are zero" in notes
    spread = np.std(excess(model), axis=0)
    assert spread[0] < PRIOR_TOLERANCE and spread[1] < LIKELIHOOD_TOLERANCE


@pytest.mark.parametrize("case", SUPPORTED, ids=lambda case: case.name)
def test_ranks_are_uniform_and_the_alarm_is_quiet(case: Case) -> None:
    verdict = calibration(opened(case.name))
    assert verdict.ranks > LEVEL and verdict.alarm > LEVEL, verdict


# ---- negative controls: what the same checks say of a wrong simulator -----------------------------------------


class Changed:
    """A simulator with a mistake, made of a right one."""

    can_redraw = True

    def __init__(self, right: JointSimulator, mistake: Any) -> None:
        self._right, self._mistake, self.fixable = right, mistake, right.fixable

    def draw(self, seeds, fixed: Fixed | None = None, *, only_parameters: bool = False) -> JointDraws:
        joint = self._right.draw(seeds, fixed, only_parameters=only_parameters)
        rng = np.random.default_rng(seeds[0])
        parameters, data = self._mistake(dict(joint.parameters), dict(joint.data), rng)
        return replace(joint, parameters=parameters, data=data)


def variance_for_deviation(parameters, data, rng):
    """Draw the outcomes of eight schools with the variance where the deviation belongs."""
    theta, sigma = parameters["theta"], np.array([15, 10, 16, 11, 9, 11, 10, 18])
    return parameters, {"y": theta + sigma * (data["y"] - theta)}


def truncation_by_element(parameters, data, rng):
    """Draw theta[j] ~ normal(mu, tau) above 0 element by element, though the constant depends on mu and tau."""
    n, n_groups = parameters["theta"].shape
    mu, tau = rng.normal(1, 1, n), rng.lognormal(0, 0.5, n)
    below = ndtr(-mu / tau)[:, None]
    theta = mu[:, None] + tau[:, None] * ndtri(below + (1 - below) * rng.uniform(size=(n, n_groups)))
    return {"mu": mu, "tau": tau, "theta": np.maximum(theta, 1e-12)}, {"y": theta + rng.normal(size=theta.shape)}


@pytest.mark.parametrize(
    ("name", "mistake"),
    [("eight_schools_centered", variance_for_deviation), ("truncated_joint", truncation_by_element)],
)
def test_ranks_reject_a_wrong_simulator(name: str, mistake: Any) -> None:
    model = opened(name)
    wrong = replace(model, draws=replace(model.draws, simulator=Changed(model.draws.simulator, mistake)))
    assert calibration(wrong).ranks < LEVEL


def test_densities_reject_the_simulator_of_another_law() -> None:
    """The same mistake in the truncation, by the density that the simulator states for its draws."""
    model = opened("truncated_joint")
    states = model.draws.draw_states(SeedSequence(7).spawn(1))
    draws = [model.instance.constrain(states, "generated", [seed]) for seed in SeedSequence(8).spawn(N_DRAWS)]
    inside = [
        len(draw["bread_sim_theta"][0]) * np.log1p(-ndtr(-draw["bread_sim_mu"][0] / draw["bread_sim_tau"][0]))
        for draw in draws
    ]
    assert np.std(excess(model)[:, 0] + np.array(inside)) > 10 * PRIOR_TOLERANCE
    assert model.data[ONLY_PARAMETERS] == 0
