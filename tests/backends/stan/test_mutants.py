"""Mutants of the corpus: every one is refused, redrawn, or simulated by its own law, which the comparison proves.

Programs run in an interpreter in Python with densities by SciPy (`tests.support.stan_interpreter`), so that hundreds of
mutants need no compiler. What opening compares of a compiled program is compared here: log prior and log likelihood
of the program with the simulator's own, draw by draw.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.random import default_rng

from bread.backends.stan.simulator import reader
from tests.support.stan_corpus_table import SUPPORTED, Case, analysed
from tests.support.stan_mutants import Mutant, Original, Verdict, interpreter, is_constant, mutants, simulate

N_DRAWS = 12
MOST_OF_A_KIND = 3  # mutants of one class and program
FEW = ("half_normal_scale", "zero_inflated")
# Programs that are interpreted, and take a second or less for their draws.
SLOW_TO_RUN = (
    "overflowing_counts",
    "truncated_tail",
    "gp_regr",
    "gp_pois_regr",
    "topics",
    "irt_2pl",
    "radon_hierarchical",
)


def case_of(name: str) -> Case:
    return next(case for case in SUPPORTED if case.name == name)


def chosen(case: Case, most: int) -> list[Mutant]:
    """Return some mutants of every class, others for each program."""
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in mutants(case):
        by_kind.setdefault(mutant.kind, []).append(mutant)
    rng = default_rng([20160816, len(case.source.text)])
    return [group[i] for group in by_kind.values() for i in sorted(rng.permutation(len(group))[:most])]


def opened(case: Case) -> Original | None:
    """Return a program with its draws; None where it is not interpreted."""
    try:
        return Original(case, analysed(case.name), N_DRAWS)
    except NotImplementedError:
        return None


def fault(mutant: Mutant, verdict: Verdict) -> str:
    """Return what is wrong with what became of a mutant; "" if nothing is."""
    if mutant.kind == "branch" and verdict.outcome == "simulated by its own law" and not verdict.same_law:
        return "a constant that not every draw has was left out"
    if verdict.outcome == "refused by the comparison":
        return "the analysis gave it a simulator of another law"
    if verdict.same_law is not None and verdict.same_law == verdict.is_told:
        return "told from its own law" if verdict.is_told else "another law, and not told from the original"
    return ""


def table(names: list[str], most: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return how many mutants of each class had which end, and what is wrong."""
    counts: Counter[tuple[str, str]] = Counter()
    faults = []
    for name in names:
        case = case_of(name)
        original = opened(case)
        for mutant in chosen(case, most) if original is not None else ():
            verdict = original.verdict(mutant, N_DRAWS)
            if verdict is None:
                continue
            end = verdict.outcome
            if verdict.same_law is not None:
                end = "no other law at any point tried" if verdict.same_law else "proven different"
            counts[mutant.kind, end + (", redrawn" if verdict.redrawn else "")] += 1
            wrong = fault(mutant, verdict)
            if wrong:
                old = case.source.text.split("\n")
                changed = [line.strip() for line in mutant.text.split("\n") if line not in old]
                faults.append(f"{name}, {mutant.kind}: {wrong}: {changed}")
    return counts, faults


def test_some_twenty_mutants_have_a_right_end() -> None:
    counts, faults = table(list(FEW), 1)
    assert not faults, "\n".join(faults)
    assert sum(counts.values()) >= 15 and len({kind for kind, _ in counts}) >= 8


@pytest.mark.slow
def test_hundreds_of_mutants_have_a_right_end() -> None:
    names = [case.name for case in SUPPORTED if case.name not in SLOW_TO_RUN]
    counts, faults = table(names, MOST_OF_A_KIND)
    for key, count in sorted(counts.items()):
        print(*key, count, sep=" | ")
    assert not faults, "\n".join(faults)
    assert sum(counts.values()) >= 400


@pytest.mark.slow
def test_the_comparison_alone_finds_what_the_analysis_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other depth: without the refusal of constants under conditions, log densities differ at the draws."""
    original = opened(case_of("half_normal_scale"))
    assert original is not None
    branches = [one for one in mutants(original.case) if one.kind == "branch"]
    refused = [original.verdict(one, N_DRAWS) for one in branches]
    assert {one.outcome for one in refused if one is not None} == {"refused by the analysis"}
    monkeypatch.setattr(reader, "refuse_dropped", lambda *arguments: None)
    verdicts = [original.verdict(one, 30) for one in branches]
    ends = Counter((one.outcome, one.redrawn) for one in verdicts if one is not None)
    assert ends["refused by the comparison", False] >= 8
    assert not any(one.outcome == "simulated by its own law" and not one.redrawn for one in verdicts if one is not None)


@pytest.mark.parametrize("name", ["zero_inflated", "capture_rows", "capture_totals", "capture_with_memory", "ar_k"])
def test_simulators_state_the_density_that_scipy_finds(name: str) -> None:
    """Likelihood with likelihood and prior with prior, by densities that no Stan code has a part in."""
    program = analysed(name)
    run = interpreter(program, case_of(name).data)
    draws, _ = simulate(program, run, N_DRAWS, default_rng(3))
    difference = np.array([np.subtract(run.log_density(one.values), one.own) for one in draws])
    assert len(draws) == N_DRAWS and is_constant(difference, draws)
    # negative control: the density of the same outcomes at another parameter
    first = program.parameters[0].name
    moved = [run.log_density({**one.values, first: one.values[first] * 0.9}) for one in draws]
    assert not is_constant(np.array([np.subtract(a, one.own) for a, one in zip(moved, draws, strict=True)]), draws)
