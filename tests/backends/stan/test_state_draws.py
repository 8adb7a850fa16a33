"""Draws as the program accepts them, in extreme tails, and held at values by programs of the user's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.backends.base import OpenOptions
from bread.backends.stan.model import StanModel
from bread.backends.stan.open import open_model
from bread.backends.stan.simulation import JointDraws
from bread.backends.stan.state_draws import StateDraws
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from bread.running.exactness.score_tests import score_tests
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.exactness.score import prior_score_test
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import CORPUS

pytestmark = [pytest.mark.stan, pytest.mark.statistical, pytest.mark.slow]
N = 2000
LEVEL = 1e-4  # of each Kolmogorov-Smirnov test


def corpus(name: str, **changes: object) -> StanModel:
    case = next(case for case in CORPUS if case.name == name)
    return open_model(case.path, OpenOptions(data={**case.data, **changes}))


def test_draws_from_extreme_tails_follow_the_truncated_law() -> None:
    """mu ~ normal(1, 1) puts about 1e-6 below -4: redrawing alone would not end."""
    model = corpus("truncated_tail")
    simulations = model.simulate(N, fixed=None, seed=SeedSequence(1))
    mu, rate = simulations.parameters["mu"], simulations.parameters["lambda"]
    log_u = stats.norm.logcdf(simulations.data["y"][:, 0] - mu) - stats.norm.logcdf(-4 - mu)
    assert stats.kstest(np.exp(log_u), "uniform").pvalue > LEVEL
    assert stats.kstest(np.exp(log_u) ** 1.2, "uniform").pvalue < LEVEL
    counts, jitter = simulations.data["k"][:, 0], np.random.default_rng(2).uniform(size=N)
    # the randomised distribution function of a count of at least 9, from its upper tail
    above, below = stats.poisson.sf(counts, rate), stats.poisson.sf(counts - 1, rate)
    upper = (above + jitter * (below - above)) / stats.poisson.sf(8, rate)
    assert counts.min() == 9 and stats.kstest(upper, "uniform").pvalue > LEVEL


def test_prior_is_restricted_to_what_the_program_accepts() -> None:
    """Of a ~ exponential(1), b ~ exponential(2), given a > b: b is exponential(3), and the gap is exponential(1)."""
    model = corpus("rejecting_parameters")
    simulations = model.simulate(N, fixed=None, seed=SeedSequence(1))
    # P(a > b) = 2 / 3, within 4 standard errors of a binomial share
    assert abs(simulations.acceptance - 2 / 3) < 4 * np.sqrt(2 / 9 * 2 / 3 / N)
    starts = model.constrain(model.draws.draw_states(SeedSequence(2).spawn(N)))
    at_once = model.constrain(model.draws.draw_states_at_once(N, SeedSequence(3)))
    for values in (simulations.parameters, starts, at_once):
        assert stats.kstest(values["b"], stats.expon(scale=1 / 3).cdf).pvalue > LEVEL
        assert stats.kstest(values["gap"], stats.expon.cdf).pvalue > LEVEL
        assert stats.kstest(values["b"], stats.expon(scale=1 / 2).cdf).pvalue < LEVEL
    assert "joint draws again" in "\n".join(model.info.identity.notes)
    fewer = model.simulate(7, fixed=None, seed=SeedSequence(1))
    np.testing.assert_array_equal(fewer.states, simulations.states[:7])


class Rounded:
    """An instance and a simulator whose second coordinate always rounds to the border of its support."""

    coordinates = ("a.1", "a.2")
    can_redraw = True

    def draw(self, seeds: list[SeedSequence], fixed: object, *, only_parameters: bool) -> JointDraws:
        return JointDraws({}, {})

    def unconstrain(self, parameters: object) -> np.ndarray:
        return np.array([[0.0, -np.inf]])

    def terms(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        return np.zeros(len(states)), np.zeros(len(states)), ""

    def gradients(self, states: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(states)), np.zeros(states.shape)


class Steep(Rounded):
    """Draws are uniform; no derivative can be had below 0.3, and below 0.6 only one at a time."""

    def __init__(self) -> None:
        self.asked = 0

    def draw(self, seeds: Sequence[SeedSequence], fixed: object, *, only_parameters: bool) -> JointDraws:
        return JointDraws({"a": np.array([np.random.default_rng(seed).random(1) for seed in seeds])}, {})

    def unconstrain(self, parameters: dict[str, np.ndarray]) -> np.ndarray:
        return parameters["a"]

    def gradients(self, states: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
        found = np.where(states < 0.6, np.nan, 1.0)
        return found[:, 0], found

    def gradient(self, state: np.ndarray, beta: float) -> None:
        self.asked += 1
        if state[0] < 0.3:
            raise DensityError("no derivative")


@pytest.mark.parametrize("at_once", [False, True])
def test_states_without_derivatives_are_drawn_again(at_once: bool) -> None:
    """Of the 400 first draws 120 have none; the others that cannot be had with many are asked for alone."""
    steep = Steep()
    draws, seed = StateDraws(steep, steep, np.zeros((2, 1), dtype=bool)), SeedSequence(1)
    states = draws.draw_states_at_once(400, seed) if at_once else draws.draw_states(seed.spawn(400))
    assert states.shape == (400, 1)
    assert stats.kstest(states[:, 0], stats.uniform(0.3, 0.7).cdf).pvalue > LEVEL
    assert 200 < steep.asked < 600


def test_draws_that_round_to_the_border_are_named_plainly() -> None:
    draws = StateDraws(Rounded(), Rounded(), np.zeros((2, 2), dtype=bool))
    with pytest.raises(DensityError, match="times over: 'a.2' rounds to the border of its support"):
        draws.draw_states([SeedSequence(1)])


def test_outcomes_that_overflow_do_not_change_the_prior_of_the_starts() -> None:
    """Rates above about 2^30 have no integer outcome: joint draws avoid them, starts of forward chains do not."""
    model = corpus("overflowing_counts")
    rate = stats.uniform(-20, 40)
    starts = model.constrain(model.draws.draw_states(SeedSequence(2).spawn(N)))
    assert stats.kstest(starts["alpha"], rate.cdf).pvalue > LEVEL
    simulations = model.simulate(N, fixed=None, seed=SeedSequence(1))
    largest = simulations.parameters["alpha"] + np.abs(simulations.parameters["slope"])
    assert largest.max() < np.log(2.0**30) < (starts["alpha"] + np.abs(starts["slope"])).max()
    # alpha + |slope| above log(2^30) is refused: (30 - log(2^30))^2 / 800 of the prior, within 4 standard errors
    refused = (30 - 30 * np.log(2)) ** 2 / 800
    assert abs(1 - simulations.acceptance - refused) < 4 * np.sqrt(refused * (1 - refused) / N)
    assert "joint draws again" in "\n".join(model.info.identity.notes)


def test_a_program_that_rejects_almost_everything_is_refused() -> None:
    text = """data {
  real y;
}
parameters {
  real mu;
}
model {
  if (mu < 4) reject("mu is too small");
  mu ~ normal(0, 1);
  y ~ normal(mu, 1);
}
"""
    with pytest.raises(UnsupportedModelError, match="draws failed 40 times over: mu is too small .*line 8"):
        opened(text, {"y": 1.0}, observed="y")


def test_a_prior_whose_draws_overflow_is_refused_by_the_lines_that_need_them() -> None:
    text = """data {
  real y;
}
parameters {
  real<lower=0> variance;
  real mu;
}
model {
  variance ~ inv_gamma(1e-8, 1e-8);
  mu ~ normal(0, sqrt(variance));
  y ~ student_t(4, mu, 1);
}
"""
    words = r"normal_rng: Scale parameter is inf, .*! \(drawn for 'program.stan', line 10\)\. Use priors"
    with pytest.raises(UnsupportedModelError, match=words):
        opened(text, {"y": 1.0}, observed="y")


def test_generators_that_fail_where_outcomes_are_likely_are_refused() -> None:
    """Negative control: rates on both sides of 2^30, where Stan's generator ends, have nearly the same outcomes."""
    text = """data {
  int<lower=0> y;
}
parameters {
  real<lower=0> rate;
}
model {
  rate ~ lognormal(log(2) * 30, 0.0001);
  y ~ poisson(rate);
}
"""
    with pytest.raises(UnsupportedModelError, match="outcomes cannot be drawn at some parameters"):
        opened(text, {"y": 2**30}, observed="y")


