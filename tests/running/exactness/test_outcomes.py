"""Outcomes whose likelihood is a density of a function of them: tested as such, or left out where it is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from bread.backends.info import UNKNOWN
from bread.running.exactness.densities import JointDensities
from bread.running.exactness.outcomes import FACTOR, Outcomes

pytestmark = pytest.mark.statistical
LEVEL = 1e-3
# The likelihood as a program states it, of x = f(y): theta is x's place, or (a law with a bound) its rate.
LAWS = {
    "log": (np.log, np.exp, lambda x, theta: stats.norm.logpdf(x, theta, 1.5)),
    "logit": (special.logit, special.expit, lambda x, theta: stats.norm.logpdf(x, theta, 1.5)),
    "log with a bound": (np.log, np.exp, stats.expon.logpdf),
}


def p_value(law: str, functions: dict[str, str], seed: int, spread: float = 1.0) -> tuple[float, dict[str, str]]:
    """Return the smallest p-value of 500 joint draws (1 without a test), and what was left out."""
    forward, back, log_density = LAWS[law]
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(500, 1))
    noise = rng.exponential(size=(500, 3)) if "bound" in law else 1.5 * rng.normal(size=(500, 3))
    data = {"y": back(theta + spread * noise)}

    def run(tasks: Any) -> list[Any]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return [log_density(forward(task.data["y"]), task.states).sum(axis=1) for task in tasks]

    outcomes = Outcomes(theta, data, JointDensities(data, run), None, functions)
    found = [p for test in outcomes.tests() for p in test.p_values.ravel() if np.isfinite(p)]
    return min(found, default=1.0) * max(len(found), 1), outcomes.left_out


@pytest.mark.parametrize("law", LAWS)
def test_the_factor_that_the_likelihood_leaves_out_is_no_bug(law: str) -> None:
    function = {"y": law.split()[0]}
    assert min(p_value(law, function, seed)[0] for seed in range(3)) > LEVEL
    # controls: taken for a density of y it is a bug, and outcomes that are too wide are found all the same
    assert p_value(law, {}, 0)[0] < LEVEL
    assert p_value(law, function, 0, spread=3.0)[0] < LEVEL


def test_an_unknown_factor_leaves_the_outcome_out_and_says_why() -> None:
    assert p_value("log", {"y": UNKNOWN}, 0) == (1.0, {"outcome score of y": FACTOR})
