"""Conjugate models in Stan against exact log evidence, and against the same models in PyMC.

The table of `test_pymc_evidence`, with three models more whose posteriors are asymmetric. Tolerances are standard
errors over simulations, with fixed seeds.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence
from scipy import stats
from scipy.special import gammaln

from bread.backends import open_model
from bread.backends.base import Kernel, Model, OpenOptions
from bread.backends.stan.model import StanModel
from bread.statistics.bounds.bounds import simulation_gaps
from bread.statistics.bounds.intervals import mean_interval
from tests.support.annealed_pools import PATH
from tests.support.conformance import assert_mean, check_evidence, check_gap_rate, tuned_kernel
from tests.support.stan_conjugate import CONJUGATE, NORMAL_MEAN, Conjugate, opened

pytestmark = [pytest.mark.stan, pytest.mark.statistical, pytest.mark.slow]

# The law of a Poisson rate is a skewed gamma; Stan and PyMC both move its logarithm.
GAMMA_POISSON = """data {
  array[3] int<lower=0> y;
}
parameters {
  real<lower=0> rate;
}
model {
  rate ~ gamma(1.5, 0.5);
  for (n in 1 : 3) {
    target += poisson_lpmf(y[n] | rate);
  }
}
"""

NORMAL_VARIANCE = """data {
  vector[4] y;
}
parameters {
  real<lower=0> variance;
}
model {
  variance ~ inv_gamma(3, 2);
  y ~ normal(0.5, sqrt(variance));
}
"""

DIRICHLET_CATEGORICAL = """data {
  array[6] int<lower=1, upper=3> y;
}
parameters {
  simplex[3] share;
}
model {
  share ~ dirichlet([0.8, 2, 3]');
  for (n in 1 : 6) {
    y[n] ~ categorical(share);
  }
}
"""


def _gamma_poisson(data: Any) -> float:
    y = np.asarray(data["y"])
    shape, rate = 1.5 + y.sum(), 0.5 + len(y)
    return float(1.5 * np.log(0.5) - gammaln(1.5) + gammaln(shape) - shape * np.log(rate) - gammaln(y + 1).sum())


def _normal_variance(data: Any) -> float:
    """Normal data under an inverse gamma law of their variance: independent of the mean, a multivariate t law."""
    law = stats.multivariate_t(np.full(4, 0.5), shape=2 / 3 * np.eye(4), df=6)
    return float(law.logpdf(np.asarray(data["y"])))


def _dirichlet_categorical(data: Any) -> float:
    prior, counts = np.array([0.8, 2.0, 3.0]), np.bincount(np.asarray(data["y"]), minlength=4)[1:]
    return float(
        gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum()) + (gammaln(prior + counts) - gammaln(prior)).sum()
    )


MODELS = {
    **CONJUGATE,
    "gamma-poisson": Conjugate(GAMMA_POISSON, {"y": np.array([2, 7, 4])}, _gamma_poisson),
    "normal variance": Conjugate(NORMAL_VARIANCE, {"y": np.array([0.1, 1.2, -0.4, 2.0])}, _normal_variance),
    "dirichlet-categorical": Conjugate(
        DIRICHLET_CATEGORICAL, {"y": np.array([1, 3, 2, 3, 3, 2])}, _dirichlet_categorical
    ),
}


@functools.cache
def tuned(name: str) -> tuple[StanModel, Kernel]:
    """Return a model and its frozen kernel."""
    model = opened(MODELS[name].text, MODELS[name].data)
    return model, tuned_kernel(model)


# ---- the sandwich --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODELS))
def test_exact_evidence_is_inside_the_sandwich(name: str) -> None:
    """T = 512, 4 chains, 20 simulations, 3 standard errors."""
    model, kernel = tuned(name)
    check_evidence(model, kernel, log_evidence=MODELS[name].log_evidence)


@pytest.mark.parametrize("name", ["regression", "gamma-poisson", "beta-binomial"])
def test_gap_falls_as_one_over_the_number_of_temperatures(name: str) -> None:
    """Slope of log B against log T: -1 within 3 standard errors and the curvature that is left at T = 16 to 128."""
    check_gap_rate(*tuned(name))


# A density without its constants: the score test cannot see that, because gradients are right.
UNNORMALISED = NORMAL_MEAN.replace("y ~ normal(mu, 1.2);", "target += -0.5 * sum(square((y - mu) / 1.2));")


def _simulate(rng: Generator, data: Mapping[str, Any]) -> Any:
    mu = rng.normal(0.5, 1.5)
    return {"mu": mu}, {"y": rng.normal(mu, 1.2, data["N"])}


def test_a_density_without_its_constants_is_rejected() -> None:
    """Negative control: the likelihood lacks N log(1.2 sqrt(2 pi)) = 3.3 nats."""
    case = MODELS["normal mean"]
    model = opened(UNNORMALISED, case.data, observed="y", simulator=_simulate)
    with pytest.raises(AssertionError, match="wrong side of the upper end|wrong side of the lower end"):
        check_evidence(model, tuned_kernel(model), log_evidence=case.log_evidence)


# ---- both PPLs -----------------------------------------------------------------------------------------------


def _pymc_gamma_poisson() -> Any:
    import pymc as pm

    with pm.Model() as model:
        rate = pm.Gamma("rate", 1.5, 0.5)
        pm.Poisson("y", rate, observed=np.array([2, 7, 4]))
    return model


def pymc_model(name: str) -> Model:
    """Return the same model in PyMC; skip without PyMC."""
    pytest.importorskip("pymc")
    from tests.support.pymc_conjugate import MODELS

    if name == "gamma-poisson":
        return open_model(_pymc_gamma_poisson(), OpenOptions())
    return open_model(MODELS[name.replace(" ", "_").replace("-", "_")][0](), OpenOptions())


def gaps(model: Model, kernel: Kernel, states: np.ndarray, data: list[Any], betas: np.ndarray, seed: int) -> np.ndarray:
    """Return the gap of each data set: 2 chains each way, the reverse ones from the exact draw and from near it."""
    result = []
    children = SeedSequence(seed).spawn(len(data))
    for state, one, child in zip(states, data, children, strict=True):
        begin, start, *chains = child.spawn(6)
        posterior = model.condition(one)
        exact = posterior.evolve(PATH, kernel, 1.0, state, (0, 5), begin).states
        first = posterior.draw_base(PATH, start.spawn(2))
        weights = [
            posterior.anneal(PATH, betas, kernel, direction=direction, initial=own, seeds=seeds).log_weight[None]
            for direction, own, seeds in (("forward", first, chains[:2]), ("reverse", exact, chains[2:]))
        ]
        result.append(simulation_gaps(*weights)[0])
    return np.array(result)


def check_agreement(name: str, stan: StanModel, kernel: Kernel, n_errors: float = 4.0) -> None:
    """B of Stan and of PyMC on 200 data sets that PyMC simulates, at the same 6 inverse temperatures.

    Differences are paired by data set: their mean is 0 within 4 standard errors, and the 95 % intervals of B overlap.
    """
    model = pymc_model(name)
    simulations = model.simulate(200, fixed=None, seed=SeedSequence(81))
    data = [simulations.data_of(row) for row in range(len(simulations))]
    betas = np.linspace(0.0, 1.0, 6) ** 2
    names = stan.instance.names("parameters")
    states = stan.instance.unconstrain({one: simulations.parameters[one] for one in names})
    by_stan = gaps(stan, kernel, states, data, betas, 82)
    by_pymc = gaps(model, tuned_kernel(model), simulations.states, data, betas, 83)
    difference = by_stan - by_pymc
    assert_mean(difference, 0.0, n_errors, f"B of Stan less B of PyMC ({by_stan.mean():.3g}, {by_pymc.mean():.3g})")
    assert by_pymc.mean() > 5 * difference.std(ddof=1) / np.sqrt(len(difference)), "B is too small to compare"
    one, other = mean_interval(by_stan, 0.95), mean_interval(by_pymc, 0.95)
    assert one[1] < other[2] and other[1] < one[2], f"the intervals do not overlap: {one}, {other}"


@pytest.mark.pymc
@pytest.mark.parametrize("name", ["normal mean", "regression", "hierarchical", "beta-binomial", "gamma-poisson"])
def test_stan_and_pymc_agree_on_the_bound(name: str) -> None:
    check_agreement(name, *tuned(name))


@pytest.mark.pymc
def test_another_model_has_another_bound() -> None:
    """Negative control: Stan's model has a noise of 0.7 instead of 1.2."""
    stan = opened(NORMAL_MEAN.replace("normal(mu, 1.2)", "normal(mu, 0.7)"), MODELS["normal mean"].data)
    with pytest.raises(AssertionError, match="B of Stan less B of PyMC"):
        check_agreement("normal mean", stan, tuned_kernel(stan))
