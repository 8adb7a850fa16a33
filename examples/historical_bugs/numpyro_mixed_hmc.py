"""NumPyro's MixedHMC on a discrete variable whose support does not begin at 0 (seen with NumPyro 0.22.0).

Run it where NumPyro is installed: ``pip install "bread-mcmc[jax]"``. ``--low 0`` is the control: the same model with a
support that begins at 0, on which the kernel is right.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, MixedHMC
from numpyro.infer.util import log_density

import bread
from bread.testing import Target
from bread.testing.jax_numbers import key_of

jax.config.update("jax_enable_x64", True)


class MixedKernel:
    """MixedHMC on ``d ~ DiscreteUniform(low, low + 1)``, ``x ~ Normal(d, 1)``; a state is (d, x)."""

    def __init__(self, low: int) -> None:
        def model() -> None:
            d = numpyro.sample("d", dist.DiscreteUniform(low, low + 1))
            numpyro.sample("x", dist.Normal(1.0 * d, 1.0))

        hmc = HMC(model, step_size=0.5, num_steps=4, adapt_step_size=False, adapt_mass_matrix=False)
        kernel = MixedHMC(hmc, num_discrete_updates=4)
        self._first = kernel.init(jax.random.key(0), 0, None, (), {})
        self._sample = jax.jit(lambda state: kernel.sample(state, (), {}))
        self._energy = jax.jit(jax.value_and_grad(lambda x, d: -log_density(model, (), {}, {"d": d, "x": x})[0]))

    def start(self, position, rng):
        """Return the kernel's state at (d, x)."""
        d, x = jnp.asarray(int(position[0])), jnp.asarray(float(position[1]))
        energy, slope = self._energy(x, d)
        hmc = self._first.hmc_state._replace(z={"x": x}, potential_energy=energy, z_grad={"x": slope})
        return self._first._replace(z={"d": d, "x": x}, hmc_state=hmc)

    def step(self, carry, rng):
        """Return the state after one transition."""
        return self._sample(carry._replace(rng_key=key_of(rng)))

    def position(self, carry):
        """Return (d, x)."""
        return np.array([float(carry.z["d"]), float(carry.z["x"])])


def main() -> None:
    """Test the kernel and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--low", type=int, default=1)
    low = parser.parse_args().low

    def simulate(n, rng):
        d = rng.integers(low, low + 2, n)
        return np.column_stack([d, rng.normal(d, 1.0)])

    def density(x):
        return -0.5 * (x[1] - x[0]) ** 2 if x[0] in (low, low + 1) else -np.inf

    target = Target(
        "discrete and normal", 2, density, simulate, is_discrete=(True, False), lower=(low, -np.inf),
        upper=(low + 1, np.inf),
    )  # fmt: skip
    report = bread.debug(
        kernel=lambda target: MixedKernel(low), targets=[target], budget=0.1, random_seed=1, progressbar=False
    )
    print(f"NumPyro {numpyro.__version__}, support from {low}: {bread.verdict(report)}")


if __name__ == "__main__":
    main()
