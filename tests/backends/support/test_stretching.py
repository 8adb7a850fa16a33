"""A kernel's metric given to a law that is wider in some coordinates: each gets its own factor, whatever the order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bread.backends import open_model
from bread.backends.base import Kernel, OpenOptions
from bread.backends.support.stretching import stretched_kernel, stretched_metric

FACTOR = np.array([1.0, 2.0, 10.0])


def test_variances_grow_with_the_square() -> None:
    settings = {"step_size": np.array([0.5, 0.4]), "inverse_metric": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])}
    found = stretched_metric(settings, FACTOR)
    np.testing.assert_allclose(found["inverse_metric"], settings["inverse_metric"] * [1.0, 4.0, 100.0])
    assert found["step_size"] is settings["step_size"]


@pytest.mark.parametrize("settings", [{}, {"scaling": np.ones(2)}, {"inverse_metric": np.ones((2, 5))}])
def test_what_is_no_metric_of_all_coordinates_stays(settings: dict[str, Any]) -> None:
    assert stretched_metric(settings, FACTOR) is settings


def test_a_posterior_that_cannot_keeps_its_kernel() -> None:
    kernel = Kernel(np.array([0.0, 1.0]), {"inverse_metric": np.ones((2, 3))})
    assert stretched_kernel(object(), kernel, FACTOR) is kernel


@pytest.mark.pymc
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_pymc_stretches_the_coordinates_of_a_state(names: tuple[str, str]) -> None:
    """A step that holds its variables in another order than states do: adapted widths show which is which."""
    import pymc as pm

    with pm.Model() as model:
        a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0, shape=2)
        pm.Normal("y", a + b.sum(), 1.0, observed=0.5)

    def kernel(of: pm.Model) -> Any:
        return pm.NUTS([of[name] for name in names], model=of)

    opened = open_model(model, OpenOptions(kernel=kernel))
    posterior = opened.condition(opened.info.data.observed)
    step = posterior.engine.steps[0]
    at = {name: i for i, name in enumerate(opened.info.layout.coordinates)}
    factor = np.array([{"a": 10.0, "b[0]": 1.0, "b[1]": 3.0}[name] for name in at])
    settings = posterior.stretch({"step_size": np.ones(1), "inverse_metric": np.ones((1, 3))}, factor)
    widths = {"a": [100.0], "b": [1.0, 9.0]}
    expected = np.concatenate([widths[name] for name in step.gradient.names])
    np.testing.assert_allclose(settings["inverse_metric"][0], expected)
