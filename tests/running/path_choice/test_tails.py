"""How many draws from both ends of a path tell whether B has a mean."""

from dataclasses import replace

import numpy as np
import pytest

from bread.backends.base import Kernel
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import gaussian
from bread.running.path_choice.tails import MOST_TAIL_DRAWS, BaseDrawsTask, EndTask, with_decided_tails
from bread.running.pilots.tuning import TAIL_DRAWS, Pilot
from bread.statistics.bounds import tails
from tests.models.reference import HMCKernel, NormalMean

KERNEL = Kernel(betas=np.array([0.0, 1.0]), settings={}, log_ratio=(np.zeros(1), np.zeros(1)), source="")
LIGHT = tails.TailIndex(0.0, 0.25, 16)
N_RUNS = 60


def decided(draw, n_pilots=1):
    """Return pilots after their first draws, and after as many as they asked for; ``draw(pilot, n)`` gives more."""
    first = [Pilot(KERNEL, PriorPath(), draw(index, TAIL_DRAWS), np.zeros(0)) for index in range(n_pilots)]

    def more(low, high):
        return [draw(index, high - low) for index in range(n_pilots)]

    return first, with_decided_tails(first, more)


def pareto(index, run):
    """Log ratios of a known tail index, by inversion."""
    rng = np.random.default_rng(run)
    return lambda pilot, n: 1.0 - rng.uniform(size=n) ** -index


def is_reliable(pilots):
    return tails.is_mean_reliable(tails.centred_tail_index([pilot.base_log_ratio for pilot in pilots]), LIGHT)


@pytest.mark.statistical
def test_more_draws_find_a_mean_that_exists_and_none_that_does_not():
    first, last = zip(*(decided(pareto(0.8, run)) for run in range(N_RUNS)), strict=True)
    # 36 % and 94 % of 200 runs; 60 runs have standard errors of 6 % and 3 %
    assert np.mean([is_reliable(one) for one in first]) < 0.36 + 4 * 0.062
    assert np.mean([is_reliable(one) for one in last]) > 0.94 - 4 * 0.031
    heavy, still_heavy = zip(*(decided(pareto(1.2, run)) for run in range(N_RUNS)), strict=True)
    assert np.mean([is_reliable(one) for one in [*heavy, *still_heavy]]) < 0.06


def scale_model(draw_scale, run, n_observed=10):
    """Log likelihoods of three data sets under one prior of their scale, each with its own true scale."""
    rng = np.random.default_rng(run)
    squares = [draw_scale(rng, 1)[0] ** 2 * rng.chisquare(n_observed) for _ in range(3)]

    def draw(pilot, n):
        scale = draw_scale(rng, n)
        return -n_observed * np.log(scale) - squares[pilot] / (2.0 * scale**2)

    return draw


@pytest.mark.statistical
def test_data_sets_of_unequal_scale_are_judged_together():
    """60 runs of three data sets: a Gamma(3) scale, k = 2/3, is doubted in at most 10 %, a half-normal one always.

    Negative controls: the first draws alone, and values that are only centred, which the law of scales lengthens.
    """

    def doubted(draw_scale, judge=is_reliable):
        runs = [decided(scale_model(draw_scale, run), 3) for run in range(N_RUNS)]
        return [np.mean([not judge(one) for one in part]) for part in zip(*runs, strict=True)]

    first, last = doubted(lambda rng, n: rng.gamma(3.0, size=n))
    assert last <= 0.10 and first > 0.2
    assert doubted(lambda rng, n: np.abs(rng.normal(size=n)))[1] == 1.0

    def unscaled(pilots):
        pooled = np.concatenate([one.base_log_ratio - np.median(one.base_log_ratio) for one in pilots])
        return tails.is_mean_reliable(tails.tail_index(pooled), LIGHT)

    def groups(run):
        """Normal values of 40 data sets, whose scales differ by e^2.5."""
        rng = np.random.default_rng(run)
        scales = np.exp(2.5 * rng.normal(size=40))
        return [Pilot(KERNEL, PriorPath(), scale * rng.normal(size=50), np.zeros(0)) for scale in scales]

    runs = [groups(run) for run in range(20)]
    assert np.mean([is_reliable(one) for one in runs]) >= 0.95
    assert np.mean([unscaled(one) for one in runs]) <= 0.75


