"""NumPyro models with exact answers, and some that must be refused. Only for tests that have looked for NumPyro."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import random
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from scipy.stats import multivariate_normal

Y = np.array([0.4, 1.9, 1.1])
MEAN, SD, NOISE = 0.5, 1.5, 1.2


def normal_mean(y: Any = None) -> None:
    mu = numpyro.sample("mu", dist.Normal(MEAN, SD))
    with numpyro.plate("i", len(Y)):
        numpyro.sample("y", dist.Normal(mu, NOISE), obs=y)


def with_scale(y: Any) -> None:
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), sigma).expand([3]), obs=y)


def log_evidence(data: Any) -> float:
    """Exact: y is normal with mean MEAN and covariance NOISE^2 I + SD^2."""
    covariance = NOISE**2 * np.eye(len(Y)) + SD**2
    return float(multivariate_normal(np.full(len(Y), MEAN), covariance).logpdf(data["y"]))


def posterior_moments(y: np.ndarray) -> tuple[float, float]:
    """Exact mean and standard deviation of mu."""
    precision = 1 / SD**2 + len(y) / NOISE**2
    return (MEAN / SD**2 + y.sum() / NOISE**2) / precision, precision**-0.5


class DrawnTooWide(dist.Normal):
    """Planted defect: the simulator draws with 1.5 times the scale that the density has."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return self.loc + 1.5 * (super().sample(key, sample_shape) - self.loc)


class DenseTooNarrow(dist.Normal):
    """Planted defect: the density has two thirds of the scale that the simulator draws with."""

    def log_prob(self, value: Any) -> Any:
        return dist.Normal(self.loc, self.scale / 1.5).log_prob(value)


def with_law(law: Any) -> Any:
    """Return the conjugate model with another law of the data."""

    def model(y: Any = None) -> None:
        mu = numpyro.sample("mu", dist.Normal(MEAN, SD))
        with numpyro.plate("i", len(Y)):
            numpyro.sample("y", law(mu, NOISE), obs=y)

    return model


def transformed(y: Any) -> None:
    """A scale, a simplex, a correlation matrix and a hierarchy: Jacobians of every kind of map."""
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    share = numpyro.sample("share", dist.Dirichlet(jnp.array([2.0, 3.0, 4.0])))
    corr = numpyro.sample("corr", dist.LKJCholesky(2, 2.0))
    with numpyro.plate("group", 3):
        theta = numpyro.sample("theta", dist.Normal(0.0, tau))
    rate = numpyro.deterministic("rate", theta + share)
    numpyro.sample("y", dist.Normal(rate + corr[1, 0], 1.0).to_event(1), obs=y)


# ---- refused, by what the message must say ------------------------------------------------------------------------


def _like(mu: Any, y: Any) -> None:
    numpyro.sample("y", dist.Normal(mu, 1.0).expand([3]), obs=y)


def discrete(y):
    _like(numpyro.sample("k", dist.Bernoulli(0.5)), y)


def factor(y):
    mu = numpyro.sample("mu", dist.Normal())
    numpyro.factor("extra", -(mu**2))
    _like(mu, y)


def improper(y):
    _like(numpyro.sample("mu", dist.ImproperUniform(dist.constraints.real, (), ())), y)


def unrelated(y):
    _like(numpyro.sample("mu", dist.Normal()), y)
    numpyro.sample("z", dist.Normal(0.0, 1.0), obs=1.0)


def subsampled(y):
    mu = numpyro.sample("mu", dist.Normal())
    with numpyro.plate("i", 3, subsample_size=2) as index:
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y[index])


def branching(y):
    mu = numpyro.sample("mu", dist.Normal())
    if mu > 0:
        mu = mu + numpyro.sample("extra", dist.Normal())
    _like(mu, y)


def branching_inside(y):
    mu = numpyro.sample("mu", dist.Normal())
    _like(mu if mu > 0 else -mu, y)


def masked(y):
    mu = numpyro.sample("mu", dist.Normal())
    with handlers.mask(mask=np.array([True, True, False])):
        _like(mu, y)


def obs_masked(y):
    mu = numpyro.sample("mu", dist.Normal())
    numpyro.sample("y", dist.Normal(mu, 1.0).expand([3]), obs=y, obs_mask=np.array([True, True, False]))


def scaled(y):
    mu = numpyro.sample("mu", dist.Normal())
    with handlers.scale(scale=2.0):
        _like(mu, y)


def moving_support(y):
    upper = numpyro.sample("upper", dist.HalfNormal())
    _like(numpyro.sample("mu", dist.Uniform(0.0, upper)), y)


def moving_support_of_data(y):
    upper = numpyro.sample("upper", dist.HalfNormal())
    numpyro.sample("y", dist.Uniform(-9.0, 9.0 + upper).expand([3]), obs=y)


def learned(y):
    _like(numpyro.sample("mu", dist.Normal(numpyro.param("centre", 0.0), 1.0)), y)


def scanned(y):
    scan(lambda mu, _: (numpyro.sample("mu", dist.Normal(mu, 1.0)), None), 0.0, None, length=3)
    _like(numpyro.sample("nu", dist.Normal()), y)


def latent_data(y):
    _like(numpyro.sample("mu", dist.Normal()), None)


def without_latents(y):
    _like(0.0, y)


def broadcast(y):
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), 1.0), obs=y)


def data_in_prior(y):
    _like(numpyro.sample("mu", dist.Normal(y[0], 1.0)), y)


