"""Log ratios at fewer inverse temperatures: ends and integrals are those of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from bread.paths import knots
from bread.statistics.evidence.evidence import thermodynamic_integral

T = 5000


def betas_of(kind: str, n: int = T) -> np.ndarray:
    even = np.linspace(0, 1, n)
    shapes: dict[str, np.ndarray] = {"linear": even, "sigmoid": (1 - np.cos(np.pi * even)) / 2, "uneven": even**4}
    return shapes[kind]


def chains(n: int = T, rows: int = 3) -> np.ndarray:
    rng = np.random.default_rng(4)
    return np.asarray(np.cumsum(rng.normal(0, 1, (rows, n)), axis=1) + 30 * np.sqrt(np.linspace(0, 1, n)) - 900)


@pytest.mark.parametrize("kind", ["linear", "sigmoid", "uneven"])
def test_ends_and_integrals_stay(kind: str) -> None:
    betas, ratios = betas_of(kind), chains()
    kept, found = betas[knots.kept_knots(T)], knots.at_kept_knots(betas, ratios)
    assert found.shape == (3, knots.MOST_KNOTS) and (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(found[:, 0], ratios[:, 0])
    np.testing.assert_array_equal(found[:, -1], ratios[:, -1])
    for one, other in zip(found, ratios, strict=True):
        exact = thermodynamic_integral(betas, other[None]).value
        assert thermodynamic_integral(kept, one[None]).value == pytest.approx(exact, abs=1e-9)
        thinned = thermodynamic_integral(kept, other[None, knots.kept_knots(T)]).value
        assert abs(thinned - exact) > 1e-4  # what leaving temperatures out would give


def test_a_line_stays_a_line() -> None:
    betas = betas_of("linear")
    found = knots.at_kept_knots(betas, 3.0 + 2.0 * betas[None])
    np.testing.assert_allclose(
        found[0], 3.0 + 2.0 * betas[knots.kept_knots(T)], atol=3.0 / T
    )  # the hats beside the ends lean


def test_few_temperatures_stay_as_they_are() -> None:
    betas, ratios = betas_of("linear", knots.MOST_KNOTS), chains(knots.MOST_KNOTS)
    assert knots.at_kept_knots(betas, ratios) is ratios
    np.testing.assert_array_equal(knots.kept_knots(knots.MOST_KNOTS), np.arange(knots.MOST_KNOTS))


def test_what_is_not_finite_stays_where_it_was() -> None:
    betas, ratios = betas_of("linear"), chains()
    ratios[0, 0], ratios[1, 2000], ratios[2] = -np.inf, -np.inf, np.nan
    found = knots.at_kept_knots(betas, ratios)
    assert found[0, 0] == -np.inf and np.isfinite(found[0, 1:]).all()
    near = np.isneginf(found[1])
    assert 1 <= near.sum() <= 2 and abs(betas[knots.kept_knots(T)][near] - betas[2000]).max() < 10 / T
    assert np.isnan(found[2]).all()
