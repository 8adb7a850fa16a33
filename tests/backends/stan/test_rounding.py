"""Programs whose numbers do not determine their log likelihood: accepted, and told of; another law still is not."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.stan.model import StanModel
from bread.backends.stan.rounding import derivatives_note, rounding_noise
from bread.backends.stan.scores import SOLVER_TOLERANCE, Scores, check_excess, draw_scores
from bread.errors import UnsupportedModelError
from tests.support.stan_conjugate import opened

pytestmark = pytest.mark.stan

# forty steps of a chaotic map: rounding of `start` grows by 2^40, to about 1e-4, a tenth of the deviation of y
CHAOTIC = """data {
  int N;
  vector[N] y;
}
parameters {
  real<lower=0, upper=1> start;
}
transformed parameters {
  real end = start;
  for (i in 1 : 40) {
    end = 4 * end * (1 - end);
  }
}
model {
  y ~ normal(end, 0.001);
}
"""

# where rate * t is large, what is left of the level is below the tolerance of the solver, and its log is anything
SOLVED = """functions {
  vector decay(real t, vector level, real rate) {
    return -rate * level;
  }
}
data {
  int N;
  array[N] real t;
  vector[N] y;
}
parameters {
  real<lower=0> rate;
}
transformed parameters {
  array[N] vector[1] level = ode_rk45(decay, [1]', 0, t, rate);
}
model {
  rate ~ normal(0, 5);
  for (n in 1 : N) {
    y[n] ~ normal(log(abs(level[n][1])), 0.1);
  }
}
"""


@functools.cache
def chaotic() -> StanModel:
    return opened(CHAOTIC, {"N": 3, "y": [0.2, 0.21, 0.2]})


def scores(model: StanModel) -> Scores:
    return draw_scores(model.draws, model.condition_instance, None, SeedSequence(3), 100, True)


@pytest.mark.slow
def test_noise_is_what_rounding_of_a_state_makes() -> None:
    model, found = chaotic(), scores(chaotic())
    noise = [rounding_noise(model.condition_instance(found.data[row]), found.states[row]) for row in range(10)]
    assert min(noise) > 0.01
    calm = opened(SOLVED, {"N": 2, "t": [0.01, 0.02], "y": [0.0, -0.1]})
    assert max(rounding_noise(calm.instance, state) for state in scores(calm).states[:10]) < 1e-6


@pytest.mark.slow
def test_a_log_likelihood_that_rounding_changes_is_no_other_law() -> None:
    found = scores(chaotic())
    assert np.ptp(found.excess) > 10 * SOLVER_TOLERANCE  # so that it is rounding that explains it
    assert any("Simulator and density agree" in note for note in chaotic().info.identity.notes)


@pytest.mark.parametrize("nats", [pytest.param(300.0, marks=pytest.mark.slow), -300.0])
def test_rounding_does_not_explain_another_law(nats: float) -> None:
    found = scores(chaotic())
    wrong = found.excess + nats * (np.arange(len(found.excess)) % 2)
    with pytest.raises(UnsupportedModelError, match="another law"):
        check_excess(replace(found, excess=wrong), chaotic().condition_instance)


@pytest.mark.slow
@pytest.mark.parametrize(("times", "is_told"), [([0.01, 0.02], False), ([0.1, 2.0], True)])
def test_solvers_that_are_not_exact_are_told_of(times: list[float], is_told: bool) -> None:
    model = opened(SOLVED, {"N": 2, "t": times, "y": [0.0, -0.1]})
    assert sum("when derivatives are computed" in note for note in model.info.identity.notes) == is_told


@pytest.mark.slow
def test_a_solver_is_named_where_it_makes_gradients_wrong() -> None:
    with pytest.raises(UnsupportedModelError, match="disagree.*'rate'.*when derivatives are computed"):
        opened(SOLVED, {"N": 2, "t": [0.1, 5.0], "y": [0.0, -0.1]})


def test_equal_infinities_are_no_difference_and_nan_is_one() -> None:
    one, other = np.array([-np.inf, 1.0, -3.0]), np.array([-np.inf, 1.005, np.nan])
    assert derivatives_note(one[:2], other[:2], 0.01) == ()
    assert "At 1 of 3 joint draws" in derivatives_note(one, other, 0.01)[0]
