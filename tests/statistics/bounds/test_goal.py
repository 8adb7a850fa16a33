"""What a check is to reach: which bound decides, and what that is predicted to cost."""

import numpy as np
import pytest

from bread.statistics.bounds.certificate import conditional_gaps, error_by_simulation, error_interval
from bread.statistics.bounds.goal import Decision, Goal, one_sided, simulations_needed
from bread.statistics.bounds.intervals import Interval, mean_interval


def gaussian_work(gap: float, n: int, chains: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(-gap / 2, np.sqrt(gap), (n, chains)), rng.normal(gap / 2, np.sqrt(gap), (n, chains))


@pytest.mark.parametrize("is_reliable", [True, False])
def test_v_decides_unless_nats_are_asked_for(is_reliable):
    forward, reverse = gaussian_work(0.05, 20, 4)
    errors = error_by_simulation(forward, reverse)
    decision = Goal(0.1).decide(forward, reverse, 0.95, is_reliable=is_reliable)
    assert (decision.name, decision.limit) == ("V", 0.1)
    np.testing.assert_array_equal(decision.values, errors)
    assert decision.interval == error_interval(errors, 0.975)
    asked = Goal(0.1, target=0.5).decide(forward, reverse, 0.95, is_reliable=is_reliable)
    if is_reliable:
        assert (asked.name, asked.limit) == ("B", 0.5)
        assert asked.interval == mean_interval(conditional_gaps(forward, reverse), 0.95)
    else:  # an infinite B is no bound: V decides, at the error that B = 0.5 would bound
        assert asked.name == "V" and 4 * asked.limit * np.arctanh(asked.limit) == pytest.approx(0.5)


def test_a_bound_without_an_interval_is_never_reached():
    nothing = Decision("V", np.zeros(1), Interval(0.0, np.nan, np.nan), 0.1, 0.95)
    assert not nothing.is_reached
    assert Decision("V", np.zeros(2), Interval(0.05, 0.02, 0.1), 0.1, 0.95).is_reached
    assert not Decision("V", np.zeros(2), Interval(0.05, 0.02, 0.1001), 0.1, 0.95).is_reached


@pytest.mark.statistical
@pytest.mark.parametrize("chains", [1, 4, 16])
@pytest.mark.parametrize("max_error", [0.05, 0.1, 0.3])
def test_the_predicted_gap_leaves_v_below_its_limit(chains, max_error):
    # V at the predicted gap is 0.85 of the limit, to 6% (the formula is of first order) and 4 standard errors.
    gap = Goal(max_error).gap(chains)
    errors = error_by_simulation(*gaussian_work(gap, 4000, chains))
    tolerance = 0.06 * max_error + 4 * errors.std() / np.sqrt(4000)
    assert errors.mean() == pytest.approx(0.85 * max_error, abs=tolerance)
    twice = error_by_simulation(*gaussian_work(2 * gap, 4000, chains))  # the control
    assert twice.mean() != pytest.approx(0.85 * max_error, abs=tolerance)
    assert Goal(target=1.5).gap(chains) == 1.5


def test_more_simulations_are_foreseen_where_they_can_help():
    rng = np.random.default_rng(2)
    values = rng.beta(2, 30, 400)  # mean 0.0625
    limit = 1.2 * values[:20].mean()
    first = Decision("V", values[:20], error_interval(values[:20], one_sided(0.95)), limit, 0.95)
    assert not first.is_reached
    wanted = simulations_needed(first, 0.975, 400)
    assert wanted is not None and 20 < wanted < 400
    assert error_interval(values[:wanted], one_sided(0.975)).upper < first.interval.upper
    assert simulations_needed(first, 0.975, 21) is None  # too few are allowed
    easier = first._replace(limit=1.3 * values[:20].mean())
    assert simulations_needed(easier, 0.975, 400) < wanted < simulations_needed(first, 0.999, 4000)
    above = Decision("V", values[:20] + 0.1, error_interval(values[:20] + 0.1, 0.975), 0.1, 0.95)
    assert simulations_needed(above, 0.975, 10**4) is None  # no number of them helps
