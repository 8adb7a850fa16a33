"""Paths: names, log weights in order, zero densities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bread.paths.centred import CentredReference
from bread.paths.conditional import ConditionalReference
from bread.paths.kinds import ROUND_DEPTH, PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from bread.paths.nested import NestedReference
from bread.paths.precision import PrecisionReference
from bread.paths.rotated import RotatedReference, gauge_at
from bread.paths.user import UserReference, as_reference
from tests.support.factor_laws import reference

PATHS = {"prior": PriorPath(), "reference": ReferencePath(diagonal(np.zeros(2), np.ones(2)))}
BETAS = np.array([0.0, 0.1, 0.5, 1.0])
BY_NAME = pytest.mark.parametrize("name", sorted(PATHS))


@BY_NAME
def test_name_and_start(name):
    path = PATHS[name]
    assert path.name == path.base_name == name
    assert (path.reference is None) == (name == "prior")


def test_trajectories_are_short_where_rotations_leave_the_density_alone_and_nowhere_else():
    assert all(path.tree_depth is None for path in PATHS.values())
    gauge = gauge_at(np.array([[0], [1]]), np.ones(2))
    assert ReferencePath(RotatedReference(gauge, diagonal(np.zeros(1), np.ones(1)))).tree_depth == ROUND_DEPTH
    assert ReferencePath(reference(2, 3, 2, 1)).tree_depth == ROUND_DEPTH


@BY_NAME
def test_log_weight_is_the_sum_of_increments_in_order(name):
    path, ratios = PATHS[name], np.random.default_rng(1).normal(scale=8.0, size=(3, 5, 4))
    increments = path.increments(BETAS, ratios)
    assert increments.shape == (3, 5, 3)
    for t in range(3):
        step = (BETAS[t + 1] - BETAS[t]) * ratios[..., t]
        np.testing.assert_allclose(increments[..., t], step, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path.log_weight(BETAS, ratios), increments.sum(axis=-1))
    last_changed = ratios.copy()
    last_changed[..., -1] += 1.0
    assert (path.log_weight(BETAS, last_changed) == path.log_weight(BETAS, ratios)).all()
    first_changed = ratios.copy()
    first_changed[..., 0] += 1.0
    difference = path.log_weight(BETAS, first_changed) - path.log_weight(BETAS, ratios)
    np.testing.assert_allclose(difference, BETAS[1])


@BY_NAME
def test_zero_density_makes_the_weight_zero_at_the_first_step_and_not_nan(name):
    weight = PATHS[name].log_weight(BETAS, np.array([[-np.inf, -1.0, -1.0, -1.0], [-1.0, -1.0, -1.0, -np.inf]]))
    assert weight[0] == -np.inf and np.isfinite(weight[1])


@BY_NAME
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_ratio_that_is_not_finite_shows_in_the_weight(name, place):
    for value in (-np.inf, np.inf, np.nan):
        ratios = np.full(4, -1.0)
        ratios[place] = value
        np.testing.assert_equal(PATHS[name].log_weight(BETAS, ratios), value)


def test_a_path_says_which_reference_is_one_of_breads_own():
    """A user's tells nothing of itself, whatever it has besides; nor does the prior."""
    own = diagonal(np.zeros(2), np.ones(2))
    assert ReferencePath(own).fitted is own and as_reference(own).is_own
    wrapped = UserReference(own)
    assert ReferencePath(wrapped).fitted is None and not as_reference(wrapped).is_own and PriorPath().fitted is None


def test_a_reference_says_what_it_is():
    one, law = diagonal(np.zeros(2), np.ones(2)), reference(2, 3, 2, 1)
    assert not (one.is_several or one.is_given or one.goes_round) and law.goes_round and not law.is_given
    several = replace(one, components=one.components * 2, weights=np.array([0.5, 0.5]))
    assert several.is_several
    for family in (NestedReference, ConditionalReference, PrecisionReference, CentredReference):
        assert family.is_given and not family.goes_round
