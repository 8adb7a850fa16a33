"""Data replicated at draws of the posterior: exact draws of the posterior given real and replicated data, or not."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.backends.base import Fit
from bread.errors import DensityError, InvalidArgumentError, UnsupportedKernelError
from bread.paths.kinds import PriorPath
from bread.running.model_fit.replicated import MOST_DRAWS, ModelNearDraws, ReplicatedModel
from tests.models.reference import AutoregressiveKernel, HMCKernel, NormalMean

Y = default_rng(3).normal(1.0, 1.0, size=8)
MODEL = NormalMean(Y, prior_mean=0.5, prior_sd=3.0, kernel=HMCKernel())
N = 4000


def fit_of(factor: float = 1.0, n: int = 20_000) -> Fit:
    """Return exact posterior draws, spread by a factor."""
    draws = MODEL.draw_posterior({"y": Y}, n, default_rng(1))[:, 0]
    return Fit({"mean": (draws.mean() + factor * (draws - draws.mean())).reshape(4, -1)}, "draws")


def standardised(simulations) -> np.ndarray:
    """Return the parameter in standard deviations from the mean of its exact posterior given both data sets."""
    precision = 1.0 / 3.0**2 + 2 * len(Y)
    mean = (0.5 / 3.0**2 + Y.sum() + simulations.data["y"].sum(axis=1)) / precision
    return np.asarray((simulations.states[:, 0] - mean) * np.sqrt(precision))


@pytest.mark.parametrize(("factor", "is_exact"), [(1.0, True), (0.7, False)])
def test_draws_are_exact_given_both_data_sets_if_they_are_the_posteriors(factor, is_exact):
    z = standardised(ReplicatedModel(MODEL, fit_of(factor)).simulate(N, fixed=None, seed=SeedSequence(5)))
    assert (abs((z**2).mean() - 1.0) < 4.0 * np.sqrt(2.0 / N)) == is_exact  # four standard errors of a variance
    assert abs(z.mean()) < 4.0 / np.sqrt(N)


def test_the_density_is_that_of_both_data_sets():
    replicated = ReplicatedModel(MODEL, fit_of())
    drawn = replicated.simulate(2, fixed=None, seed=SeedSequence(2))
    posterior, real = replicated.condition(drawn.data_of(0)), MODEL.condition({"y": Y})
    states = np.linspace(-1.0, 2.0, 5)[:, None]
    both = posterior.log_density(PriorPath(), states)
    wanted = real.log_density(PriorPath(), states) + MODEL.condition(drawn.data_of(0)).log_ratio(PriorPath(), states)
    np.testing.assert_allclose(both, wanted, rtol=1e-12)
    slope = (both[2:] - both[:-2]) / (states[2:] - states[:-2])[:, 0]  # exact for a parabola
    np.testing.assert_allclose(posterior.density_gradient(1.0, states)[1][1:-1, 0], slope, rtol=1e-9)
    assert list(replicated.info.paths) == ["reference"]


def test_pilots_begin_at_draws_of_the_fit():
    fit = fit_of(n=40)
    for model in (ReplicatedModel(MODEL, fit), ModelNearDraws(MODEL, fit)):
        posterior = cloudpickle.loads(cloudpickle.dumps(model)).condition({"y": Y})
        drawn = posterior.draw_base(PriorPath(), SeedSequence(1).spawn(30))
        assert set(drawn[:, 0]) <= set(fit.flat_draws()["mean"])
        assert posterior.draw_prior_batch(500, SeedSequence(1)) is None


def test_a_draw_depends_on_its_own_seed_alone():
    replicated = ReplicatedModel(MODEL, fit_of())
    many = replicated.simulate(5, fixed=None, seed=SeedSequence(9))
    few = replicated.simulate(3, fixed=None, seed=SeedSequence(9))
    np.testing.assert_array_equal(many.states[:3], few.states)
    np.testing.assert_array_equal(many.data["y"][:3], few.data["y"])
    assert len(replicated.simulate(0, fixed=None, seed=SeedSequence(9))) == 0


class SometimesFails(NormalMean):
    """A model at whose larger means no data can be drawn."""

    limit = 1.0

    def draw_data(self, parameters, generator):
        if parameters["mean"] > self.limit:
            raise DensityError("too large")
        return super().draw_data(parameters, generator)


def test_draws_without_data_are_counted_and_too_many_of_them_an_error():
    model = SometimesFails(Y, prior_mean=0.5, prior_sd=3.0, kernel=HMCKernel())
    drawn = ReplicatedModel(model, fit_of()).simulate(200, fixed=None, seed=SeedSequence(1))
    assert (drawn.states <= 1.0).all() and drawn.discarded.n_outcomes > 20 and "too large" in drawn.discarded.reason
    model.__dict__["limit"] = -99.0
    with pytest.raises(DensityError, match=f"Data cannot be simulated at {MOST_DRAWS} random draws of the fit: too la"):
        ReplicatedModel(model, fit_of()).simulate(1, fixed=None, seed=SeedSequence(1))


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidArgumentError, match="cannot be held"):
        ReplicatedModel(MODEL, fit_of()).simulate(1, fixed={"mean": np.array(0.0)}, seed=SeedSequence(1))
    with pytest.raises(UnsupportedKernelError, match="needs kernel=HMCKernel"):
        ReplicatedModel(NormalMean(Y, kernel=AutoregressiveKernel()), fit_of())
    with pytest.raises(DensityError, match="outside the support"):
        ReplicatedModel(MODEL, Fit({"mean": np.full((4, 10), np.inf)}, "draws"))
