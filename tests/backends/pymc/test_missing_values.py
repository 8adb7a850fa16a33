"""Single values that are missing are free variables of PyMC: they are drawn, and the others are data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.paths.kinds import PriorPath

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

X = np.array([0.3, np.nan, -1.2, 0.8, np.nan, 1.5])
Y = np.array([0.1, 1.9, -2.0, 1.1, 0.4, 2.2])
COUNTS = np.array([3.0, 0.0, np.nan, 1.0, 2.0, 4.0])
THERE, COUNTED = np.isfinite(X), np.isfinite(COUNTS)


def model_of(x: np.ndarray = X[THERE], y: np.ndarray = Y, counts: np.ndarray = COUNTS[COUNTED]) -> pm.Model:
    """A covariate with gaps, whose law depends on a parameter, and counts with one, given the values that are there."""
    whole, counted = X.copy(), COUNTS.copy()
    whole[THERE], counted[COUNTED] = x, counts
    with warnings.catch_warnings(action="ignore"), pm.Model() as model:  # PyMC announces what it imputes
        centre = pm.Normal("centre", 0.5, 1.0)
        full = pm.Normal("x", centre, 0.8, observed=np.ma.masked_invalid(whole))
        slope = pm.Normal("slope", 0.0, 1.0)
        pm.Normal("y", slope * full, 0.7, observed=y)
        pm.Poisson("counts", pm.math.exp(0.3 * centre), observed=np.ma.masked_invalid(counted).astype(int))
    return model


def point_of(model: pm.Model, state: np.ndarray) -> dict[str, Any]:
    first = model.initial_point()
    ends = np.cumsum([np.size(value) for value in first.values()])
    parts = np.split(state, ends[:-1])
    return {
        name: part.reshape(np.shape(value)).astype(np.asarray(value).dtype)
        for (name, value), part in zip(first.items(), parts, strict=True)
    }


def given(data: Mapping[str, np.ndarray]) -> pm.Model:
    return model_of(data["x_observed"], data["y"], data["counts_observed"])


def test_the_density_of_simulated_data_is_pymcs_own() -> None:
    model = open_model(model_of(), OpenOptions(simulate_from="fitted"))
    drawn = model.simulate(3, fixed=None, seed=SeedSequence(1))
    for r, state in enumerate(drawn.states):
        data = drawn.data_of(r)
        assert {name: values.shape for name, values in data.items()} == {
            "x_observed": (4,), "y": (6,), "counts_observed": (5,),
        }  # fmt: skip
        other, posterior = given(data), model.condition(data)
        point = point_of(other, state)
        likelihood = other.compile_logp(vars=other.observed_RVs)(point)
        np.testing.assert_allclose(posterior.log_density(PriorPath(), state[None])[0], other.compile_logp()(point))
        np.testing.assert_allclose(posterior.log_ratio(PriorPath(), state[None])[0], likelihood)


@pytest.mark.statistical
def test_missing_values_and_data_are_drawn_together() -> None:
    """Of exact joint draws the gradient has mean zero; of data of other draws, the covariate's, it has not."""
    model = open_model(model_of(), OpenOptions(simulate_from="fitted"))
    drawn = model.simulate(200, fixed=None, seed=SeedSequence(2))
    smooth = ~model.info.layout.discrete

    def z_scores(shift: int) -> np.ndarray:
        """Return means over standard errors of the gradient times the slope, which a wrong covariate biases."""
        terms = []
        for r, state in enumerate(drawn.states):
            data = dict(drawn.data_of(r)) | {"x_observed": drawn.data_of((r + shift) % 200)["x_observed"]}
            gradient = model.condition(data).density_gradient(1.0, state[None])[1][0]
            slope = state[model.info.layout.coordinates.index("slope")]
            terms.append(np.r_[gradient[smooth], gradient[smooth] * slope + (np.flatnonzero(smooth) == slope_at)])
        return np.abs(np.mean(terms, axis=0)) / (np.std(terms, axis=0) / np.sqrt(200))

    slope_at = model.info.layout.coordinates.index("slope")
    assert z_scores(0).max() < 4.0  # standard errors, of about ten means
    assert z_scores(1).max() > 4.0
