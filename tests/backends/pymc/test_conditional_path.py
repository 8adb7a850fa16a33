"""References given several coordinates on PyMC's models: Python evaluates them, PyMC's step methods move along them."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from numpy.random import default_rng

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.paths.kinds import ReferencePath
from tests.support.conformance import check_end_gradient
from tests.support.stan_references import conditional

pytestmark = pytest.mark.pymc


def test_log_ratio_and_gradient_are_those_of_python() -> None:
    with pm.Model() as model:
        theta = pm.Normal("theta", 0.3, 1.7, shape=12)
        pm.Normal("y", theta.sum(), 2.0, observed=1.5)
    opened = open_model(model, OpenOptions())
    posterior, wanted = opened.condition(opened.info.data.observed), conditional(12)
    path, states = ReferencePath(wanted), wanted.sample(6, default_rng(35))
    log_joint = -0.5 * (((states - 0.3) / 1.7) ** 2).sum(axis=1) - 0.5 * ((1.5 - states.sum(axis=1)) / 2.0) ** 2
    log_joint -= 12 * np.log(1.7) + np.log(2.0) + 6.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(posterior.log_ratio(path, states), log_joint - wanted.log_density(states), rtol=1e-8)
    for state in states[:3]:
        check_end_gradient(posterior, path, state)
    seeds = default_rng(36).bit_generator.seed_seq.spawn(5)
    assert np.isfinite(posterior.draw_base(path, seeds)).all()
