"""Derived simulators against the densities of their programs, exactly: every supported program of the corpus, compiled.

The simulator gives the log density of each draw, q(theta, y). If it differs from the program's own log density by one
constant at every draw, then q is the law that the program states, on the support of q: no tolerance of a statistical
kind is involved. The Jacobian of the program's density is taken off numerically.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.random import SeedSequence
from stan_corpus_table import SUPPORTED, Case

from bread.backends.stan.build import build_library
from bread.backends.stan.library import StanInstance, StanLibrary
from bread.backends.stan.program import Parameter, Program, analyse
from bread.backends.stan.source import Source
from bread.backends.stan.toolchain import find_toolchain

N_DRAWS = 12
# Central differences with a step of 1e-5 leave errors of about 1e-10 in each derivative.
PRIOR_TOLERANCE, LIKELIHOOD_TOLERANCE = 1e-3, 1e-6


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


def as_declared(program: Program, name: str, value: np.ndarray) -> list:
    """Return an outcome with integers where the program declares integers."""
    declaration = re.search(rf"[^;{{}}]*\b{name}\b\s*[;,]", program.source.code)
    is_integer = declaration is not None and re.search(r"\bint\b", declaration.group()) is not None
    return np.rint(value).astype(int).tolist() if is_integer else value.tolist()


def excess(program: Program, data: dict) -> np.ndarray:
    """Return log density of the program minus that of the simulator, prior and likelihood, shape (draw, 2)."""
    library = StanLibrary(build_library(program.tempered, find_toolchain()))
    data = {**data, **{f"bread_use_fixed_{name}": 0 for name in program.fixable}}
    instance = library.instance(data)
    seeds = [SeedSequence(7, spawn_key=(i,)) for i in range(N_DRAWS)]
    draws = instance.constrain(np.zeros((N_DRAWS, instance.dim)), "generated", seeds)
    rows = []
    for i in range(N_DRAWS):
        simulated = {name: as_declared(program, name, draws[f"bread_sim_{name}"][i]) for name in program.observed}
        posterior = library.instance({**data, **simulated})
        parameters = {p.name: draws[f"bread_sim_{p.name}"][i : i + 1] for p in program.parameters}
        state = posterior.unconstrain(parameters)
        log_prior, log_likelihood, _ = posterior.terms(state)
        rows.append(
            (
                log_prior[0] - log_jacobian(posterior, program, state[0]) - draws["bread_sim_log_prior"][i],
                log_likelihood[0] - draws["bread_sim_log_likelihood"][i],
            )
        )
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("case", SUPPORTED, ids=lambda case: case.name)
def test_simulator_draws_from_the_programs_law(case: Case) -> None:
    program = analyse(case.source, observed=case.observed_argument, stanc=find_toolchain().run_stanc)
    assert program.is_automatic
    spread = np.std(excess(program, case.data), axis=0)
    assert spread[0] < PRIOR_TOLERANCE and spread[1] < LIKELIHOOD_TOLERANCE


@pytest.mark.slow
def test_simulator_of_another_program_is_rejected() -> None:
    """Negative control: truncation element by element where its constant depends on a parameter, tau."""
    case = next(case for case in SUPPORTED if case.name == "truncated_joint")
    stanc = find_toolchain().run_stanc
    own = analyse(case.source, observed=None, stanc=stanc)
    normalised = case.source.text.replace(
        "theta ~ normal(mu, tau);", "for (j in 1 : J) theta[j] ~ normal(mu, tau) T[0, ];"
    )
    other = analyse(Source.from_text(normalised), observed=None, stanc=stanc)
    cut = own.tempered.index("generated quantities {")
    mixed = own.tempered[:cut] + other.tempered[other.tempered.index("generated quantities {") :]
    broken = Program(**{**own.__dict__, "tempered": mixed})
    assert np.std(excess(broken, case.data), axis=0)[0] > 10 * PRIOR_TOLERANCE
