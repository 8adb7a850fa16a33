"""BlackJAX's HMC that took the kinetic energy of the position, where the momentum was meant (0.2; mended in 0.2.1).

Run it under both, with Python 3.11: ``pip install "blackjax==0.2" "jax==0.4.30" "jaxlib==0.4.30" "scipy<1.13" "arviz<1"
bread-mcmc``, then "blackjax==0.2.1". Two names that JAX has dropped since are given back before the import.
"""

from __future__ import annotations

from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.tree_util.tree_multimap = jax.tree_multimap = jax.tree_util.tree_map
jnp.DeviceArray = jax.Array

from blackjax import hmc  # noqa: E402

import bread  # noqa: E402

MEAN, SD = np.ones(2), np.array([1.0, 2.0])


def potential(x):
    """Return minus the log density of two independent normal variables."""
    return 0.5 * jnp.sum(((x - MEAN) / SD) ** 2)


_kernel = hmc.kernel(potential, 0.5, jnp.ones(2), 3)
_step = jax.jit(lambda seed, x: _kernel(jax.random.PRNGKey(seed), hmc.new_state(x, potential))[0].position)


def step(x, rng):
    """Return the position after one transition."""
    return np.asarray(_step(int(rng.integers(2**31)), x))


def simulate(n, rng):
    """Return exact draws, shape (n, 2)."""
    return rng.normal(MEAN, SD, (n, 2))


if __name__ == "__main__":
    report = bread.debug(
        kernel=step,
        log_density=lambda x: float(-0.5 * np.sum(((x - MEAN) / SD) ** 2)),
        simulate=simulate,
        budget=0.02,
        random_seed=1,
        progressbar=False,
    )
    print(f"BlackJAX {version('blackjax')}: {bread.verdict(report)}")
