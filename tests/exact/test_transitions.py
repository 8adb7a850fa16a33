"""Kernels on finite spaces: invariance, detailed balance, reversals, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from bread import exact
from bread.errors import InvalidArgumentError
from bread.exact import Transition
from bread.exact.transitions import probabilities, reverse_matrices
from tests.support.finite_annealing import metropolis_on_line, sweep_of_pairs

SHAPE = (3, 4)
N = 12
RNG = np.random.default_rng(7)
DENSITIES = 3 * RNG.normal(size=(5, N))
WITH_ZERO = np.where(RNG.random((5, N)) < 0.2, -np.inf, DENSITIES)
ASYMMETRIC = RNG.dirichlet(np.ones(N), size=N)
ONE_WAY = np.eye(N, k=1)  # what cannot be proposed back is never accepted

REVERSIBLE: dict[str, Transition] = {
    "grid": exact.MetropolisHastings(exact.grid_neighbours(SHAPE)),
    "asymmetric proposals": exact.MetropolisHastings(ASYMMETRIC),
    "one way": exact.MetropolisHastings(ONE_WAY),
    "one heat bath": exact.HeatBath([np.arange(N) // 4]),
    "independent": exact.independent_draws(N),
    "idle": exact.Lazy(exact.MetropolisHastings(ASYMMETRIC), 0.6),
}
ORDERED: dict[str, Transition] = {
    "Gibbs": exact.gibbs_on_grid(SHAPE),
    "idle Gibbs": exact.Lazy(exact.gibbs_on_grid(SHAPE), 0.3),
    "matrix": exact.MatrixTransition(lambda log_density: sweep_of_pairs(np.exp(log_density))),
}
ALL = {**REVERSIBLE, **ORDERED}


def flows(transition: Transition, log_density: np.ndarray) -> np.ndarray:
    return probabilities(log_density)[:, :, None] * transition.matrices(log_density)


@pytest.mark.parametrize("densities", [DENSITIES, WITH_ZERO], ids=["positive", "with zeros"])
@pytest.mark.parametrize("name", ALL)
def test_every_kernel_leaves_its_density_invariant(name: str, densities: np.ndarray) -> None:
    law = probabilities(densities)
    for matrices in (ALL[name].matrices(densities), ALL[name].reversals(densities)):
        assert matrices.shape == (5, N, N) and (matrices >= 0).all()
        np.testing.assert_allclose(matrices.sum(axis=2), 1.0, atol=1e-12)
        np.testing.assert_allclose((law[:, None, :] @ matrices)[:, 0], law, atol=1e-14)


@pytest.mark.parametrize("densities", [DENSITIES, WITH_ZERO], ids=["positive", "with zeros"])
@pytest.mark.parametrize("name", ALL)
def test_reversals_mirror_the_flow(name: str, densities: np.ndarray) -> None:
    flow = flows(ALL[name], densities)
    back = probabilities(densities)[:, :, None] * ALL[name].reversals(densities)
    np.testing.assert_allclose(back, flow.transpose(0, 2, 1), atol=1e-14)


@pytest.mark.parametrize("name", REVERSIBLE)
def test_detailed_balance(name: str) -> None:
    flow = flows(REVERSIBLE[name], DENSITIES)
    np.testing.assert_allclose(flow, flow.transpose(0, 2, 1), atol=1e-15)


@pytest.mark.parametrize("name", ORDERED)
def test_no_detailed_balance_in_fixed_order(name: str) -> None:
    """Negative control of the test above."""
    flow = flows(ORDERED[name], DENSITIES)
    assert np.abs(flow - flow.transpose(0, 2, 1)).max() > 1e-4


def test_metropolis_on_a_line_is_the_oracle_s() -> None:
    log_density = DENSITIES[:1]
    matrix = exact.MetropolisHastings(exact.grid_neighbours((N,))).matrices(log_density)[0]
    np.testing.assert_allclose(matrix, metropolis_on_line(np.exp(log_density[0])), atol=1e-14)


def test_proposals_on_a_grid() -> None:
    proposal = exact.grid_neighbours((2, 3))
    np.testing.assert_allclose(proposal, proposal.T)
    np.testing.assert_allclose(proposal.sum(axis=1).reshape(2, 3), [[0.5, 0.75, 0.5], [0.5, 0.75, 0.5]])
    assert proposal[0, 1] == proposal[0, 3] == 0.25 and proposal[0, 4] == 0


def test_gibbs_on_a_grid_draws_one_axis_after_another() -> None:
    """The first factor moves along the first axis alone; after both, any state can be reached."""
    kernel = exact.gibbs_on_grid((2, 3))
    labels = [np.asarray(one).reshape(2, 3) for one in kernel.partitions]
    np.testing.assert_array_equal(labels[0][0], labels[0][1])  # the first axis is free
    np.testing.assert_array_equal(labels[1][:, 0], labels[1][:, 2])
    assert (kernel.matrices(DENSITIES[:, :6]) > 0).all()


def test_general_reversal_agrees_with_the_opposite_order() -> None:
    kernel = exact.gibbs_on_grid(SHAPE)
    general = reverse_matrices(kernel.matrices(DENSITIES), DENSITIES)
    np.testing.assert_allclose(kernel.reversals(DENSITIES), general, atol=1e-12)


@pytest.mark.parametrize("proposal", [np.ones((2, 3)) / 3, -np.eye(2), np.ones((2, 2)), np.full((2, 2), np.nan)])
def test_proposals_are_checked(proposal: np.ndarray) -> None:
    with pytest.raises(InvalidArgumentError, match="proposal must be a square matrix"):
        exact.MetropolisHastings(proposal)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), "shape"),
        (np.array([[1.5, -0.5], [0.0, 1.0]]), "probabilities"),
        (np.array([[0.5, 0.4], [0.0, 1.0]]), "sum to 1"),
        (np.array([[0.5, 0.5], [0.5, 0.5]]), "invariant"),
        (np.array([[np.nan, 0.5], [0.5, 0.5]]), "probabilities"),
    ],
)
def test_matrices_of_a_function_are_checked(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        exact.MatrixTransition(lambda _: matrix).reversals(np.array([[0.0, 1.0]]))
