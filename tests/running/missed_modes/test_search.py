"""The search for modes that draws miss: what must be found, what must ring no alarm, and a naive rule that rings."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from bread.errors import UnsupportedModelError
from bread.jobs.executors import SerialExecutor
from bread.running.missed_modes import optimise
from bread.running.missed_modes.search import ModeSearch
from bread.running.missed_modes.tasks import FIRST, WeighTask
from bread.statistics.real_data import modes as statistics
from tests.support.mode_cases import MISSED, NOT_MISSED, ModeCase, gaussian, halves, labels, mixture, planted_regime

N_DRAWS = 100


def search(case: ModeCase, seed: int, own=None, slack: float = 0.3):
    rng = np.random.default_rng(1000 + seed)
    draws = case.draw(N_DRAWS, rng)
    log_lower = case.log_lower - abs(rng.normal(0.0, slack))  # a bound by a few chains lies below
    with SerialExecutor(case) as executor:
        return ModeSearch(case, executor.run, seed, 0).run(draws, log_lower, own)


def is_missed(found) -> bool:
    return any(mode.weighed.missed for mode in found.modes)


@pytest.mark.parametrize("name", MISSED)
def test_missed_modes_are_found(name):
    found = search(MISSED[name](), 0)
    assert is_missed(found)
    assert found.modes[0].weighed.missed  # the missed one first
    assert found.modes[0].weighed.annealed.estimate < 0.1


@pytest.mark.parametrize("name", NOT_MISSED)
def test_no_alarm(name):
    found = search(NOT_MISSED[name](), 0)
    assert found.modes and not is_missed(found)


@pytest.mark.parametrize("name", ["funnel", "banana", "eight schools, centred", "correlated Gaussian, d = 30"])
def test_no_alarm_where_the_lower_bound_is_far_off(name):
    """The draws themselves then say what they hold."""
    assert not is_missed(search(NOT_MISSED[name](), 11, slack=1000.0))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", [*MISSED, *NOT_MISSED])
def test_ten_seeds(name):
    """10 of 10 found, 0 of 10 false alarms."""
    case = {**MISSED, **NOT_MISSED}[name]()
    count = sum(is_missed(search(case, seed)) for seed in range(1, 11))
    assert count == (10 if name in MISSED else 0)


def naive_rings(case: ModeCase, seed: int) -> bool:
    """Whether evidences of whole modes ring, with the share of the draws near each."""
    rng = np.random.default_rng(1000 + seed)
    draws = case.draw(N_DRAWS, rng)
    prior = case.draw_prior(1000, rng)
    scale = optimise.prior_scales(prior)
    for start in optimise.starts(prior, case.log_f(prior), optimise.BEST, optimise.FAR):
        end = optimise.climb(case, start, optimise.MOST_STEPS, scale)
        proposal, _ = optimise.proposal_at(case, end.state, scale)
        if proposal is None:
            continue
        states = proposal.sample(statistics.PROPOSED, rng)
        with np.errstate(all="ignore"):
            weights = case.log_f(states) - proposal.log_density(states)
        value = logsumexp(weights[np.isfinite(weights)]) - np.log(len(states))
        mass = expit(value - case.log_lower)
        if mass > 0.1 and statistics.share_of(proposal.holds(draws)).upper < mass / 2:
            return True
    return False


@pytest.mark.parametrize("name", ["banana", "seen spike of 30%", "ring", "two labels, one seen"])
def test_naive_comparison_of_evidences_rings_falsely(name):
    case = NOT_MISSED[name]()
    assert any(naive_rings(case, seed) for seed in range(3))
    assert not any(is_missed(search(case, seed)) for seed in range(3))


def test_place_and_mass_of_the_planted_regime():
    found = search(planted_regime(), 3)
    heaviest = found.modes[0]
    np.testing.assert_allclose(heaviest.state, 8.0, atol=1e-3)
    assert heaviest.weighed.mass_lower > 0.999
    error = heaviest.weighed.evidence.standard_error
    assert -0.2 < heaviest.weighed.evidence.value - 68.0 < 4 * error  # a region holds less than the mode


def test_own_draws_are_counted_in_the_same_region():
    case = halves(3)
    rng = np.random.default_rng(5)
    there = np.array([8.0, 0.0, 0.0]) + case.draw(400, rng)
    own = np.concatenate([there, case.draw(400, rng)]).reshape(2, 400, 3)
    found = search(case, 4, own=own)
    assert found.modes[0].weighed.missed
    assert abs(found.modes[0].own.estimate - 0.5) < 0.05
    assert found.modes[0].own.lower < 0.5 < found.modes[0].own.upper


def test_one_labelling_of_two_is_no_missed_mode_but_a_half_is():
    assert not is_missed(search(labels(2, False), 6))
    # The same density, whose coordinates are parameters of their own: nothing says that these are labels.
    case = labels(2, False)
    apart = ModeCase(case.dim, case.log_f, case.draw, case.draw_prior, case.log_lower)
    assert is_missed(search(apart, 6))
    # A vector whose elements the density tells apart.
    half = halves(3)
    vector = ModeCase(half.dim, half.log_f, half.draw, half.draw_prior, half.log_lower, is_vector=True)
    found = search(vector, 6)
    assert is_missed(found)


class NoPrior(ModeCase):
    """A posterior under a flat prior."""

    def draw_base(self, path, seeds):
        raise UnsupportedModelError("its prior is flat")


@pytest.mark.parametrize("dim", [1, 10])
def test_without_a_prior_the_search_begins_far_around_the_draws(dim, monkeypatch):
    half = halves(dim)
    case = NoPrior(half.dim, half.log_f, half.draw, half.draw_prior, half.log_lower)
    found = search(case, 1)
    assert is_missed(found) and not found.has_prior and found.n_prior == 1000
    assert search(half, 1).has_prior
    assert not is_missed(search(NoPrior(*(vars(gaussian(dim))[name] for name in NAMES)), 1))
    monkeypatch.setattr("bread.running.missed_modes.search.SPREAD", 0.0)
    assert not is_missed(search(case, 1))  # the control: at the draws alone


NAMES = ("dim", "log_f", "draw", "draw_prior", "log_lower")


def test_one_may_begin_near_the_posterior_too():
    """A spike that no prior draw comes near, and draws of a law that does."""
    case = mixture([[0.0], [900.0]], [1.0, 1.0], [0.0, 0.0], [True, False], prior_sd=3.0)
    rng = np.random.default_rng(1)
    with SerialExecutor(case) as executor:
        draws, nearby = case.draw(N_DRAWS, rng), 900.0 + rng.standard_normal((50, 1))
        assert not is_missed(ModeSearch(case, executor.run, 1, 0).run(draws, -np.inf, None))
        assert is_missed(ModeSearch(case, executor.run, 1, 0).run(draws, -np.inf, None, nearby))


def test_results_depend_on_the_seed_alone():
    case = halves(2)
    one, two, other = (search(case, seed) for seed in (7, 7, 8))
    assert [mode.weighed for mode in one.modes] == [mode.weighed for mode in two.modes]
    assert [mode.weighed for mode in one.modes] != [mode.weighed for mode in other.modes]


def test_what_is_spent_is_counted_and_follows_the_check():
    case = halves(2)
    calls = {"gradients": 0, "states": 0}

    class Counting(ModeCase):
        def end_gradient(self, path, state):
            calls["gradients"] += 1
            return ModeCase.end_gradient(self, path, state)

        def log_ratio(self, path, states):
            calls["states"] += len(states)
            return ModeCase.log_ratio(self, path, states)

    counting = Counting(case.dim, case.log_f, case.draw, case.draw_prior, case.log_lower)
    small = search(counting, 9)
    assert calls == {"gradients": small.n_gradients, "states": small.n_evaluations}
    assert small.n_prior == 1000
    with SerialExecutor(case) as executor:
        draws = case.draw(N_DRAWS, np.random.default_rng(9))
        large = ModeSearch(case, executor.run, 9, 200_000).run(draws, case.log_lower, None)
    assert large.n_prior == 2500


@pytest.mark.parametrize(
    ("spike", "scale", "may_stop", "n_evaluated"),
    [
        (False, 1.0, True, FIRST), (False, 1.0, False, 4000), (True, 1.0, True, 4000), (False, 0.2, True, 4000),
    ],
)  # fmt: skip
def test_a_proposal_is_weighed_by_its_first_draws_where_these_are_enough(spike, scale, may_stop, n_evaluated):
    """Not where few of them count, or one that is above all densities of draws counts: a peak that draws may miss."""
    proposal = statistics.Proposal(np.zeros(2), np.eye(2))
    seed = np.random.SeedSequence(3)
    peak = proposal.sample(4000, np.random.default_rng(seed))[7]

    def log_f(states):
        plain = -0.5 * ((states / scale) ** 2).sum(axis=1)
        return np.where(spike & (states == peak).all(axis=1), 5.0, plain)

    half = halves(2)
    case = ModeCase(2, log_f, half.draw, half.draw_prior, 0.0)
    draws = np.full((1, 2), 0.05)  # of nearly the largest density: a few draws of the proposal lie above
    proposed, there = WeighTask({}, proposal, 4000, seed, draws, may_stop).run(case)
    assert len(proposed.states) == len(proposed.log_density) == n_evaluated
    np.testing.assert_array_equal(proposed.states, proposal.sample(4000, np.random.default_rng(seed))[:n_evaluated])
    np.testing.assert_allclose(proposed.log_density, log_f(proposed.states), atol=1e-9)
    np.testing.assert_allclose(there, log_f(draws), atol=1e-9)
