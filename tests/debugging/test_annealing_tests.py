"""Tests of annealed chains: uniform on right models, each planted bug found by the test that should, none fooled."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy.stats import binom

from bread.debugging.annealed import AnnealedSample
from bread.debugging.annealing_tests import ANNEALING_TESTS, run_order, run_weighted_ranks, run_weights
from bread.debugging.bare import BareSubject
from bread.debugging.battery import LEVEL, run_battery
from bread.debugging.finding import LeftOut
from bread.debugging.model_subject import ModelSubject
from bread.debugging.sample import Sample
from tests.models.reference import (
    AutoregressiveKernel,
    CompoundKernel,
    GibbsLabelKernel,
    LabelMixture,
    NormalMean,
    UniformLocation,
)
from tests.models.reference.models.faulty import FaultyNormalMean
from tests.support import bare_kernels as kernels
from tests.support.mutants import MUTANTS
from tests.support.mutants.power import run_on_model
from tests.support.reference_models import CONJUGATE

PATHS = [name for name, mutant in MUTANTS.items() if mutant.breaks == "paths"]
BY_CHANCE = ("beta-twice", "off-by-one")
MODELS = ("normal_mean", "hierarchical", "label_mixture", "normal_mean_hmc", "beta_binomial_hmc")
AR = AutoregressiveKernel()


def annealed(model, n, seed=1):
    """Return a sample whose annealed chains alone were run, for n draws."""
    subject = ModelSubject(model, 1.0, SeedSequence(seed))
    sample = Sample(subject, seed, 0, 20)
    sample.annealed.every = 1
    sample.annealed.grow(subject.draw(SeedSequence(seed, spawn_key=(1,)).spawn(n)))
    return sample


def p_values(name, seeds, n=60):
    """Return those of order and ranks, one a run, and the smallest of each test's comparisons, not corrected."""
    samples = [annealed(CONJUGATE[name], n, seed) for seed in seeds]
    findings = [[run(sample) for run in (run_order, run_weighted_ranks)] for sample in samples]
    assert all(run_weights(sample).p_value == 1.0 for sample in samples)
    corrected = np.array([[finding.p_value for finding in row] for row in findings])
    return corrected, np.array([[np.nanmin(finding.p_values) for finding in row] for row in findings])


def check(values):
    for level in (0.2, 0.05, 0.01):
        assert ((values <= level).sum(axis=0) <= binom.ppf(0.99, len(values), level)).all()


@pytest.mark.statistical
def test_levels_on_a_right_model_and_what_they_are_without_correction():
    corrected, smallest = p_values("label_mixture", range(10), 30)  # one coordinate is discrete: ties
    check(corrected)
    with pytest.raises(AssertionError):  # negative control: the smallest of two dozen p-values has no level
        check(smallest)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", ["normal_mean", "hierarchical", "label_mixture", "normal_mean_hmc", "beta_binomial_hmc"]
)
def test_levels_on_right_models(name):
    check(p_values(name, range(100, 200))[0])


@pytest.mark.statistical
@pytest.mark.parametrize("name", PATHS)
@pytest.mark.slow
def test_bugs_of_tempering_are_found_by_the_tests_that_should(name):
    mutant = MUTANTS[name]
    good, bad = (annealed(mutant.build(None, is_bad), 1200, seed=2) for is_bad in (False, True))
    assert all(test.run(good).p_value > 0.01 for test in ANNEALING_TESTS)
    found = {test.name for test in ANNEALING_TESTS if test.run(bad).p_value < 1e-4}
    assert ("order of annealed weights" in found) == (name in BY_CHANCE)
    assert ("annealed weights" in found) == (name not in BY_CHANCE)


