"""Observations that are impossible where the others are not, seen at starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bread.couplings.geometric import GeometricPath
from bread.errors import UnsupportedModelError
from bread.running.path_sampling.path_sampling import Chains, Work
from bread.running.path_sampling.path_scores import require_support

CENTRES = np.array([[1.0], [1.3]])


def chains(impossible_below: float) -> Chains:
    """Return chains about two centres; the others' density is zero below 0.9."""
    unused: Any = None

    def others(x):
        return np.where(x[:, 0] > 0.9, -5.0 * x[:, 0], -np.inf), np.full(x.shape, -5.0)

    def log_ratio(x):
        return np.where(x[:, 0] > max(impossible_below, 0.9), 0.0, np.where(x[:, 0] > 0.9, -np.inf, np.nan))

    path = GeometricPath(others, others, log_ratio)
    return Chains(Work(40, 100, 50, 3, unused), path, unused, CENTRES, np.array([0.1]))


def test_what_only_the_left_out_observation_rules_out_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"observation 7 is zero or not finite at .* of 1002 starts"):
        require_support(chains(1.2), 7)


def test_what_the_others_rule_out_too_is_not():
    require_support(chains(0.0), 7)
