"""Programs made by rule, with outcomes where they may break a simulator: each is refused, or simulated by its own law.

The truth is a posterior on a grid, from likelihoods written by hand beside the programs.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from bread.errors import UnsupportedModelError
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import analyse_text
from tests.support.stan_inverses import inverses
from tests.support.stan_own_outcomes import own_laws
from tests.support.stan_own_verdicts import Verdict, verdict
from tests.support.stan_positions import positions

CASES = {case.name: case for case in (*own_laws(), *inverses(), *positions())}
FEW = (
    "own trials, direct", "own sd, whole", "own rate, function of all", "own own mass of two, function of all",
    "own inflated, function of all", "position: rows, of themselves", "position: one vector, its covariance",
    "log of a sum, direct", "log of 2 y + theta, local vector", "log10 of a sum, whole in parameters",
    "logit of a difference, through a parameter", "log of log, less theta, whole",
    "before trials, direct", "before own mass of two, direct", "before sd, whole", "log less theta, direct",
    "logit less theta, whole", "position: record", "position: own size", "position: rows, of the row before",
)  # fmt: skip


def table(names: list[str], n: int) -> dict[str, Verdict]:
    """Return the verdicts of programs, and fail with all whose simulator is wrong and was accepted."""
    found = {name: verdict(CASES[name], n) for name in names}
    wrong = [f"{name}: p = {one.p_value:.1g}" for name, one in found.items() if one.is_wrong]
    assert not wrong, "\n".join(wrong)
    return found


@pytest.mark.parametrize("name", FEW)
def test_what_no_simulator_can_draw_is_refused_and_the_rest_is_not(name: str) -> None:
    found = verdict(CASES[name], 12)
    assert found.end.startswith("refused") != CASES[name].is_sound, found
    assert not found.is_wrong


@pytest.mark.study
@pytest.mark.slow
def test_hundreds_of_programs() -> None:
    """Ranks of 150 draws a program; sound ones are mostly simulated, the others all refused."""
    found = table(list(CASES), 150)
    ends = Counter((CASES[name].is_sound, one.end) for name, one in found.items())
    for key, count in sorted(ends.items()):
        print(*key, count, sep=" | ")
    assert ends[False, "simulated"] == ends[False, "not interpreted"] == 0
    assert ends[True, "simulated"] > 0.6 * sum(count for (is_sound, _), count in ends.items() if is_sound)


def test_a_mass_of_zero_at_what_was_drawn_is_found_by_the_simulator() -> None:
    found = verdict(CASES["position: never what it is"], 25)
    assert found.end == "refused by the simulator", found


def test_control_the_ranks_find_a_wrong_likelihood() -> None:
    """The draws of one program, ranked in the posterior of another: log(y) + theta, and log(y + 1) + theta."""
    one, other = CASES["log less theta, direct"], CASES["log of y + 1, plus theta, direct"]
    assert verdict(replace(one, likelihood=other.likelihood), 150).is_wrong


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("own trials, direct", r"the law of 'y\[n\]' reads 'y\[n\]' itself.*as data of its own"),
        ("own mean, whole", r"the law of y reads y itself, or later elements of it.*as data of its own"),
        ("log of a sum, direct", r"is log\(\) of 'y' and parameters \(`theta`\).*lognormal in place of normal"),
        ("logit of a difference, direct", r"is logit\(\) of 'y' and parameters \(`theta`\)"),
    ],
)
def test_messages_name_what_is_read_and_the_way_out(name: str, says: str) -> None:
    assert re.search(says, verdict(CASES[name], 5).why)


def test_ways_out_of_the_messages_work() -> None:
    trials = CASES["own trials, direct"].text
    as_data = trials.replace("array[N] int y;", "array[N] int y; array[N] int trials;").replace(
        "(3 + y[n])", "trials[n]"
    )
    shifted = CASES["log of a sum, direct"].text.replace("log(y[n] + theta) ~ normal", "y[n] + theta ~ lognormal")
    assert analyse_text(as_data, observed=["y"]).is_automatic and analyse_text(shifted, observed=["y"]).is_automatic


@pytest.mark.stan
@pytest.mark.slow
def test_what_is_found_at_a_draw_is_refused_when_the_program_is_opened() -> None:
    """The same by the compiled program: vectorised, where no text shows which element is read."""
    for name in ("own sd, whole", "position: one vector, of itself"):
        case = CASES[name]
        with pytest.raises(UnsupportedModelError, match="itself, or later elements of it"):
            opened(case.text, case.data, observed=list(case.observed))
    case = CASES["position: rows, of the row before"]
    opened(case.text, case.data, observed=list(case.observed))
