"""What a backend may leave out of the contract: defaults of the core, and refusals that say what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

import bread
from bread.backends import open_model
from bread.backends.base import Model, ModelInfo, OpenOptions, Posterior, Simulations
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import Path, PriorPath
from bread.report.compat import read_group
from tests.models.reference import HMCKernel, NormalMean

WHOLE = NormalMean(np.array([0.4, 1.9, 1.1]), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2, kernel=HMCKernel(5))
QUICK = {
    "simulations": 4, "n_temperatures": [4, 8], "chains": 2, "draws": 10, "tune": 20, "path": "prior", "cores": 1,
    "random_seed": 5, "progressbar": False,
}  # fmt: skip


class LeanPosterior(Posterior):
    """What must be there, from a whole posterior."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> Any:
        return self.whole.draw_base(path, seeds)

    def log_ratio(self, path: Path, states: Any) -> Any:
        return self.whole.log_ratio(path, states)

    def adapt(self, *arguments: Any, **options: Any) -> Any:
        return self.whole.adapt(*arguments, **options)

    def anneal(self, *arguments: Any, **options: Any) -> Any:
        return self.whole.anneal(*arguments, **options)

    def evolve(self, *arguments: Any, **options: Any) -> Any:
        return self.whole.evolve(*arguments, **options)


class LeanModel(Model):
    """What must be there, from a whole model."""

    @property
    def info(self) -> ModelInfo:
        return WHOLE.info

    def simulate(self, n: int, *, fixed: Mapping[str, Any] | None, seed: SeedSequence) -> Simulations:
        return WHOLE.simulate(n, fixed=fixed, seed=seed)

    def constrain(self, states: Any) -> dict[str, Any]:
        return WHOLE.constrain(states)

    def unconstrain(self, parameters: Mapping[str, Any]) -> Any:
        return WHOLE.unconstrain(parameters)

    def condition(self, data: Any) -> LeanPosterior:
        return LeanPosterior(WHOLE.condition(data))


DRAWS = {"mean": np.random.default_rng(1).normal(1.0, 0.6, size=(4, 200))}


def test_a_lean_model_is_a_model_and_gives_the_same_report() -> None:
    lean = LeanModel()
    assert open_model(lean, OpenOptions()) is lean
    options = {"simulate_from": "fitted", "posterior": DRAWS, **QUICK}
    one, two = bread.check(lean, **options), bread.check(WHOLE, **options)
    first, second = bread.verdict(one), bread.verdict(two)
    assert (first.status, first.error, first.jeffreys) == (second.status, second.error, second.jeffreys)
    compared = [list(read_group(report, "agreement")["parameter"].values) for report in (one, two)]
    assert compared == [["mean"], ["mean", "log density"]]  # on the prior path, a log density has to be given


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        ({}, "no variable of the model. Its free variables are mean;"),
        ({"mean": np.zeros(7)}, r"shape \(7,\); the rule is \(chain, draw, ...\) = \(chain, draw\)"),
        ({"mean": np.full((4, 9), np.nan)}, "no finite numbers"),
        (3, "must be an InferenceData or DataTree"),
    ],
)
def test_draws_of_another_model_are_refused(draws: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        LeanModel().read_posterior(draws)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"simulate_from": "fitted"}, "'reference' has no sampler that fits real data.*posterior=.*'prior'"),
        ({"simulate_from": "localised", "posterior": DRAWS}, "cannot replace a prior.*'fitted' or 'prior'"),
    ],
)
def test_what_is_left_out_is_refused_with_the_way_out(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        bread.check(LeanModel(), **options, **QUICK)


def test_a_gradient_that_is_left_out_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="LeanPosterior has no gradient.*path='prior'"):
        LeanModel().condition(WHOLE.observed_data).end_gradient(PriorPath(), np.zeros(1))
