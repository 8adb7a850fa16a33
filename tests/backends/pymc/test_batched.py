"""Functions of many points at once: the same bits as point by point, or none."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402

from bread.backends.pymc.density.compiling import interpret_function  # noqa: E402
from bread.backends.pymc.model.reading import read_initial_point, read_layout, read_observed  # noqa: E402
from bread.backends.pymc.simulation import prior_batch, simulation  # noqa: E402
from bread.backends.pymc.simulation.batched import in_batches, vectorised  # noqa: E402
from bread.backends.pymc.simulation.simulation import build_simulator  # noqa: E402
from tests.support.pymc_models import MODELS  # noqa: E402

pytestmark = pytest.mark.pymc
NOT_ELEMENTWISE = {"simplex", "zero_sum", "mixture_likelihood"}  # a sum in the transform


@pytest.mark.slow
def test_many_draws_are_mapped_as_one_by_one() -> None:
    """Every model of the table: equal bits. Almost all are mapped at once, those with sums are not."""
    at_once = set()
    for name, build in MODELS.items():
        model = build()
        simulator = build_simulator(model, read_layout(model, read_initial_point(model)), read_observed(model), [])
        draws = simulator.simulate(7, fixed=None, seed=np.random.SeedSequence(1)).parameters
        expected = simulator.unconstrain(draws)
        with (
            patch.object(simulation, "WORTH_BUILDING", 1),
            patch.object(prior_batch, "in_batches", wraps=in_batches) as batches,
        ):
            found = simulator.unconstrain(draws)
        np.testing.assert_array_equal(found, expected, err_msg=name)
        at_once |= {name} if batches.called else set()
    assert not at_once & NOT_ELEMENTWISE
    assert len(at_once) >= 0.7 * len(MODELS)


def test_a_draw_that_raises_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the function of many raises, each draw is mapped by itself."""
    model = MODELS["schools_centred"]()
    simulator = build_simulator(model, read_layout(model, read_initial_point(model)), read_observed(model), [])
    draws = simulator.simulate(5, fixed=None, seed=np.random.SeedSequence(1)).parameters

    def raising(*_: Any) -> Any:
        raise ValueError

    expected = simulator.unconstrain(draws)
    monkeypatch.setattr(simulation, "WORTH_BUILDING", 1)
    monkeypatch.setattr(prior_batch, "in_batches", raising)
    np.testing.assert_array_equal(simulator.unconstrain(draws), expected)


def test_a_function_of_many_that_is_wrong_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by one part in 10^12: the draws are mapped one by one."""
    model = MODELS["schools_centred"]()
    simulator = build_simulator(model, read_layout(model, read_initial_point(model)), read_observed(model), [])
    draws = simulator.simulate(5, fixed=None, seed=np.random.SeedSequence(1)).parameters
    expected = simulator.unconstrain(draws)
    monkeypatch.setattr(simulation, "WORTH_BUILDING", 1)
    monkeypatch.setattr(
        prior_batch, "in_batches", lambda *arguments: [part * (1.0 + 1e-12) for part in in_batches(*arguments)]
    )
    np.testing.assert_array_equal(simulator.unconstrain(draws), expected)


@pytest.mark.parametrize("rounds_otherwise", [lambda x: x.sum(), lambda x: pt.dot(x, x), pt.cumsum])
def test_what_may_round_otherwise_is_not_vectorised(rounds_otherwise: Any) -> None:
    x = pt.vector("x", shape=(3,))
    assert vectorised([x], [rounds_otherwise(x)]) is None


def test_batches_have_the_bits_of_single_calls() -> None:
    """Elementwise functions of two variables of different shapes, a constant output, in batches of two rows."""
    x, scale = pt.vector("x", shape=(3,)), pt.scalar("scale")
    outputs = [pt.log1p(pt.exp(x * scale)), pt.sigmoid(x) - scale, pt.zeros(2)]
    single, many = (
        interpret_function(
            [x, scale],
            outputs,
        ),
        vectorised([x, scale], outputs),
    )
    assert many is not None
    rng = np.random.default_rng(3)
    columns = [rng.normal(size=(5, 3)), rng.normal(size=5)]
    expected = [np.array(one) for one in zip(*(single(*row) for row in zip(*columns, strict=True)), strict=True)]
    with patch("bread.backends.pymc.simulation.batched.MOST_NUMBERS", 16):
        found = in_batches(many, columns, 5, 8)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
