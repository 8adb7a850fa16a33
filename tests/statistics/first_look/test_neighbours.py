"""The test of discrete coordinates: level at right draws of hard laws, power at wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from scipy.special import gammaln

from bread.statistics.first_look.first_look import LEVEL
from bread.statistics.first_look.neighbours import MOST, neighbour_test

Array = NDArray[np.float64]
SHAPE = (4, 250)
Law = tuple[Callable[[Generator], Array], Callable[[Array], Array]]


def _poisson(rate: float) -> Law:
    def log_mass(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.where((x >= 0.0).all(axis=1), (x * np.log(rate) - gammaln(x + 1.0)).sum(axis=1), -np.inf)

    return lambda rng: rng.poisson(rate, (*SHAPE, 3)).astype(float), log_mass


def _labels(probability: float) -> Law:
    """Of a label and a mean that depends on it: a mixture."""

    def draw(rng: Generator) -> Array:
        label = (rng.uniform(size=SHAPE) < probability).astype(float)
        return np.stack([label, 2.0 * label + rng.standard_normal(SHAPE)], axis=-1)

    def log_mass(x: Array) -> Array:
        prior = np.where(x[:, 0] == 1.0, np.log(probability), np.log1p(-probability))
        is_legal = (x[:, 0] == 0.0) | (x[:, 0] == 1.0)
        return np.where(is_legal, prior - 0.5 * (x[:, 1] - 2.0 * x[:, 0]) ** 2, -np.inf)

    return draw, log_mass


def _even() -> Law:
    """Of even numbers alone: no neighbour has mass."""
    return lambda rng: 2.0 * rng.integers(0, 5, (*SHAPE, 1)), lambda x: np.where(x[:, 0] % 2 == 0.0, 0.0, -np.inf)


LAWS = {
    "Poisson 0.05": _poisson(0.05), "Poisson 3": _poisson(3.0), "Poisson 400": _poisson(400.0), "labels": _labels(0.4),
    "rare labels": _labels(0.004), "even numbers": _even(),
}  # fmt: skip


def _smallest(law: Law, x: Array, which: list[int]) -> float:
    p_values = neighbour_test(x, which, law[1])[1]
    return float(np.nanmin(p_values))


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
def test_right_draws_pass(name: str) -> None:
    # Twenty sets at level 0.001 each: one below it has probability 0.02, and the seed is fixed.
    rng, law = default_rng(20261130), LAWS[name]
    assert min(_smallest(law, law[0](rng), [0]) for _ in range(20)) > LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (_poisson(3.0), lambda rng: rng.poisson(3.5, (*SHAPE, 3)).astype(float)),
        (_poisson(400.0), lambda rng: np.round(rng.normal(400.0, 15.0, (*SHAPE, 3)))),  # sd 20
        (_labels(0.4), _labels(0.5)[0]),
        (_labels(0.4), lambda rng: np.stack([rng.binomial(1, 0.4, SHAPE), rng.normal(0.8, 1.4, SHAPE)], axis=-1)),
    ],
    ids=["rate", "spread", "weight of a label", "label without its mean"],
)  # fmt: skip
def test_wrong_draws_do_not(law: Law, wrong: Callable[[Generator], Array]) -> None:
    rng = default_rng(3)
    assert sum(_smallest(law, wrong(rng), [0]) < LEVEL for _ in range(5)) >= 4


def test_only_some_coordinates_are_looked_at() -> None:
    x = default_rng(1).poisson(2.0, (*SHAPE, MOST + 3)).astype(float)
    functions, p_values = neighbour_test(x, range(MOST + 3), lambda at: np.zeros(len(at)))
    assert {i for _, i, _ in functions} == set(range(MOST)) and len(functions) == len(p_values)
