"""Seeds of Stan's generators that are made together."""

import numpy as np
from numpy.random import SeedSequence

from bread.backends.stan.native.variables import SEED_WORDS, ManySeeds, seed_words


def test_many_seeds_are_children_and_their_words_are_made_at_once():
    seed = SeedSequence(7, spawn_key=(3, 4))
    many = ManySeeds(seed, 5)
    assert many[4].spawn_key == (3, 4, 4)
    words = seed_words(many)
    assert words.shape == (5, SEED_WORDS)
    assert words.dtype == np.uint32
    assert len(np.unique(words)) == words.size
    np.testing.assert_array_equal(seed_words(ManySeeds(seed, 3)), words[:3])
    assert seed.n_children_spawned == 0
