"""Between the ends of the path: exact draws, right kernels that pass, planted bugs that show only there."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy.stats import binom

from bread.debugging.between import BETA
from bread.debugging.between_tests import run_steps
from bread.debugging.kernel_tests import run_invariance
from bread.debugging.model_subject import ModelSubject
from bread.debugging.sample import Sample
from bread.errors import UnsupportedModelError
from bread.exact import MetropolisHastings, grid_neighbours
from bread.paths.kinds import PriorPath
from tests.models.finite import FiniteModel
from tests.models.reference import AutoregressiveKernel, MarginalMixture, NormalMean
from tests.support.mutants import MUTANTS
from tests.support.reference_models import CONJUGATE

RNG = default_rng(5)
FINITE = FiniteModel(
    RNG.dirichlet(np.ones(6)), RNG.dirichlet(np.ones(3), 6), np.array([0, 2, 1, 1]),
    MetropolisHastings(grid_neighbours((6,))),
)  # fmt: skip
MODELS = {name: CONJUGATE[name] for name in ("normal_mean", "regression", "hierarchical", "label_mixture",
                                             "beta_binomial_hmc")} | {"finite": FINITE}  # fmt: skip


def scores(model, beta, told):
    """Return standard errors between means of x and x^2 of draws "at ``told``" and those of prior draws by weight."""
    n_prior, n = 10_000, 4000
    posterior = model.condition(model.info.data.observed)
    prior = posterior.draw_base(PriorPath(), SeedSequence(1).spawn(n_prior))
    log_w = beta * posterior.log_ratio(PriorPath(), prior)
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    draws = posterior.draw_tempered(told, SeedSequence(2).spawn(n))
    found = []
    for power in (1, 2):
        mean = w @ prior**power
        variance = (w**2) @ (prior**power - mean) ** 2 + (draws**power).var(axis=0) / n
        found.append(((draws**power).mean(axis=0) - mean) / np.sqrt(variance))
    return np.abs(np.concatenate(found))


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_draws_are_those_of_the_tempered_law(name):
    """Against prior draws by weight: 4.5 standard errors; at another inverse temperature more than 6."""
    assert scores(MODELS[name], BETA, BETA).max() < 4.5
    assert scores(MODELS[name], BETA, 1.0).max() > 6.0


def test_each_draw_depends_on_its_seed_alone():
    for model in MODELS.values():
        posterior = model.condition(model.info.data.observed)
        seeds = SeedSequence(3).spawn(5)
        all_of_them = posterior.draw_tempered(BETA, seeds)
        np.testing.assert_array_equal(posterior.draw_tempered(BETA, seeds[2:4]), all_of_them[2:4])


CAUTIOUS = ("finite", "beta_binomial_hmc")  # of one coordinate whose functions hardly differ from each other


def sampled(model, n, seed=1):
    subject = ModelSubject(model, BETA, SeedSequence(seed))
    sample = Sample(subject, seed, 0, 20)
    sample.between.grow(subject.draw(SeedSequence(seed, spawn_key=(1,)).spawn(n)))
    return sample


def level_holds(values):
    return all((values <= level).sum() <= binom.ppf(0.99, len(values), level) for level in (0.2, 0.05, 0.01))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_level_on_right_models_and_what_it_is_without_correction(name):
    findings = [run_steps(sampled(MODELS[name], 150, seed)) for seed in range(40)]
    assert level_holds(np.array([finding.p_value for finding in findings]))
    # Negative control: the smallest of ten p-values or more has no level, where they are not mostly of few differences.
    assert name in CAUTIOUS or not level_holds(np.array([np.nanmin(finding.p_values) for finding in findings]))


@dataclass(frozen=True)
class OtherBeta:
    """An autoregression that is run at another inverse temperature: right at 0 and at 1."""

    inner: AutoregressiveKernel
    power: float

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def n_random(self, dim):
        return self.inner.n_random(dim)

    def transition(self, run):
        return self.inner.transition(replace(run, betas=run.betas**self.power))


def steps_by_temperature(finding):
    """Return the smallest corrected p-value of either step."""
    first = np.array([label.function.endswith(f"beta = {BETA:g}") for label in finding.labels])
    n = finding.n_tested
    return n * np.nanmin(finding.p_values[first]), n * np.nanmin(finding.p_values[~first])


@pytest.mark.statistical
def test_a_temperature_that_is_counted_twice_fails_in_the_first_step_and_one_that_lags_in_the_second():
    """The lag of `off-by-one` begins at the second step; counted twice, errors of both steps cancel in the second."""
    right, twice, lagging = (
        run_steps(sampled(MUTANTS[name].build(None, is_bad), 1200))
        for name, is_bad in (("beta-twice", False), ("beta-twice", True), ("off-by-one", True))
    )
    assert right.p_value > 0.05 and right.n == 1200
    assert steps_by_temperature(twice)[0] < 1e-6
    first, second = steps_by_temperature(lagging)
    assert first > 0.05 and second < 1e-3


@pytest.mark.statistical
def test_the_kernel_alone_is_tested_there_too():
    y = np.array([0.3, -1.0, 2.0, 0.5])
    for power, is_right in ((1.0, True), (2.0, False)):
        subject = ModelSubject(NormalMean(y, kernel=OtherBeta(AutoregressiveKernel(0.5), power)), BETA, SeedSequence(1))
        sample = Sample(subject, 1, 0, 20)
        sample.grow(600)
        p_value = run_invariance(sample).p_value
        assert (p_value > 0.05) if is_right else (p_value < 1e-3), power


def test_density_and_gradient_are_those_of_the_tempered_law():
    subject = ModelSubject(CONJUGATE["hierarchical"], BETA, SeedSequence(1))
    draws = subject.draw(SeedSequence(2).spawn(3))
    step = 1e-5
    for i in range(draws.states.shape[1]):
        ends = [draws.at(draws.states + sign * step * (np.arange(draws.states.shape[1]) == i)) for sign in (1, -1)]
        slope = (subject.log_density(ends[0]) - subject.log_density(ends[1])) / (2.0 * step)
        np.testing.assert_allclose(slope, subject.gradient(draws)[:, i], rtol=1e-6, atol=1e-6)
    posterior = subject.model.condition({name: values[0] for name, values in draws.data.items()})
    base, ratio = (f(PriorPath(), draws.states[:1])[0] for f in (posterior.log_base, posterior.log_ratio))
    assert np.isclose(subject.log_density(draws)[0], base + BETA * ratio)


def test_a_law_that_cannot_be_drawn_is_refused_and_a_call_leaves_it_out_with_the_reason():
    with pytest.raises(UnsupportedModelError, match="no closed form of its tempered laws"):
        ModelSubject(MarginalMixture(np.array([0.3])), BETA, SeedSequence(1))