def test_a_weight_before_the_kernel_is_named():
    finding = run_weights(annealed(MUTANTS["weights-early"].build(None, True), 5))
    assert "The log weight in reverse is off in 5 of 5 chains" in finding.note
    assert {label.function for label, p in zip(finding.labels, finding.p_values, strict=True) if p == 0.0} == {
        "in reverse", "in reverse at beta = 0",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", PATHS)
def test_the_battery_finds_bugs_of_tempering_and_says_what_they_are(name):
    result = run_on_model(MUTANTS[name])
    assert result.alarm and len(result.diagnosis) == 1 and "inverse temperature" in result.diagnosis[0]
    assert all(test.subject == "kernel at beta = 0.4" or test.test.about == "annealing" for test in result.failed)
    assert ("steps between temperatures" in {test.name for test in result.failed}) == (name in BY_CHANCE)
    good = run_on_model(MUTANTS[name], is_bad=False, budget=30_000)
    assert not good.alarm and not good.failed


@pytest.mark.statistical
@pytest.mark.slow
def test_a_prior_reaches_where_the_likelihood_is_zero():
    """The density at beta = 0 is the prior's there: no difference of two infinities, which was called a bug."""
    model = UniformLocation(np.array([0.3, 0.9]))
    ends = [ModelSubject(model, beta, SeedSequence(1, spawn_key=(int(beta),))) for beta in (0.0, 1.0)]
    draws = ends[0].draw(SeedSequence(2).spawn(3))
    elsewhere = draws.at(draws.states + 5.0)
    assert np.isfinite(ends[0].log_density(elsewhere)).all() and np.isneginf(ends[1].log_density(elsewhere)).all()
    assert not run_battery(ends, budget=1, seed=1).alarm


def passes(name):
    ends = [ModelSubject(CONJUGATE[name], beta, SeedSequence(1, spawn_key=(int(beta),))) for beta in (0.0, 1.0)]
    result = run_battery(ends, budget=1, seed=1)
    assert not result.alarm, [(test.subject, test.name) for test in result.failed]


@pytest.mark.slow
@pytest.mark.statistical
def test_a_model_with_a_label_passes_the_whole_battery():
    passes("label_mixture")


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", CONJUGATE)
def test_models_of_the_reference_backend_pass_the_whole_battery(name):
    passes(name)


@pytest.mark.slow
def test_a_gap_that_hides_everything_is_said():
    wide = ModelSubject(NormalMean(np.full(5, 0.3), noise_sd=1e-3, kernel=AR), 1.0, SeedSequence(1))
    result = run_battery([wide], budget=1, seed=1)
    assert not result.alarm and any(
        "nats apart: their order says next to nothing of tempering" in note for note in result.notes
    )


@pytest.mark.slow
def test_only_a_kernel_at_the_end_of_a_path_is_annealed():
    model = CONJUGATE["normal_mean"]
    ends = [ModelSubject(model, beta, SeedSequence(1)) for beta in (0.0, 1.0)]
    result = run_battery(ends, budget=1, seed=1)
    assert {test.subject for test in result.tests if test.test.about == "annealing"} == {"kernel at beta = 1"}
    assert not result.alarm and not result.left_out.keys() & {("kernel at beta = 0", t.name) for t in ANNEALING_TESTS}
    bare = Sample(BareSubject(kernels.normal(), kernels.metropolis(kernels.normal())), 1, 0, 20)
    assert bare.annealed is None and isinstance(run_order(bare), LeftOut)


@dataclass(frozen=True, eq=False)
class RunsAsItIs(NormalMean):
    """What the PyMC backend says of step methods that it does not know."""

    remembers = True


@pytest.mark.slow
def test_a_kernel_that_may_not_be_reversed_is_left_out_with_the_reason():
    result = run_battery([ModelSubject(RunsAsItIs(np.array([1.0])), 1.0, SeedSequence(1))], budget=1, seed=1)
    assert not result.alarm
    for test in ANNEALING_TESTS:
        assert "whether it can be turned round is not known" in result.left_out["kernel at beta = 1", test.name]


@pytest.mark.parametrize("fault", ["nan", "raise"])
def test_chains_that_fail_leave_the_tests_out_and_ring_no_alarm(fault):
    """To drop the pairs that failed would choose by the outcome."""
    sample = annealed(FaultyNormalMean(np.array([0.5]), kernel=AR, fault=fault), 60)
    assert not sample.annealed.pairs.is_sound.all()
    for run in (run_order, run_weighted_ranks):
        assert "have no weights" in run(sample).reason
    assert run_weights(sample).p_value == 1.0


class AllZero:
    """A posterior whose forward chains all have weight zero."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def anneal(self, *args, direction, **more):
        run = self._inner.anneal(*args, direction=direction, **more)
        if direction == "reverse":
            return run
        ratio = run.log_ratio.copy()
        ratio[:, 0] = -np.inf
        return replace(run, log_ratio=ratio, log_weight=np.full(len(ratio), -np.inf))


@dataclass(frozen=True, eq=False)
class ZeroWeights(NormalMean):
    def condition(self, data):
        return AllZero(super().condition(data))


@pytest.mark.statistical
@pytest.mark.slow
def test_chance_rings_on_nothing_that_fools():
    """Forward weights that are all zero, data that say nothing, huge gaps, a label that cannot move at small beta."""
    stuck = LabelMixture(
        np.array([0.2]), shifts=(0.0, 60.0), kernel=CompoundKernel((GibbsLabelKernel(), AutoregressiveKernel()))
    )
    models = {
        "all zero": ZeroWeights(np.array([0.3, 0.1]), kernel=AR),
        "no information": NormalMean(np.array([0.3]), noise_sd=1e4, kernel=AR),
        "huge gaps": NormalMean(np.full(5, 0.3), noise_sd=1e-3, kernel=AR),
        "stuck": stuck,
        "many zeros": UniformLocation(np.array([0.3, 0.9])),
    }
    for model in models.values():
        sample = annealed(model, 60, seed=3)
        assert sample.annealed.pairs.is_sound.all()
        for run in (run_order, run_weighted_ranks):
            assert run(sample).p_value > LEVEL


def test_the_schedule_is_longer_where_gaps_are_large_and_annealing_costs_a_share_of_a_draw():
    models = [NormalMean(np.full(4, 0.3), noise_sd=sd, kernel=AR) for sd in (2.0, 0.05)]
    made = []
    for model in models:
        subject = ModelSubject(model, 1.0, SeedSequence(1))
        pilot = subject.draw(SeedSequence(2).spawn(25))

        def seeds(part, low, high):
            return [SeedSequence(3, spawn_key=(part, k)) for k in range(low, high)]

        made.append(AnnealedSample(subject, pilot, seeds, 200, 20.0))
        made[-1].grow(pilot)
    easy, hard = made
    assert len(easy.betas) == 5 < len(hard.betas) == 17 and easy.gap < 2.0 < hard.gap
    for one in made:
        assert abs(one.cost_of_draw / (0.1 * 20.0) - 1.0) < 0.2
        assert len(one.pairs) == -(-25 // one.every) and one.every > 1


def test_pairs_do_not_depend_on_the_rounds_in_which_they_were_drawn():
    subject = ModelSubject(CONJUGATE["normal_mean"], 1.0, SeedSequence(1))
    whole, parts = Sample(subject, 1, 0, 20), Sample(subject, 1, 0, 20)
    draws = subject.draw(SeedSequence(4).spawn(17))
    whole.annealed.grow(draws)
    for rows in (slice(0, 4), slice(4, 5), slice(5, 17)):
        parts.annealed.grow(draws.rows(rows))
    assert len(whole.annealed.pairs) > 3
    np.testing.assert_array_equal(parts.annealed.pairs.log_weight, whole.annealed.pairs.log_weight)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(parts.annealed.pairs.log_weight[:-1], whole.annealed.pairs.log_weight[1:])
