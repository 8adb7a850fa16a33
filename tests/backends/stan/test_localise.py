"""Stan models whose hyperparameters have another law: densities by hand, exact draws, exact evidence, refusals."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import cloudpickle
import numpy as np
import pytest
from numpy.random import Generator, SeedSequence, default_rng
from scipy import special, stats

from bread.backends.stan import proof
from bread.backends.stan.language.refusals import RefusedError
from bread.backends.stan.localising import rewrite
from bread.backends.stan.model import StanModel
from bread.backends.stan.state_draws import StateDraws
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian
from tests.support.annealed_pools import tuned_kernel
from tests.support.conformance import check_evidence, check_forward_reverse_identities
from tests.support.stan_conjugate import CONJUGATE, ERROR, HIERARCHICAL, conjugate, opened
from tests.support.stan_corpus_table import analyse_text, stanc

pytestmark = pytest.mark.stan

DATA = CONJUGATE["hierarchical"].data
FLAT = HIERARCHICAL.replace("  mu ~ normal(0.3, 1);\n", "")
MEAN, VARIANCE = 0.9, 0.3
LAW = gaussian(np.array([MEAN]), np.array([[VARIANCE]]))
SHORT = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])


def log_evidence(data: Any) -> float:
    """Return the exact log evidence of the hierarchical model with `LAW` as the law of mu."""
    covariance = np.diag(ERROR**2 + 0.7**2) + VARIANCE
    return float(stats.multivariate_normal(np.full(3, MEAN), covariance).logpdf(data["y"]))


# Every transform that can be replaced; mu and tau have priors, w only its bounds, shift an affine map.
TRANSFORMS = """data {
  vector[3] y;
  real high;
  vector[2] top;
}
parameters {
  real<lower=-1, upper=high> mu;
  vector<lower=0, upper=top>[2] w;
  real<lower=0> tau;
  real<upper=high> cap;
  real<offset=1, multiplier=3> shift;
  vector[3] theta;
}
model {
  mu ~ normal(0, 1); target += exponential_lpdf(tau | 1);
  for (i in 1 : 1) cap ~ normal(mu,
    2);
  shift ~ normal(mu, 1);
  theta ~ normal(mu + shift, 1 + tau);
  y ~ normal(theta, 1 + sum(w));
}
"""
NAMES = ("mu", "w", "tau", "cap", "shift")


@functools.cache
def transforms() -> StanModel:
    data = {"y": [0.2, 1.4, -0.3], "high": 2.5, "top": [1.5, 3.0]}
    return opened(TRANSFORMS, data, observed="y", simulate_from="localised", hyperparameters=NAMES)


@functools.cache
def flat() -> StanModel:
    return opened(FLAT, DATA, simulate_from="localised")


# ---- densities -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_density_by_hand_through_every_transform() -> None:
    model = transforms()
    rng = default_rng(1)
    reference = MixtureReference(
        (
            Component(rng.normal(size=6), np.full(6, 0.8), matrix=np.eye(6) + 0.1 * rng.normal(size=(6, 6))),
            Component(rng.normal(size=6), np.full(6, 1.1), degrees=np.array([5.0, *[np.inf] * 5])),
        ),
        np.array([0.4, 0.6]),
    )
    localised = model.localise(NAMES, reference)
    posterior = localised.condition(model.info.data.observed)
    states, step = rng.normal(size=(8, 9)), 1e-5

    def exact(states: np.ndarray) -> np.ndarray:
        u, theta = states[:, :6], states[:, 6:]
        mu = -1 + 3.5 * special.expit(u[:, 0])
        mean, scale = mu + 1 + 3 * u[:, 5], 1 + np.exp(u[:, 3])
        return reference.log_density(u) + stats.norm.logpdf(theta, mean[:, None], scale[:, None]).sum(axis=1)

    def likelihood(states: np.ndarray) -> np.ndarray:
        w = np.array([1.5, 3.0]) * special.expit(states[:, 1:3])
        return stats.norm.logpdf([0.2, 1.4, -0.3], states[:, 6:], 1 + w.sum(axis=1, keepdims=True)).sum(axis=1)

    log_prior, log_likelihood, _ = posterior.instance.terms(states)
    np.testing.assert_allclose(log_prior, exact(states), rtol=1e-11)
    np.testing.assert_allclose(log_likelihood, likelihood(states), rtol=1e-11)
    gradient = posterior.instance.gradient(states[0], 0.4)[2]
    near = np.concatenate([states[0] + step * np.eye(9), states[0] - step * np.eye(9)])
    values = exact(near) + 0.4 * likelihood(near)
    np.testing.assert_allclose(gradient, (values[:9] - values[9:]) / (2 * step), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_positions_and_transforms() -> None:
    info = transforms().info
    assert info.layout.transformed is not None
    assert info.layout.transformed.tolist() == [True, True, True, True, True, False, False, False, False]
    assert info.layout.positions["w"].tolist() == [1, 2] and info.layout.positions["theta"].tolist() == [6, 7, 8]
    assert info.layout.hyperparameters == NAMES


@pytest.mark.slow
def test_the_rewritten_program_keeps_its_lines() -> None:
    localised = transforms().localise(NAMES, diagonal(np.zeros(6), np.ones(6)))
    notes = localised.info.identity.notes
    assert sum(note.startswith("Localised: the law of mu, w, tau, cap, shift") for note in notes) == 1
    assert any("mean gradients" in note for note in notes)


# ---- exact draws and evidence --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("is_flat", [pytest.param(False, id="proper"), pytest.param(True, id="flat")])
def test_evidence_and_identities_are_those_of_the_new_law(is_flat: bool) -> None:
    model = flat() if is_flat else conjugate("hierarchical")
    assert model.info.layout.hyperparameters == ("mu",)
    localised = cloudpickle.loads(cloudpickle.dumps(model.localise(("mu",), LAW)))
    kernel = tuned_kernel(localised)
    check_evidence(localised, kernel, log_evidence=log_evidence, n_temperatures=64)
    check_forward_reverse_identities(localised, kernel, SHORT, log_evidence=log_evidence, n_simulations=300)
    # negative control: the evidence under the prior that was replaced, or is missing, is another
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(
            localised, kernel, SHORT, log_evidence=CONJUGATE["hierarchical"].log_evidence, n_simulations=300
        )


@pytest.mark.slow
@pytest.mark.statistical
def test_simulations_follow_the_new_law() -> None:
    """Both tests at level 1e-3; draw i depends on its own seed alone."""
    localised = flat().localise(("mu",), LAW)
    simulations = localised.simulate(1000, fixed=None, seed=SeedSequence(1))
    assert stats.kstest(simulations.parameters["mu"], stats.norm(MEAN, VARIANCE**0.5).cdf).pvalue > 1e-3
    scale = np.sqrt(ERROR**2 + 0.7**2 + VARIANCE)
    z = (simulations.data["y"] - MEAN) / scale
    assert stats.kstest(z[:, 0], "norm").pvalue > 1e-3
    assert stats.kstest(z[:, 0] + 0.2, "norm").pvalue < 1e-3  # negative control
    fewer = localised.simulate(2, fixed=None, seed=SeedSequence(1))
    np.testing.assert_array_equal(fewer.states, simulations.states[:2])
    np.testing.assert_array_equal(fewer.data["y"], simulations.data["y"][:2])


@pytest.mark.slow
def test_another_law_than_the_simulators_is_caught() -> None:
    """Negative control of the proof that every localised model passes."""
    localised = conjugate("hierarchical").localise(("mu",), LAW)
    other = replace(localised.draws.simulator, reference=gaussian(np.array([MEAN + 0.7]), np.array([[VARIANCE]])))
    with pytest.raises(UnsupportedModelError, match=r"mean gradient of the log prior with respect to '(mu|theta.\d)'"):
        draws = StateDraws(other, localised.instance, localised.draws.edged)
        proof.prove_simulator(localised.program, draws, localised.condition_instance)


# bread derives no simulator: the variate is transformed. Both statements are the law of s alone.
TRANSFORMED = """data {
  int N;
  vector[N] y;
}
parameters {
  real<lower=0> s;
}
model {
  log(s) ~ normal(0, 1);
  target += -log(s);
  y ~ normal(0, s);
}
"""


def lognormal(rng: Generator, data: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> Any:
    s = np.exp(rng.normal()) if fixed is None else fixed["s"]
    return {"s": s}, {"y": rng.normal(0, s, data["N"])}


@pytest.mark.slow
def test_a_simulator_of_the_users_holds_the_named_parameters() -> None:
    options: dict[str, Any] = {"data": {"N": 3, "y": [0.5, -1.0, 0.2]}, "likelihood": [11], "observed": "y"}
    model = opened(TRANSFORMED, simulator=lognormal, simulate_from="localised", **options)
    law = diagonal(np.array([0.4]), np.array([0.3]))
    localised = model.localise(("s",), law)
    states = np.array([[0.3], [-0.8]])
    np.testing.assert_allclose(localised.instance.terms(states)[0], law.log_density(states), rtol=1e-12)
    assert "mean gradients" in localised.info.identity.notes[-1]

    def without_fixed(rng: Generator, data: Mapping[str, Any]) -> Any:
        return lognormal(rng, data)

    with pytest.raises(InvalidArgumentError, match="cannot hold the hyperparameter 's'"):
        opened(TRANSFORMED, simulator=without_fixed, simulate_from="localised", **options)


# ---- the rewriting -------------------------------------------------------------------------------------------

PROGRAM = """data {{ int N; vector[N] y; }}
parameters {{ real mu; real<lower=0> tau; vector[N] theta; }}
model {{
  {body}
}}
"""


def rewritten(body: str) -> str:
    program = analyse_text(PROGRAM.format(body=body), observed=["y"])
    assert program.split_refusal is None, program.split_refusal
    text, _ = rewrite(program, ("mu", "tau"))
    assert text.count("\n") == program.source.text.count("\n")
    assert stanc(text, "--O1", "--allow-undefined").returncode == 0
    return text[text.index("model {") :].split("generated quantities", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("body", "gone", "kept"),
    [
        ("mu ~ normal(0, 1); theta ~ normal(mu, tau); y ~ normal(theta, 1);", ["mu ~"], ["theta ~"]),
        (
            "target += normal_lpdf(mu | 0, 1) + exponential_lpdf(tau | 1); theta ~ normal(mu, tau);"
            " y ~ normal(theta, 1);",
            ["normal_lpdf(mu", "exponential"],
            ["theta ~"],
        ),
        (
            "mu ~ normal(0, tau); target += normal_lpdf(theta | mu, tau) + normal_lpdf(y | theta + mu, 1);",
            ["mu ~"],
            ["normal_lpdf(theta | mu, tau)", "bread_temper(normal_lpdf(y | theta + mu, 1))"],
        ),
        (
            "if (N > 2) mu ~ normal(0, 1); theta ~ normal(mu, tau); y ~ normal(theta, 1);",
            ["mu ~"],
            ["if (N > 2) ;", "theta ~"],
        ),
    ],
)
def test_only_the_law_of_the_named_parameters_is_left_out(body: str, gone: list[str], kept: list[str]) -> None:
    text = rewritten(body)
    assert all(piece not in text for piece in gone) and all(piece in text for piece in kept), text


@pytest.mark.parametrize(
    "body",
    [
        "target += normal_lpdf(mu | 0, 1) + normal_lpdf(theta | mu, 1); y ~ normal(theta, 1);",
        "mu ~ normal(0, 1); theta ~ std_normal(); tau ~ normal(mean(theta), 1); y ~ normal(theta, tau);",
        "target += normal_lpdf(mu | 0, 1) + normal_lpdf(theta | mu, 1) + normal_lpdf(y | theta, tau);",
    ],
)
def test_laws_that_cannot_be_told_apart(body: str) -> None:
    with pytest.raises(RefusedError, match=r"cannot be told from|depends on other parameters"):
        rewritten(body)


# ---- refusals ------------------------------------------------------------------------------------------------


def test_a_flat_prior_still_has_no_draws_of_its_own() -> None:
    with pytest.raises(UnsupportedModelError, match="'mu' has no prior.*Or use simulate_from='posterior', which takes"):
        opened(FLAT, DATA, simulate_from="fitted")
    with pytest.raises(UnsupportedModelError, match="'mu' has no prior.*Or use simulate_from='localised', which takes"):
        opened(FLAT, DATA, simulate_from="fitted", hyperparameters=("mu",))
    assert any("density of the original one" in note for note in flat().info.identity.notes)
    with pytest.raises(InvalidArgumentError, match="names must hold 'mu'"):
        flat().localise(("theta",), diagonal(np.zeros(3), np.ones(3)))


def test_localising_is_no_way_out_where_it_is_not() -> None:
    ordered = FLAT.replace("real mu;", "array[1] ordered[3] mu;").replace("normal(mu,", "normal(mu[1],")
    with pytest.raises(UnsupportedModelError, match=r"'mu' has no prior.*the scale is yours to choose\.$"):
        opened(ordered, DATA, simulate_from="fitted", hyperparameters=("mu",))


def noisy_program() -> str:
    """A program with a prior of mu, and none of its noise."""
    noisy = FLAT.replace("real mu;", "real mu; real<lower=0> noise;").replace(
        "y ~ normal(theta, ", "y ~ normal(theta, noise + "
    )
    return noisy.replace("  theta ~", "  mu ~ normal(0, 1);\n  theta ~")


@pytest.mark.slow
def test_what_has_no_prior_is_localised_with_the_hyperparameters() -> None:
    model = opened(noisy_program(), DATA, simulate_from="localised")
    assert model.info.layout.hyperparameters == ("mu", "noise")


def test_what_has_no_prior_must_be_among_the_hyperparameters() -> None:
    with pytest.raises(UnsupportedModelError, match="'noise' has no prior"):
        opened(noisy_program(), DATA, simulate_from="localised", hyperparameters=("mu",))


@pytest.mark.parametrize(
    ("names", "size", "kind", "match"),
    [
        (("theta",), 3, UnsupportedModelError, r"line 11: .*the law of 'theta' depends on other parameters"),
        (("nu",), 1, InvalidArgumentError, "names .nu., which is no parameter of the program; it has mu, theta"),
        (("mu",), 2, InvalidArgumentError, "density of 2 coordinates; here it must be one of 1"),
    ],
)
def test_laws_that_cannot_be_replaced(names: Any, size: int, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        conjugate("hierarchical").localise(names, diagonal(np.zeros(size), np.ones(size)))


COVARIANCE = """data { int n; array[n] vector[2] y; }
parameters { vector[2] mu; cov_matrix[2] S; }
model { mu ~ normal(0, 1); S ~ inv_wishart(4, identity_matrix(2)); y ~ multi_normal(mu, S); }
"""


@pytest.mark.parametrize(
    ("program", "names"),
    [(COVARIANCE, ("S",)), (COVARIANCE.replace("S ~ inv_wishart(4, identity_matrix(2));", ""), None)],
)
def test_laws_that_cannot_be_replaced_are_refused_before_anything_is_compiled(
    program: str, names: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(*arguments: Any, **settings: Any) -> None:
        raise AssertionError("nothing is compiled")

    monkeypatch.setattr("bread.backends.stan.open.StanLibrary.of", compiled)
    data = {"n": 3, "y": np.zeros((3, 2))}
    with pytest.raises(
        UnsupportedModelError, match="Leave 'S' out of .* a proper prior of its own; otherwise give it one"
    ):
        opened(program, data, simulate_from="localised", hyperparameters=names)
    with pytest.raises(AssertionError, match="nothing is compiled"):  # control: the rest may be localised
        opened(COVARIANCE, data, simulate_from="localised", hyperparameters=("mu",))


REJECTING = """data { vector[2] y; }
parameters {
  real mu;
  vector<lower=0>[2] theta;
  simplex[2] p;
}
model {
  mu ~ std_normal();
  theta ~ normal(mu, 1);
  y ~ normal(theta .* p, 1);
}
"""


@pytest.mark.slow
def test_laws_normalised_only_up_to_a_function_of_the_named_parameters() -> None:
    model = opened(REJECTING, {"y": [0.3, 1.2]}, observed="y")
    with pytest.raises(UnsupportedModelError, match="drawn by rejection"):
        model.localise(("mu",), LAW)
    with pytest.raises(UnsupportedModelError, match=r"'p' is a simplex, whose transform"):
        model.localise(("p",), diagonal(np.zeros(1), np.ones(1)))
