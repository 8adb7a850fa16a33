"""The battery: right kernels pass, wrong ones are found, and the diagnosis says what kind of wrong they are."""

import numpy as np
import pytest

import bread
from bread.debugging.bare import BareSubject
from bread.debugging.battery import TESTS, n_tests_of_chance, run_battery, suited_tests
from bread.errors import InvalidArgumentError
from bread.report.debug import debug_container
from tests.support import bare_kernels as kernels
from tests.support.bare_kernels import RIGHT

BUDGET = 60_000
SMALL = 15_000


def run(target, kernel, *, seed=1, budget=BUDGET, **more):
    return run_battery([BareSubject(target, kernel)], budget=budget, seed=seed, **more)


def names(result):
    return {test.name for test in result.failed}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_pass(name):
    check_right(name, 3 * BUDGET)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["Metropolis, discrete", "Gibbs at random", "HMC"])
def test_right_kernels_pass_at_a_small_budget(name):
    check_right(name, SMALL)


def check_right(name, budget):
    target, kernel = RIGHT[name]
    subject = BareSubject(target(), kernel(target()))
    result = run_battery([subject], budget=budget, seed=1, reversible=True)
    assert not result.alarm and result.is_reversible and not result.failed and not result.diagnosis
    assert {test.name for test in result.tests} | {test for _, test in result.left_out} == {
        t.name for t in suited_tests(subject)
    }


WRONG = {
    "always accepted": (kernels.normal, lambda t: kernels.metropolis(t, accept=False), "invariance", "acceptance"),
    "HMC without acceptance": (
        kernels.normal,
        lambda t: kernels.hmc(t, 0.6, correct=False),
        "averages of chains",
        "integration error",
    ),
    "redrawn at walls": (kernels.walls, kernels.redraws_at_walls, "averages of chains", "bounded coordinates"),
    "ends uncorrected": (kernels.discrete, kernels.ends_uncorrected, "averages of chains", "discrete coordinates"),
    "stale density": (kernels.normal, lambda t: kernels.Carrying(t, is_stale=True), "carried density", "stale"),
    "adapting": (kernels.skewed, kernels.Adapting, "history", "remembers"),
    "own seed": (kernels.normal, kernels.OwnSeed, "seeds", "seeds are shared"),
    "adapting within the chain": (
        kernels.skewed,
        lambda t: kernels.Adapting(t, rate=0.8),
        "memory of chains",
        "uses its own past",
    ),
    "random numbers from outside": (kernels.skewed, kernels.from_outside, "history", "global generator"),
    "raises errors": (kernels.normal, kernels.fails_at_times, "states of chains", "not positive definite"),
    "sign of the gradient": (
        lambda: kernels.skewed(gradient_sign=-1.0),
        kernels.metropolis,
        "gradient",
        "the gradient says",
    ),
    "sd for variance": (lambda: kernels.normal(spread=1.3), kernels.metropolis, "draws against density", "Simulator"),
    "offset of the simulator": (lambda: kernels.discrete(offset=-1.0), kernels.metropolis, "exact draws", "offset"),
}


NEEDS_MORE = ("HMC without acceptance", "redrawn at walls")


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", WRONG)
def test_wrong_ones_are_found_and_told_apart(name):
    check_wrong(name, 100_000)


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in WRONG if name not in NEEDS_MORE])
def test_most_are_found_at_a_small_budget(name):
    check_wrong(name, SMALL)


def check_wrong(name, budget):
    target, kernel, test, words = WRONG[name]
    result = run(target(), kernel(target()), budget=budget)
    assert result.alarm and result.p_value <= result.level
    assert test in names(result)
    assert any(words in text for text in result.diagnosis), result.diagnosis


@pytest.mark.statistical
def test_a_sweep_in_fixed_order_is_invariant_and_not_reversible():
    target = kernels.normal()
    result = run(target, kernels.gibbs(target, order="fixed"), budget=SMALL)
    assert not result.alarm and not result.is_reversible and "reversibility" in names(result)
    assert len(result.diagnosis) == 1 and "fixed order" in result.diagnosis[0]
    wanted = run(target, kernels.gibbs(target, order="fixed"), budget=SMALL, reversible=True)
    assert wanted.alarm and wanted.p_value <= wanted.level


@pytest.mark.statistical
def test_only_the_simulator_is_tested_without_a_kernel():
    result = run(kernels.normal(), None, budget=SMALL)
    assert not result.alarm and {test.test.about for test in result.tests} == {"simulator", "gradient"}
    assert result.left_out["normal", "invariance"] == "no kernel was given"
    assert run(kernels.normal(spread=1.2), None, budget=SMALL).alarm


def test_a_kernel_that_stays_where_it_is_is_named():
    result = run(kernels.normal(), lambda x, rng: x, budget=SMALL)
    assert not result.alarm and "next to nothing was tested" in result.notes[0]
    assert result.detectable.kernel_shift > 100.0

    def one_stays(x, rng):
        return np.array([x[0], *rng.normal(x[1:])])

    assert any("never moved x[0]" in note for note in run(kernels.normal(), one_stays, budget=SMALL).notes)


