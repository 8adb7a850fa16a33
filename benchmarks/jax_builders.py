"""How `jax_kernel_table.py` builds kernels of BlackJAX and NumPyro on a target: settings follow its scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro import infer

from bread.debugging.target import Target
from bread.debugging.targets import copies, default_targets
from bread.testing.blackjax_kernels import BlackJAXKernel
from bread.testing.jax_kernels import JAXKernel
from bread.testing.numpyro_kernels import NumPyroKernel

Build = Callable[[Target], Any]
N_WALKERS = 8
CONTINUOUS = default_targets("continuous")
ENSEMBLES = {copies(target, N_WALKERS).name: target for target in CONTINUOUS}


def density_of(target: Target) -> Callable[[Any], Any]:
    """Return the log density as a function of JAX arrays: those of the default targets take the module to use."""
    log_density: Callable[..., Any] = target.log_density
    return lambda x: log_density(x, jnp)


def spread_of(target: Target) -> Any:
    """Return the squared half width of the middle two thirds of each coordinate."""
    low, high = np.quantile(target.simulate(4000, np.random.default_rng(3)), [1.0 / 6.0, 5.0 / 6.0], axis=0)
    return np.maximum(0.5 * (high - low), 0.05) ** 2


def moments_of(target: Target) -> tuple[Any, Any]:
    """Return the mean and the covariance of the target's draws."""
    draws = target.simulate(4000, np.random.default_rng(3))
    return draws.mean(axis=0), np.cov(draws, rowvar=False)


def metric(algorithm: Any, dense: bool = False, **options: Any) -> Build:
    """Return a builder of a kernel of BlackJAX with a metric."""

    def build(target: Target) -> Any:
        matrix = moments_of(target)[1] if dense else spread_of(target)
        return BlackJAXKernel(algorithm(density_of(target), inverse_mass_matrix=matrix, **options))

    return build


def plain(algorithm: Any, *settings: float, **options: Any) -> Build:
    """Return a builder of a kernel of BlackJAX whose settings are in units of the smallest spread."""

    def build(target: Target) -> Any:
        unit = float(np.sqrt(spread_of(target).min()))
        return BlackJAXKernel(algorithm(density_of(target), *(unit * value for value in settings), **options))

    return build


def shaped(unravel_to: Any, **options: Any) -> Build:
    """Return a builder of BlackJAX's NUTS whose positions are a tree of arrays."""
    _, unravel = ravel_pytree(unravel_to)

    def build(target: Target) -> Any:
        density = density_of(target)
        algorithm = blackjax.nuts(
            lambda tree: density(ravel_pytree(tree)[0]), inverse_mass_matrix=spread_of(target), step_size=0.5, **options
        )
        return BlackJAXKernel(algorithm, unravel)

    return build


def random_walk(target: Target) -> Any:
    width = np.sqrt(spread_of(target))
    step = blackjax.mcmc.random_walk.normal(width)
    return BlackJAXKernel(blackjax.additive_step_random_walk(density_of(target), step))


def normal_walk(target: Target) -> Any:
    return BlackJAXKernel(blackjax.mcmc.random_walk.normal_random_walk(density_of(target), moments_of(target)[1]))


def rosenbluth(target: Target) -> Any:
    """Return Metropolis by steps that lean towards the middle: not symmetric, with their density."""
    centre, width = np.median(target.simulate(4000, np.random.default_rng(4)), axis=0), np.sqrt(spread_of(target))

    def propose(key: Any, position: Any) -> Any:
        return centre + 0.7 * (position - centre) + width * jax.random.normal(key, position.shape)

    def log_proposal(old: Any, new: Any) -> Any:
        gap = new.position - centre - 0.7 * (old.position - centre)
        return -0.5 * ((gap / width) ** 2).sum()

    return BlackJAXKernel(blackjax.rmh(density_of(target), propose, log_proposal))


