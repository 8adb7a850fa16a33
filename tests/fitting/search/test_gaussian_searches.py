"""Which coordinates a Gaussian law is looked for in: of effects times scales, or those in which the prior is normal."""

from __future__ import annotations

import numpy as np
import pymc as pm

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.fitting.search import searches
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.work import FitWork
from bread.paths.normalised import SinhArcsinh

N_GROUPS = 8


def hierarchy(*, is_told: bool) -> pm.Model:
    """Return a model of non-centred effects; ``is_told``: of large counts, which tell effects and their scale."""
    level = 3.0 if is_told else 0.0
    rng = np.random.default_rng(3)
    counts = rng.poisson(np.exp(level + 0.5 * rng.normal(size=N_GROUPS))) if is_told else np.ones(N_GROUPS, dtype=int)
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 1.0)
        z = pm.Normal("z", shape=N_GROUPS)
        pm.Poisson("y", pm.math.exp(level + spread * z), observed=counts)
    return model


def work_of(model: pm.Model) -> FitWork:
    opened = open_model(model, OpenOptions())
    return FitWork(opened.condition(opened.info.data.observed), np.asarray(opened.info.layout.transformed), 1, 0)


def test_on_other_data_effects_may_be_the_near_ones_as_they_are():
    """Where data tell effects and scale the product has the larger bound, else what is not multiplied."""
    told, untold = work_of(hierarchy(is_told=True)), work_of(hierarchy(is_told=False))
    like = searches.centred(told, many_prior_draws(told))
    assert like is not None and like.is_centred
    there = searches.gaussian_near(untold, like, searches.BELIED)
    assert there is not None and not there.is_centred
    multiplied = searches.centred(untold, many_prior_draws(untold), np.inf)
    assert multiplied is None or untold.own_elbo(multiplied) < untold.own_elbo(there)
    again = searches.gaussian_near(told, like, searches.BELIED)
    assert again is not None and again.is_centred


def test_scales_without_effects_are_taken_where_their_prior_is_normal(monkeypatch):
    """Skills times loads: a Gaussian law of logarithms of loads, whose prior is half-normal, is a nat farther."""
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        skill = pm.Normal("skill", shape=(20, 2))
        load = pm.HalfNormal("load", shape=(5, 2))
        pm.Bernoulli("answer", logit_p=skill @ load.T, observed=(rng.random((20, 5)) < 0.5).astype(int))
    work = work_of(model)
    prior = many_prior_draws(work)
    found = searches.variational(work, prior)
    assert found is not None and len(found.normal.places) == 10 and work.own_divergence(found) < 3.0
    assert searches.centred(work, prior) is None
    again = searches.gaussian_near(work, found, searches.BELIED)
    assert again is not None and work.own_divergence(again) < 3.0
    monkeypatch.setattr(searches, "normal_coordinates", lambda _: SinhArcsinh.of_none())
    plain = searches.variational(work, prior)
    assert plain is None or work.own_elbo(plain) < work.own_elbo(found) - 1.0
