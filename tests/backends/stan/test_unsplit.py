"""Stan programs whose prior and likelihood cannot be told apart: along a path from a reference, with exact evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cloudpickle
import numpy as np
import pytest
from numpy.random import Generator, SeedSequence
from scipy import stats

from bread.backends.base import Failure, Kernel, Model
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import gaussian
from tests.support.stan_conjugate import conjugate, opened

pytestmark = pytest.mark.stan

# Line 11 depends on the parameter alone and is no density that bread knows. Its constant, log(2 pi) / 2 + log(1.5), is
# missing, so that the integral of the program's density is the evidence times the square root of 2 pi, times 1.5.
HARD = """data {
  int N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> tau;
}
model {
  tau ~ exponential(1);
  target += -0.5 * square((mu - 0.5) / 1.5);
  y ~ normal(mu, 1.2);
}
"""
DATA: dict[str, Any] = {"N": 3, "y": [0.4, 1.9, 1.1]}
LOG_EVIDENCE = (
    stats.multivariate_normal(np.full(3, 0.5), 1.2**2 * np.eye(3) + 1.5**2).logpdf(DATA["y"])
    + 0.5 * np.log(2 * np.pi)
    + np.log(1.5)
)
# The statement of line 11 keeps the program from being split, and not from being simulated.
READS_TARGET = HARD.replace("target += -0.5 * square((mu - 0.5) / 1.5);", "mu ~ normal(0.5, 1.5); real t = target();")


def simulator(rng: Generator, data: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> Any:
    mu = rng.normal(0.5, 1.5) if fixed is None else fixed["mu"]
    return {"mu": mu, "tau": rng.exponential()}, {"y": rng.normal(mu, 1.2, data["N"])}


def wrong_prior(rng: Generator, data: Mapping[str, Any]) -> Any:
    mu = rng.normal(2.0, 1.5)
    return {"mu": mu, "tau": rng.exponential()}, {"y": rng.normal(mu, 1.2, data["N"])}


def wrong_outcome(rng: Generator, data: Mapping[str, Any]) -> Any:
    mu = rng.normal(0.5, 1.5)
    return {"mu": mu, "tau": rng.exponential()}, {"y": rng.normal(mu + 1.0, 1.2, data["N"])}


def test_without_a_simulator_the_refusal_names_the_way_out() -> None:
    with pytest.raises(UnsupportedModelError, match=r"line 11: .*Or give simulator= and path='reference'"):
        opened(HARD, DATA, observed="y")


@pytest.mark.parametrize(
    ("text", "options", "construct"),
    [
        pytest.param(HARD, {"simulator": simulator}, "square", id="user's", marks=pytest.mark.slow),
        pytest.param(READS_TARGET, {}, "target()", id="derived", marks=pytest.mark.slow),
    ],
)
def test_a_program_that_cannot_be_split_opens_on_the_reference_path(text: str, options: Any, construct: str) -> None:
    model = opened(text, DATA, observed="y", **options)
    assert isinstance(model, Model) and model.info.paths == ("reference",)
    assert set(model.info.path_refusals) == {"prior"}
    reason = model.info.path_refusals["prior"]
    assert construct in reason and "line 11" in reason and "path='reference'" in reason
    notes = "\n".join(model.info.identity.notes)
    assert "mean gradient of the log joint density is zero" in notes
    assert "density of the original one at 20 random points" in notes
    posterior = model.condition({"y": np.array(DATA["y"])})
    assert posterior.draw_base(PriorPath(), SeedSequence(1).spawn(3)).shape == (3, 2)
    with pytest.raises(InvalidArgumentError, match="cannot be told from the prior"):
        posterior.log_ratio(PriorPath(), np.zeros((1, 2)))


@pytest.mark.slow
def test_a_program_that_can_be_split_allows_every_path() -> None:
    info = conjugate("normal mean").info
    assert info.paths == ("prior", "reference") and not info.path_refusals


@pytest.mark.parametrize("wrong", [wrong_prior, wrong_outcome])
def test_a_simulator_that_disagrees_is_caught(wrong: Any) -> None:
    with pytest.raises(UnsupportedModelError, match="mean gradient of the log joint density with respect to 'mu'"):
        opened(HARD, DATA, observed="y", simulator=wrong)


@pytest.mark.statistical
def test_end_to_end_with_exact_evidence() -> None:
    """Pilot, fit, frozen kernel, chains: E[w_fwd] is the integral of the density, within 4 standard errors."""
    model = cloudpickle.loads(cloudpickle.dumps(opened(HARD, DATA, observed="y", simulator=simulator)))
    posterior = model.condition(model.info.data.observed)
    (start,) = posterior.draw_base(PriorPath(), SeedSequence(2).spawn(1))
    anywhere = ReferencePath(gaussian(np.zeros(2), np.eye(2)))
    adapted = posterior.adapt(anywhere, 1.0, start, SeedSequence(3), 300, None)
    pilot = Kernel(np.array([0.0]), {name: value[None] for name, value in adapted.settings.items()})
    draws = posterior.evolve(anywhere, pilot, 1.0, adapted.state, range(1, 401), SeedSequence(4)).states
    path = ReferencePath(gaussian(draws.mean(axis=0), 1.5 * np.cov(draws.T)))
    ends = [posterior.adapt(path, beta, adapted.state, SeedSequence(5), 200, adapted.settings) for beta in (0.0, 1.0)]
    kernel = Kernel(
        np.array([0.0, 1.0]), {name: np.stack([one.settings[name] for one in ends]) for name in adapted.settings}
    )
    starts = posterior.draw_base(path, SeedSequence(6).spawn(2000))
    run = posterior.anneal(
        path, np.linspace(0, 1, 4), kernel, direction="forward", initial=starts, seeds=SeedSequence(7).spawn(2000)
    )
    assert (run.failure == Failure.NONE).all()
    weights = np.exp(run.log_weight - LOG_EVIDENCE)
    error = weights.std(ddof=1) / np.sqrt(len(weights))
    assert error < 0.05 and abs(weights.mean() - 1) < 4 * error
    # Negative control: without the missing constants the same check fails.
    assert abs(weights.mean() * 1.5 - 1) > 4 * error * 1.5


def test_coordinates_and_positions() -> None:
    model = opened(HARD, DATA, observed="y", simulator=simulator)
    assert model.info.layout.transformed is not None and model.info.layout.transformed.tolist() == [False, True]
    assert {name: where.tolist() for name, where in model.info.layout.positions.items()} == {"mu": [0], "tau": [1]}
    states = np.array([[0.3, -1.0], [2.0, 0.5]])
    np.testing.assert_allclose(model.unconstrain(model.constrain(states)), states, rtol=1e-12)
    with pytest.raises(InvalidArgumentError, match="outside the support"):
        model.unconstrain({"mu": np.zeros(1), "tau": -np.ones(1)})
