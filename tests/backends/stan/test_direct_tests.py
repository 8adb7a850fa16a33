"""Tests of exact draws on Stan programs: a simulator of the user's whose outcomes have the wrong spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bread.backends.base import Model
from bread.statistics.bounds.alarms import combined_p_value
from tests.support.direct_models import direct_tests
from tests.support.stan_conjugate import CONJUGATE, opened

pytestmark = [pytest.mark.stan, pytest.mark.statistical]
LEVEL = 0.001


def simulator(spread: float) -> Any:
    """mu ~ N(0.5, 1.5^2), y ~ N(mu, 1.2^2), as the program has it where ``spread`` is 1."""

    def draw(rng: np.random.Generator, data: Any) -> Any:
        mu = rng.normal(0.5, 1.5)
        return {"mu": mu}, {"y": rng.normal(mu, 1.2 * spread, data["N"])}

    return draw


def found_in(model: Model) -> dict[str, float]:
    tests = direct_tests(model, 1).tests
    return {test.name: float(combined_p_value(test.p_values.ravel())) for test in tests}


def test_a_simulator_with_the_wrong_spread_passes_the_opening_and_is_found() -> None:
    """The gradient by mu has mean zero whatever the spread, so the opening's own comparison cannot see it."""
    case = CONJUGATE["normal mean"]
    sound = opened(case.text, case.data, simulator=simulator(1.0), simulate_from="prior")
    assert min(found_in(sound).values()) > LEVEL
    wrong = opened(case.text, case.data, simulator=simulator(1.2), simulate_from="prior")
    found = found_in(wrong)
    assert found["outcome score"] < LEVEL
    assert min(found["prior score"], found["likelihood score"]) > LEVEL
