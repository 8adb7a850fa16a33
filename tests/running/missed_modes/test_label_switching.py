"""Labels that may be exchanged: found where the posterior is symmetric, in a simplex too, and nowhere else."""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from bread.backends.base import Identity, Layout, ModelInfo, RealData
from bread.running.missed_modes.label_switching import aligned, find_exchanges

OBSERVED = np.array([-2.0, -1.7, 0.1, 0.3, 2.2, 2.6])


@dataclass(frozen=True)
class Mixture:
    """Three clusters summed out: weights ~ Dirichlet(concentration), means ~ N(centres, 2), noise 0.5, one offset.

    Coordinates: two log ratios of weights to the last, three means, the offset.
    """

    concentration: tuple[float, float, float] = (2.0, 2.0, 2.0)
    centres: tuple[float, float, float] = (0.0, 0.0, 0.0)
    is_ordered: bool = False

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(
            Identity("m", "test", "", "", {}),
            Layout(
                tuple("abcdef"), np.zeros(6, dtype=bool), (), {"weight": (), "mean": (), "offset": ()},
                {"weight": np.arange(2), "mean": np.arange(2, 5), "offset": np.array([5])},
            ),
            RealData({}, {}),
        )  # fmt: skip

    def constrain(self, states: np.ndarray) -> dict[str, Any]:
        logits = np.concatenate([states[:, :2], np.zeros((len(states), 1))], axis=1)
        weight = np.exp(logits - logsumexp(logits, axis=1)[:, None])
        return {"weight": weight, "mean": self._means(states), "offset": states[:, 5], "twice": 2 * states[:, 5]}

    def _means(self, states: np.ndarray) -> np.ndarray:
        if not self.is_ordered:
            return states[:, 2:5]
        steps = np.concatenate([states[:, 2:3], np.exp(states[:, 3:5])], axis=1)
        return np.cumsum(steps, axis=1)

    def unconstrain(self, parameters: dict[str, Any]) -> np.ndarray:
        weight, mean = np.log(parameters["weight"]), parameters["mean"]
        if self.is_ordered:
            with np.errstate(invalid="ignore"):
                mean = np.concatenate([mean[:, :1], np.log(np.diff(mean, axis=1))], axis=1)
        return np.concatenate([weight[:, :2] - weight[:, 2:], mean, parameters["offset"][:, None]], axis=1)

    def log_density(self, states: np.ndarray) -> np.ndarray:
        values = self.constrain(states)
        weight, mean = np.log(values["weight"]), values["mean"]
        prior = (np.array(self.concentration) * weight).sum(axis=1)  # of the Jacobian one power of each weight
        prior = prior - 0.5 * (((mean - np.array(self.centres)) / 2) ** 2).sum(axis=1) - 0.5 * states[:, 5] ** 2
        if self.is_ordered:
            prior = prior + states[:, 3:5].sum(axis=1)
        away = OBSERVED[:, None] - mean[:, None, :] - values["offset"][:, None, None]
        terms = weight[:, None, :] - 0.5 * (away / 0.5) ** 2
        return prior + logsumexp(terms, axis=2).sum(axis=1)


STATES = np.random.default_rng(0).normal(size=(5, 6))


def test_clusters_are_exchanged_with_their_weights():
    model = Mixture()
    (exchange,) = find_exchanges(model, STATES, model.log_density)
    assert exchange.axes == {"weight": (0,), "mean": (0,)}
    assert exchange.log_copies == pytest.approx(np.log(6))


@pytest.mark.parametrize(
    "model",
    [Mixture(concentration=(2.0, 2.0, 3.0)), Mixture(centres=(0.0, 0.0, 0.1)), Mixture(is_ordered=True)],
)
def test_no_exchange_where_something_tells_clusters_apart(model):
    assert find_exchanges(model, STATES, model.log_density) == ()


@dataclass(frozen=True)
class Sticks(Mixture):
    """The same model with weights by stick-breaking: w1 = s1, w2 = (1 - s1) s2, s the logistic of a coordinate."""

    def constrain(self, states: np.ndarray) -> dict[str, Any]:
        s = 1 / (1 + np.exp(-states[:, :2]))
        weight = np.stack([s[:, 0], (1 - s[:, 0]) * s[:, 1], (1 - s[:, 0]) * (1 - s[:, 1])], axis=1)
        return super().constrain(states) | {"weight": weight}

    def unconstrain(self, parameters: dict[str, Any]) -> np.ndarray:
        weight = parameters["weight"]
        first, second = weight[:, 0], weight[:, 1] / (weight[:, 1] + weight[:, 2])
        logits = np.stack([np.log(first / (1 - first)), np.log(second / (1 - second))], axis=1)
        return np.concatenate([logits, super().unconstrain(parameters)[:, 2:]], axis=1)

    def log_density(self, states: np.ndarray) -> np.ndarray:
        weight = self.constrain(states)["weight"]
        s = 1 / (1 + np.exp(-states[:, :2]))
        jacobian = np.log(s * (1 - s)).sum(axis=1) + np.log(1 - s[:, 0])
        softmax = states.copy()
        softmax[:, :2] = np.log(weight[:, :2] / weight[:, 2:])
        return Mixture().log_density(softmax) - np.log(weight).sum(axis=1) + jacobian


def test_a_simplex_by_stick_breaking_may_be_exchanged():
    model = Sticks()
    (exchange,) = find_exchanges(model, STATES, model.log_density)
    assert exchange.axes == {"weight": (0,), "mean": (0,)}
    softmax = Mixture()  # the density of the other coordinates is no symmetry of these
    assert find_exchanges(model, STATES, softmax.log_density) == ()


def test_states_are_aligned_to_a_target():
    model = Mixture()
    exchanges = find_exchanges(model, STATES, model.log_density)
    target = np.array([0.3, -0.2, -2.0, 0.0, 2.5, 0.1])
    named = model.constrain(target[None, :])
    for order in permutations(range(3)):
        copy = model.unconstrain({
            "weight": named["weight"][:, order], "mean": named["mean"][:, order], "offset": named["offset"],
        })  # fmt: skip
        near = copy + 0.01
        moved = aligned(model, exchanges, np.concatenate([near, near + 0.02]), target)
        assert np.abs(moved - target).max() < 0.1
        np.testing.assert_allclose(model.log_density(moved[:1]), model.log_density(near))  # one and the same mode
    assert aligned(model, (), STATES, target) is STATES


def test_exchanged_values_of_all_rows_and_axes():
    rng = np.random.default_rng(1)
    from bread.running.missed_modes.label_switching import Exchange

    exchange = Exchange(3, {"matrix": (0, 1), "vector": (0,)})
    values = {"matrix": rng.normal(size=(2, 3, 3)), "vector": rng.normal(size=(2, 3)), "other": rng.normal(size=2)}
    order = np.array([[2, 0, 1], [0, 1, 2]])
    result = exchange.apply(values, order)
    np.testing.assert_array_equal(result["matrix"][0], values["matrix"][0][np.ix_(order[0], order[0])])
    np.testing.assert_array_equal(result["vector"][0], values["vector"][0][order[0]])
    for name in values:
        np.testing.assert_array_equal(result[name][1], values[name][1])
