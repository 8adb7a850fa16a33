"""When draws from a reference are proposed: dear annealing, draws that are accepted, a kernel that nobody named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bread.paths.kinds import ReferencePath
from bread.paths.mixture import gaussian
from bread.paths.nested import NestedReference
from bread.running.path_choice.costs import PathCost
from bread.running.path_choice.proposing import (
    A_MOVE,
    DEAR,
    DEAR_GIVEN,
    MOST_EVERY,
    accepted,
    moves_every,
    wants_proposals,
)

N = 4000


def log_ratios(shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Log ratios of N(shift, 1) to N(0, 1) at draws of N(0, 1) and of N(shift, 1)."""
    rng = np.random.default_rng(1)
    base, end = rng.standard_normal(N), shift + rng.standard_normal(N)
    return shift * base - 0.5 * shift**2, shift * end - 0.5 * shift**2


@pytest.mark.statistical
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.5])
def test_the_share_is_that_of_an_independence_chain(shift: float) -> None:
    """2 Phi(-shift / sqrt(2)) exactly; 4 standard errors of at most 0.5 / sqrt(4000) for each of two samples."""
    assert accepted(*log_ratios(shift)) == pytest.approx(2.0 * norm.cdf(-shift / np.sqrt(2.0)), abs=4 * 0.7 / N**0.5)


def test_nothing_is_accepted_where_no_ratio_is_finite() -> None:
    nothing = np.full(5, -np.inf)
    assert accepted(nothing, np.zeros(3)) == 0.0
    assert accepted(np.zeros(3), nothing) == accepted(np.zeros(0), np.zeros(3)) == 0.0
    assert accepted(np.array([np.nan, 0.0]), np.zeros(3)) == 0.5


GIVEN = NestedReference(
    0,
    gaussian(np.zeros(1), np.eye(1)),
    np.zeros(1),
    np.eye(1),
    np.arange(2.0),
    np.zeros((2, 2, 1)),
    np.zeros((2, 2, 1)),
)


def pilot(shift: float, fit: Any = "fitted", reference: Any = None) -> Any:
    base, end = log_ratios(shift)
    path = ReferencePath(reference or gaussian(np.zeros(1), np.eye(1)))
    return SimpleNamespace(base_log_ratio=base, end_log_ratio=end, fit=fit, path=path)


def cost(price: float) -> PathCost:
    return PathCost("reference", True, price / 40.0, 5.0, 1e6, 8)


@pytest.mark.parametrize(
    ("expected", "may", "pilots", "price"),
    [
        (True, True, [pilot(1.0)], DEAR),
        (True, True, [pilot(1.0), pilot(5.0)], DEAR),  # their mean counts
        (False, True, [pilot(1.0)], DEAR - 1.0),
        (True, True, [pilot(1.0, reference=GIVEN)], DEAR_GIVEN),  # a law given a scale
        (False, True, [pilot(1.0, reference=GIVEN)], DEAR_GIVEN - 1.0),
        (False, True, [pilot(1.0, reference=GIVEN), pilot(1.0)], DEAR_GIVEN),
        (False, True, [pilot(5.0)], DEAR),
        (False, False, [pilot(1.0)], DEAR),  # the user named a kernel, or the backend cannot
        (False, True, [pilot(1.0, fit=None)], DEAR),  # the prior, or a reference of the user's
    ],
)
def test_rule(expected: bool, may: bool, pilots: list[Any], price: float) -> None:
    assert wants_proposals(SimpleNamespace(may_propose=may), pilots, cost(price)) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "shifts", "per_transition"),
    [
        (1, [0.3], A_MOVE),  # cheap moves
        (2, [0.3], 2.5 * A_MOVE),
        (MOST_EVERY, [0.3], 1e4),
        (MOST_EVERY, [0.3], np.inf),
        (MOST_EVERY // 2, [1.65], 1e4),  # a quarter is accepted
        (1, [5.0], 1e4),  # hardly any
        (MOST_EVERY // 2, [0.0, 9.0, 9.0, 9.0], 1e4),  # the mean counts
    ],
)
def test_the_dearer_moves_are_the_rarer_they_get(expected: int, shifts: list[float], per_transition: float) -> None:
    price = PathCost("reference", True, 40.0, per_transition, 1e6, 8)
    assert moves_every([pilot(shift) for shift in shifts], price) == pytest.approx(expected, abs=int(shifts == [1.65]))
