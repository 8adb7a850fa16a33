"""Where reverse chains begin: a chain from the exact draw, most of it proposals where a reference is near."""

import numpy as np
import pytest
from scipy.stats import kstest, norm

from bread.backends.base import Kernel
from bread.backends.support.independence import Proposals
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import gaussian
from bread.running.pilots import reverse_starts
from bread.running.pilots.reverse_starts import NEAR, ReverseInitialTask, effective_share
from bread.seeds import Purpose, seed_sequence
from tests.models.reference import HMCKernel, NormalMean

MODEL = NormalMean(np.array([0.3, -0.2, 1.0]), prior_sd=2.0, kernel=HMCKernel())


def kernel_of(step_size):
    settings = {"step_size": np.full(2, step_size), "inverse_metric": np.ones((2, 1))}
    return Kernel(betas=np.array([0.0, 1.0]), settings=settings, log_ratio=(np.zeros(1), np.zeros(1)), source="")


STILL = kernel_of(1e-9)  # does not move: proposals alone must leave the law as it is
MOVING = kernel_of(0.3)
PRECISION = 3.0 + 0.25  # of the posterior
KEEP = (100, 120, 140, 160)
N_RUNS = 200


def near(y, shift=0.4, widening=1.3):
    """Return a law near the posterior, but off and too wide: not every proposal may be accepted."""
    return ReferencePath(gaussian(np.array([y.sum() / PRECISION + shift]), np.array([[widening**2 / PRECISION]])))


def task_of(number, path=None, kernel=STILL, keep=KEEP):
    drawn = MODEL.simulate(1, fixed=None, seed=np.random.SeedSequence(number))
    data = drawn.data_of(0)
    return ReverseInitialTask(number, data, path or near(data["y"]), 5, kernel, drawn.states[0], keep)


def ranks(task_from):
    """Return the posterior's distribution function at a start of each of many data sets."""
    values = []
    for number in range(N_RUNS):
        task = task_from(number, keep=(36,))  # proposals, moves of the kernel, proposals
        state = task.run(MODEL).states[-1, 0]
        values.append(norm(task.data["y"].sum() / PRECISION, PRECISION**-0.5).cdf(state))
    return values


@pytest.mark.statistical
def test_starts_are_draws_of_the_posterior_as_the_exact_draw_is(monkeypatch):
    """Kolmogorov-Smirnov's distance over 200 data sets, at level 1e-3: 1.95 / sqrt(200).

    Negative control: every proposal accepted, whose law is off by 0.7 standard deviations and too wide.
    """
    limit = 1.95 / np.sqrt(N_RUNS)
    assert kstest(ranks(task_of), "uniform").statistic < limit
    monkeypatch.setattr(Proposals, "accepts", lambda proposals, step, beta, log_ratio: True)
    assert kstest(ranks(task_of), "uniform").statistic > limit


def test_most_transitions_are_proposals_where_the_reference_is_near():
    task = task_of(0, kernel=MOVING)
    found = task.run(MODEL)
    posterior = MODEL.condition(task.data)
    seed = seed_sequence(5, Purpose.EVOLVE, 0)
    alone = posterior.evolve(task.path, MOVING, 1.0, task.exact, KEEP, seed)
    assert 0 < found.n_gradients <= 0.25 * alone.n_gradients
    assert found.states.shape == alone.states.shape == (4, 1)
    assert len(np.unique(found.states)) == 4  # 16 proposals and 4 moves lie between them


@pytest.mark.parametrize("path", [PriorPath(), ReferencePath(gaussian(np.array([9.0]), np.array([[1.0]])))])
def test_the_kernel_moves_alone_where_no_reference_is_near(path):
    task = task_of(1, path, MOVING)
    alone = MODEL.condition(task.data).evolve(path, MOVING, 1.0, task.exact, KEEP, seed_sequence(5, Purpose.EVOLVE, 1))
    np.testing.assert_array_equal(task.run(MODEL).states, alone.states)
    assert task.run(MODEL).n_gradients == alone.n_gradients


def test_the_first_start_may_be_the_exact_draw_itself():
    task = task_of(2, keep=(0, 20, 40))
    assert task.run(MODEL).states[0] == task.exact
    only = task_of(2, keep=(0,)).run(MODEL)
    assert only.states[0] == task.exact
    assert only.n_gradients == 0


def test_the_same_seed_gives_the_same_starts():
    first, again = (task_of(3).run(MODEL).states for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_draws_that_are_looked_at_are_not_proposed(monkeypatch):
    """What decides whether a reference is near must not choose among proposals: other random numbers are asked for."""
    asked = []
    original = reverse_starts.draw_many

    def noted(posterior, path, seeds):
        asked.append(tuple(seed.spawn_key for seed in seeds))
        return original(posterior, path, seeds)

    monkeypatch.setattr(reverse_starts, "draw_many", noted)
    task_of(4).run(MODEL)
    looked, proposed = asked
    assert not set(looked) & set(proposed)


def test_effective_share():
    assert effective_share(np.zeros(10)) == pytest.approx(1.0)
    assert effective_share(np.array([0.0, -np.inf, np.nan, -np.inf])) == pytest.approx(0.25)
    assert effective_share(np.full(3, -np.inf)) == 0.0
    assert effective_share(np.array([800.0, 800.0 + np.log(3.0)])) == pytest.approx(16.0 / 20.0)
    assert 0.0 < NEAR < 1.0
