"""Kernels of BlackJAX and NumPyro as steppers: they move, repeat themselves, and carry their density."""

from __future__ import annotations

import numpy as np
import pytest

from bread.debugging.bare import BareSubject
from bread.debugging.battery import run_battery
from bread.debugging.stepper import ManyChains
from bread.debugging.targets import default_targets
from bread.errors import InvalidArgumentError

jax = pytest.importorskip("jax")
START = np.array([0.5, -1.0, 2.0])


@pytest.fixture(autouse=True)
def double_precision():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def log_density(x):
    return -0.5 * (x**2).sum()


def blackjax_nuts():
    blackjax = pytest.importorskip("blackjax")
    from bread.testing.blackjax_kernels import BlackJAXKernel

    return BlackJAXKernel(blackjax.nuts(log_density, 0.5, np.ones(3)))


def blackjax_random_walk():
    blackjax = pytest.importorskip("blackjax")
    from bread.testing.blackjax_kernels import BlackJAXKernel

    return BlackJAXKernel(blackjax.rmh(log_density, lambda key, x: x + jax.random.normal(key, x.shape)))


def numpyro_hmc():
    infer = pytest.importorskip("numpyro.infer")
    from bread.testing.numpyro_kernels import NumPyroKernel

    kernel = infer.HMC(
        potential_fn=lambda x: -log_density(x), step_size=0.5, adapt_step_size=False, adapt_mass_matrix=False
    )
    return NumPyroKernel(kernel)


@pytest.mark.parametrize("build", [blackjax_nuts, blackjax_random_walk, numpyro_hmc])
def test_a_kernel_steps_with_the_random_numbers_it_is_given(build):
    kernel = build()
    assert isinstance(kernel, ManyChains)

    def chain(seed):
        rng = np.random.default_rng(seed)
        carry = kernel.start(START, rng)
        for _ in range(5):
            carry = kernel.step(carry, rng)
        return carry

    first, again, other = chain(1), chain(1), chain(2)
    np.testing.assert_array_equal(kernel.position(first), kernel.position(again))
    assert not np.array_equal(kernel.position(first), kernel.position(other))
    assert not np.array_equal(kernel.position(first), START)
    np.testing.assert_allclose(kernel.log_density(first), log_density(kernel.position(first)), rtol=1e-12)


def dynamic_hmc():
    blackjax = pytest.importorskip("blackjax")
    from bread.testing.blackjax_kernels import BlackJAXKernel

    return BlackJAXKernel(blackjax.dynamic_hmc(log_density, 0.5, np.ones(3)))


@pytest.mark.parametrize("build", [blackjax_random_walk, dynamic_hmc, numpyro_hmc])
def test_chains_side_by_side_depend_on_their_start_and_seed_alone(build):
    kernel, rng = build(), np.random.default_rng(1)
    starts, seeds = rng.normal(size=(300, 3)), np.random.SeedSequence(2).spawn(300)
    states, carried = kernel.run_chains(starts, (1, 5), seeds)
    assert len(np.unique(states[:, 1], axis=0)) == 300
    np.testing.assert_allclose(carried, [[log_density(x) for x in chain] for chain in states], rtol=1e-12)
    some = [299, 7]
    again, _ = kernel.run_chains(starts[some], (5,), [seeds[k] for k in some])
    np.testing.assert_allclose(again[:, 0], states[some, 1], rtol=1e-12)
    other, _ = kernel.run_chains(starts[some], (5,), np.random.SeedSequence(3).spawn(2))
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(other[:, 0], states[some, 1], rtol=1e-12)


def test_positions_may_be_trees_of_arrays():
    blackjax = pytest.importorskip("blackjax")
    from bread.testing.blackjax_kernels import BlackJAXKernel

    flat, unravel = jax.flatten_util.ravel_pytree({"a": np.zeros(()), "b": np.zeros((2, 1))})
    algorithm = blackjax.nuts(lambda tree: log_density(jax.flatten_util.ravel_pytree(tree)[0]), 0.5, np.ones(3))
    kernel = BlackJAXKernel(algorithm, unravel)
    carry = kernel.start(START, np.random.default_rng(1))
    assert carry.position["b"].shape == (2, 1)
    np.testing.assert_array_equal(kernel.position(carry), START)
    states, _ = kernel.run_chains(START[None], (3,), np.random.SeedSequence(1).spawn(1))
    assert states.shape == (1, 1, len(flat)) and not np.array_equal(states[0, 0], START)


@pytest.mark.statistical
def test_the_battery_tells_a_step_uncorrected_for_its_asymmetry_from_one_that_is():
    blackjax = pytest.importorskip("blackjax")
    from bread.testing.blackjax_kernels import BlackJAXKernel

    (target,) = [target for target in default_targets() if target.name == "log-gamma"]

    def propose(key, x):
        return 0.7 * x + jax.random.normal(key, x.shape)

    def log_proposal(old, new):
        return -0.5 * ((new.position - 0.7 * old.position) ** 2).sum()

    def run(*correction):
        algorithm = blackjax.rmh(lambda x: target.log_density(x, jax.numpy), propose, *correction)
        return run_battery([BareSubject(target, BlackJAXKernel(algorithm))], budget=30_000, seed=1)

    assert not run(log_proposal).alarm
    wrong = run()
    assert wrong.alarm and any("acceptance" in text for text in wrong.diagnosis), wrong.diagnosis


def test_single_precision_is_refused():
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(InvalidArgumentError, match="single precision"):
        blackjax_nuts()
