"""What priors integrate to: named, exact, and counted on every path; and another law than the simulator's refused."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence
from scipy import integrate, stats

from bread.backends.stan.model import StanModel
from bread.backends.stan.normalising import compare, compare_priors
from bread.errors import UnsupportedModelError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from tests.support.conformance import assert_mean, tuned_kernel
from tests.support.stan_conjugate import conjugate, eight_schools, opened

pytestmark = [pytest.mark.stan]

# Every way in which a program leaves a constant out.
CONSTANTS = """data {
  int N;
  vector[N] y;
}
parameters {
  real<lower=0> half;
  real<lower=1> tail;
  real<lower=0, upper=0.5> share;
  real<lower=-1, upper=3> flat;
  real<upper=1> below;
  real<lower=-1, upper=0.5> cut;
  ordered[3] order;
  simplex[3] corner;
  real<lower=-1, upper=1> moved;
  real<lower=0> whole;
  vector<lower=0>[2] pair;
}
model {
  half ~ normal(0, 5);
  tail ~ gamma(2, 1);
  share ~ beta(2, 3);
  below ~ student_t(4, 0, 2);
  cut ~ uniform(-2, 1);
  order ~ normal(0, 1);
  (moved + 1) / 2 ~ beta(2, 2);
  whole ~ lognormal(0, 1);
  pair ~ normal(1, whole);
  target += 0.25;
  y ~ normal(half + tail + share + flat + below + cut + sum(order) + corner[1] + moved + sum(pair), 1);
}
"""
EXPECTED = {
    "half": np.log(0.5),
    "tail": stats.gamma(2).logsf(1),
    "share": stats.beta(2, 3).logcdf(0.5),
    "flat": np.log(4),
    "below": stats.t(4, 0, 2).logcdf(1),
    "cut": np.log(0.5),
    "order": -np.log(6),
    "corner": -np.log(2),  # the volume of the triangle
    "moved": np.log(2),
}
SCALE = """data {
  int N;
  vector[N] y;
}
parameters {
  real<lower=0> tau;
}
model {
  tau ~ normal(0, 1.5);
  y ~ normal(0.4, tau);
}
"""
Y = np.array([0.9, -1.4, 1.1, 2.3])


@pytest.mark.slow
def test_every_constant_is_named() -> None:
    """All are exact but one: bounds that cut off a share which depends on `whole` reject draws as a whole."""
    model = opened(CONSTANTS, {"N": 2, "y": [5.0, 6.0]}, observed="y")
    note = next(note for note in model.info.identity.notes if "integrates to" in note)
    for name, value in EXPECTED.items():
        assert f"{name} {value:+.4g}" in note, (name, value, note)
    assert ", whole " not in note and ", pair " not in note and "constant terms +0.25" in note
    inside, _ = integrate.quad(lambda z: stats.norm.pdf(z) * stats.norm.sf(-np.exp(-z)) ** 2, -8, 8, epsabs=1e-10)
    rest = sum(EXPECTED.values()) + 0.25
    assert model.log_integral == pytest.approx(rest + np.log(inside), abs=4 * np.sqrt((1 - inside) / 5000))
    assert model.log_integral != pytest.approx(rest, abs=0.1)  # negative control: without the share


# ---- evidence --------------------------------------------------------------------------------------------------


@functools.cache
def scale() -> StanModel:
    return opened(SCALE, {"N": len(Y), "y": Y}, observed="y")


def log_evidence() -> float:
    def density(tau: float) -> float:
        return float(2 * stats.norm.pdf(tau, 0, 1.5) * np.exp(stats.norm.logpdf(Y, 0.4, tau).sum()))

    return float(np.log(integrate.quad(density, 0, 40, epsabs=0, epsrel=1e-10, points=[1, 3])[0]))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("path", [PriorPath(), ReferencePath(diagonal(np.array([0.3]), np.array([0.5])))], ids=repr)
def test_evidence_is_the_same_number_along_every_path(path: Path) -> None:
    """Forward weights average to the evidence, by quadrature, within 4 standard errors of 400 chains."""
    model = scale()
    posterior, kernel = model.condition(model.info.data.observed), tuned_kernel(model)
    assert posterior.log_integral == pytest.approx(np.log(0.5), abs=1e-12)
    children = SeedSequence(3).spawn(800)
    start = posterior.draw_base(path, children[:400])
    betas = np.linspace(0, 1, 9) ** 2
    run = posterior.anneal(path, betas, kernel, direction="forward", initial=start, seeds=children[400:])
    assert_mean(np.exp(run.log_weight - log_evidence()), 1.0, 4.0, "evidence")
    raw = replace(posterior, log_integral=0.0)  # negative control: the density as the program states it
    other = raw.anneal(path, betas, kernel, direction="forward", initial=start, seeds=children[400:])
    if path.reference is None:
        np.testing.assert_allclose(other.log_weight, run.log_weight)
    else:
        assert np.exp(other.log_weight - log_evidence()).mean() == pytest.approx(0.5, abs=0.05)


def test_densities_of_a_posterior_are_normalised_alike() -> None:
    model = scale()
    posterior = model.condition(model.info.data.observed)
    states = np.array([[-0.3], [0.4]])
    tau = np.exp(states[:, 0])
    prior = np.log(2) + stats.norm.logpdf(tau, 0, 1.5) + states[:, 0]
    joint = prior + stats.norm.logpdf(Y[:, None], 0.4, tau).sum(axis=0)
    reference = ReferencePath(diagonal(np.array([0.3]), np.array([0.5])))
    for path in (PriorPath(), reference):
        np.testing.assert_allclose(posterior.log_density(path, states), joint, rtol=1e-12)
        assert posterior.end_gradient(path, states[0])[0] == pytest.approx(joint[0], rel=1e-12)
    assert reference.reference is not None
    np.testing.assert_allclose(
        posterior.log_ratio(reference, states), joint - reference.reference.log_density(states), rtol=1e-12
    )
    np.testing.assert_allclose(posterior.density_gradient(0.0, states)[0], prior, rtol=1e-12)


# ---- the comparison ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nats", [-2.0, 1e-4, -np.inf])
def test_a_constant_in_one_branch_is_refused(nats: float) -> None:
    """What ``if (mu < 0) target += nats;`` would do to the program's log prior, and nothing to gradients."""
    model = eight_schools()
    states, joint = model.draws.draw_parameters(200, SeedSequence(1))
    stated = model.instance.constrained_prior(states)
    right = compare(states, joint, joint.log_prior, stated, lambda row: model.instance, model.program.drawn)
    assert right.log_integral == pytest.approx(np.log(0.5), abs=1e-12) and right.error == 0.0
    wrong = stated + np.where(joint.parameters["mu"] < 0, nats, 0.0)
    with pytest.raises(UnsupportedModelError, match="the difference must be one constant"):
        compare(states, joint, joint.log_prior, wrong, lambda row: model.instance, model.program.drawn)


