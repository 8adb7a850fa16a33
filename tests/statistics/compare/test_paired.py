"""Paired intervals: coverage where the truth is known, power, exact interpolation; and what decides a contrast."""

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from bread.statistics.compare.contrasts import Curves, axes_of, contrast
from bread.statistics.compare.paired import at_cost, difference_interval, ratio_interval, same_law_p_value

RATIO, REPETITIONS, R = 0.8, 200, 20


def pairs(seed: int, ratio: float = RATIO) -> tuple[np.ndarray, np.ndarray]:
    """Skewed values of two samplers that share what is easy and what is hard, with means ``ratio`` and 1."""
    rng = np.random.default_rng(seed)
    common = rng.gamma(2.0, 0.5, size=R)
    return ratio * common * rng.gamma(16.0, 1 / 16, size=R), common * rng.gamma(16.0, 1 / 16, size=R)


@pytest.mark.statistical
def test_the_interval_of_a_ratio_covers_it_and_is_narrower_than_that_of_unpaired_values() -> None:
    """95 % by design; 0.88 is below it by 4.5 standard errors of 200 repetitions. Control: another ratio is outside."""
    intervals = [ratio_interval(*pairs(seed), 0.95) for seed in range(REPETITIONS)]
    holds = [one.lower <= RATIO <= one.upper for one in intervals]
    assert np.mean(holds) > 0.88
    assert np.mean([one.lower <= 2 * RATIO <= one.upper for one in intervals]) < 0.02
    unpaired = [ratio_interval(pairs(seed)[0], pairs(seed + 1000)[1], 0.95) for seed in range(30)]
    widths = [np.median([one.upper - one.lower for one in found]) for found in (intervals, unpaired)]
    assert widths[0] < 0.6 * widths[1]


@pytest.mark.statistical
def test_equal_samplers_are_rarely_told_apart() -> None:
    """At most 5 % by design; 0.12 is above it by 4.5 standard errors of 200 repetitions."""
    differ = [difference_interval(*pairs(seed, 1.0), 0.95) for seed in range(REPETITIONS)]
    assert np.mean([one.lower > 0 or one.upper < 0 for one in differ]) < 0.12
    same = pairs(3)[0]
    assert ratio_interval(same, same, 0.95).upper == pytest.approx(1.0, abs=1e-6)


def test_ratios_without_an_end() -> None:
    zeros, values = np.zeros(5), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert ratio_interval(zeros, values, 0.95).estimate == 0.0
    assert ratio_interval(values, zeros, 0.95).estimate == np.inf
    assert np.isnan(ratio_interval(zeros, zeros, 0.95).estimate)
    noisy = np.array([0.0, 0.0, 0.0, 0.0, 9.0])
    assert ratio_interval(values, noisy, 0.95).upper == np.inf  # the second mean may be zero
    assert np.isnan(ratio_interval(values[:1], values[:1], 0.95).lower)
    for wrong in (-values, np.append(values[:4], np.inf), values[:3]):
        with pytest.raises(InvalidArgumentError):
            ratio_interval(values, wrong, 0.95)


def test_interpolation_is_exact_for_powers_and_keeps_the_pairs() -> None:
    rng = np.random.default_rng(0)
    hard = rng.gamma(2.0, size=12)
    costs = np.array([10.0, 40.0, 160.0])
    values = hard / costs[:, None]
    found = at_cost(values, costs, 80.0)
    np.testing.assert_allclose(found.values, hard / 80.0, rtol=1e-12)
    assert found.share == pytest.approx(0.5)
    np.testing.assert_array_equal(at_cost(values, costs, 40.0).values, values[1])
    assert np.isnan(at_cost(values, costs, 5.0).values).all() and np.isnan(at_cost(values, costs, 500.0).values).all()


@pytest.mark.statistical
def test_samples_of_one_law_and_of_two() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=(300, 5))
    assert same_law_p_value(first, rng.normal(size=(300, 5))) > 0.05
    other = rng.normal(size=(300, 5))
    other[:, 3] *= 2.0
    assert same_law_p_value(first, other) < 1e-5
    assert np.isnan(same_law_p_value(np.full((3, 1), np.nan), first[:3, :1]))


def curves(scale: float, per_step: float, *, reliable: bool = True, noise: int = 0) -> Curves:
    temperatures = np.array([9.0, 33.0, 129.0])
    hard = np.random.default_rng(5).gamma(4.0, 0.25, size=20) * np.random.default_rng(noise).gamma(64, 1 / 64, size=20)
    gaps = scale * hard / temperatures[:, None] * 10
    steps = temperatures - 1
    costs = {
        "steps": steps,
        "gradients": per_step * steps,
        "evaluations": 0 * steps,
        "seconds": 1e-3 * per_step * steps,
    }
    return Curves(gaps, np.tanh(np.sqrt(gaps) / 2), costs, np.full(3, reliable))


def test_which_is_better_depends_on_the_cost() -> None:
    """Half the gap a step at three times the gradients: better by steps, worse by work."""
    first, second = curves(0.5, 3.0), curves(1.0, 1.0, noise=1)
    assert axes_of([first, second]) == ("steps", "gradients", "seconds")
    found = {axis: contrast(first, second, axis, 0.98) for axis in ("steps", "gradients", "seconds")}
    assert [found[axis].better for axis in found] == [-1, 1, 1]
    assert found["steps"].gap_ratio.estimate == pytest.approx(0.5, rel=0.1) and found["steps"].cost == 128.0
    assert found["gradients"].gap_ratio.estimate == pytest.approx(1.5, rel=0.15) and found["gradients"].margin == 1.1


def test_what_is_within_the_margin_or_not_reliable_decides_nothing() -> None:
    """7 % more of the same is beyond the interval at equal steps, and within the margin of seconds; then V decides."""
    first, second = curves(1.07, 1.0), curves(1.0, 1.0)
    assert contrast(first, second, "steps", 0.95).better == 1
    assert contrast(first, second, "seconds", 0.95).better == 0
    unreliable = contrast(curves(1.0, 1.0, reliable=False), curves(9.0, 1.0), "steps", 0.95)
    assert unreliable.decides == "V" and unreliable.better == -1
    late = curves(1.0, 1.0)._replace(costs={name: 1e4 * values for name, values in second.costs.items()})
    nothing = contrast(late, second, "gradients", 0.95)
    assert nothing.decides == "" and nothing.better == 0 and np.isnan(nothing.cost)
