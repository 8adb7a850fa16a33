"""Induced Dirichlet priors of cutpoints: told by their values, drawn exactly, exact evidence; others are refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats
from scipy.special import gammaln

from bread.backends.stan.model import StanModel
from bread.backends.stan.simulator.helpers import helpers
from bread.errors import BreadError
from tests.support.conformance import check_evidence, check_simulate_is_exact, tuned_kernel
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import analyse_text
from tests.support.stan_interpreter import Interpreter, RejectedError

# As in the case study, but for where `phi` shows which mistake is made: one program, compiled once, has them all.
LAW = """functions {
  real induced_dirichlet_lpdf(vector c, vector alpha, real phi) {
    int K = num_elements(c) + 1;
    vector[K - 1] sigma = inv_logit(phi - c);
    vector[K] p;
    matrix[K, K] J = rep_matrix(0, K, K);
    p[1] = 1 - sigma[1];
    for (k in 2 : (K - 1)) p[k] = sigma[k - 1] - sigma[k];
    p[K] = sigma[K - 1];
    for (k in 1 : K) J[k, 1] = 1;
    for (k in 2 : K) {
      real rho = sigma[k - 1] * (1 - sigma[k - 1]);
      J[k, k] = -rho;
      J[k - 1, k] = rho;
    }
    return dirichlet_lpdf(p | alpha) + log_determinant(J);
  }
}
"""
MODEL = """data {
  int<lower=1> N;
  int<lower=2> K;
  array[N] int<lower=1, upper=K> y;
  vector<lower=0>[K] alpha;
  real phi;
}
parameters {
  ordered[K - 1] c;
}
model {
  c ~ induced_dirichlet(alpha, phi);
  y ~ ordered_logistic(rep_vector(phi, N), c);
}
"""
DATA: dict[str, Any] = {"N": 6, "K": 4, "y": [1, 4, 3, 3, 1, 3], "alpha": [1.5, 0.4, 2.0, 1.0], "phi": 0.7}
LEVEL = 1e-4  # of each test of a law


def log_evidence(data: Any) -> float:
    """Outcomes of one predictor, equal to the anchor: the categories' probabilities have the Dirichlet law."""
    alpha = np.asarray(DATA["alpha"])
    counts = np.bincount(np.asarray(data["y"]), minlength=5)[1:]
    total = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum())
    return float(total + (gammaln(alpha + counts) - gammaln(alpha)).sum())


def text_of(*changes: tuple[str, str]) -> str:
    text = LAW + MODEL
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def excess_of(text: str, n: int = 3, **data: Any) -> np.ndarray:
    """Return the log prior of the program less that of the simulator, at draws of the simulator."""
    program, values = analyse_text(text), {**DATA, **data}
    assert program.is_automatic, program.simulator_refusal
    run, rng = Interpreter(program.tempered, {**values, **program.switches}), default_rng(3)
    found = [run.simulate(rng) for _ in range(n)]
    return np.array([run.log_density({"c": one["bread_sim_c"]})[0] - one["bread_sim_log_prior"] for one in found])


def cutpoints(alpha: Any, link: int, n: int = 150) -> np.ndarray:
    """Return draws of the Stan function that draws cutpoints, about the anchor of the data."""
    declared = f"vector[{len(alpha)}] alpha; real phi;"
    drawn = f"vector[{len(alpha) - 1}] c = bread_cutpoints_rng(alpha, phi, {link});"
    text = "functions {{ {} }} data {{ {} }} parameters {{ real x; }} generated quantities {{ {} }}"
    run = Interpreter(
        text.format(helpers()["bread_cutpoints_rng"], declared, drawn), {"alpha": alpha, "phi": DATA["phi"]}
    )
    rng = default_rng(4)
    return np.array([run.simulate(rng)["c"] for _ in range(n)])


def shares(c: np.ndarray, phi: float = DATA["phi"]) -> np.ndarray:
    """Return the probability below each cutpoint."""
    return np.asarray(stats.logistic.cdf(c - phi))


def fits_beta(below: np.ndarray, alpha: Any = DATA["alpha"]) -> bool:
    """Test the law of each running sum of probabilities, a beta one: Kolmogorov-Smirnov at 1e-4."""
    sums = np.cumsum(alpha)[:-1]
    p_values = [stats.kstest(below[:, k], stats.beta(one, sum(alpha) - one).cdf).pvalue for k, one in enumerate(sums)]
    return min(p_values) > LEVEL


# ---- in Python -------------------------------------------------------------------------------------------------

