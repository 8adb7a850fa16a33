"""Digests: equal values agree in every process, and what differs shows."""

from __future__ import annotations

import enum
import functools
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.digests import digest

ROOT = Path(__file__).parents[1]
SCALE = 2.0


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Thing:
    name: str
    values: Any = field(default_factory=lambda: np.arange(3.0))

    @cached_property
    def total(self) -> float:
        return float(np.sum(self.values))


def scaled(x: float) -> float:
    return SCALE * x


def adder(n: int) -> Any:
    return lambda x: x + n


SHARED = np.arange(3.0)
CYCLE: list[Any] = [1]
CYCLE.append(CYCLE)

DIFFERENT: list[Any] = [
    None, 0, False, 0.0, -0.0, 1, True, 1.0, np.float64(1.0), np.float32(1.0), "1", b"1", float("nan"), float("inf"),
    1j,
    (), [], {}, set(), frozenset(), (1,), [1], {1}, {1: 2}, {2: 1}, [[1], 2], [[1, 2]], ["ab", "c"], ["a", "bc"],
    np.arange(3), np.arange(3.0), np.arange(3.0)[:, None], np.array(1.0), np.array([True, False]), np.zeros(0),
    np.zeros((0, 2)), np.array(["a", None], dtype=object), SeedSequence(1), SeedSequence(2),
    SeedSequence(1, spawn_key=(3,)), Colour.RED, Colour.BLUE, Colour, Thing, Thing("a"), Thing("b"),
    Thing("a", np.arange(4.0)), scaled, adder(1), adder(2), functools.partial(scaled, 1.0),
    functools.partial(scaled, 2.0), Thing("a").__eq__, CYCLE, np, np.exp, np.log, {"a": {"b": [1, 2, {"c": None}]}},
    {"a": {"b": [1, 2, {"c": 0}]}}, np.dtype("f4"), np.dtype("f8"), range(3), range(4), slice(1, 2),
]  # fmt: skip


def test_what_differs_has_different_digests():
    digests = [digest(value) for value in DIFFERENT]
    alike = [(DIFFERENT[i], DIFFERENT[j]) for i in range(len(digests)) for j in range(i) if digests[i] == digests[j]]
    assert not alike


EQUAL: list[tuple[Any, Any]] = [
    ((SHARED, SHARED), (np.arange(3.0), np.arange(3.0))),  # shared or merely equal
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"x", "y", "z"}, {"z", "y", "x"}),
    (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    (np.arange(6.0)[::2], np.array([0.0, 2.0, 4.0])),
    (Thing("a"), Thing("a")),
    (SeedSequence(1), SeedSequence(1)),
    (adder(3), adder(3)),
    (float("nan"), float("nan")),
    ("ab" * 2, "abab"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_what_is_equal_has_one_digest(one, other):
    assert digest(one) == digest(other)


def test_what_is_cached_does_not_count():
    used, fresh = Thing("a"), Thing("a")
    assert used.total == 3.0
    assert digest(used) == digest(fresh)


def test_a_constant_that_a_function_uses_counts(monkeypatch):
    before = digest(scaled)
    monkeypatch.setitem(scaled.__globals__, "SCALE", 3.0)
    assert digest(scaled) != before


CODE = """
import numpy as np
from bread.digests import digest
from bread.seeds import Purpose, chain_seeds
seeds = chain_seeds(1, Purpose.DRAW, 2, 3, range(4))
print(digest([{"b", "a", "c"}, {"x": {"y", "z"}}, seeds, np.arange(3), (lambda x: x + 1)]))
"""


def test_digests_are_the_same_in_every_process():
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", CODE]
        found.add(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert len(found) == 1
