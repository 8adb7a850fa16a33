"""Jumps of a log density along segments, against functions whose jumps are known."""

import numpy as np
import pytest

from bread.statistics.exactness.jumps import SMALLEST, jumps_along

PLACE = np.array([0.03, 0.5, 0.721, 0.9999])  # where something happens, on each of four segments


def normal(x):
    return -0.5 * (12.0 * x - 6.0) ** 2


JUMPING = {
    "a small step": lambda x: 2.0 * SMALLEST * (x > PLACE),
    "a step on a hill": lambda x: 0.05 * normal(x) - 0.5 * (x > PLACE),
    "a step on a long slope": lambda x: 300.0 * x + np.where(x > PLACE, -0.7, 0.0),
    "a bound": lambda x: np.where(x > PLACE, -np.inf, normal(x)),
    "not a number": lambda x: np.where(x > PLACE, np.nan, 0.0),
    "a gap": lambda x: np.where((x > PLACE - 0.15) & (x < PLACE), -np.inf, 0.0),
}
SMOOTH = {
    "a normal law": normal,
    "a kink": lambda x: -30.0 * np.abs(x - PLACE),
    "a steep step": lambda x: 1.0 / (1.0 + np.exp(np.clip(-3000.0 * (x - PLACE), -700.0, 700.0))),
    "a step that is too small": lambda x: normal(x) + 0.1 * SMALLEST * (x > PLACE),
    "a density that vanishes at a bound": lambda x: np.where(x < PLACE, 2 * np.log(np.maximum(PLACE - x, 0)), -np.inf),
    "nowhere a density": lambda x: np.full_like(x, -np.inf),
}


@pytest.mark.parametrize("name", JUMPING)
def test_jumps_are_found_wherever_they_are(name):
    with np.errstate(divide="ignore"):
        assert jumps_along(JUMPING[name], len(PLACE)).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_what_only_looks_like_one_is_none(name):
    with np.errstate(divide="ignore"):
        assert not jumps_along(SMOOTH[name], len(PLACE)).any()
