"""Power and level of the tests of exact draws on PyMC models: planted defects over 40 seeds, sound runs over 400."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from bread.backends import open_model
from bread.backends.base import OpenOptions
from tests.support.direct_models import combined, direct_tests

pytestmark = [pytest.mark.pymc, pytest.mark.statistical, pytest.mark.study, pytest.mark.slow]
LEVEL = 0.001
Y = np.array([0.4, 1.9, 1.1, 2.6])


def draw(mean: Any, sd: Any, rng: Any = None, size: Any = None) -> Any:
    return rng.normal(mean, sd, size=size)


def takes_sd(value: Any, mean: Any, sd: Any) -> Any:
    return pm.logp(pm.Normal.dist(mean, sd), value)


def takes_variance(value: Any, mean: Any, sd: Any) -> Any:
    return pm.logp(pm.Normal.dist(mean, pt.sqrt(sd)), value)


class Drift(pm.Metropolis):
    """A user's Langevin step without a correction: towards the prior's mean, and accepted whatever the density says."""

    def astep(self, q0: Any) -> Any:
        moved, statistics = super().astep(q0)
        return type(moved)(0.5 * q0.data + moved.data - q0.data, q0.point_map_info), statistics


def model(prior: Any = takes_sd, likelihood: Any = takes_sd) -> pm.Model:
    """A mean, a scale, four outcomes; the densities of mean and outcomes may take a variance for a deviation."""
    with pm.Model() as built:
        mu = pm.CustomDist("mu", 1.0, 2.0, logp=prior, random=draw)
        sigma = pm.HalfNormal("sigma", 2.0)
        pm.CustomDist("y", mu, sigma + 1.0, logp=likelihood, random=draw, observed=Y)
    return built


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sd for variance in the prior": ({"prior": takes_variance}, {}),
    "sd for variance in the likelihood": ({"likelihood": takes_variance}, {}),
    "a drift without correction": ({}, {"kernel": Drift, "any_kernel": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_power(name: str) -> None:
    """Found at the level 0.001 with at least 38 of 40 seeds."""
    planted, options = CASES[name]
    opened = open_model(model(**planted), OpenOptions(simulate_from="prior", **options))
    found = sum(combined(direct_tests(opened, seed)) < LEVEL for seed in range(100, 140))
    print(f"{name}: {found} of 40")
    assert found >= 38


def test_level() -> None:
    """400 sound runs: at most 2 alarms, the 99% quantile of Binomial(400, 0.001)."""
    opened = open_model(model(), OpenOptions(simulate_from="prior"))
    false = sum(combined(direct_tests(opened, seed)) < LEVEL for seed in range(1000, 1400))
    print(f"false alarms: {false} of 400")
    assert false <= 2