@pytest.mark.parametrize("log_tau", [-738.0, -700.0])
def test_a_value_below_the_normal_numbers_is_no_comparison(log_tau: float) -> None:
    """One of 5000 draws of a log-normal law with a half-Cauchy scale: Stan takes log(2e-308) for its logarithm."""
    model = eight_schools()
    states, joint = model.draws.draw_parameters(200, SeedSequence(1))
    (place,) = model.info.layout.positions["tau"]
    states[7, place] = log_tau
    tau = model.instance.constrain(states[7:8])["tau"][0]
    assert tau > 0.0 and (tau < np.finfo(float).tiny) == (log_tau == -738.0)
    stated = model.instance.constrained_prior(states)
    stated[7] += 29.7
    arguments = (states, joint, joint.log_prior, stated, lambda row: model.instance, model.program.drawn)
    if log_tau == -738.0:
        assert "At 1 more rounding hides it" in compare(*arguments).notes[0]
    else:  # control
        with pytest.raises(UnsupportedModelError, match="the difference must be one constant"):
            compare(*arguments)


def test_a_normalised_prior_integrates_to_one() -> None:
    model = conjugate("hierarchical")
    assert abs(model.log_integral) < 1e-12
    assert not any("integrates to" in note for note in model.info.identity.notes)
    assert len(compare_priors(model.draws, model.program.drawn).notes) == 1


# A density of zero where the user's own simulator draws.
NOWHERE = """data {
  int N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, 1);
  if (mu < 0) {
    target += negative_infinity();
  }
  y ~ normal(mu, 1);
}
"""


def _anywhere(rng: Generator, data: Any) -> Any:
    mu = rng.normal()
    return {"mu": mu}, {"y": rng.normal(mu, 1, data["N"])}


@pytest.mark.slow
def test_draws_of_density_zero_are_drawn_again() -> None:
    model = opened(NOWHERE, {"N": 2, "y": [0.3, 1.0]}, observed="y", simulator=_anywhere)
    notes = "\n".join(model.info.identity.notes)
    assert "density zero" in notes and "What the prior integrates to is not known" in notes
    simulations = model.simulate(200, fixed=None, seed=SeedSequence(2))
    mu = simulations.parameters["mu"]
    assert (mu > 0).all()
    assert stats.kstest(mu, stats.halfnorm().cdf).pvalue > 1e-3
    assert stats.kstest(mu, "norm").pvalue < 1e-3  # negative control