def test_draws_are_added_only_where_they_may_decide():
    for index in (0.1, 2.0):  # clearly finite, clearly infinite
        (before,), (after,) = decided(pareto(index, 0))
        assert len(after.base_log_ratio) == len(before.base_log_ratio) == TAIL_DRAWS
    runs = [decided(pareto(1.0, run), 2) for run in range(5)]
    assert max(len(last[0].base_log_ratio) for _, last in runs) == MOST_TAIL_DRAWS
    for first, last in runs:
        for before, after in zip(first, last, strict=True):
            np.testing.assert_array_equal(after.base_log_ratio[:TAIL_DRAWS], before.base_log_ratio)
            assert after.kernel.n_evaluations == len(after.base_log_ratio) - TAIL_DRAWS
        assert len({len(one.base_log_ratio) for one in last}) == 1


def test_an_outcome_of_zero_density_asks_for_no_more():
    (_,), (after,) = decided(lambda pilot, n: np.array([-np.inf] + [0.0] * (n - 1)))
    assert after.base_log_ratio.size == TAIL_DRAWS


MODEL = NormalMean(np.array([0.3, -0.2, 1.0]), prior_sd=2.0, kernel=HMCKernel())


def test_draws_of_the_start_do_not_depend_on_their_batch():
    whole = BaseDrawsTask(-2, MODEL.observed_data, PriorPath(), 5, 0, 40).run(MODEL)
    parts = [BaseDrawsTask(-2, MODEL.observed_data, PriorPath(), 5, low, low + 20).run(MODEL) for low in (0, 20)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_many_draws_of_the_start_come_in_batches():
    task = BaseDrawsTask(-2, MODEL.observed_data, PriorPath(), 5, TAIL_DRAWS, 4 * TAIL_DRAWS + 3)
    batches = task.in_batches()
    assert [batch.last - batch.first for batch in batches] == [TAIL_DRAWS] * 3 + [3]
    np.testing.assert_array_equal(np.concatenate([batch.run(MODEL) for batch in batches]), task.run(MODEL))


def test_ends_are_exact_draws_with_their_own_data():
    simulated = MODEL.simulate(6, fixed=None, seed=np.random.SeedSequence(3))
    reference = gaussian(np.array([0.0]), np.array([[4.0]]))
    data = tuple(simulated.data_of(row) for row in range(6))
    task = EndTask(ReferencePath(reference), simulated.states, data)
    x, y = simulated.states[:, 0], simulated.data["y"]
    prior = -0.5 * (x / 2.0) ** 2 - np.log(2.0)
    likelihood = -0.5 * ((y - x[:, None]) ** 2).sum(axis=1) - 1.5 * np.log(2.0 * np.pi)
    expected = prior + likelihood - (-0.5 * x**2 / 4.0 - np.log(2.0))
    np.testing.assert_allclose(task.run(MODEL), expected, rtol=1e-10)
    mixed = replace(task, data=data[1:] + data[:1]).run(MODEL)
    assert not np.allclose(mixed, expected)


@pytest.mark.statistical
def test_a_reference_that_is_too_narrow_is_seen_at_the_end():
    """A Cauchy location under a Gaussian reference: log f - log q has the tail of x^2, k = 2; 20 runs of 400 draws.

    Controls: a Gaussian location of the same spread, and a reference as wide as the prior.
    """
    rng = np.random.default_rng(8)

    def ratios(x, log_density):
        success = rng.uniform(size=len(x)) < 1.0 / (1.0 + np.exp(-x))
        return log_density(x) - np.log1p(np.exp(-np.where(success, x, -x))) + 0.5 * (x / 3.0) ** 2

    with np.errstate(over="ignore"):
        cauchy = [ratios(rng.standard_cauchy(400), lambda x: -np.log1p(x**2)) for _ in range(20)]
        normal = [ratios(rng.normal(size=400), lambda x: -0.5 * x**2) for _ in range(20)]
    assert not any(tails.is_end_reliable(values) for values in cauchy)
    assert np.mean([tails.is_end_reliable(values) for values in normal]) >= 0.9
    assert tails.is_end_reliable(np.zeros(0))
