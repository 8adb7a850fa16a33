"""Kernels that cannot be frozen or reversed are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
from pymc.step_methods import metropolis
from pymc.step_methods.hmc.quadpotential import QuadPotentialFullAdapt

from bread.backends.pymc.kernels import kernels
from bread.backends.pymc.kernels.engines import compile_engine
from bread.errors import UnsupportedKernelError
from tests.support.pymc_kernel_models import COVARIANCE, binary, categorical, correlated, skewed
from tests.support.pymc_layout import layout_of, mixed

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]


class OwnStep(pm.Metropolis):
    """A user's subclass; nothing is known of its law."""


def refused() -> dict[str, tuple[Any, Any, str]]:
    lone = pm.DEMetropolisZ
    return {
        "DEMetropolis": (correlated, pm.DEMetropolis, "DEMetropolis cannot be run in reverse.*other chains"),
        "DEMetropolisZ": (correlated, lone, "DEMetropolisZ cannot be run in reverse.*history"),
        "built DEMetropolisZ": (correlated, lambda m: lone(model=m), "DEMetropolisZ cannot be run in reverse"),
        "unknown class": (correlated, OwnStep, "OwnStep cannot be run in reverse.*not known"),
        "jitter": (
            correlated,
            lambda m: pm.NUTS(step_rand=lambda eps, rng=None: eps * rng.choice([0.5, 1.0]), model=m),
            "NUTS has step_rand.*Set step_rand=None",
        ),
        "dense adaptation": (
            correlated,
            lambda m: pm.NUTS(potential=QuadPotentialFullAdapt(2, np.zeros(2), np.eye(2), 10), model=m),
            "potential=QuadPotentialFullAdapt",
        ),
        "asymmetric proposal": (
            skewed,
            lambda m: pm.Metropolis(proposal_dist=metropolis.PoissonProposal, model=m),
            "PoissonProposal, which is not known to be symmetric",
        ),
        "correlated proposal": (
            correlated,
            lambda m: pm.Metropolis(S=COVARIANCE, model=m),
            "S as a vector of standard deviations",
        ),
        "proportional": (
            categorical,
            lambda m: pm.CategoricalGibbsMetropolis(m.value_vars, proposal="proportional", model=m),
            'proposal="uniform"',
        ),
        "nuts on discrete": (mixed, "nuts", "moves continuous variables only, but z are discrete"),
        "hmc on discrete": (binary, "hmc", "but z, w are discrete"),
        "unknown name": (correlated, "gibbs", "'gibbs'.*\"nuts\""),
        "unsuitable class": (correlated, pm.BinaryGibbsMetropolis, "can move none of the variables x"),
        "number": (correlated, 3, "kernel has the value 3"),
        "wrong return": (correlated, lambda m: None, "must return step methods but returned"),
    }


@pytest.mark.filterwarnings("ignore:QuadPotentialFullAdapt is an experimental feature")
@pytest.mark.parametrize("name", refused())
def test_kernels_are_refused_by_name(name):
    build, kernel, message = refused()[name]
    model = build()
    with pytest.raises(UnsupportedKernelError, match=message):
        compile_engine(model, layout_of(model), kernel)


def test_steps_bound_to_the_users_model_are_refused():
    model = correlated()
    with model:
        step = pm.Slice()
        gradient_step = pm.NUTS()
    with pytest.raises(UnsupportedKernelError, match=r"Slice object, bound to .*kernel=lambda model: pm.Slice"):
        compile_engine(model, layout_of(model), step)
    for bound in (step, gradient_step):
        with pytest.raises(UnsupportedKernelError, match="not built on the model it was called with"):
            compile_engine(model, layout_of(model), lambda tempered, bound=bound: bound)


def test_proportional_proposals_of_pymc_are_not_invariant():
    """Why they are refused: PyMC divides by 1 - p(current) before it computes the acceptance ratio."""
    target = np.array([0.5, 0.3, 0.2])
    transition = np.zeros((3, 3))
    for current in range(3):
        proposal = np.where(np.arange(3) == current, 0, target) / (1 - target[current])
        for proposed in set(range(3)) - {current}:
            ratio = (1 - target[current]) / (1 - proposal[proposed])
            transition[current, proposed] = proposal[proposed] * min(1, ratio)
        transition[current, current] = 1 - transition[current].sum()
    assert np.max(np.abs(target @ transition - target)) > 0.1


def test_what_pymc_assigns_is_refused_without_a_way_in_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package's own step method, as of trees: the user chose no kernel, and None would assign it again."""
    monkeypatch.setattr(kernels, "assign_step_methods", lambda model: ({}, {OwnStep: list(model.value_vars)}))
    with pytest.raises(UnsupportedKernelError, match=r"pm.sample moves 'x' by OwnStep.*a model without 'x'\.$"):
        compile_engine(correlated(), layout_of(correlated()), None)
