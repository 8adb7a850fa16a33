"""Thousands of prior draws in a few calls: their law is that of draws made one by one, or there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, rankdata

pm = pytest.importorskip("pymc")

from numpy.random import SeedSequence  # noqa: E402

from bread.backends.pymc.model.reading import read_initial_point, read_layout, read_observed  # noqa: E402
from bread.backends.pymc.simulation import prior_batch  # noqa: E402
from bread.backends.pymc.simulation.prior_batch import draw_batch  # noqa: E402
from bread.backends.pymc.simulation.prior_graph import prior_graph  # noqa: E402
from bread.backends.pymc.simulation.simulation import Simulator, build_simulator  # noqa: E402
from bread.backends.pymc.simulation.streams import child_seeds  # noqa: E402
from tests.support.pymc_models import MODELS  # noqa: E402

pytestmark = pytest.mark.pymc
N = 2000
LEVEL = 1e-4  # of the smallest p-value of a model, by Bonferroni: some sixty models, at fixed seeds
SEED = SeedSequence(20161125)


def simulator_of(model: Any) -> Simulator:
    return build_simulator(model, read_layout(model, read_initial_point(model)), read_observed(model), [])


def at_once(simulator: Simulator, n: int) -> np.ndarray:
    batch = simulator.draw_states_at_once(n, SEED)
    assert batch is not None
    return batch


def p_value(batch: np.ndarray, singles: np.ndarray) -> float:
    """Compare two samples in every coordinate, in random projections and in squares of these: a joint law."""
    projections = np.random.default_rng(1).normal(size=(20, batch.shape[1])) / (singles.std(axis=0) + 1e-12)
    functions = [lambda x: x, lambda x: x @ projections.T, lambda x: (x @ projections.T) ** 2]
    tests = [
        float(ks_2samp(one, other, method="asymp").pvalue)
        for function in functions
        for one, other in zip(function(batch).T, function(singles).T, strict=True)
    ]
    return min(1.0, len(tests) * min(tests))


def rows_are_independent(batch: np.ndarray) -> bool:
    """Look at correlations of each row with the next, and with the next but one, 5 standard errors."""
    found = [np.corrcoef(one[:-lag], one[lag:])[0, 1] for one in rankdata(batch, axis=0).T for lag in (1, 2)]
    return bool(np.max(np.abs(found)) < 5.0 / np.sqrt(len(batch)))


@pytest.mark.slow
def test_a_batch_has_the_law_of_draws_made_one_by_one() -> None:
    """Every model of the table; most are drawn at once."""
    found = []
    for name, build in MODELS.items():
        simulator = simulator_of(build())
        singles = simulator.draw_states(child_seeds(SeedSequence(1), N))
        batch = simulator.draw_states_at_once(N, SEED)
        if batch is None:
            continue
        found.append(name)
        assert p_value(batch, singles) > LEVEL, name
        assert rows_are_independent(batch), name
    assert len(found) >= 0.7 * len(MODELS), sorted(set(MODELS) - set(found))


@pytest.mark.parametrize("factor", [1.0, 1.15])
def test_another_law_is_noticed(factor: float) -> None:
    """Negative control of the comparison: draws that are 15% too wide; so are rows that hang together."""
    simulator = simulator_of(MODELS["schools_centred"]())
    singles = simulator.draw_states(child_seeds(SeedSequence(1), N))
    batch = at_once(simulator, N)
    assert (p_value(factor * batch, singles) > LEVEL) is (factor == 1.0)
    assert rows_are_independent(batch)
    assert not rows_are_independent(np.repeat(batch[: N // 2], 2, axis=0))


def test_a_centred_hierarchy_is_drawn_at_once() -> None:
    """Widths have the new axis, means do not: PyTensor alone refuses to vectorise it."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        x = pm.Normal("x", 0.0, scale, shape=3)
        pm.Normal("y", x, 1.0, observed=np.zeros(3))
    batch = at_once(simulator_of(model), 20_000)
    # Var(x) = E(scale^2) = 1, and the coordinates share a scale: E(x_1^2 x_2^2) = E(scale^4) = 3
    assert batch[:, 1:].var() == pytest.approx(1.0, abs=5 * np.sqrt(8.0 / 60_000))
    assert np.mean(batch[:, 1] ** 2 * batch[:, 2] ** 2) == pytest.approx(3.0, abs=5 * np.sqrt(105.0 * 9.0 / 20_000))
    assert prior_graph_of(model) is not None


def prior_graph_of(model: Any) -> Any:
    from bread.backends.pymc.simulation.restricted import read_restrictions

    return prior_graph(model, read_restrictions(model)).draw_many()


def test_sorted_and_rejected_draws_are_made_one_by_one() -> None:
    """A batch takes every draw as it is; a transform that restricts the support does not."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0, shape=2, transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])
        pm.Normal("y", x, 1.0, observed=np.zeros(2))
    simulator = simulator_of(model)
    assert simulator.draw_states_at_once(300, SEED) is None


def repeat_rows(found: list[np.ndarray]) -> list[np.ndarray]:
    return [np.repeat(one[:1], len(one), axis=0) for one in found]


def share_first_variable(found: list[np.ndarray]) -> list[np.ndarray]:
    return [np.repeat(found[0][:1], len(found[0]), axis=0), *found[1:]]


def lose_a_row(found: list[np.ndarray]) -> list[np.ndarray]:
    return [one[:-1] for one in found]


def overflow(found: list[np.ndarray]) -> list[np.ndarray]:
    return [np.where(np.arange(one.size).reshape(one.shape) == 5, np.inf, one) for one in found]


@pytest.mark.parametrize("spoil", [repeat_rows, share_first_variable, lose_a_row, overflow])
def test_a_batch_that_is_no_batch_is_not_believed(spoil: Callable[[list[np.ndarray]], list[np.ndarray]]) -> None:
    """What a wrong vectorisation gives: one draw many times, one variable shared, a row too few, no number."""
    model = MODELS["schools_centred"]()
    simulator, graph = simulator_of(model), prior_graph_of(model)
    singles = simulator.draw_states(child_seeds(SEED, 300))

    class Spoilt:
        n_generators = graph.n_generators

        @staticmethod
        def call(*arguments: Any) -> list[np.ndarray]:
            return spoil([np.asarray(one) for one in graph.call(*arguments)])

    assert draw_batch(graph, 300, SEED, lambda few: singles[:few]) is not None
    assert draw_batch(Spoilt(), 300, SEED, lambda few: singles[:few]) is None  # type: ignore[arg-type]


def test_a_batch_is_split_where_it_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten coordinates, ninety numbers a call: other random numbers for each part."""
    monkeypatch.setattr(prior_batch, "MOST_NUMBERS", 90)
    simulator = simulator_of(MODELS["schools_centred"]())
    batch = at_once(simulator, 300)
    assert batch.shape == (300, 10)
    assert len(np.unique(batch[:, 0])) == 300
