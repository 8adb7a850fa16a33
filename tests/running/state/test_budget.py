"""A budget as text or number, and as it is spent."""

from __future__ import annotations

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.running.budget.spending import TimeSpending
from bread.running.state.budget import Budget, read_budget


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        ("5 min", Budget(300.0, True)),
        ("90 s", Budget(90.0, True)),
        ("90s", Budget(90.0, True)),
        (" 1.5 h ", Budget(5400.0, True)),
        ("2 hours", Budget(7200.0, True)),
        ("1 minute", Budget(60.0, True)),
        ("30 Seconds", Budget(30.0, True)),
        (1_000_000, Budget(1e6, False)),
        (np.int64(7), Budget(7.0, False)),
        (None, None),
    ],
)
def test_syntax(given: object, budget: Budget | None) -> None:
    assert read_budget(given) == budget


@pytest.mark.parametrize(
    "given",
    [
        "5",
        "5 m",
        "min",
        "0 s",
        "",
        "-5 min",
        "5 min 3",
        "1e3 s",
        "1000000",
        1e6,
        0,
        -3,
        True,
        2.5,
        [5],
        "5 ms",
        "5 mins s",
    ],
)
def test_anything_else_is_refused_with_the_rule(given: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"budget must be a time as text with its unit .* or a whole number"):
        read_budget(given)


def test_words() -> None:
    assert str(Budget(300.0, True)) == "5.0 min" or str(Budget(300.0, True)) == "5 min"
    assert Budget(1.0, False).in_words(1_234_567) == "1.23 million gradient evaluations"
    assert Budget(1.0, False).in_words(12_345) == "12 300 gradient evaluations"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_counts_what_was_before_and_goes_on_where_a_checkpoint_ended() -> None:
    store: dict[str, float] = {}

    def kept(name, compute):
        if name not in store:
            store[name] = compute()
        return store[name]

    clock = Clock()
    first = TimeSpending(Budget(60.0, True), kept, before=3.0, clock=clock)
    clock.now += 10
    assert first.spent() == 13.0
    clock.now += 5
    assert first.spent() == 18.0
    clock.now += 1000  # killed, and later called again: what was read is read again
    again = TimeSpending(Budget(60.0, True), kept, before=2.0, clock=clock)
    assert [again.spent(), again.spent()] == [13.0, 18.0]
    clock.now += 4
    assert again.spent() == 22.0
