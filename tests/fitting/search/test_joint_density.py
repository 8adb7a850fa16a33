"""The joint log density of a fit: the same along the prior path and, where there is none, from a reference path."""

import numpy as np
import pymc as pm
import pytest

from bread.backends.base import OpenOptions
from bread.backends.pymc.opened import open_model
from bread.errors import UnsupportedModelError
from bread.fitting.search.joint_density import joint_log_density

Y = np.array([0.3, 1.9, -0.2])


class WithoutPriorPath:
    """A posterior that has no density along the prior path, or that never heard of one."""

    def __init__(self, posterior, is_refused):
        self._posterior, self.n_calls = posterior, 0
        if is_refused:
            self.log_density = self._refuse

    def _refuse(self, path, states):
        self.n_calls += 1
        raise UnsupportedModelError(f"no prior path, asked along {path!r}.")

    def log_ratio(self, path, states):
        assert path.reference is not None
        return self._posterior.log_ratio(path, states)


@pytest.fixture(scope="module")
def posterior():
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 1.0, 2.0), pm.HalfNormal("sigma", 1.5)
        pm.Normal("y", mu, sigma, observed=Y)
    opened = open_model(model, OpenOptions())
    return opened.condition(opened.info.data.observed)


def exact(states):
    """Log prior, Jacobian of the logarithm of sigma, and log likelihood."""
    from scipy import stats

    mu, log_sigma = states.T
    sigma = np.exp(log_sigma)
    prior = stats.norm.logpdf(mu, 1.0, 2.0) + stats.halfnorm.logpdf(sigma, scale=1.5) + log_sigma
    return prior + stats.norm.logpdf(Y[:, None], mu, sigma).sum(axis=0)


@pytest.mark.parametrize("kind", ["prior path", "refused", "unknown"])
def test_it_is_the_exact_density(posterior, kind):
    """Far out too, and minus infinity where a state is not finite or the density vanishes."""
    states = np.random.default_rng(1).normal(size=(50, 2)) * [3.0, 1.0]
    states = np.concatenate([states, [[1e3, 2.0], [-1e6, 5.0], [np.nan, 0.0], [0.0, np.inf], [0.0, -400.0]]])
    used = posterior if kind == "prior path" else WithoutPriorPath(posterior, kind == "refused")
    found = joint_log_density(used, states)
    np.testing.assert_allclose(found[:52], exact(states[:52]), rtol=1e-12, atol=2e-8)  # a constant of PyMC
    assert (found[52:54] == -np.inf).all() and not np.isnan(found).any()
    assert kind != "refused" or used.n_calls == 1
    wrong = exact(states[:52]) - states[:52, 1]
    assert np.abs(found[:52] - wrong).max() > 0.1, "control: without the Jacobian"
