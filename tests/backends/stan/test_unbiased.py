"""`bread.lab.unbiased` on a Stan program: exact means."""

from __future__ import annotations

import numpy as np
import pytest

import bread
from bread.report.compat import require_group
from tests.support.stan_conjugate import NORMAL_MEAN, toolchain


@pytest.mark.statistical
@pytest.mark.slow
def test_means_of_a_conjugate_program():
    """The model of the PyMC test beside it."""
    toolchain()
    report = bread.lab.unbiased(
        NORMAL_MEAN,
        data={"N": 3, "y": np.array([0.4, 1.9, 1.1])},
        pairs=60,
        random_seed=1,
        progressbar=False,
    )
    found = require_group(report, "unbiased")
    exact = (0.5 / 1.5**2 + 3.4 / 1.2**2) / (1 / 1.5**2 + 3 / 1.2**2)
    error = float(found["mean_standard_error"][0])
    assert abs(float(found["mean"][0]) - exact) < 5 * error < 0.1
    assert bread.verdict(report).status == "bounded"