PROBIT = (
    ("inv_logit(phi - c)", "Phi(phi - c)"),
    ("sigma[k - 1] * (1 - sigma[k - 1])", "exp(normal_lpdf(c[k - 1] | phi, 1))"),
)
FORMS = {
    "as in the case study": (),
    "another name, another order": (
        ("induced_dirichlet", "cutpoints"), ("vector alpha, real phi)", "real phi, vector alpha)"),
        ("(alpha, phi)", "(phi, alpha)"),
    ),
    "by hand": (("+ log_determinant(J)", "+ sum(log(sigma)) + sum(log1m(sigma))"),),
    "target": (("c ~ induced_dirichlet(alpha, phi);", "target += induced_dirichlet_lpdf(c | alpha, phi);"),),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_every_way_to_write_it_is_the_law_itself_but_for_a_constant(name: str) -> None:
    """The determinant of the case study has a factor: the number of categories."""
    np.testing.assert_allclose(excess_of(text_of(*FORMS[name])), 0 if name == "by hand" else np.log(4), atol=1e-7)


def test_without_an_anchor_it_is_zero() -> None:
    text = text_of((", real phi)", ")"), ("(alpha, phi)", "(alpha)"), ("phi - c", "-c"))
    np.testing.assert_allclose(excess_of(text), np.log(4), atol=1e-7)


def test_the_normal_link() -> None:
    np.testing.assert_allclose(excess_of(text_of(*PROBIT)), np.log(4), atol=1e-7)


@pytest.mark.statistical
def test_cutpoints_follow_the_law_of_their_link() -> None:
    """150 draws; the anchor and the link are seen."""
    logistic, normal = (cutpoints(DATA["alpha"], link) for link in (1, 2))
    assert fits_beta(shares(logistic)) and fits_beta(stats.norm.cdf(normal - DATA["phi"]))
    assert not fits_beta(shares(logistic, phi=-0.3)) and not fits_beta(stats.norm.cdf(logistic - DATA["phi"]))


@pytest.mark.statistical
def test_small_weights_do_not_underflow() -> None:
    """The share of a weight of 0.02 is below 1e-16 in half of the draws: p ** 0.02 is uniform."""
    c = cutpoints([0.02, 1.0], 1)[:, 0]
    log_share = -np.logaddexp(0, DATA["phi"] - c)
    assert np.isfinite(c).all() and (log_share < np.log(1e-16)).sum() > 50
    assert stats.kstest(np.exp(0.02 * log_share), "uniform").pvalue > LEVEL


MISTAKES = {
    "no Jacobian": ("+ log_determinant(J)", ""),
    "the Jacobian's sign": ("+ log_determinant(J)", "- log_determinant(J)"),
    "a factor missing": ("sigma[k - 1] * (1 - sigma[k - 1]);", "sigma[k - 1];"),
    "the anchor's sign": ("inv_logit(phi - c)", "inv_logit(-phi - c)"),
    "other weights": ("dirichlet_lpdf(p | alpha)", "dirichlet_lpdf(p | alpha + 0.001)"),
    "weights in reverse": ("dirichlet_lpdf(p | alpha)", "dirichlet_lpdf(p | reverse(alpha))"),
    "half of one link": ("inv_logit(phi - c)", "Phi(phi - c)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_whatever_the_name(name: str) -> None:
    with pytest.raises(RejectedError, match="induced_dirichlet_lpdf, a density of cutpoints, is not the one"):
        excess_of(text_of(MISTAKES[name]), n=1)


def test_a_mistake_far_out_is_seen_at_draws() -> None:
    excess = excess_of(text_of(("+ log_determinant(J)", "+ log_determinant(J) + (c[3] > 3 ? 1 : 0)")), n=10)
    assert 0 < (excess > 2).sum() < len(excess)  # what a start refuses: a difference that is no constant


def test_another_law_of_that_name_is_what_it_is() -> None:
    """Made of Stan's densities, it is put in the place of its call, as any function is."""
    body = LAW[LAW.index("    int K") : LAW.index("  }\n}")]
    program = analyse_text(text_of((body, "    return normal_lpdf(c | phi, alpha[1]);\n")))
    assert program.is_automatic and "normal_rng" in program.tempered and "bread_cutpoints" not in program.tempered


@pytest.mark.parametrize(
    "changes",
    [
        (("vector alpha, real phi)", "vector alpha, real phi, real s)"), ("(alpha, phi)", "(alpha, phi, 1.0)")),
        (("c ~ induced", "c - 1 ~ induced"),),
    ],
    ids=["one argument more", "computed"],
)
def test_what_may_be_another_law_is_refused_by_the_text(changes: tuple[tuple[str, str], ...]) -> None:
    assert not analyse_text(text_of(*changes), ["y"]).is_automatic


# ---- compiled --------------------------------------------------------------------------------------------------

BY_PHI = text_of(
    (
        "+ log_determinant(J);",
        "+ (phi == -1 ? 0 : phi == -2 ? -1 : 1) * log_determinant(J) + (phi == -3 && c[1] < -6 ? 1 : 0);",
    )
)


@functools.cache
def model() -> StanModel:
    return opened(BY_PHI, DATA)


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.statistical
def test_draws_and_evidence_are_exact() -> None:
    """Draws: Kolmogorov-Smirnov at 1e-4 with 2000; evidence: 3 standard errors."""
    check_simulate_is_exact(model())
    notes = "\n".join(model().info.identity.notes)
    assert "induced_dirichlet_lpdf is drawn from as the induced Dirichlet law" in notes
    assert model().log_integral == pytest.approx(np.log(4), abs=1e-8)  # of the function in the case study
    c = model().simulate(2000, fixed=None, seed=SeedSequence(5)).parameters["c"]
    assert fits_beta(shares(c)) and not fits_beta(shares(c), [1.0, 1.0, 1.0, 1.0])
    kernel = tuned_kernel(model())
    check_evidence(model(), kernel, log_evidence=log_evidence)
    with pytest.raises(AssertionError, match="wrong side"):  # negative control: the prior without its Jacobian
        check_evidence(model(), kernel, log_evidence=lambda data: log_evidence(data) - 4)


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.parametrize(
    ("phi", "why"),
    [(-1, "is not the one that a Dirichlet law"), (-2, "is not the one that a Dirichlet law"),
     (-3, "the difference must be one constant")],
    ids=["no Jacobian", "its sign", "far out"],
)  # fmt: skip
def test_mistakes_are_refused_at_every_start(phi: float, why: str) -> None:
    with pytest.raises(BreadError, match=why):
        opened(BY_PHI, {**DATA, "phi": phi})


def test_without_an_order_it_could_only_be_normal_which_its_values_tell_it_is_not() -> None:
    text = text_of(("ordered[K - 1] c", "vector[K - 1] c"))
    try:
        with np.errstate(all="ignore"):
            excess = excess_of(text, n=2)
    except (RejectedError, ValueError, np.linalg.LinAlgError):  # NaN has no root, no probabilities
        return
    assert not np.isfinite(excess).any()
