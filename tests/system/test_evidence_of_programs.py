"""`bread.evidence` of PyMC and Stan, where the evidence is known and the prior's density lacks a constant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import bread
from tests.support.stan_conjugate import toolchain

pytestmark = pytest.mark.slow

Y = np.array([0.3, -1.4, 0.8, 2.1, -0.6])
QUICK = {"cores": 1, "progressbar": False, "random_seed": 4, "tune": 100, "simulations": 12, "draws": 400}

HALF_NORMAL = """data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real<lower=0> tau;
}
model {
  tau ~ normal(0, 2);
  y ~ normal(0, tau);
}
"""


def half_normal_evidence() -> float:
    """Integrate over tau ~ half-normal(2), y ~ normal(0, tau)."""

    def density(tau: float) -> float:
        return float(stats.halfnorm(scale=2.0).pdf(tau) * np.exp(stats.norm(0.0, tau).logpdf(Y).sum()))

    return float(np.log(quad(density, 1e-6, 30.0, points=[1.0, 3.0], epsabs=1e-14)[0]))


def assert_holds(found: bread.Evidence, truth: float) -> None:
    """The interval, or the lower bound with an estimate near by, holds the truth; log 2 more or less does not."""
    assert found.kind != "none", found.sentence()
    assert found.lower <= truth <= found.upper, found.sentence()
    assert abs(found.log_evidence - truth) < 0.2, found.sentence()


def assert_paths(model: object, temperatures: dict[str, int], log_constant: float, **options: object) -> None:
    truth = half_normal_evidence()
    for path, n_temperatures in temperatures.items():
        report = bread.check(model, path=path, simulate_from="prior", n_temperatures=n_temperatures, **options, **QUICK)
        found = bread.evidence(report)
        assert_holds(found, truth)
        with pytest.raises(AssertionError):  # the density as it is written
            assert_holds(found, truth + log_constant)
        if path == "reference":
            assert found.kind == "interval", found.sentence()


@pytest.mark.stan
def test_a_half_normal_scale_of_stan_along_both_paths() -> None:
    """Stan's density lacks log 2."""
    toolchain()
    assert_paths(HALF_NORMAL, {"prior": 64, "reference": 8}, -np.log(2.0), data={"N": 5, "y": Y}, observed=["y"])


def test_a_half_normal_scale_of_pymc_along_both_paths() -> None:
    """PyMC's density has it."""
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        pm.Normal("y", 0.0, pm.HalfNormal("tau", 2.0), observed=Y)
    assert_paths(model, {"prior": 64, "reference": 8}, -np.log(2.0))


def test_a_constant_that_nobody_can_integrate_leaves_no_evidence_on_a_reference_path() -> None:
    """A distribution of the user's whose density lacks log 2, which only its transform cuts at 0."""
    pm = pytest.importorskip("pymc")

    def logp(value, sd):  # type: ignore[no-untyped-def]
        return pm.logp(pm.Normal.dist(0.0, sd), value)

    def random(sd, rng=None, size=None):  # type: ignore[no-untyped-def]
        return np.abs(rng.normal(0.0, sd, size=size))

    log = pm.distributions.transforms.log
    with pm.Model() as model:
        tau = pm.CustomDist("tau", 2.0, logp=logp, random=random, transform=log, initval=1.0)
        pm.Normal("y", 0.0, tau, observed=Y)
    report = bread.check(model, path="reference", simulate_from="prior", n_temperatures=4, **QUICK)
    found = bread.evidence(report)
    assert found.log_evidence == pytest.approx(half_normal_evidence() - np.log(2.0), abs=0.3)
    assert found.kind == "none" and "density of tau" in found.sentence()
