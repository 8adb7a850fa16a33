"""Intercepts and slopes with an LKJ prior, in PyMC: the exact law of the effects given scales and correlation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.random import SeedSequence, default_rng

from bread.backends.base import OpenOptions
from bread.backends.pymc import open_model
from bread.fitting.exact_given_scales.reference import find_structure
from bread.fitting.importance.product import fit_product
from bread.fitting.search.initial import many_prior_draws
from bread.fitting.search.searches import by_precision
from bread.fitting.search.work import FitWork
from bread.paths.kinds import ReferencePath
from bread.paths.precision import PrecisionReference

N_GROUPS = 4


def slopes(is_centred):
    rng, group = default_rng(1), np.repeat(np.arange(N_GROUPS), 5)
    x = np.tile(np.linspace(-1.0, 1.5, 5), N_GROUPS)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0), compute_corr=True)
        mean = pm.Normal("mean", 0.0, 1.0, shape=2)
        if is_centred:
            effects = pm.MvNormal("effects", mean, chol=factor, shape=(N_GROUPS, 2))
        else:
            effects = mean + pt.dot(pm.Normal("z", 0.0, 1.0, shape=(N_GROUPS, 2)), factor.T)
        noise = pm.HalfNormal("noise", 1.0)
        at = effects[group, 0] + effects[group, 1] * x
        pm.Normal("y", at, noise, observed=rng.normal(0.5 * x, 0.5))
    return open_model(model, OpenOptions())


@pytest.fixture(scope="module", params=[True, False], ids=["centred", "non-centred"])
def opened(request):
    return slopes(request.param)


def work_on(opened, data, simulation):
    return FitWork(opened.condition(data), opened.info.layout.transformed, 1, simulation)


def spread_given(work, reference, n=50):
    """Standard deviation of log p - log q (nats) over the others, with the drivers of one draw: 0 for an exact law."""
    draws, spreads = reference.sample(5, default_rng(2)), []
    for one in draws:
        states = reference.sample(n, default_rng(3))
        states[:, reference.at] = one[reference.at]
        spreads.append(work.posterior.log_ratio(ReferencePath(reference), states).std())
    return max(spreads)


def test_effects_are_gaussian_given_factor_and_noise(opened):
    work = work_on(opened, opened.info.data.observed, 0)
    draws = many_prior_draws(work)
    structure = find_structure(work, draws)
    assert len(structure.drivers) == 4 and len(structure.others) == 2 * N_GROUPS + 2
    drivers = tuple(int(driver) for driver in structure.drivers)
    law = PrecisionReference(
        drivers, fit_product(0.3 * draws[:, structure.drivers]), structure.precision, structure.linear,
        len(structure.others),
    )  # fmt: skip
    assert spread_given(work, law) < 1e-4
    off = replace(law, linear=replace(law.linear, values=1.01 * law.linear.values))
    assert spread_given(work, off) > 1e-3, "control"


def test_another_data_set_has_the_same_matrix(opened):
    """And its law's own draws show less than a nat."""
    observed = work_on(opened, opened.info.data.observed, 0)
    real = by_precision(observed, many_prior_draws(observed))
    data = {name: values[0] for name, values in opened.simulate(1, fixed=None, seed=SeedSequence(4)).data.items()}
    work, alone = work_on(opened, data, 1), work_on(opened, data, 1)
    moved = by_precision(work, many_prior_draws(work), like=real)
    assert moved.precision is real.precision
    find_structure(alone, many_prior_draws(alone))
    assert work.n_gradients < 0.5 * alone.n_gradients
    assert work.own_divergence(moved, 1) < 1.0
    assert spread_given(work, moved) < 1e-4 < spread_given(work, real)
