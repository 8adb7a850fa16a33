"""Hidden Markov chains: outcomes drawn along the chain have the law that the forward algorithm sums out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.errors import UnsupportedModelError
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import analyse_text

LEVEL = 1e-4  # of a chi-square test
N = 20_000
PROGRAM = """data {
  int N;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  array[2] simplex[2] move;
  array[2] real<lower=0, upper=1> p;
}
model {
  array[N, 2] real g;
  vector[2] acc;
  for (k in 1 : 2) g[1, k] = START + bernoulli_lpmf(y[1] | p[k]);
  for (n in 2 : N) {
    for (k in 1 : 2) {
      for (j in 1 : 2) acc[j] = g[n - 1, j] + log(MOVE) + bernoulli_lpmf(y[n] | GIVES);
      g[n, k] = log_sum_exp(acc);
    }
  }
  target += log_sum_exp(g[ROW]);
}
"""
MOVE, P = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0.2, 0.9])


def program(start: str = "log(0.5)", move: str = "move[j, k]", gives: str = "p[k]", row: str = "N") -> str:
    return PROGRAM.replace("START", start).replace("MOVE", move).replace("GIVES", gives).replace("ROW", row)


def probabilities(first: np.ndarray) -> dict[tuple[int, ...], float]:
    """Return the probability of every sequence of three outcomes, summed over all sequences of states."""
    found = {}
    for y in itertools.product((0, 1), repeat=3):
        total = 0.0
        for z in itertools.product((0, 1), repeat=3):
            path = first[z[0]] * MOVE[z[0], z[1]] * MOVE[z[1], z[2]]
            total += path * np.prod([P[k] if one else 1 - P[k] for k, one in zip(z, y, strict=True)])
        found[y] = total
    return found


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.statistical
def test_outcomes_follow_the_sum_over_all_states() -> None:
    model = opened(program(), {"N": 3, "y": [0, 1, 1]}, observed="y")
    fixed = {"move": MOVE, "p": P}
    data = model.simulate(N, fixed=fixed, seed=SeedSequence(1)).data["y"]
    counts = np.array([(data == y).all(axis=1).sum() for y in itertools.product((0, 1), repeat=3)])
    expected = np.array(list(probabilities(np.array([0.5, 0.5])).values()))
    assert stats.chisquare(counts, N * expected).pvalue > LEVEL
    other = np.array(list(probabilities(np.array([0.45, 0.55])).values()))  # negative control
    assert stats.chisquare(counts, N * other).pvalue < LEVEL


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.parametrize("changed", [{"move": "move[k, j]"}, {"start": "log(0.4)"}])
def test_chains_whose_probabilities_do_not_sum_to_one_are_refused(changed: dict[str, str]) -> None:
    with pytest.raises(UnsupportedModelError, match="probabilities of a hidden state do not sum to one"):
        opened(program(**changed), {"N": 3, "y": [0, 1, 1]}, observed="y")


@pytest.mark.parametrize(
    "text",
    [
        program(move="exp(bernoulli_lpmf(y[1] | p[j]))"),
        program(row="N - 1"),  # the last outcome is left out
        program(gives="p[y[n - 1] + 1]"),  # an outcome enters the law of the next
        program().replace("y[n] |", "y[n - 1] |"),
        program().replace("g[n - 1, j]", "g[n - 1, k]"),
        program().replace("for (j in 1 : 2)", "for (j in 1 : 1)"),
        program().replace("n in 2 : N", "n in 3 : N"),
        program().replace("vector[2] acc", "vector[3] acc"),
        program().replace("g[n, k] = log", "g[n, k] += log"),
        program().replace("log_sum_exp(acc)", "log_sum_exp(acc) + p[k]"),
        program().replace("target", "for (i in 1 : 2) target"),
    ],
)
def test_forms_that_are_no_forward_algorithm_are_refused(text: str) -> None:
    assert analyse_text(program()).simulator_refusal is None
    changed = analyse_text(text)
    assert changed.observed == ("y",) and changed.simulator_refusal is not None


def test_states_may_have_a_density_of_their_own() -> None:
    text = program(start="categorical_lpmf(k | move[1])").replace("log(move[j, k])", "categorical_lpmf(k | move[j])")
    assert analyse_text(text).simulator_refusal is None and analyse_text(text).observed == ("y",)


def test_chain_may_run_over_part_of_the_data() -> None:
    text = program(row="N - 1").replace("n in 2 : N", "n in 2 : (N - 1)")
    analysed = analyse_text(text)
    assert analysed.simulator_refusal is None
    assert "Elements of 'y' that have no density are held at their observed values." in analysed.notes


AT_ONCE = """data { int N; int K; array[N] real y; }
parameters { simplex[K] first; array[K] simplex[K] move; ordered[K] mu; }
transformed parameters {
  array[N] vector[K] g;
  g[1] = log(first) + normal_lpdf(y[1] | MEAN, 1);
  for (t in 2 : N) for (j in 1 : K) {
    array[K] real acc;
    for (i in 1 : K) acc[i] = g[t - 1, i] + log(move[i, j]) + normal_lpdf(y[t] | mu[j], 1);
    g[t, j] = log_sum_exp(acc);
  }
}
model {
  mu ~ normal(0, 2);
  target += log_sum_exp(g[N]);
}
"""


def test_the_density_of_several_states_at_once_is_named_as_the_cause() -> None:
    """As in posteriordb's hmm_gaussian: ``mu``, where the mean of each state is meant."""
    refusal = analyse_text(AT_ONCE.replace("MEAN", "mu"), ["y"]).simulator_refusal
    assert refusal is not None and refusal.construct == "normal_lpdf(y[1] | mu, 1)" and refusal.line == 5
    assert "under several states at once" in refusal.reason and "one state at a time" in refusal.remedy
    # negative control: the same mean for every state is not that mistake
    other = analyse_text(AT_ONCE.replace("MEAN", "mu[1]"), ["y"]).simulator_refusal
    assert other is None or "several states at once" not in other.reason
