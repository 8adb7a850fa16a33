"""Data annealing of Stan programs: the first observations alone, exact evidence of every prefix, PyMC's, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.stan.split.observation_reads import ObservationReads
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath
from bread.report.compat import require_group
from bread.seeds import Purpose, seed_sequence
from tests.support import pymc_conjugate
from tests.support.prefix_evidence import check_prefixes
from tests.support.stan_conjugate import CONJUGATE, NORMAL_MEAN, X, conjugate, opened

pytestmark = pytest.mark.stan

Y = np.array([1.0, -0.3, 2.0, 0.7, 0.1])
EXACT = [stats.multivariate_normal(np.zeros(n), X[:n] @ X[:n].T + 2.25 * np.eye(n)).logpdf(Y[:n]) for n in range(1, 6)]

# Statements of several forms about one outcome, whose likelihood is a sum over rows of four numbers.
FORMS = """data {
  int<lower=1> N;
  matrix[N, 4] y;
  vector[N] x;
}
transformed data {
  vector[N] z = log(y[, 3]);
}
parameters {
  real m;
  vector[N] effect;
}
model {
  real gathered = 0;
  m ~ normal(0, 1);
  effect ~ normal(m, 0.5);
  y[1 : 2, 1] ~ normal(effect[1 : 2], 1.5);
  y[3 : N, 1] ~ normal(effect[3 : N], 1);
  for (n in 1 : N) {
    vector[2] part = rep_vector(log(0.5), 2);
    for (k in 1 : 2) part[k] += normal_lpdf(y[n, 2] | x[n] + k * m, 1);
    target += log_sum_exp(part);
  }
  for (n in 1 : N) gathered += normal_lpdf(z[n] | m, 2);
  target += gathered;
  target += student_t_lpdf(col(y, 4) | 5, m + x, 1.5);
}
"""
FORMS_DATA = {
    "N": 4,
    "y": np.array([[0.3, 1.0, 2.0, 0.1], [-0.4, 2.2, 0.4, 0.9], [1.1, -0.7, 1.3, -0.6], [0.6, 0.2, 0.7, 1.4]]),
    "x": [0.1, -0.5, 0.8, 0.4],
}

AR = """data { int<lower=2> N; vector[N] y; }
parameters { real<lower=-1, upper=1> rho; }
model {
  rho ~ uniform(-1, 1);
  y[1] ~ normal(0, 1);
  y[2 : N] ~ normal(rho * y[1 : (N - 1)], 1);
}
"""


def test_first_observations_alone():
    model = conjugate("regression")
    assert model.n_observations() == 5
    states = np.array([[0.3, -1.0], [2.0, 0.5]])
    for n in (1, 3, 5):
        posterior = model.condition_first({"y": Y}, n)
        wanted = [stats.norm.logpdf(Y[:n], X[:n] @ state, 1.5).sum() for state in states]
        assert posterior.log_ratio(PriorPath(), states) == pytest.approx(np.array(wanted), abs=1e-10)
        value, gradient = posterior.density_gradient(1.0, states)
        residual = [Y[:n] - X[:n] @ state for state in states]
        wanted_gradient = [X[:n].T @ r / 2.25 - state for r, state in zip(residual, states, strict=True)]
        assert gradient == pytest.approx(np.array(wanted_gradient), abs=1e-10)
        assert value == pytest.approx(wanted + stats.norm.logpdf(states).sum(axis=1), abs=1e-10)


def test_all_observations_but_one():
    model, state = conjugate("regression"), np.array([[0.3, -1.0]])
    terms = stats.norm.logpdf(Y, X @ state[0], 1.5)
    for index in (0, 2, 4):
        found = model.condition_without({"y": Y}, index).log_ratio(PriorPath(), state)
        assert found == pytest.approx(terms.sum() - terms[index], abs=1e-10)
    with pytest.raises(InvalidArgumentError, match="received 5"):
        model.condition_without({"y": Y}, 5)
    with pytest.raises(InvalidArgumentError, match="received 0"):
        model.condition_first({"y": Y}, 0)


def test_rows_of_a_matrix_in_statements_of_several_forms():
    model = opened(FORMS, FORMS_DATA, observed="y")
    assert model.n_observations() == 4
    y, x = FORMS_DATA["y"], np.array(FORMS_DATA["x"])
    state = np.array([[0.7, 0.2, -0.3, 0.5, 1.2]])
    means = x[:, None] + np.array([1.0, 2.0]) * 0.7
    terms = stats.norm.logpdf(y[:, 0], state[0, 1:], [1.5, 1.5, 1, 1])
    terms = terms + logsumexp(np.log(0.5) + stats.norm.logpdf(y[:, 1:2], means, 1), axis=1)
    terms = terms + stats.norm.logpdf(np.log(y[:, 2]), 0.7, 2) + stats.t.logpdf(y[:, 3], 5, 0.7 + x, 1.5)
    for n in range(1, 5):
        found = model.condition_first({"y": y}, n).log_ratio(PriorPath(), state)
        assert found == pytest.approx(terms[:n].sum(), abs=1e-10)


@pytest.mark.slow
@pytest.mark.statistical
def test_evidence_of_every_prefix_and_pymcs():
    """Both estimators, in both PPLs, within 0.4 nats of the exact evidence: 5 standard deviations or more."""
    rng = np.random.default_rng(5)
    pymc_model = open_model(pymc_conjugate.regression(), OpenOptions())
    assert np.array_equal(pymc_conjugate.X, X)
    for model in (conjugate("regression"), pymc_model):
        check_prefixes(model, X, Y, EXACT, rng)
    # Control: one observation more is another evidence by far.
    assert abs(EXACT[4] - EXACT[3]) > 1.0


@pytest.mark.slow
@pytest.mark.statistical
def test_the_verb():
    """Limits at 99.9% hold the exact evidence of each of 5 data sets; those of a data set cut short are elsewhere."""
    case = CONJUGATE["normal mean"]
    report = bread.lab.data_annealing(
        case.text, data=case.data, simulations=5, runs=3, particles=24, level=0.999, random_seed=2, progressbar=False
    )
    found = require_group(report, "data_annealing")
    model = conjugate("normal mean")
    data = model.simulate(5, fixed=None, seed=seed_sequence(2, Purpose.DATA_ANNEALING, 0, 0, 0)).data["y"]
    exact = np.array([case.log_evidence({"y": y}) for y in data])
    assert (found["lower"].values < exact).all() and (exact < found["upper"].values).all()
    assert np.abs(found["log_evidence"].values - exact).max() < 0.8
    shorter = stats.multivariate_normal(np.full(2, 0.5), 2.25 * np.ones((2, 2)) + 1.44 * np.eye(2)).logpdf(data[:, :2])
    assert np.abs(found["log_evidence"].values - shorter).max() > 0.8  # control
    assert found.attrs["n_failed"] == 0 and (found["forward_gradients"] > 0).all()
    assert bread.verdict(report).status in ("sandwiched", "inconclusive")


@pytest.mark.slow
def test_a_split_that_is_not_the_whole_is_refused():
    """Control of the proof: the sum over pieces is held against the log likelihood of another program."""
    other = opened(NORMAL_MEAN.replace("1.2", "1.3"), CONJUGATE["normal mean"].data)
    with pytest.raises(UnsupportedModelError, match="do not split.*and the sum over 3 pieces"):
        replace(conjugate("normal mean"), library=other.library).n_observations()


def test_terms_that_see_other_elements_are_refused(monkeypatch):
    """By the text; where that is not read, by numbers: the sum over rows is right, but each sees the row before."""
    data = {"N": 4, "y": [0.3, -0.2, 0.9, 0.4]}
    with pytest.raises(UnsupportedModelError, match="do not split.*'program.stan', line 6.*depends on others"):
        opened(AR, data).n_observations()
    monkeypatch.setattr(ObservationReads, "depends", lambda self, *expressions: False)
    with pytest.raises(UnsupportedModelError, match="do not split.*changes with the value of others"):
        opened(AR, data).n_observations()


def test_refusals_come_before_anything_is_computed():
    text = "data { real y; } parameters { real m; } model { m ~ std_normal(); y ~ normal(m, 1); }"
    with pytest.raises(UnsupportedModelError, match="do not split.*one observed variable with several elements"):
        bread.lab.data_annealing(text, data={"y": 0.3}, progressbar=False)
