"""The assertions of bread.testing without a plugin: what they pass on to the verbs that they call."""

from __future__ import annotations

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.testing import assert_kernel_correct, assert_reliable, assert_simulator_matches
from tests.support.reference_models import CONJUGATE


def log_density(x):
    return float(-0.5 * ((x - 1.0) ** 2).sum())


def simulate(n, rng):
    return rng.normal(1.0, 1.0, (n, 1))


def exact(x, rng):
    return simulate(1, rng)[0]


LAW = {"log_density": log_density, "simulate": simulate}


@pytest.mark.parametrize(
    "asserts",
    [
        lambda cores: assert_kernel_correct(exact, **LAW, cores=cores),
        lambda cores: assert_simulator_matches(**LAW, cores=cores),
        lambda cores: assert_reliable(CONJUGATE["normal_mean"], cores=cores),
    ],
)
def test_the_number_of_processes_is_that_of_the_caller(asserts):
    with pytest.raises(InvalidArgumentError, match="cores must be None or a whole number >= 1, got 0"):
        asserts(0)


def test_a_right_kernel_passes_and_one_that_shrinks_does_not():
    assert_kernel_correct(exact, **LAW, budget=0.02, cores=1)
    with pytest.raises(AssertionError, match="BUG: ") as found:
        assert_kernel_correct(lambda x, rng: 0.8 * exact(x, rng), **LAW, budget=0.02, cores=1)
    assert float(np.asarray(found.value.report.attrs["seed"])) == 0.0