# ---- hyperparameters held by a program of the user's ----------------------------------------------------------

PROGRAM = """data {
  int N;
  vector[N] y;
}
parameters {
  real<lower=0> s;
  vector[N] theta;
}
model {
  s ~ lognormal(0, 1);
  theta ~ normal(0, s);
  y ~ normal(theta, 1);
}
"""
SIMULATOR = """data {
  int N;
  int<lower=0, upper=1> use_fixed;
  real<lower=0> fixed_s;
}
generated quantities {
  real s = use_fixed ? fixed_s : lognormal_rng(0, 1);
  vector[N] theta = to_vector(normal_rng(rep_vector(0, N), s));
  vector[N] y = to_vector(normal_rng(theta, 1));
}
"""
DATA = {"N": 3, "y": [0.5, -1.0, 0.2]}


def test_a_stan_program_holds_hyperparameters() -> None:
    model = opened(PROGRAM, DATA, simulator=SIMULATOR, simulate_from="fitted")
    held = model.simulate(500, fixed={"s": np.array(3.0)}, seed=SeedSequence(1))
    np.testing.assert_allclose(held.parameters["s"], 3.0)
    assert stats.kstest(held.parameters["theta"].ravel(), stats.norm(scale=3).cdf).pvalue > LEVEL
    free = model.simulate(500, fixed=None, seed=SeedSequence(1))
    assert stats.kstest(free.parameters["s"], stats.lognorm(1).cdf).pvalue > LEVEL