def independent(target: Target) -> Any:
    width, centre = 2.0 * np.sqrt(spread_of(target)), np.median(target.simulate(4000, np.random.default_rng(4)), axis=0)

    def draw(key: Any) -> Any:
        return centre + width * jax.random.t(key, 4.0, centre.shape)

    def log_proposal(old: Any, new: Any) -> Any:
        return jax.scipy.stats.t.logpdf((new.position - centre) / width, 4.0).sum()

    return BlackJAXKernel(blackjax.irmh(density_of(target), draw, log_proposal))


def whole_walk(target: Target) -> Any:
    """Return Metropolis by steps of one coordinate to a neighbour."""

    def propose(key: Any, position: Any) -> Any:
        which, way = jax.random.split(key)
        place = jax.random.randint(which, (), 0, len(position))
        return position.at[place].add(jnp.where(jax.random.bernoulli(way), 1.0, -1.0))

    return BlackJAXKernel(blackjax.rmh(density_of(target), propose))


def whole_independent(target: Target) -> Any:
    low, size = np.array(target.lower), np.array(target.upper) - np.array(target.lower) + 1

    def draw(key: Any) -> Any:
        return low + jnp.floor(size * jax.random.uniform(key, low.shape))

    return BlackJAXKernel(blackjax.irmh(density_of(target), draw))


def with_prior(algorithm: Any, covariance_name: str, **options: Any) -> Build:
    """Return a builder of a kernel that wants a likelihood and a normal prior: one of twice the target's covariance."""

    def build(target: Target) -> Any:
        (mean, covariance), density = moments_of(target), density_of(target)
        covariance = 2.0 * covariance

        def log_likelihood(x: Any) -> Any:
            return density(x) - jax.scipy.stats.multivariate_normal.logpdf(x, mean, covariance)

        kernel = algorithm(log_likelihood, mean=mean, **{covariance_name: covariance}, **options)
        return JAXKernel(
            lambda key, x: kernel.init(x, key),
            lambda key, state: kernel.step(key, state)[0],
            lambda state: state.position,
        )

    return build


def numpyro_hmc(kind: Any, dense: bool = False, **options: Any) -> Build:
    def build(target: Target) -> Any:
        density = density_of(target)
        matrix = {"dense_mass": dense, "inverse_mass_matrix": moments_of(target)[1] if dense else spread_of(target)}
        extra = {} if kind is infer.BarkerMH else matrix
        step = {"step_size": 0.5 * float(np.sqrt(spread_of(target).min())) if kind is infer.BarkerMH else 0.5}
        return NumPyroKernel(
            kind(potential_fn=lambda x: -density(x), adapt_step_size=False, adapt_mass_matrix=False,
                 **step, **extra, **options)
        )  # fmt: skip

    return build


def ensemble(kind: Any, **options: Any) -> Build:
    """Return a builder of a kernel of NumPyro on walkers, its state their positions one after another."""

    def build(target: Target) -> Any:
        one = ENSEMBLES[target.name]
        density = density_of(one)
        kernel = kind(potential_fn=lambda x: -density(x), **options)
        keys = jax.random.split(jax.random.key(0), N_WALKERS)
        kernel.init(keys, 0, jnp.zeros((N_WALKERS, one.dim)), (), {})  # which completes its moves, outside of a trace

        def start(key: Any, position: Any) -> Any:
            return kernel.init(jax.random.split(key, N_WALKERS), 0, position.reshape(N_WALKERS, one.dim), (), {})

        return JAXKernel(start, lambda key, state: kernel.sample(with_key(state, key), (), {}), lambda state: state.z)

    return build


def with_key(state: Any, key: Any) -> Any:
    own, inner = jax.random.split(key)
    return state._replace(rng_key=own, inner_state=state.inner_state._replace(rng_key=inner))


def on_model(kernel_of: Callable[[Any], Any], make: Callable[[Target], Any]) -> Build:
    """Return a builder of a kernel of NumPyro on a model with discrete sites."""

    def build(target: Target) -> Any:
        model, unravel = make(target)
        return NumPyroKernel(kernel_of(model), unravel)

    return build


def fixed(kind: Any, model: Any, **options: Any) -> Any:
    return kind(model, step_size=0.5, adapt_step_size=False, adapt_mass_matrix=False, **options)
