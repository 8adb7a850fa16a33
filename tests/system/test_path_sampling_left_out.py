"""Left-out observations that rule out what the others allow: a mode, or a range of values."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bread
from bread.errors import UnsupportedModelError
from bread.report.compat import require_group

SQUARES = np.array([4.3, 3.6, 4.4, 3.9, 3.8])
RANGE = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.2])
K = 4.0  # standard errors


def signed(prior_mean):
    """Return a model of a number whose square is seen five times, and itself once, which tells its sign."""
    with pm.Model() as model:
        x = pm.Normal("x", prior_mean, 2.0 if prior_mean == 0.0 else 0.3)
        mean, scale = pt.concatenate([x**2 * pt.ones(5), [x]]), np.append(np.full(5, 2.0), 0.55)
        pm.Normal("y", mean, scale, observed=np.append(SQUARES, 2.0))
    return model


def exact(prior_mean):
    x = np.linspace(-8.0, 8.0, 40_001)
    sd = 2.0 if prior_mean == 0.0 else 0.3
    others = -0.5 * ((x - prior_mean) / sd) ** 2 - 0.5 * (((SQUARES[:, None] - x**2) / 2.0) ** 2).sum(axis=0)
    own = np.exp(-0.5 * ((2.0 - x) / 0.55) ** 2) / (0.55 * np.sqrt(2.0 * np.pi))
    return float(np.log(np.sum(np.exp(others) * own) / np.sum(np.exp(others))))


def left_out(model, index, seed, **options):
    report = bread.lab.path_sampling(
        model, leave_out=[index], random_seed=seed, progressbar=False, **{"pairs": 60, "tune": 60, **options}
    )
    return bread.verdict(report).status, require_group(report, "path_sampling")


@pytest.mark.statistical
def test_a_mode_that_only_the_left_out_observation_rules_out_is_not_missing():
    """Chains on all data leave the mode at -2, which has half of the others' mass: without it the score is 0.69 off."""
    status, found = left_out(signed(0.0), 5, 1, max_iterations=400)
    assert status == "inconclusive" and found.attrs["n_unmet"] > 0 and np.isnan(found["value"]).all()


@pytest.mark.statistical
def test_the_score_is_exact_where_the_prior_tells_the_sign():
    """Negative control: the score of the model with two modes is another."""
    status, found = left_out(signed(2.0), 5, 1)
    assert status == "estimated"
    value, error = float(found["value"][0]), float(found["standard_error"][0])
    assert abs(value - exact(2.0)) < K * error < abs(value - exact(0.0))


@pytest.mark.slow
def test_an_observation_that_is_impossible_where_the_others_are_not_is_refused():
    """Draws of the prior, too wide, do not show it; the score is ``log((1.2^-5 / 5) / (0.9^-4 / 4))``, not -0.42."""
    with pm.Model() as model:
        pm.Uniform("y", 0.0, pm.HalfNormal("end", 1000.0), observed=RANGE)
    with pytest.raises(UnsupportedModelError, match=r"observation 5 is zero or not finite at .* starts of chains"):
        left_out(model, 5, 1, tune=200)
