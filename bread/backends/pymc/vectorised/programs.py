"""The XLA programs that move chains: one lane a chain, a scan over inverse temperatures.

A program has a fixed number of lanes and of steps, so that it is compiled once, whatever the number of chains, data
sets and temperatures. Each lane brings its own data, settings, reference and random numbers and never sees the others:
a chain is the same in every company.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from bread.backends.pymc.vectorised.kernels import VectorKernel
from bread.backends.support.jax_references import LogDensity

# One thread: bread runs a process on each core, and results must not depend on how many cores there are. On a GPU, sums
# in a fixed order: the gradient of an indexed vector is otherwise summed as threads happen to arrive.
COMPILER_OPTIONS = {"xla_cpu_multi_thread_eigen": False, "xla_gpu_deterministic_ops": True}


class Carry(NamedTuple):
    """Chains between two transitions, an array of lanes each.

    Attributes
    ----------
    position : (lane, dim)
    base, base_gradient : (lane,), (lane, dim)
        log f_0 (nats) and its gradient there.
    end, end_gradient : (lane,), (lane, dim)
        On the prior path the log likelihood, on a reference path log f_1; and the gradient.
    is_moving : (lane,)
        False once the log ratio was not finite.
    n_gradients, n_divergences : (lane,)
    """

    position: Any
    base: Any
    base_gradient: Any
    end: Any
    end_gradient: Any
    is_moving: Any
    n_gradients: Any
    n_divergences: Any


class Steps(NamedTuple):
    """What the steps of a scan are run with; the first axis is the step, the second the frozen kernel."""

    beta: Any  # (step,)
    number: Any  # (step,), folded into each chain's key
    is_active: Any  # (step,): False for the steps that fill a scan up
    step_size: Any  # (step, kernel)
    inverse_metric: Any  # (step, kernel, dim)
    n_steps: Any  # (step, kernel)


class Target(NamedTuple):
    """The two ends of a path in JAX, as functions of one state.

    Attributes
    ----------
    density : callable
        ``(state, *data) -> (log prior, log likelihood)``.
    reference : callable or None
        Log density of the path's reference; None on the prior path.
    """

    density: Callable[..., tuple[Any, Any]]
    reference: LogDensity | None

    def ends(self, state: Any, data: Any, reference: Any) -> tuple[Any, Any]:
        """Return log f_0, and log likelihood (prior path) or log f_1 (reference path)."""
        log_prior, log_likelihood = self.density(state, *data)
        if self.reference is None:
            return log_prior, log_likelihood
        return self.reference(state, reference), log_prior + log_likelihood

    def combine(self, beta: Any, base: Any, end: Any) -> Any:
        """Return the tempered values of densities or gradients; beta > 0."""
        import jax.numpy as jnp

        if self.reference is None:
            return base + beta * end
        return jnp.where(beta == 1.0, end, (1.0 - beta) * base + beta * end)

    def log_ratio(self, base: Any, end: Any) -> Any:
        """Return log f_1 - log f_0."""
        return end if self.reference is None else end - base


def _ends_with_gradients(target: Target, state: Any, data: Any, reference: Any) -> tuple[Any, Any, Any, Any]:
    import jax
    import jax.numpy as jnp

    (base, end), pull = jax.vjp(lambda at: target.ends(at, data, reference), state)
    one, zero = jnp.ones_like(base), jnp.zeros_like(base)
    return base, pull((one, zero))[0], end, pull((zero, one))[0]


def build_start(target: Target) -> Callable[..., Carry]:
    """Return ``(positions, data, reference) -> Carry`` of all lanes, compiled."""
    import jax
    import jax.numpy as jnp

    def start(position: Any, data: Any, reference: Any) -> Carry:
        base, base_gradient, end, end_gradient = _ends_with_gradients(target, position, data, reference)
        is_moving = jnp.isfinite(base) & jnp.isfinite(target.log_ratio(base, end))
        one = jnp.ones((), dtype=jnp.int64)
        return Carry(position, base, base_gradient, end, end_gradient, is_moving, one, 0 * one)

    compiled: Callable[..., Carry] = jax.jit(jax.vmap(start), compiler_options=COMPILER_OPTIONS)
    return compiled


def build_scan(
    target: Target, kernel: VectorKernel, *, with_states: bool = False, at_base: bool = False
) -> Callable[..., tuple[Carry, Any]]:
    """Return ``(carry, keys, kernel_of, steps, data, reference) -> (carry, trace)``, compiled; the carry is used up.

    The trace has the log ratio after each step, shape (step, lane), or ``with_states`` the state, (step, lane, dim).
    With ``at_base`` the kernel is that at beta = 0, where f_1 plays no part.
    """
    import jax

    move = partial(_move, target, kernel.build(), at_base)

    def scan(carry: Carry, keys: Any, kernel_of: Any, steps: Steps, data: Any, reference: Any) -> tuple[Carry, Any]:
        def step(carry: Carry, own: Steps) -> tuple[Carry, Any]:
            moved = jax.lax.cond(
                own.is_active,
                lambda: jax.vmap(move, in_axes=(0, 0, None, None, 0, 0, 0, 0, 0))(
                    carry,
                    keys,
                    own.beta,
                    own.number,
                    own.step_size[kernel_of],
                    own.inverse_metric[kernel_of],
                    own.n_steps[kernel_of],
                    data,
                    reference,
                ),
                lambda: carry,
            )
            return moved, moved.position if with_states else target.log_ratio(moved.base, moved.end)

        return jax.lax.scan(step, carry, steps)  # type: ignore[no-any-return]

    compiled: Callable[..., tuple[Carry, Any]] = jax.jit(scan, compiler_options=COMPILER_OPTIONS, donate_argnums=0)
    return compiled


def _move(
    target: Target,
    kernel: Any,
    at_base: bool,
    carry: Carry,
    key: Any,
    beta: Any,
    number: Any,
    step_size: Any,
    inverse_metric: Any,
    n_steps: Any,
    data: Any,
    reference: Any,
) -> Carry:
    """Return one chain after one transition; unchanged if it has stopped."""
    import jax
    import jax.numpy as jnp
    from blackjax.mcmc.hmc import HMCState

    def log_density(state: Any) -> Any:
        base, end = target.ends(state, data, reference)
        return base if at_base else target.combine(beta, base, end)

    if at_base:
        value, gradient = carry.base, carry.base_gradient
    else:
        value = target.combine(beta, carry.base, carry.end)
        gradient = target.combine(beta, carry.base_gradient, carry.end_gradient)
    own_key = jax.random.fold_in(jax.random.wrap_key_data(key, impl="threefry2x32"), number)
    state, info = kernel(
        own_key, HMCState(carry.position, value, gradient), log_density, step_size, inverse_metric, n_steps
    )
    base, base_gradient, end, end_gradient = _ends_with_gradients(target, state.position, data, reference)
    ratio = target.log_ratio(base, end)
    moved = Carry(
        state.position,
        base,
        base_gradient,
        end,
        end_gradient,
        carry.is_moving & jnp.isfinite(ratio) if not at_base else carry.is_moving,
        carry.n_gradients + info.num_integration_steps + 1,
        carry.n_divergences + info.is_divergent,
    )
    kept: Carry = jax.tree.map(lambda new, old: jnp.where(carry.is_moving, new, old), moved, carry)
    return kept
