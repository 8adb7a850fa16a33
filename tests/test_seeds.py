"""Seeds that are made when they are asked for."""

import pickle

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.seeds import Children, Purpose, chain_seeds, seed_sequence


def test_children_are_those_that_a_seed_spawns():
    seed = SeedSequence(7, spawn_key=(3, 4))
    children = Children(seed, range(5))
    assert len(children) == 5
    for one, spawned in zip(children, SeedSequence(7, spawn_key=(3, 4)).spawn(5), strict=True):
        assert one.spawn_key == spawned.spawn_key
        np.testing.assert_array_equal(one.generate_state(4), spawned.generate_state(4))
    assert [one.spawn_key for one in children[1:3]] == [(3, 4, 1), (3, 4, 2)]
    assert children[-1].spawn_key == (3, 4, 4)
    with pytest.raises(IndexError):
        children[5]
    assert seed.n_children_spawned == 0
    assert [one.spawn_key for one in pickle.loads(pickle.dumps(children))] == [one.spawn_key for one in children]


@pytest.mark.parametrize("simulation", [2, -1, -2])
def test_seeds_of_chains(simulation):
    seeds = chain_seeds(1, Purpose.DRAW, simulation, 16, range(3, 6))
    for seed, chain in zip(seeds, range(3, 6), strict=True):
        expected = seed_sequence(1, Purpose.DRAW, simulation, 16, chain)
        assert seed.spawn_key == expected.spawn_key
        np.testing.assert_array_equal(seed.generate_state(4), expected.generate_state(4))
