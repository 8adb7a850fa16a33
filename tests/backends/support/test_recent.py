"""What is kept between calls."""

import pickle

import pytest

from bread.backends.support.recent import MOST, Recent


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
