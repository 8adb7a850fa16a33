"""Tests without chance: gradient, history, seeds, carried densities, exact draws; right and wrong, one by one."""

import numpy as np
import pytest

from bread.debugging.bare import BareSubject
from bread.debugging.battery import run_battery
from bread.debugging.finding import LeftOut
from bread.debugging.gradient_tests import run_gradient
from bread.debugging.kernel_tests import run_carried, run_states
from bread.debugging.randomness_tests import run_history, run_independence_of_seeds, run_streams
from bread.debugging.sample import Sample
from bread.debugging.simulator_tests import run_draws, run_score
from bread.debugging.target import Target
from bread.errors import DensityError
from tests.support import bare_kernels as kernels


def sample(target, kernel=None, n=40, **more):
    made = Sample(BareSubject(target, kernel, **more), 1, 0, 20)
    made.grow(n)
    return made


def changed(target, **fields):
    return Target(**({name: getattr(target, name) for name in Target.__dataclass_fields__} | fields))


def test_a_wrong_derivative_is_named_with_its_state():
    right = kernels.skewed()
    assert run_gradient(sample(right)).p_value == 1.0
    wrong = changed(right, gradient=lambda x: right.gradient(x) + np.array([0.0, 1e-3 * x[1]]))
    finding = run_gradient(sample(wrong))
    assert finding.p_value == 0.0 and finding.worst == ("x[1]", "derivative")
    assert "the derivative by x[1] is" in finding.note and "the gradient says" in finding.note


def test_kinks_and_walls_are_no_errors_of_the_gradient():
    laplace = Target(
        "Laplace", 1, lambda x: -np.abs(x).sum(-1), lambda n, rng: rng.laplace(size=(n, 1)), lambda x: -np.sign(x)
    )
    assert run_gradient(sample(laplace)).p_value == 1.0
    assert run_gradient(sample(kernels.walls())).p_value == 1.0
    assert isinstance(run_gradient(sample(kernels.discrete())), LeftOut)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_unit_of_a_coordinate_does_not_matter(scale):
    right = kernels.skewed()
    target = Target(
        "scaled",
        2,
        lambda x: right.log_density(x / scale),
        lambda n, rng: scale * right.simulate(n, rng),
        lambda x: right.gradient(x / scale) / scale,
    )
    assert run_gradient(sample(target)).p_value == 1.0
    assert run_gradient(sample(changed(target, gradient=lambda x: 1.01 * target.gradient(x)))).p_value == 0.0


def test_memory_and_random_numbers_from_outside_are_told_apart():
    target = kernels.skewed()
    assert run_history(sample(target, kernels.Carrying(target))).p_value == 1.0
    assert run_history(sample(target, kernels.metropolis(target))).p_value == 1.0
    assert "remembers" in run_history(sample(target, kernels.Adapting(target))).note
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    assert "global generator" in run_history(sample(target, kernels.from_outside(target))).note
    finding = run_history(sample(target, kernels.from_outside(target), build=lambda: kernels.from_outside(target)))
    assert "come from outside" in finding.note
    assert state.shape == np.random.get_state()[1].shape  # noqa: NPY002


def test_seeds_that_are_not_used_are_found():
    target = kernels.normal()
    assert run_independence_of_seeds(sample(target, kernels.metropolis(target))).p_value == 1.0
    assert run_independence_of_seeds(sample(target, kernels.OwnSeed(target))).p_value == 0.0
    stays = run_independence_of_seeds(sample(target, lambda x, rng: x))
    assert isinstance(stays, LeftOut) and "0 of 60 chains moved" in stays.reason


def test_carried_densities_may_differ_by_a_constant_alone():
    target = kernels.normal()

    class Shifted(kernels.Carrying):
        def log_density(self, carry):
            return carry[1] + 7.0

    class Noisy(kernels.Carrying):
        def log_density(self, carry):
            return carry[1] + 1e-3 * np.sin(carry[0][0])

    assert run_carried(sample(target, Shifted(target))).p_value == 1.0
    assert run_carried(sample(target, Noisy(target))).p_value == 0.0
    stale = run_carried(sample(target, kernels.Carrying(target, is_stale=True)))
    assert stale.p_value == 0.0 and "log densities carried after" in stale.note


def test_draws_and_states_that_cannot_be_are_counted():
    target = kernels.walls()
    assert run_draws(sample(target)).p_value == 1.0
    outside = changed(target, simulate=lambda n, rng: target.simulate(n, rng) - [0.0, 0.2])
    finding = run_draws(sample(outside))
    assert finding.p_value == 0.0 and "x[1] outside of the support" in finding.note
    leaves = run_states(sample(target, lambda x, rng: x + 0.01))
    assert leaves.p_value == 0.0 and "have density zero" in leaves.note
    halves = run_states(sample(kernels.discrete(), lambda x, rng: x + 0.5))
    assert "x[0] not a whole number" in halves.note
    nan = run_states(sample(kernels.normal(), lambda x, rng: x * np.nan))
    assert nan.p_value == 0.0 and "not a number" in nan.note


def test_a_kernel_that_returns_no_number_at_all_is_a_bug_and_no_error():
    def kernel(x, rng):
        return x * np.nan

    assert isinstance(run_streams(sample(kernels.normal(), kernel)), LeftOut)
    result = run_battery([BareSubject(kernels.normal(), kernel)], budget=20_000, seed=1)
    assert result.alarm and "states of chains" in {test.name for test in result.tests if test.p_value == 0.0}


def test_without_any_density_nothing_can_be_tested():
    target = changed(kernels.normal(), log_density=lambda x: np.nan)
    with pytest.raises(DensityError, match="nothing can be tested"):
        sample(target)


def stepped(n, rng):
    """A normal law whose left half has a fifth of its weight, and a free coordinate."""
    x = np.abs(rng.normal(size=n))
    return np.column_stack([np.where(rng.random(n) < 1 / 6, -x, x), rng.normal(size=n)])


def test_a_step_of_the_density_is_no_bug():
    target = Target("step", 2, lambda x: -(x @ x) / 2 - np.log(5) * (x[0] < 0), stepped, lambda x: -x)
    finding = run_score(sample(target, n=1000))
    assert np.nanmin(finding.p_values) > 1e-3
    assert all(
        np.isnan(p) for label, p in zip(finding.labels, finding.p_values, strict=True) if "[0]" in label.quantity
    )
    # What is beside the step is still tested.
    wrong = changed(target, simulate=lambda n, rng: stepped(n, rng) * [1.0, 1.3])
    assert np.nanmin(run_score(sample(wrong, n=1000)).p_values) < 1e-6
