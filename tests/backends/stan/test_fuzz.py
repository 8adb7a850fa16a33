"""Mutated programs and data files: every one is accepted, or refused in one line; none crashes or hangs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.stan_bad_input_table import DATA, PROGRAM
from tests.support.stan_conjugate import opened, toolchain
from tests.support.stan_fuzz import outcomes

pytestmark = pytest.mark.stan

BOTH = ("accepted", "refused")


def require_clean(found: dict[int, str]) -> Counter[str]:
    """Fail with all cases whose outcome must not be; return how often each outcome was."""
    wrong = {number: outcome for number, outcome in found.items() if outcome not in BOTH}
    assert not wrong, "\n".join(f"{number}: {outcome}" for number, outcome in wrong.items())
    return Counter(found.values())


@pytest.mark.parametrize("numbers", [range(60), pytest.param(range(60, 1000), marks=pytest.mark.study)], ids=len)
def test_programs(numbers: range) -> None:
    toolchain()
    counted = require_clean(dict(outcomes(numbers, "analyse_mutated")))
    assert min(counted[outcome] for outcome in BOTH) > 0.01 * len(numbers)  # mutations are neither harmless nor noise


@pytest.mark.parametrize("numbers", [range(20), pytest.param(range(20, 200), marks=pytest.mark.study)], ids=len)
def test_data_files(numbers: range, tmp_path: Path) -> None:
    (tmp_path / "user.stan").write_text(PROGRAM)
    opened(tmp_path / "user.stan", DATA, observed="y")  # compiles it: no mutated file may change what is compiled
    counted = require_clean(dict(outcomes(numbers, "open_mutated_data")))
    assert min(counted[outcome] for outcome in BOTH) >= 0.05 * len(numbers)


@pytest.mark.slow
def test_control_what_must_not_happen_is_found() -> None:
    found = dict(outcomes(range(4), "fail_in_every_way"))
    found |= dict(outcomes([4], "fail_in_every_way", seconds=10.0))
    found |= dict(outcomes([5], "fail_in_every_way"))
    assert found == {
        0: r"message: 'two\nlines'", 1: "RecursionError: deep", 2: "SystemExit: 3", 3: "crash", 4: "hang", 5: "refused"
    }  # fmt: skip
    with pytest.raises(AssertionError, match="RecursionError"):
        require_clean(found)
