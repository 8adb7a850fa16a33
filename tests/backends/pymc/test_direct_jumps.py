"""Densities with jumps, and simulators that belong to them: no test of exact draws may call them wrong.

Stein's identity, and the derivative under the integral, fail at a jump. Each model comes with its own simulator, and
with a wrong one, which must be found by what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.running.state.plan import PathRequest
from bread.statistics.bounds.alarms import combined_p_value
from tests.support.direct_models import combined, direct_tests

pytestmark = [pytest.mark.pymc, pytest.mark.statistical]
LEVEL = 0.001
SEEDS = range(1, 6)
Y = np.array([1.2, 0.9, 1.4])


def ordered(is_wrong: bool) -> tuple[pm.Model, Any]:
    """A potential that forbids one side of a boundary."""
    with pm.Model() as model:
        low, high = pm.Normal("low", 0.0, 1.0, initval=-0.5), pm.Normal("high", 0.0, 1.0, initval=0.5)
        pm.Potential("order", pt.switch(high > low, 0.0, -np.inf))
        other = pm.Normal("other", 0.0, 1.0)
        pm.Normal("y", high - low + other, 0.5, observed=Y)

    def simulate(rng: Any, data: Any) -> Any:
        low, high = sorted(rng.normal(size=2))
        other = rng.normal(0.0, 2.0 if is_wrong else 1.0)
        return {"low": low, "high": high, "other": other}, {"y": rng.normal(high - low + other, 0.5, size=3)}

    return model, simulate


def stepped(is_wrong: bool) -> tuple[pm.Model, Any]:
    """A potential that is 5 nats lower on one side: a finite jump."""
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 1.0)
        other = pm.Normal("other", 0.0, 1.0)
        pm.Potential("step", pt.switch(mean > 0.0, 0.0, -5.0))
        pm.Normal("y", mean + other, 0.5, observed=Y)

    def simulate(rng: Any, data: Any) -> Any:
        while True:
            mean = rng.normal()
            if mean > 0.0 or rng.random() < np.exp(-5.0):
                other = rng.normal(0.0, 2.0 if is_wrong else 1.0)
                return {"mean": mean, "other": other}, {"y": rng.normal(mean + other, 0.5, size=3)}

    return model, simulate


def blocks(is_wrong: bool) -> tuple[pm.Model, Any]:
    """Outcomes of a mixture of two uniform laws, whose density has steps."""

    def log_density(value: Any, share: Any) -> Any:
        inside = pt.switch((value > 0.0) & (value < 1.0), 1.0 - share, 0.0)
        return pt.log(inside + share / 20.0)

    def draw(share: Any, rng: Any = None, size: Any = None) -> Any:
        wide = rng.random(size) < share
        return np.where(wide, rng.uniform(-10.0, 10.0, size), rng.uniform(0.0, 1.0, size))

    with pm.Model() as model:
        share = pm.Beta("share", 2.0, 2.0)
        pm.Normal("z", 2.0 * share, 1.5 if is_wrong else 1.0, observed=Y)
        pm.CustomDist("y", share, logp=log_density, random=draw, observed=np.array([0.3, 0.7, -4.0, 2.0]))

    def simulate(rng: Any, data: Any) -> Any:
        share = rng.beta(2.0, 2.0)
        return {"share": share}, {"y": draw(share, rng, 4), "z": rng.normal(2.0 * share, 1.0, size=3)}

    return model, simulate


def path_of(opened: Any) -> PathRequest:
    """Return the path that the model has: with a potential there is no prior to begin at."""
    return PathRequest("prior" if "prior" in opened.info.paths else "reference")


MODELS = {"a bound": ordered, "a step": stepped, "outcomes with steps": blocks}


@pytest.mark.parametrize("name", MODELS)
def test_a_jump_is_no_bug(name: str) -> None:
    model, simulate = MODELS[name](is_wrong=False)
    opened = open_model(model, OpenOptions(simulate_from="prior", simulator=simulate))
    for seed in SEEDS:
        found = direct_tests(opened, seed, n_temperatures=512, path=path_of(opened))
        assert combined(found) > LEVEL, (name, seed, found)


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_simulator_beside_a_jump_is_found(name: str) -> None:
    model, simulate = MODELS[name](is_wrong=True)
    opened = open_model(model, OpenOptions(simulate_from="prior", simulator=simulate))
    assert combined(direct_tests(opened, 1, n_temperatures=512, path=path_of(opened))) < LEVEL


def test_outcomes_are_tested_where_the_prior_cannot_be_told_from_the_likelihood() -> None:
    """Of a potential's model the joint density alone is known; its slopes in the outcomes are the likelihood's."""
    model, right = ordered(is_wrong=False)

    def wide(rng: Any, data: Any) -> Any:
        parameters, outcomes = right(rng, data)
        return parameters, {"y": outcomes["y"] + rng.normal(0.0, 0.6, size=3)}

    opened = open_model(model, OpenOptions(simulate_from="prior", simulator=wide))
    found = direct_tests(opened, 1, n_temperatures=512, path=path_of(opened))
    (outcomes,) = [test for test in found.tests if test.name == "outcome score"]
    assert combined_p_value(outcomes.p_values.ravel()) < LEVEL


def one_sided(value: Any, is_stepped: bool) -> Any:
    return pm.logp(pm.Normal.dist(), value) + pt.switch(value < 0.0, -1.5 if is_stepped else 0.0, 0.0)


@pytest.mark.parametrize("is_stepped", [False, True])
def test_a_step_that_the_density_alone_has_is_found(is_stepped: bool) -> None:
    """The slopes of both are alike wherever they exist: moves across the step tell them apart."""
    with pm.Model() as model:
        x = pm.CustomDist(
            "x",
            logp=lambda value: one_sided(value, is_stepped),
            random=lambda rng=None, size=None: rng.normal(size=size),
        )
        pm.Normal("y", x, 1.0, observed=Y)
    opened = open_model(model, OpenOptions(simulate_from="prior"))
    p_values = [combined(direct_tests(opened, seed, n_temperatures=512)) for seed in SEEDS]
    assert max(p_values) < LEVEL if is_stepped else min(p_values) > LEVEL, p_values


def test_wrong_outcomes_whose_density_has_steps_are_found() -> None:
    model, right = blocks(is_wrong=False)

    def narrow(rng: Any, data: Any) -> Any:
        parameters, outcomes = right(rng, data)
        return parameters, {**outcomes, "y": rng.uniform(-0.5, 0.5, 4)}

    opened = open_model(model, OpenOptions(simulate_from="prior", simulator=narrow))
    (outcomes,) = [test for test in direct_tests(opened, 1, n_temperatures=512).tests if test.name == "outcome score"]
    moves = outcomes.p_values[list(outcomes.variables).index("y (moves)")]
    assert combined_p_value(moves) < LEVEL
