"""The battery finds planted bugs, and lets their good twins pass; two defects of tests show what it depends on."""

from pathlib import Path

import pytest
from scipy.stats import binom

from bread.debugging.battery import LEVEL, run_battery
from tests.support.mutants import MUTANTS
from tests.support.mutants.case import named
from tests.support.mutants.densities import compensated
from tests.support.mutants.power import equal_masses, run_on, run_on_model, standard_normal, subject_of
from tests.support.mutants.study import pieces, result_of
from tests.support.mutants.tables import class_table, load, undetectable_table

SMALL = 40_000  # steps and evaluations: about a second
# One of each family that a small budget suffices for.
DOZEN = (
    "half-normal", "scale-for-variance", "missing-jacobian", "stale-after-gibbs", "ratio-inverted", "nan-accepted",
    "last-category", "slice-one-sided", "wrong-triangle", "shared-seed", "leak-between-chains", "sign-flip",
)  # fmt: skip
OF_MODELS = [name for name, mutant in MUTANTS.items() if mutant.breaks == "paths"]
SEEDS = (1, 2, 3, 4)


def first_target(mutant):
    return [named(mutant.targets[0])]


@pytest.mark.statistical
@pytest.mark.parametrize("name", DOZEN)
def test_a_dozen_is_found_at_a_small_budget(name):
    mutant = MUTANTS[name]
    assert run_on(mutant, targets=first_target(mutant), budget=SMALL).alarm


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", DOZEN)
def test_good_twins_of_the_dozen_pass(name):
    mutant = MUTANTS[name]
    result = run_on(mutant, is_bad=False, targets=first_target(mutant), budget=3 * SMALL)
    assert not result.alarm
    if name == "stale-after-gibbs":  # even without the bug a sweep in fixed order, which is no reversible kernel
        (said,) = result.diagnosis
        assert "is invariant" in said and "not reversible" in said
    else:
        assert not result.diagnosis


@pytest.mark.statistical
@pytest.mark.slow
def test_an_error_that_test_and_code_share_is_not_seen_but_against_draws_from_elsewhere():
    mutant = MUTANTS["compensating-error"]
    assert not run_on(mutant, budget=SMALL).alarm
    assert run_battery([subject_of(lambda: compensated(True))], budget=SMALL, seed=1).alarm
    assert not run_battery([subject_of(lambda: compensated(False))], budget=SMALL, seed=1).alarm


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "convenient"), [("sign-flip", standard_normal()), ("gibbs-offset", equal_masses())])
@pytest.mark.slow
def test_symmetric_targets_hide_bugs_that_the_default_ones_show(name, convenient):
    mutant = MUTANTS[name]
    assert not run_on(mutant, targets=[convenient], budget=SMALL).alarm
    assert run_on(mutant, targets=first_target(mutant), budget=SMALL).alarm


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", MUTANTS)
def test_planted_bugs_are_found_with_power(name):
    """Every bug that changes anything, on one target at the default budget: found under each seed.

    `tests.support.mutants.study` does the same in pieces, into a file.
    """
    mutant = MUTANTS[name]
    if name in OF_MODELS:
        results = [run_on_model(mutant, seed=seed) for seed in SEEDS]
    else:
        results = [run_on(mutant, targets=first_target(mutant), seed=seed) for seed in SEEDS]
    for seed, result in zip(SEEDS, results, strict=True):
        tests = sorted({failed.name for failed in result.failed})
        print(f"{name} | {seed} | {result.alarm} | {result.spent} | {', '.join(tests)}")
    for result in results:
        assert result.alarm == mutant.detectable


@pytest.mark.study
@pytest.mark.statistical
def test_good_twins_raise_no_more_alarms_than_the_level():
    """Every good twin on each of its targets alone, under as many seeds as it takes for 500 runs."""
    results = [result_of(piece) for piece in pieces(range(1, 4)) if not piece.is_bad]
    alarms, n = sum(result.alarm for result in results), len(results)
    print(f"{alarms} alarms in {n} runs")
    assert n >= 500
    assert alarms <= binom.ppf(0.99, n, LEVEL)


def test_no_two_runs_share_random_numbers():
    """Good twins of many bugs are one kernel: under one seed their alarms would be one alarm."""
    made = list(pieces())
    assert len({piece.root for piece in made}) == len(made)
    assert len({piece.seed for piece in made}) < len(made)  # negative control: seeds alone do not tell them apart


def test_figures_of_the_documents_are_those_of_the_study():
    page = (Path(__file__).parents[2] / "docs" / "debugging.md").read_text()
    rows = load()
    assert [row.name for row in rows] == list(MUTANTS)
    for table in (class_table(rows), undetectable_table(rows)):
        assert table in page


def test_the_study_found_what_can_be_found_and_rang_no_more_often_than_its_level():
    rows = load()
    n = sum(row.clean for row in rows)
    assert n >= 500 and sum(row.alarms for row in rows) <= binom.ppf(0.99, n, LEVEL)
    for row in rows:
        if MUTANTS[row.name].detectable:
            assert row.found >= 0.95 * row.runs > 0