def test_a_stan_program_without_such_data_says_how() -> None:
    simulator = SIMULATOR.replace("int<lower=0, upper=1> use_fixed;", "").replace("real<lower=0> fixed_s;", "")
    simulator = simulator.replace("use_fixed ? fixed_s : ", "")
    with pytest.raises(InvalidArgumentError, match=r"cannot hold .*'s'.*`int use_fixed;` and `fixed_s`"):
        opened(PROGRAM, DATA, simulator=simulator, simulate_from="fitted")


def test_transformed_parameters_that_outcomes_enter_are_named() -> None:
    model = corpus("uniform_without_bounds")
    assert "p" not in model.info.layout.parameters
    assert "left out of the report, because outcomes enter them: p." in "\n".join(model.info.identity.notes)


def errors_program(errors: str, prior: str) -> str:
    return f"""data {{
  int<lower=2> T;
  vector[T] y;
}}
parameters {{
  real phi;
  real<lower=0> sigma;
}}
model {{
  vector[T] err;
  phi ~ {prior};
  sigma ~ lognormal(0, 0.5);
  {errors}
  err ~ normal(0, sigma);
}}
"""


def test_series_that_lose_their_errors_in_rounding_are_drawn_again() -> None:
    """A series that doubles 60 times has no digits left for its errors; the next number has another density."""
    errors = "err[1] = y[1]; for (t in 2 : T) err[t] = y[t] - phi * y[t - 1];"
    data = {"T": 60, "y": np.sin(np.arange(60.0)).tolist()}
    model = opened(errors_program(errors, "normal(0, 2)"), data)
    assert "rounding the outcome y changes its density" in "\n".join(model.info.identity.notes)
    simulations = model.simulate(200, fixed=None, seed=SeedSequence(1))
    largest = np.abs(simulations.parameters["phi"]).max()
    assert 1.2 < largest < 2.5, "2.5^60 is 1e24"
    starts = model.constrain(model.draws.draw_states(SeedSequence(2).spawn(N)))
    assert stats.kstest(starts["phi"], stats.norm(scale=2).cdf).pvalue > LEVEL


def test_a_sound_series_of_which_most_draws_are_made_again_is_not_accused() -> None:
    """Kept draws do not follow the prior of phi: its score, at these draws, would be off by far."""
    errors = "err[1] = y[1]; for (t in 2 : T) err[t] = y[t] - phi * y[t - 1];"
    model = opened(errors_program(errors, "normal(0, 2)"), {"T": 60, "y": np.sin(np.arange(60.0)).tolist()})
    found = score_tests(model.info, 1, 8, 50, lambda tasks: [task.run(model) for task in tasks])
    p_values = {test.name: combined_p_value(test.p_values.ravel()) for test in found.tests}
    assert found.discarded.n_outcomes > 40 and p_values["prior score"] > 1e-3 and not found.inexact
    assert found.joint is not None
    gradient = model.condition(model.info.data.observed).density_gradient(0.0, found.joint.states)[1]
    assert prior_score_test(found.joint.states, gradient).p_value < 1e-3


def test_errors_of_later_outcomes_are_refused_all_the_same() -> None:
    errors = "for (t in 1 : T - 1) err[t] = y[t] - phi * y[t + 1]; err[T] = y[T];"
    data = {"T": 60, "y": np.sin(np.arange(60.0)).tolist()}
    with pytest.raises(UnsupportedModelError, match="the law of y reads y itself, or later elements of it"):
        opened(errors_program(errors, "normal(0, 0.5)"), data)
