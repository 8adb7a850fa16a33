"""Rotations that leave a posterior alone: which are found, and how near references across them are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng

from bread.backends.base import Kernel
from bread.backends.info import Layout
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.moving import move_reference
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.fitting.search.work import FitWork, plain
from bread.fitting.symmetries.find_rotations import invariant_under, rotatable
from bread.fitting.symmetries.invariant import InvariantPosterior
from bread.fitting.symmetries.reference import rotated_anywhere
from bread.paths.factors import FactorReference
from bread.paths.kinds import ReferencePath
from bread.paths.rotated import gauge_at
from bread.seeds import Purpose, seed_sequence
from tests.support.factor_model import factor_model

DRAWS = 60  # of a reference, to see how near it is


def work_of(model, data=None):
    return FitWork(model.condition(data or model.observed_data), model.info.layout.may_be_scale, 3, 1)


def layout_of(labels, **positions):
    found = {name: np.array(value) for name, value in positions.items()}
    flags = np.zeros(len(labels), dtype=bool)
    return Layout(tuple(labels), flags, (), dict.fromkeys(found, ()), found, flags)


def request_of(model, **options):
    layout = model.info.layout
    return FitRequest(layout.dim, layout.may_be_scale, 100, rotatable=rotatable(layout), is_shared=True, **options)


def divergence(posterior, reference, truth, seed):
    """Jeffreys divergence (nats) from an exact draw and draws of the reference: one noisy number a data set."""
    path, drawn = ReferencePath(reference), reference.sample(DRAWS, default_rng(seed))
    return float(posterior.log_ratio(path, truth[None])[0] - posterior.log_ratio(path, drawn).mean())


def test_candidates_are_axes_of_one_length():
    model = factor_model(n=6, d=5, k=2)
    both, *single = rotatable(model.info.layout)
    assert both.shape == (2, 11) and [item.shape for item in single[:2]] == [(2, 6), (2, 5)]
    labels = np.array(model.coordinates)
    assert [label.split("[")[1][-2] for label in labels[both[1, :6]]] == ["1"] * 6  # u[i, 1]
    assert all(label.startswith("v[1") for label in labels[both[1, 6:]])


def test_labels_of_coordinates_may_be_names_or_commas():
    named = layout_of(("z[Kyoto]", "z[Cork]", "z[Lima]"), z=[0, 1, 2])
    assert [item.tolist() for item in rotatable(named)] == [[[0], [1], [2]]]
    assert rotatable(layout_of(("z[a, b]", "z[c]"), z=[0, 1])) == ()  # a name with a comma: its shape is not known
    assert rotatable(layout_of(("a", "b"), a=[0], b=[1])) == ()
    scale = replace(named, transformed=np.array([True, False, False]))
    assert rotatable(scale) == ()


def test_the_rotation_of_factors_is_found_and_no_other():
    model = factor_model()
    places = invariant_under(work_of(model), rotatable(model.info.layout))
    assert places is not None and places.shape == (2, 11)
    # one term that depends on the first factor alone: no rotation is left
    assert invariant_under(work_of(replace(model, tilt=0.01)), rotatable(model.info.layout)) is None


@pytest.mark.parametrize("scale_sd", [None, 0.5])
def test_density_of_invariant_coordinates_has_its_gradient(scale_sd):
    model = factor_model(scale_sd=scale_sd)
    posterior, places = model.condition(model.observed_data), rotatable(model.info.layout)[0]
    gauge = gauge_at(places, default_rng(1).standard_normal(model.dim))
    inner, rng = InvariantPosterior(posterior, gauge), default_rng(2)
    path = ReferencePath(plain(gauge.n_invariant))
    for y in rng.standard_normal((3, gauge.n_invariant)):
        value, gradient = inner.end_gradient(path, y)
        assert value == pytest.approx((inner.log_ratio(path, y[None]) + path.reference.log_density(y[None]))[0])
        direction = rng.standard_normal(len(y))
        ahead, behind = (inner.end_gradient(path, y + sign * 1e-6 * direction)[0] for sign in (1.0, -1.0))
        assert gradient @ direction == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("scale_sd", [None, 0.5])
def test_a_reference_across_rotations_is_near_on_every_data_set(scale_sd):
    """Mean divergence over 12 data sets: some nats; a Gaussian at one rotation, the control, is off by dozens."""
    model = factor_model(n=12, d=10, scale_sd=scale_sd)
    simulations = model.simulate(12, fixed=None, seed=seed_sequence(5, Purpose.SIMULATE))
    first = model.condition(simulations.data_of(0))
    fit = fit_reference(first, request_of(model), root=3, simulation=-2)
    assert fit.family == "rotated" and isinstance(fit.reference, FactorReference)
    assert fit.criterion["rotated"] < min(value for name, value in fit.criterion.items() if name != "rotated")
    control = fit_reference(first, request_of(model, family="full"), root=3, simulation=-2)
    near, far = [], []
    for index in range(1, 12):
        posterior, truth = model.condition(simulations.data_of(index)), simulations.states[index]
        moved = move_reference(posterior, fit, _kernel(fit), root=3, simulation=index)
        assert isinstance(moved.reference, FactorReference)
        near.append(divergence(posterior, moved.reference, truth, index))
        other = move_reference(posterior, control, _kernel(control), root=3, simulation=index)
        far.append(divergence(posterior, other.reference, truth, index))
    assert np.mean(near) < 20.0
    assert np.mean(far) > 3.0 * np.mean(near)


def _kernel(fit):
    return Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in fit.settings.items()})


def test_it_is_found_without_a_chain_where_there_is_no_scale():
    model, scaled = factor_model(), factor_model(scale_sd=0.5)
    work = work_of(model)
    places = rotatable(model.info.layout)[0]
    found = rotated_anywhere(work, places)
    assert found is not None and work.n_gradients > 0
    assert isinstance(found, FactorReference) and found.dim == model.dim
    assert found.marginal.gauge.n_invariant == len(found.couplings.drivers) - 1
    assert rotated_anywhere(work_of(scaled), rotatable(scaled.info.layout)[0]) is None
    posterior = model.condition(model.observed_data)
    is_found, n_gradients, _ = finds_reference(posterior, request_of(model), root=3, simulation=-2)
    assert isinstance(is_found, bool) and n_gradients > 0
