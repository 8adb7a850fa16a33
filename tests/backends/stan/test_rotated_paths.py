"""Laws of what rotations leave alone, evaluated in C++ and in Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.backends.base import Kernel
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.posterior import StanPosterior
from bread.errors import InvalidArgumentError
from bread.paths.kinds import ROUND_DEPTH, ReferencePath
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian
from bread.paths.nested import NestedReference
from bread.paths.rotated import Gauge, RotatedReference, gauge_at
from tests.support.stan_normals import log_normals, normals
from tests.support.stan_references import conditional, nested

pytestmark = [pytest.mark.stan, pytest.mark.slow]


class Native(RotatedReference):
    """One whose density and gradient Python cannot tell."""

    def log_density(self, states):
        raise AssertionError

    def value_and_gradient(self, state):
        raise AssertionError


def gauge_of(k: int, p: int, n_others: int) -> Gauge:
    dim = k * p + n_others
    order = default_rng(1).permutation(dim)
    return gauge_at(order[: k * p].reshape(k, p), default_rng(2).standard_normal(dim))


def full(n: int) -> MixtureReference:
    rng = default_rng(3)
    factor = np.eye(n) + 0.3 * rng.standard_normal((n, n)) / np.sqrt(n)
    return gaussian(rng.normal(0.0, 0.3, n), 0.1 * factor @ factor.T)


def mixture(n: int) -> MixtureReference:
    parts = (full(n).components[0], Component(np.full(n, 0.2), np.full(n, 0.6)))
    return MixtureReference(parts, np.array([0.3, 0.7]))


def assert_near(found, wanted):
    """Within 1e-9 of the largest number."""
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("law", ["full", "mixture", "nested"])
@pytest.mark.parametrize("shape", [(2, 1, 2), (3, 2, 2), (3, 3, 1), (2, 4, 0), (5, 9, 3)])
def test_a_rotated_reference_is_evaluated_natively_and_as_in_python(shape, law):
    gauge = gauge_of(*shape)
    n = gauge.n_invariant
    inner = {"full": full, "mixture": mixture, "nested": lambda n: nested(NestedReference, n, 1)}[law](n)
    wanted, path = RotatedReference(gauge, inner), ReferencePath(Native(gauge, inner))
    instance, states = normals(gauge.dim), default_rng(4).standard_normal((6, gauge.dim))
    start, ratio, message = instance.terms(states, path)
    assert message == ""
    assert_near(start, wanted.log_density(states))
    assert_near(ratio, log_normals(states) - wanted.log_density(states))
    for state, own in zip(states, wanted.gradient(states), strict=True):
        for beta in (0.0, 0.4):
            density, _, gradient = instance.gradient(state, beta, path)
            assert_near(density, (1 - beta) * wanted.log_density(state) + beta * log_normals(state))
            assert_near(gradient, (1 - beta) * own + beta * (0.3 - state) / 1.7**2)


def test_trajectories_of_nuts_are_short_across_rotations_unless_a_limit_is_set():
    """At most 2^4 gradients a transition there, and the first; control: another reference, or a limit."""
    gauge = gauge_of(2, 1, 1)
    short = Kernel(np.array([1.0]), {"step_size": np.array([0.01]), "inverse_metric": np.ones((1, 3))})
    found = {}
    for name, reference, kernel in (
        ("rotated", RotatedReference(gauge, full(2)), StanKernel()),
        ("limited", RotatedReference(gauge, full(2)), StanKernel(max_tree_depth=6)),
        ("other", diagonal(np.zeros(3), np.ones(3)), StanKernel()),
    ):
        posterior = StanPosterior(normals(3), None, kernel)
        run = posterior.evolve(ReferencePath(reference), short, 0.5, np.ones(3), range(1, 11), SeedSequence(4))
        found[name] = run.n_gradients / 10
    assert found["rotated"] <= 2**ROUND_DEPTH + 1 < min(found["limited"], found["other"])
    assert found["limited"] <= 2**6 + 1


def test_where_nothing_is_there_to_rotate_its_density_is_zero():
    gauge = gauge_of(2, 1, 1)
    start, _, _ = normals(3).terms(np.zeros((1, 3)), ReferencePath(Native(gauge, full(2))))
    assert start[0] == -np.inf


def test_a_conditional_law_of_it_is_evaluated_through_python():
    gauge = gauge_of(3, 3, 4)
    wanted = RotatedReference(gauge, conditional(gauge.n_invariant))
    states = wanted.sample(4, default_rng(5))
    start, _, message = normals(gauge.dim).terms(states, ReferencePath(wanted))
    assert message == ""
    assert_near(start, wanted.log_density(states))


def test_a_rotated_reference_that_does_not_fit_is_refused():
    gauge = gauge_of(2, 2, 1)
    with pytest.raises(InvalidArgumentError, match=r"density of 5 coordinates; here it must be one of 6"):
        normals(6).terms(np.zeros((1, 6)), ReferencePath(RotatedReference(gauge, full(4))))
    with pytest.raises(InvalidArgumentError, match=r"density of 3 coordinates; here it must be one of 4"):
        normals(5).terms(np.zeros((1, 5)), ReferencePath(RotatedReference(gauge, diagonal(np.zeros(3), np.ones(3)))))
    wrong = replace(gauge, frame=np.eye(3))
    with pytest.raises(InvalidArgumentError, match=r"frame of a gauge of 2 columns .* \(2, 2\); received \(3, 3\)"):
        normals(5).terms(np.zeros((1, 5)), ReferencePath(RotatedReference(wrong, full(4))))
