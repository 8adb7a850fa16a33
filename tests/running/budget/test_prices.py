"""The price of repeats of the consistency test: what they cost in whole checks, and their place in a forecast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.report.compat import read_group
from bread.running.budget.prices import SHAPE_TEMPERATURES, Prices
from bread.statistics.real_data.sequential import SHAPE_LEVEL
from tests.models.reference import HMCKernel, NormalMean
from tests.support.budget_rounds import plan_of

CHAINS = 4
SIMULATIONS = 10
TEMPERATURES = (8, 32, 128)  # as a search that ends at 128 compares them
TRANSITIONS = sum(number - 1 for number in TEMPERATURES)
EVALUATIONS = 6  # of a transition of 5 leapfrogs


def spent_on_repeats(shift: float) -> tuple[int, int]:
    """Return what the consistency phase of a check spent beside the simulations that it added, and its repeats."""
    report = bread.check(
        NormalMean(np.array([0.4, 1.9, 1.1]) + shift, prior_sd=1.5, kernel=HMCKernel(n_leapfrog=5)),
        simulate_from="prior", path="prior", tune_on="shared", n_temperatures=TEMPERATURES, simulations=SIMULATIONS,
        chains=CHAINS, draws=0, cores=1, random_seed=1, progressbar=False,
    )  # fmt: skip
    spent = int(read_group(report, "cost")["n_gradients"].sel(phase="consistency"))
    added = read_group(report, "forward").sizes["simulation"] - SIMULATIONS
    return spent - added * CHAINS * TRANSITIONS * EVALUATIONS, int(read_group(report, "consistency")["n_repeats"])


def prices() -> Prices:
    return Prices(replace(plan_of(1e6, 0.1), chains=CHAINS), per_transition=EVALUATIONS)


def test_price_of_repeats_is_what_they_cost() -> None:
    """A price counts T transitions, not T - 1, and shares of T for the smaller ones: 2% at these T."""
    assert spent_on_repeats(0.0) == (0, 0)  # ordinary data
    spent, n_repeats = spent_on_repeats(15.0)
    assert n_repeats == 3
    assert prices().repeats(TEMPERATURES[-1]) == pytest.approx(spent, rel=0.03)


@pytest.mark.parametrize("number", [64, 1024])
def test_forecast_has_their_expected_price(number: int) -> None:
    """With 50 simulations none is added: what follows are chains at smaller T, draws, and one repeat in 20 checks."""
    found = prices()
    chains = CHAINS * 51 * number * (SHAPE_TEMPERATURES - 1) * EVALUATIONS
    rest = found.afterwards(number, 50) - chains - found.draws(number, 100)
    assert rest == pytest.approx(SHAPE_LEVEL * 3 * CHAINS * number * SHAPE_TEMPERATURES * EVALUATIONS)
