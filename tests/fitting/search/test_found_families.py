"""The worked example of CONTRIBUTING: a family of references that is looked for, chosen, and found on other data."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.integrate import quad

from bread.backends.base import Kernel
from bread.fitting.search import found_families
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.found_references import FitRequest
from bread.fitting.search.moving import move_reference
from bread.fitting.search.reference_fit import fit_reference
from bread.fitting.search.work import FitWork
from tests.support.reference_models import CONJUGATE

CONTRIBUTING = Path(__file__).parents[3] / "CONTRIBUTING.md"
MODEL = CONJUGATE["normal_mean_hmc"]
REAL, OTHER = ({"y": MODEL.y + shift} for shift in (0.0, 2.0))
REQUEST = FitRequest(1, np.zeros(1, dtype=bool), 200)


@pytest.fixture(scope="module")
def example():
    (block,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING.read_text(encoding="utf-8"), flags=re.DOTALL)
    module = ModuleType("worked_example")
    sys.modules[module.__name__] = module  # where dataclasses look for it
    exec(compile(block, "CONTRIBUTING.md", "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


def test_the_example_is_a_density_with_moments(example):
    law = example.StudentReference(np.array([1.0, -2.0]), np.array([0.5, 3.0]))
    one = example.StudentReference(np.array([1.0]), np.array([0.5]))
    assert quad(lambda x: np.exp(one.log_density(np.array([[x]]))[0]), -30.0, 30.0)[0] == pytest.approx(1.0, abs=1e-6)
    states, step = law.sample(3, default_rng(0)), 1e-6 * np.eye(2)
    for state, gradient in zip(states, law.gradient(states), strict=True):
        differences = (law.log_density(state + step) - law.log_density(state - step)) / 2e-6
        np.testing.assert_allclose(gradient, differences, rtol=1e-6)
    # of 2000 draws: 4 standard errors; a kurtosis of 4.5 makes those of a deviation 0.94 / sqrt(2000) of it
    deviation = law.scale * np.sqrt(example.DEGREES / (example.DEGREES - 2.0))
    np.testing.assert_allclose((law.moments()[0] - law.mean) / deviation, 0.0, atol=0.09)
    np.testing.assert_allclose(law.moments()[1] / deviation, 1.0, atol=0.085)


def test_the_example_is_chosen_where_it_is_near_and_found_on_other_data(example, monkeypatch):
    """Nothing else is looked for. Control: without its line in the table it is not there."""
    monkeypatch.setattr(found_families, "AFTER_ONE_CHAIN", ())
    monkeypatch.setattr(found_families, "AFTER_CHAINS", ())
    short = replace(REQUEST, n_steps=50, n_chains=2)
    assert "student" not in fit_reference(MODEL.condition(REAL), short, root=1, simulation=0).criterion
    monkeypatch.setattr(found_families, "AFTER_CHAINS", (example.STUDENT,))
    fit = fit_reference(MODEL.condition(REAL), REQUEST, root=1, simulation=0)
    assert fit.family == "student" and fit.criterion["student"] < 0.5
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in fit.settings.items()})
    moved = move_reference(MODEL.condition(OTHER), fit, kernel, root=1, simulation=1)
    work = FitWork(MODEL.condition(OTHER), REQUEST.transformed, 1, 2)
    assert moved.family == "student" and isinstance(moved.reference, example.StudentReference)
    assert work.own_divergence(moved.reference) < 1.0 < work.own_divergence(fit.reference)


def test_the_example_may_be_looked_for_before_any_chain(example, monkeypatch):
    """The prior is near enough to the posterior of data that say little; that of others is not."""
    monkeypatch.setattr(found_families, "BEFORE_CHAINS", (example.STUDENT,))
    vague, sharp = (type(MODEL)(MODEL.y, prior_sd=0.5, noise_sd=noise, kernel=MODEL.kernel) for noise in (3.0, 0.05))
    assert finds_reference(vague.condition(REAL), REQUEST, root=1, simulation=0).is_found
    assert not finds_reference(sharp.condition(REAL), REQUEST, root=1, simulation=0).is_found
