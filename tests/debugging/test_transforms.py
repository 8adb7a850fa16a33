"""Maps between coordinates and their Jacobians, on models where both are known, and on one whose Jacobian is wrong."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence
from pymc.distributions.transforms import LogTransform

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.debugging.transforms import check_transforms
from tests.support.reference_models import CONJUGATE

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]


class CountedTwice(LogTransform):
    """The log, whose Jacobian is counted twice."""

    def log_jac_det(self, value, *inputs):
        """Return twice what it should be."""
        return 2.0 * super().log_jac_det(value, *inputs)


def checked(model):
    opened = open_model(model, OpenOptions())
    drawn = opened.simulate(12, fixed=None, seed=SeedSequence(1))
    return check_transforms(opened, drawn.states)


def hierarchy():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1.0)
        upper = pm.Uniform("upper", 0.0, tau)
        pm.Beta("share", 2.0, 3.0, size=2)
        pm.Dirichlet("simplex", np.ones(3))
        pm.Poisson("count", 3.0)
        pm.Normal("y", upper, 1.0, observed=np.array([0.3]))
    return model


@pytest.mark.slow
def test_every_map_of_a_sound_model_fits():
    found = checked(hierarchy())
    assert not found.failed
    assert set(found.determinant) == {"tau", "upper", "share"}
    assert set(found.left_out) == {"simplex", "count"} and "no square Jacobian" in found.left_out["simplex"]
    assert set(found.loop) == {"tau", "upper", "share", "simplex", "count"}


def test_a_jacobian_that_is_counted_twice_is_found_and_named():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1.0, default_transform=CountedTwice())
        pm.Normal("y", 0.0, tau, observed=np.array([0.3]))
    assert checked(model).failed == ["Jacobian of tau"]


def test_a_map_that_does_not_come_back_is_found():
    model = CONJUGATE["beta_binomial_hmc"]

    class Shifted:
        """Its two maps differ by a shift."""

        def __getattr__(self, name):
            return getattr(model, name)

        def unconstrain(self, parameters):
            """Return states that are off."""
            return model.unconstrain(parameters) + 1e-3

    drawn = model.simulate(12, fixed=None, seed=SeedSequence(1))
    assert check_transforms(Shifted(), drawn.states).failed[0].startswith("constrain(unconstrain(")
