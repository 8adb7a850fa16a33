"""The sentence on draws that agree: near the level it says what a difference takes."""

from __future__ import annotations

import numpy as np
import pytest

from bread.reading.sentences.agreement import power, read_draws
from bread.report import container as report
from bread.report.agreement import Columns, comparison_dataset
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


def compared(own, annealed):
    """Return the facts of a comparison of parameters, given (chain, draw, d) and (n, d)."""
    names = tuple(f"x{i}" for i in range(annealed.shape[1]))
    attributes = {"source": "posterior=", "n_dropped": 0, "n_zero": 0}
    columns = Columns(names, own.astype(float), annealed.astype(float), False)
    return read_draws(comparison_dataset(columns, error=0.05, shared_error=0.05, attributes=attributes))


@pytest.mark.parametrize(
    ("kinds", "said", "unsaid"),
    [
        ("c", "a shift of one parameter by 0.", "discrete"),
        ("d", ": a probability of a discrete parameter that is off by 0.1", "shift"),
        ("cd", "a shift of one continuous parameter by 0.", "one parameter"),
        ("ck", "a shift of one parameter by 0.", "discrete"),
    ],
)
def test_what_would_have_been_seen_is_said_of_the_parameters_that_it_holds_for(kinds, said, unsaid):
    """Of a discrete parameter a shift says nothing (of an event of probability 0.1 half of such were seen)."""
    rng = np.random.default_rng(3)
    laws = {
        "c": rng.standard_normal,
        "d": lambda shape: rng.integers(0, 2, shape),
        "k": lambda shape: np.full(shape, 2.0),  # does not vary
    }
    own = np.stack([laws[kind]((4, 200)) for kind in kinds], axis=2)
    found = compared(own, np.stack([laws[kind](700) for kind in kinds], axis=1))
    assert found.status == "agreement" and found.sees_one_sd
    assert said in power(found) and unsaid not in power(found)


def test_one_sd_of_a_discrete_parameter_is_seen_or_not():
    """Forty draws of a coin see no error below 0.38, which a shift by one standard deviation makes of a normal one."""
    rng = np.random.default_rng(3)
    own = rng.integers(0, 2, (4, 200, 1))
    assert compared(own, rng.integers(0, 2, (400, 1))).sees_one_sd
    assert not compared(own, rng.integers(0, 2, (20, 1))).sees_one_sd
