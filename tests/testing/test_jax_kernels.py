"""Kernels of BlackJAX and NumPyro as steppers: they move, repeat themselves, and carry their density."""

from __future__ import annotations

import numpy as np
import pytest

from bread.debugging.stepper import Stepper
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
    assert isinstance(kernel, Stepper)

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


def test_single_precision_is_refused():
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(InvalidArgumentError, match="single precision"):
        blackjax_nuts()
