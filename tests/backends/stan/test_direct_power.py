"""Power and level of the tests of exact draws on Stan programs: planted defects over 40 seeds, sound runs over 400.

A wrong prior, and a wrong spread where it is a parameter, are refused when the program is opened, with random numbers
that no seed changes: they are no cases here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.direct_models import combined, direct_tests
from tests.support.stan_conjugate import opened

pytestmark = [pytest.mark.stan, pytest.mark.statistical, pytest.mark.study, pytest.mark.slow]
LEVEL = 0.001
PROGRAM = """data { int N; vector[N] y; }
parameters { real mu; }
model { mu ~ normal(1, 2); y ~ normal(mu, 1.5); }"""
DATA = {"N": 4, "y": [0.4, 1.9, 1.1, 2.6]}


def simulator(outcome: Any) -> Any:
    def draw(rng: np.random.Generator, data: Any) -> Any:
        mu = rng.normal(1.0, 2.0)
        return {"mu": mu}, {"y": outcome(rng, mu, 1.5, data["N"])}

    return draw


def wide(times: float) -> Any:
    return lambda rng, mean, sd, n: rng.normal(mean, times * sd, n)


def correlated(rng: np.random.Generator, mean: float, sd: float, n: int) -> Any:
    return mean + sd * (0.8**0.5 * rng.normal(size=n) + 0.2**0.5 * rng.normal())


def heavy(rng: np.random.Generator, mean: float, sd: float, n: int) -> Any:
    return mean + sd * rng.standard_t(4, n) / 2.0**0.5


# What is planted, and with how many of 40 seeds it must be found: 95% of gross defects, 80% of small ones.
CASES: dict[str, tuple[Any, int]] = {
    "sd for variance in the likelihood": (wide(1.5), 38),
    "outcomes 1.2 times too wide": (wide(1.2), 32),
    "outcomes correlated by 0.2": (correlated, 32),
    "outcomes with tails of t(4)": (heavy, 38),
}


@pytest.mark.parametrize("name", CASES)
def test_power(name: str) -> None:
    """Found at the level 0.001; what passes the opening has gradients of mean zero."""
    outcome, fewest = CASES[name]
    model = opened(PROGRAM, DATA, observed="y", simulator=simulator(outcome), simulate_from="prior")
    found = sum(combined(direct_tests(model, seed)) < LEVEL for seed in range(100, 140))
    print(f"{name}: {found} of 40")
    assert found >= fewest


def test_level() -> None:
    """400 sound runs: at most 2 alarms, the 99% quantile of Binomial(400, 0.001)."""
    model = opened(PROGRAM, DATA, observed="y", simulate_from="prior")
    false = sum(combined(direct_tests(model, seed)) < LEVEL for seed in range(1000, 1400))
    print(f"false alarms: {false} of 400")
    assert false <= 2
