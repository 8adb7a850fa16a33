"""Variables of another package whose density says nothing of them, as of trees: no sampler may take it for theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.distribution import Distribution, _support_point
from pymc.logprob.abstract import _logprob
from pytensor.tensor.random.op import RandomVariable

import bread
from bread.errors import UnsupportedModelError

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]


class TreesRV(RandomVariable):
    """A sum of trees, which only a step method of its own draws."""

    name = "trees"
    signature = "(n)->(n)"
    dtype = "floatX"

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, x: Any, size: Any) -> Any:
        return np.zeros(np.shape(x))


class CentredRV(TreesRV):
    """The same operation with a density of its own."""

    name = "centred"


class Trees(Distribution):
    rv_op = TreesRV()

    @classmethod
    def dist(cls, x: Any, **options: Any) -> Any:
        return super().dist([pt.as_tensor_variable(x)], **options)


class Centred(Trees):
    rv_op = CentredRV()


@_logprob.register(TreesRV)
def _no_density(op: Any, values: Any, rng: Any, size: Any, x: Any, **options: Any) -> Any:
    return pt.zeros_like(values[0]).sum(axis=-1)


@_logprob.register(CentredRV)
def _density(op: Any, values: Any, rng: Any, size: Any, x: Any, **options: Any) -> Any:
    return -0.5 * ((values[0] - x) ** 2).sum(axis=-1)


@_support_point.register(TreesRV)
def _middle(op: Any, variable: Any, size: Any, rng: Any, x: Any) -> Any:
    return pt.zeros_like(variable)


def model_with(kind: type[Trees]) -> pm.Model:
    with pm.Model() as model:
        mean = kind("mean", np.linspace(0.0, 1.0, 3))
        pm.Normal("y", mean, 1.0, observed=[0.1, 0.4, -0.2])
    return model


@pytest.mark.parametrize("options", [{}, {"kernel": "nuts"}, {"simulate_from": "posterior"}], ids=str)
def test_a_placeholder_is_refused_whatever_would_move_it(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match=r"density of 'mean' does not depend on its value.*without 'mean'"):
        bread.check(model_with(Trees), random_seed=1, progressbar=False, cores=1, **options)


def test_a_look_does_not_take_a_placeholder_for_a_density() -> None:
    """It would ask draws of trees to follow the likelihood alone."""
    draws = {"mean": np.random.default_rng(1).normal(size=(4, 200, 3))}
    with pytest.raises(UnsupportedModelError, match="it is a placeholder"):
        bread.look(model_with(Trees), posterior=draws)
    assert bread.look(model_with(Centred), posterior=draws) is not None
