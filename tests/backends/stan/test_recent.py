"""What is kept between calls: instances of a simulator by what they hold, and seeds that are made together."""

import pickle

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.stan.native.variables import SEED_WORDS, ManySeeds, seed_words
from bread.backends.stan.recent import MOST, Recent


def test_the_last_few_values_are_kept_and_made_once():
    recent, made = Recent(), []

    def get(key, kind="a"):
        return recent.get(kind, key, lambda: made.append(key) or f"{kind}{key}")

    assert [get(key) for key in (1, 2, 1, 2)] == ["a1", "a2", "a1", "a2"]
    assert made == [1, 2]
    assert get(1, "b") == "b1"  # another kind
    for key in range(3, 3 + MOST):
        get(key)
    made.clear()
    get(2 + MOST)
    get(1)
    assert made == [1]  # 1 had been asked for before the last few


def test_a_value_that_cannot_be_made_is_not_kept():
    recent = Recent()
    with pytest.raises(ZeroDivisionError):
        recent.get("a", 1, lambda: 1 // 0)
    assert recent.get("a", 1, lambda: "made") == "made"


def test_a_pickle_is_empty():
    recent = Recent()
    recent.get("a", 1, lambda: "made")
    copy = pickle.loads(pickle.dumps(recent))
    assert copy.get("a", 1, lambda: "anew") == "anew"


def test_many_seeds_are_children_and_their_words_are_made_at_once():
    seed = SeedSequence(7, spawn_key=(3, 4))
    many = ManySeeds(seed, 5)
    assert len(many) == 5
    for row, child in enumerate(SeedSequence(7, spawn_key=(3, 4)).spawn(5)):
        assert many[row].spawn_key == child.spawn_key == (3, 4, row)
    assert [one.spawn_key for one in many[1:3]] == [(3, 4, 1), (3, 4, 2)]
    assert many[-1].spawn_key == (3, 4, 4)
    with pytest.raises(IndexError):
        many[5]
    words = seed_words(many)
    assert words.shape == (5, SEED_WORDS)
    assert words.dtype == np.uint32
    assert len(np.unique(words)) == words.size
    np.testing.assert_array_equal(seed_words(ManySeeds(seed, 3)), words[:3])
    assert seed.n_children_spawned == 0
