"""A bare kernel as a subject: seeds, failures, what is missing, renewal, batches of densities."""

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.debugging.bare import BLOCK, BareSubject
from bread.debugging.subject import Draws
from bread.debugging.target import Target
from bread.errors import InvalidArgumentError
from tests.support import bare_kernels as kernels


def seeds(n, root=1):
    return [SeedSequence(root, spawn_key=(k,)) for k in range(n)]


def test_chains_depend_on_draw_and_seed_alone():
    target = kernels.skewed()
    subject = BareSubject(target, kernels.metropolis(target))
    draws = subject.draw(seeds(8))
    whole = subject.move(draws, (1, 7), seeds(8, 2))
    part = subject.move(draws.rows(np.array([5, 2])), (7,), [seeds(8, 2)[k] for k in (5, 2)])
    np.testing.assert_array_equal(part.states[:, 0], whole.states[[5, 2], 1])
    assert whole.n_evaluations == 56 and whole.log_density is None and whole.failures == ()
    other = subject.move(draws, (1, 7), seeds(8, 3))
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(other.states, whole.states)


def test_a_failure_ends_its_own_chain():
    def step(x, rng):
        if x[0] > 3.5:
            raise ValueError("too far")
        return x + 1.0

    subject = BareSubject(kernels.skewed(), step)
    moved = subject.move(Draws(np.array([[0.0, 0.0], [2.0, 0.0]])), (1, 2, 3), seeds(2))
    np.testing.assert_array_equal(moved.states[:, :, 0], [[1.0, 2.0, 3.0], [3.0, 4.0, np.nan]])
    assert moved.failures == ("ValueError: too far",)


def test_what_is_carried_is_shown():
    target = kernels.normal()
    subject = BareSubject(target, kernels.Carrying(target))
    draws = subject.draw(seeds(4))
    moved = subject.move(draws, (1, 4), seeds(4, 2))
    np.testing.assert_allclose(moved.log_density[:, 1], subject.log_density(draws.at(moved.states[:, 1])))


class Together:
    """Normal draws around the last state, many chains at once."""

    def __init__(self, fails=False):
        self.calls, self.fails = [], fails

    def start(self, position, rng):
        return position

    def step(self, carry, rng):
        raise AssertionError("chains are not run one by one")

    def position(self, carry):
        return carry

    def run_chains(self, starts, keep, seeds):
        self.calls.append(len(starts))
        if self.fails:
            raise FloatingPointError("too many")
        steps = np.stack([np.random.default_rng(seed).normal(size=(keep[-1], starts.shape[1])) for seed in seeds])
        states = starts[:, None] + steps.cumsum(axis=1)[:, np.array(keep) - 1]
        return states, np.full(states.shape[:2], np.nan)


def test_kernels_that_run_many_chains_at_once_are_asked_once():
    subject = BareSubject(kernels.skewed(), Together())
    draws = subject.draw(seeds(6))
    moved = subject.move(draws, (1, 3), seeds(6, 2))
    assert moved.states.shape == (6, 2, 2) and moved.log_density is None
    assert moved.n_evaluations == 18 and moved.failures == ()
    np.testing.assert_array_equal(subject.move(draws, (3,), seeds(6, 2)).states[:, 0], moved.states[:, 1])
    kernel = Together(fails=True)
    failed = BareSubject(kernels.skewed(), kernel).move(draws, (1, 3), seeds(6, 2))
    assert failed.failures == ("FloatingPointError: too many",) and np.isnan(failed.states).all()


def test_objects_are_renewed_and_functions_only_by_a_builder():
    target = kernels.skewed()
    kernel = kernels.Adapting(target)
    subject = BareSubject(target, kernel)
    draws = subject.draw(seeds(5))
    first = subject.renewed().move(draws, (20,), seeds(5))
    subject.move(draws, (20,), seeds(5))
    np.testing.assert_array_equal(subject.renewed().move(draws, (20,), seeds(5)).states, first.states)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(subject.move(draws, (20,), seeds(5)).states, first.states)
    assert "build=" in BareSubject(target, kernels.metropolis(target)).missing["renewed"]
    built = BareSubject(target, kernels.metropolis(target), build=lambda: kernels.metropolis(target))
    assert "renewed" not in built.missing and built.renewed().coordinates == built.coordinates
    assert set(BareSubject(kernels.discrete(), None).missing) == {"gradient", "kernel", "renewed"}


def test_densities_are_computed_in_batches_only_where_that_gives_the_same():
    calls = []

    def wrong_in_batches(x):
        calls.append(x.ndim)
        return -0.5 * np.sum(x**2) if x.ndim == 1 else -0.5 * np.sum(x**2, axis=1) + np.arange(len(x))

    normal = kernels.normal()
    states = normal.simulate(30, np.random.default_rng(1))
    wrong = Target("wrong in batches", 3, wrong_in_batches, normal.simulate)
    np.testing.assert_allclose(BareSubject(wrong, None).log_density(Draws(states)), -0.5 * (states**2).sum(axis=1))
    assert calls.count(1) >= 30
    raising = Target("raises", 3, lambda x: 1.0 / 0.0 if x[0] > 1.0 else 0.0, normal.simulate)
    values = BareSubject(raising, None).log_density(Draws(states))
    np.testing.assert_array_equal(np.isnan(values), states[:, 0] > 1.0)


def test_draws_come_in_blocks_and_their_shape_is_checked():
    sizes = []

    def simulate(n, rng):
        sizes.append(n)
        return rng.normal(size=(n, 3))

    subject = BareSubject(Target("normal", 3, kernels.normal().log_density, simulate), None)
    assert len(subject.draw(seeds(BLOCK + 10))) == BLOCK + 10 and sizes == [BLOCK, 10]
    flat = Target("flat", 3, kernels.normal().log_density, lambda n, rng: rng.normal(size=3))
    with pytest.raises(InvalidArgumentError, match=r"must return shape \(5, 3\)"):
        BareSubject(flat, None).draw(seeds(5))
    with pytest.raises(InvalidArgumentError, match="dim = 3"):
        BareSubject(Target("bounds", 3, None, simulate, lower=(0.0,)), None)


def test_draws_keep_their_data():
    draws = Draws(np.arange(4.0).reshape(2, 2), {"y": np.array([[1.0], [2.0]])})
    moved = draws.at(np.zeros((2, 3, 2)))
    np.testing.assert_array_equal(moved.data["y"][:, 0], [1, 1, 1, 2, 2, 2])
    assert len(moved) == 6 and len(draws.joined(draws).data["y"]) == 4
    np.testing.assert_array_equal(draws.rows(np.array([1])).data["y"], [[2.0]])
