"""Gradients at several states are those at each of them, whatever the backend."""

import numpy as np
import pytest

from bread.backends.support.gradients import end_gradients, one_by_one
from bread.errors import DensityError
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import gaussian
from tests.models.reference import HMCKernel, NormalMean

MODEL = NormalMean(np.array([0.3, -0.2, 1.0]), prior_sd=2.0, kernel=HMCKernel())
PATH = ReferencePath(gaussian(np.zeros(1), np.eye(1)))
STATES = np.array([[0.1], [-3.0], [7.5]])


def test_several_at_once_are_what_they_are_one_by_one():
    posterior = MODEL.condition(MODEL.observed_data)
    for found in (end_gradients(posterior, PATH, STATES), one_by_one(posterior, PATH, STATES)):
        values, gradients = found
        y = MODEL.observed_data["y"]
        np.testing.assert_allclose(gradients[:, 0], (y - STATES).sum(axis=1) - STATES[:, 0] / 4.0, rtol=1e-10)
        expected = [posterior.end_gradient(PATH, state)[0] for state in STATES]
        np.testing.assert_allclose(values, expected, rtol=1e-12)


class Failing:
    """A density that one state raises in, of a class with no method for several."""

    def end_gradient(self, path, state):
        if state[0] < 0.0:
            raise DensityError("no")
        return 1.0, np.array([2.0])


def test_a_state_that_raises_is_nan_and_the_others_are_not():
    values, gradients = end_gradients(Failing(), PATH, STATES)
    np.testing.assert_array_equal(values, [1.0, np.nan, 1.0])
    np.testing.assert_array_equal(gradients[:, 0], [2.0, np.nan, 2.0])


def test_other_errors_pass():
    class Broken:
        def end_gradient(self, path, state):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        end_gradients(Broken(), PATH, STATES)