def test_that_nothing_was_annealed_is_a_note_where_there_is_a_kernel_without_a_model():
    said = "a kernel without a model has no path"
    target = kernels.normal()
    assert [said in note for note in run(target, kernels.gibbs(target), budget=SMALL).notes] == [True]
    assert run(target, None, budget=SMALL).notes == ()


def test_annealing_is_asked_of_subjects_with_a_path_alone_and_costs_the_others_no_level():
    bare = BareSubject(kernels.normal(), None)
    assert {test.about for test in set(TESTS) - set(suited_tests(bare))} == {"annealing", "between", "ensemble"}
    common = sum(t.is_random for t in TESTS if t.about not in ("annealing", "between", "ensemble"))
    assert n_tests_of_chance([bare, bare]) == 2 * common


def test_results_depend_on_the_seed_alone():
    target = kernels.skewed()
    first, again, other = (run(target, kernels.metropolis(target), seed=seed, budget=1) for seed in (3, 3, 4))
    tables = [np.concatenate([test.p_values for test in result.tests]) for result in (first, again, other)]
    np.testing.assert_array_equal(tables[0], tables[1])
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(tables[0], tables[2])


@pytest.mark.slow
@pytest.mark.statistical
def test_subjects_share_the_level_and_failing_ones_are_named():
    targets = [kernels.normal(), kernels.walls(), kernels.skewed()]
    steps = [kernels.redraws_at_walls(t) if t.name == "walls" else kernels.metropolis(t) for t in targets]
    subjects = [BareSubject(t, step) for t, step in zip(targets, steps, strict=True)]
    result = run_battery(subjects, budget=250_000, seed=2)
    assert result.alarm and {test.subject for test in result.failed} == {"walls"}
    assert any("It fails on walls (1 of 3)" in text for text in result.diagnosis)


@pytest.mark.slow
@pytest.mark.statistical
def test_what_was_detectable_shrinks_with_the_budget_and_is_detected():
    target = kernels.normal()
    small, large = (run(target, kernels.gibbs(target, order="fixed"), budget=b) for b in (60_000, 400_000))
    for one, other in zip(small.detectable, large.detectable, strict=True):
        assert 0.0 < other < 0.7 * one < 1.0
    spread = 1.0 + small.detectable.draws_scale
    assert all(run(kernels.normal(spread=spread), None, seed=seed).alarm for seed in range(5))


@pytest.mark.statistical
def test_a_subject_that_fails_is_named_among_others():
    targets = [kernels.normal(), kernels.skewed()]
    steps = [kernels.metropolis(targets[0]), kernels.metropolis(targets[1], accept=False)]
    subjects = [BareSubject(t, step) for t, step in zip(targets, steps, strict=True)]
    result = run_battery(subjects, budget=SMALL, seed=2)
    assert result.alarm and {test.subject for test in result.failed} == {"skewed"}
    assert any("It fails on skewed (1 of 2)" in text for text in result.diagnosis)


def test_what_was_detectable_is_told_by_subject():
    """A kernel that hardly moves shows little; the other subject's numbers are its own."""
    fast, slow = kernels.normal(), kernels.skewed()
    steps = [kernels.gibbs(fast, order="random"), lambda x, rng: x]
    subjects = [BareSubject(target, step) for target, step in zip((fast, slow), steps, strict=True)]
    result = run_battery(subjects, budget=SMALL, seed=2)
    by = result.detectable_by
    assert list(by) == ["normal", "skewed"]
    assert 0.0 < by["normal"].kernel_shift < 1.0 < 100.0 < by["skewed"].kernel_shift
    assert result.detectable.kernel_shift == by["skewed"].kernel_shift
    assert result.detectable.draws_scale == max(by["normal"].draws_scale, by["skewed"].draws_scale)
    report = debug_container(result, "both", 2, {}, 1.0)
    shift = by["normal"].kernel_shift
    said = f"chains shifted by {shift:.2g} standard deviations would have been seen on normal, by "
    assert bread.verdict(report).status == "no bug found" and said in bread.verdict(report).details
    alone = run_battery(subjects[:1], budget=SMALL, seed=2)
    assert "differs by what was tested" not in bread.verdict(debug_container(alone, "one", 2, {}, 1.0)).details


@pytest.mark.statistical
def test_an_error_of_the_size_that_was_detectable_is_found():
    clean = run(kernels.normal(), None, budget=SMALL)
    assert 0.0 < clean.detectable.draws_scale < 0.5
    assert run(kernels.normal(spread=1.0 + clean.detectable.draws_scale), None, budget=SMALL).alarm


@pytest.mark.parametrize(
    ("change", "words"), [({"level": 1.0}, "level"), ({"budget": 0}, "budget"), ({"subjects": []}, "one or more")]
)
def test_errors(change, words):
    given = {"subjects": [BareSubject(kernels.normal(), None)]} | change
    with pytest.raises(InvalidArgumentError, match=words):
        run_battery(given.pop("subjects"), **given)