def number_in_prior(y):
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(y, 1.0)), 1.0), obs=y)


def lagged(y):
    slope = numpyro.sample("slope", dist.Normal())
    numpyro.sample("y", dist.Normal(slope * y[:-1], 1.0), obs=y[1:])


def chain_of_three(y):
    top = numpyro.sample("top", dist.Normal())
    middle = numpyro.sample("middle", dist.Normal(top, 1.0))
    _like(numpyro.sample("low", dist.Normal(middle, 1.0)), y)


def other_randomness(y):
    _like(numpyro.sample("mu", dist.Normal()) + dist.Normal().sample(numpyro.prng_key()), y)


def point(y):
    _like(numpyro.sample("mu", dist.Normal()) + numpyro.sample("at", dist.Delta(1.0)), y)


def censored(y):
    mu = numpyro.sample("mu", dist.Normal())
    numpyro.sample("y", dist.RightCensoredDistribution(dist.Normal(mu, 1.0).expand([3]), jnp.zeros(3)), obs=y)


def outside(y):
    numpyro.sample("y", dist.LogNormal(numpyro.sample("mu", dist.Normal()), 1.0).expand([3]), obs=y - 5.0)


def single_precision(y):
    mu = numpyro.sample("mu", dist.TransformedDistribution(dist.Normal(), Rounded()))
    _like(mu, y)


class Rounded(dist.transforms.AffineTransform):
    """Planted defect: single precision inside the model."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def __call__(self, x: Any) -> Any:
        return jnp.asarray(x, dtype=jnp.float32)


def reserved(y):
    _like(numpyro.sample("chain", dist.Normal()), y)


def substituted(y):
    with handlers.substitute(data={"nu": jnp.array(0.5)}):
        nu = numpyro.sample("nu", dist.Normal())
    _like(nu + numpyro.sample("mu", dist.Normal()), y)


def one_key(y):
    mu = numpyro.sample("mu", dist.Normal())
    numpyro.sample("y", dist.Normal(mu, 1.0).expand([3]), obs=y, rng_key=random.key(3))


seeded = handlers.seed(normal_mean, rng_seed=0)


def residual(y):
    mu, sigma = numpyro.sample("mu", dist.Normal()), numpyro.sample("sigma", dist.HalfNormal())
    numpyro.sample("y", dist.Normal(0.0, sigma).expand([3]), obs=y - mu)


def latent_of_data(y):
    drawn = numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), 1.0).expand([3]), obs=y)
    numpyro.sample("nu", dist.Normal(drawn.mean(), 1.0))


def mean_in_prior(y):
    _like(numpyro.sample("mu", dist.Normal(y.mean(), 1.0)), y)


def on_a_sphere(y):
    _like(numpyro.sample("mu", dist.ProjectedNormal(jnp.zeros(3))), y)


# ---- accepted, whatever their form --------------------------------------------------------------------------------

SHARED: dict[str, Any] = {}


def one_infer_for_all(y):
    mu, nu = (numpyro.sample(name, dist.Normal().expand([3]), infer=SHARED) for name in ("mu", "nu"))
    numpyro.sample("y", dist.Normal(mu + nu, 1.0), obs=y, infer=SHARED)


def indexed_by_the_plate(y):
    mu = numpyro.sample("mu", dist.Normal(MEAN, SD))
    with numpyro.plate("i", len(Y)) as index:
        numpyro.sample("y", dist.Normal(mu, NOISE), obs=y[index])


def counts(y):
    numpyro.sample("y", dist.Poisson(numpyro.sample("rate", dist.HalfNormal(900.0))).expand([3]), obs=y)


REFUSED = [
    (substituted, "'nu' is given a value, by numpyro.handlers.substitute"),
    (one_key, "'y' is drawn with the same random key"),
    (seeded, "'mu' is drawn with the same random key"),
    (residual, "obs= of the site 'y' depends on other sites"),
    (latent_of_data, "latent site 'nu' depends on the observed site 'y'"),
    (mean_in_prior, "holds the data of 'y'.*distribution of 'mu'"),
    (on_a_sphere, "'mu' .ProjectedNormal. has a support that NumPyro maps to no"),
    (reserved, "'chain'.*reserved"),
    (discrete, "'k' is discrete"),
    (factor, "numpyro.factor 'extra'"),
    (improper, "'mu' has an improper prior"),
    (unrelated, "'z' depends on no latent site"),
    (subsampled, "'i' takes a subsample of 2 of 3"),
    (branching, "stochastic control flow"),
    (branching_inside, "stochastic control flow"),
    (masked, "'y' is masked"),
    (obs_masked, "is masked"),
    (scaled, "handlers.scale"),
    (moving_support, "support of the site 'mu'"),
    (moving_support_of_data, "support of the site 'y'"),
    (learned, "'centre' of type 'param'"),
    (scanned, "of type 'control_flow'"),
    (latent_data, "no observed site"),
    (without_latents, "no latent site"),
    (broadcast, r"shape \(\), but obs= has shape \(3,\)"),
    (data_in_prior, "holds the data of 'y'.*distribution of 'mu'"),
    (lagged, "holds the data of 'y'.*distribution of 'y'"),
    (other_randomness, "random numbers outside of its sites"),
    (point, "'at' is a Delta"),
    (censored, "RightCensoredDistribution"),
    (outside, "outside the support of LogNormal"),
    (single_precision, "drawn as float32"),
]
