"""BlackJAX's adaptive tempered SMC: the next temperature by an ESS with the wrong sign (1.5; mended in 1.6).

Run it under both: ``pip install "blackjax==1.5"``, then "blackjax==1.6". It asks for an ESS of half of the particles
and computes the ESS that the step found leads to, with the weights that SMC itself uses. `bread.debug` has no test for
it: nothing here is a Markov kernel. Upstream's own test repeated the wrong sign and passed.
"""

from __future__ import annotations

from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

from blackjax.smc import ess, solver  # noqa: E402


def log_likelihood(x):
    """Return the log likelihood at particles."""
    return -0.5 * ((x - 2.0) / 0.5) ** 2


if __name__ == "__main__":
    particles = jnp.asarray(np.random.default_rng(1).standard_cauchy(8192))
    step = ess.ess_solver(log_likelihood, particles, 0.5, 1.0, solver.dichotomy)
    share = float(jnp.exp(ess.log_ess(step * log_likelihood(particles)))) / len(particles)
    print(f"BlackJAX {version('blackjax')}: step {float(step):.3g}, ESS {share:.1%} of the particles (50% wanted)")
