"""The divergence that chooses among references: one visit of a chain to a tail, and a tail that is heavy."""

from __future__ import annotations

import numpy as np

from bread.fitting.search.work import CHECK_DRAWS, FitWork, divergence, plain
from tests.support.funnel import SMALL

START = -1.0 + np.random.default_rng(1).standard_normal(400)


def chains(seed: int) -> list[np.ndarray]:
    """Log ratios of four chains of 100 draws; the first visits a tail once, for 12 draws, ever further out."""
    found = list(np.random.default_rng(seed).standard_normal((4, 100)))
    found[0][40:52] = 3.0 * 1.7 ** np.arange(12)
    return found


def test_one_visit_to_a_tail_is_no_heavy_tail() -> None:
    """Control: the same values, each taken for a draw of its own, look as if the mean did not exist."""
    visited = chains(2)
    expected = np.concatenate(visited).mean() - START.mean()
    assert divergence(START, visited) == expected
    alone = [np.array([value]) for value in np.concatenate(visited)]
    assert divergence(START, alone) == np.inf


def test_a_heavy_tail_of_independent_draws_is_seen() -> None:
    heavy = np.random.default_rng(4).pareto(0.5, (4, 100))
    assert divergence(START, list(heavy)) == np.inf
    assert divergence(-heavy.ravel(), chains(2)) == np.inf


def test_densities_at_a_references_own_draws_are_taken_once() -> None:
    """However often it is asked how near it is; those of another reference are others."""
    work = FitWork(SMALL.condition(SMALL.observed_data), SMALL.transformed, 0, 0)
    one, other = plain(SMALL.dim), plain(SMALL.dim)
    first = work.own_divergence(one)
    assert work.own_divergence(one, 1) < first == work.own_divergence(one) and work.n_evaluations == CHECK_DRAWS
    assert work.own_divergence(other) == first and work.n_evaluations == 2 * CHECK_DRAWS
