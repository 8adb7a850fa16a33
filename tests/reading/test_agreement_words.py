"""The sentence on draws that agree: near the level it says what a difference takes."""

from __future__ import annotations

import numpy as np
import pytest

from bread.reading.agreement import power, read_draws
from bread.report import container as report
from bread.report.compat import read_group
from tests.support.fake_results import constrain, fake_result


@pytest.mark.parametrize(
    ("p_value", "words"),
    [
        (0.28, "No difference was seen (p = 0.28): a shift"),
        (0.051, "No difference was seen (p = 0.051): a shift"),
        (0.017, "No difference was seen at the level 0.01 (p = 0.017): a shift"),
    ],
)
def test_a_p_value_that_just_misses_the_level_comes_with_it(p_value, words):
    agreement = read_group(report.to_container(fake_result(posterior_shift=0.0), constrain), "agreement").copy()
    agreement["p_value_combined"] = ((), np.float64(p_value))
    assert power(read_draws(agreement)).startswith(words)
