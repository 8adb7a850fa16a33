"""Independence proposals: names, seeds, the rule of acceptance, and that a wrong rule would be seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats

from bread.backends.support.independence import Proposals, draw_proposals, moves_of, name_with, split_name


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (None, (None, False)),
        ("nuts", ("nuts", False)),
        ("independence", (None, True)),
        ("Independence + hmc", ("hmc", True)),
        ("independence+", ("", True)),  # no backend has a kernel of this name
        ("dependence+nuts", ("dependence+nuts", False)),
        (len, (len, False)),
    ],
)
def test_names(kernel, expected):
    assert split_name(kernel) == expected


def test_name_for_the_report():
    assert name_with("NUTS") == "NUTS after independence proposals"
    assert name_with("NUTS", 4) == "NUTS at one temperature in 4, after independence proposals"


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("kernel", ["NUTS", "NUTS with a dense metric"])
def test_the_name_says_how_often_the_kernel_moves(kernel, every):
    assert moves_of(name_with(kernel, every)) == (kernel, every)


def draw(seeds):
    return np.array([default_rng(seed).normal(size=2) for seed in seeds]).reshape(len(seeds), 2)


def test_proposals_depend_on_the_seed_alone_and_leave_it_as_it_is():
    seed = SeedSequence(7, spawn_key=(3,))
    first = draw_proposals(draw, lambda states: states[:, 0], 5, seed)
    assert seed.n_children_spawned == 0
    longer = draw_proposals(draw, lambda states: states[:, 0], 8, SeedSequence(7, spawn_key=(3,)))
    for short, long in zip(first, longer, strict=True):
        assert np.array_equal(short, long[:5])
    other = draw_proposals(draw, lambda states: states[:, 0], 5, SeedSequence(7, spawn_key=(4,)))
    assert not np.isin(first.states, other.states).any()
    children = [default_rng(child).normal(size=2) for child in SeedSequence(7, spawn_key=(3,)).spawn(4)]
    assert not np.isin(first.states, children).any()  # a kernel spawns from the same seed


def test_no_steps_no_proposals():
    found = draw_proposals(draw, lambda states: pytest.fail("nothing to evaluate"), 0, SeedSequence(1))
    assert found.states.shape == (0, 2) and found.log_ratio.shape == found.log_uniform.shape == (0,)


@pytest.mark.parametrize("bad", [-np.inf, np.nan, np.inf])
def test_what_is_not_finite_is_never_taken_nor_left(bad):
    proposals = Proposals(np.zeros((2, 1)), np.array([bad, 0.0]), np.full(2, -1e9))
    assert not proposals.accepts(0, 0.5, 0.0)
    assert not proposals.accepts(1, 0.5, bad)
    assert proposals.accepts(1, 0.5, 3.0)


def chain(beta: float, n: int, exponent: float) -> np.ndarray:
    """A chain of proposals alone: base N(0, 1), log ratio -2 (x - 1)^2 - x, accepted with a factor on beta."""
    proposals = draw_proposals(
        lambda seeds: default_rng(1).normal(size=(len(seeds), 1)),
        lambda states: -2.0 * (states[:, 0] - 1.0) ** 2 - states[:, 0],
        n,
        SeedSequence(2),
    )
    state, ratio, visited = 0.5, -0.5 - 0.5, np.empty(n)
    for step in range(n):
        if proposals.accepts(step, exponent * beta, ratio):
            state, ratio = float(proposals.states[step, 0]), float(proposals.log_ratio[step])
        visited[step] = state
    return visited


def distance(beta: float, exponent: float) -> float:
    """P-value of a Kolmogorov-Smirnov test of every tenth state against N(mean, 1 / precision), the tempered law."""
    precision = 1.0 + 4.0 * beta
    mean = (4.0 * beta - beta) / precision
    kept = chain(beta, 20_000, exponent)[200::10]
    return float(stats.kstest(kept, stats.norm(mean, precision**-0.5).cdf).pvalue)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_the_tempered_law_is_left_invariant(beta):
    """A skewed ratio; the chain's states are nearly independent after ten proposals. Level 0.001."""
    assert distance(beta, 1.0) > 1e-3


@pytest.mark.parametrize("exponent", [0.0, 0.5, 2.0])
def test_another_exponent_is_seen(exponent):
    """Negative control: proposals that are taken always, or by a wrong power of the ratio."""
    assert distance(0.5, exponent) < 1e-6
