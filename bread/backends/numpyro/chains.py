"""NumPyro's own NUTS and HMC, frozen, along a path: one compiled program for any data, length, settings and base.

Chains run one after another, so that each is bit-equal to what it is alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from numpyro.infer.hmc import hmc

from bread.backends.base import Data, FloatArray
from bread.backends.numpyro.precision import COMPILER_OPTIONS, double_precision, key_of
from bread.backends.numpyro.program import Base, Program
from bread.backends.support.jax_references import Arrays, PackedReference, log_density_of

KERNELS = ("NUTS", "HMC")
STEPS = 64  # transitions between two returns to Python
HMC_STEPS = 10  # leapfrog steps of a transition of HMC
BLOCK = 64  # states in one call of a density
PRIOR = PackedReference((), ())  # where the base of a path is no reference


class Trace(NamedTuple):
    """What one chain went through; arrays by transition, after it."""

    states: FloatArray  # (step, dim)
    log_base: FloatArray  # (step,), nats
    log_ratio: FloatArray  # (step,), nats
    n_gradients: int
    n_divergences: int


class Adapted(NamedTuple):
    """What an adaptation came to."""

    state: FloatArray  # (dim,)
    step_size: float
    inverse_metric: FloatArray  # (dim,)
    log_ratio: FloatArray  # (step,), nats
    n_gradients: int


class Chains:
    """Compiled programs of one model with one kernel; a pickled copy compiles its own.

    Parameters
    ----------
    program : Program
    kernel : {"NUTS", "HMC"}
    """

    def __init__(self, program: Program, kernel: str) -> None:
        self.program, self.kernel = program, kernel
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": {}}

    def _call(self, build: Callable[..., Any], *arguments: Any, key: Any = None) -> Any:
        """Return what a function of this model gives in double precision, as NumPy's arrays.

        ``key`` names it among those that are compiled, where it is made for each call.
        """
        key = build if key is None else key
        with double_precision():
            if key not in self._compiled:
                self._compiled[key] = jax.jit(build, compiler_options=COMPILER_OPTIONS)
            return jax.tree.map(np.array, self._compiled[key](*arguments))

    # ---- draws and densities -----------------------------------------------------------------------------------

    def draw(self, numbers: NDArray[np.uint32], held: Data) -> tuple[FloatArray, dict[str, Any], dict[str, Any]]:
        """Return a state, its free variables and its data; see `Program.draw`."""
        drawn: tuple[FloatArray, dict[str, Any], dict[str, Any]] = self._call(self.program.draw, numbers, dict(held))
        return drawn

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to free variables (n, ...)."""
        return self._map(self.program.constrain, states)  # type: ignore[no-any-return]

    def unconstrain(self, values: Data) -> FloatArray:
        """Map free variables (n, ...) to states (n, dim)."""
        floats = {name: np.asarray(values[name], dtype=np.float64) for name in self.program.latents}
        return self._map(self.program.unconstrain, floats)  # type: ignore[no-any-return]

    def densities(self, states: FloatArray, data: Data) -> tuple[FloatArray, FloatArray]:
        """Return log prior and log likelihood (nats) of states (n, dim)."""
        return self._map(self.program.densities, states, dict(data))  # type: ignore[no-any-return]

    def gradients(self, beta: float, states: FloatArray, data: Data) -> tuple[FloatArray, FloatArray]:
        """Return the tempered log density (nats) and its gradient at states (n, dim)."""
        return self._map(self._tempered, states, np.float64(beta), dict(data))  # type: ignore[no-any-return]

    def _tempered(self, state: Any, beta: Any, data: Any) -> Any:
        return jax.value_and_grad(self.program.tempered)(state, beta, data)

    def _map(self, function: Callable[..., Any], rows: Any, *shared: Any) -> Any:
        """Return ``function(row, *shared)`` of every row, each computed alone: the same in every company."""
        n = len(jax.tree.leaves(rows)[0])
        if n == 0:
            empty = self._map(function, jax.tree.map(lambda one: np.ones((1, *one.shape[1:])), rows), *shared)
            return jax.tree.map(lambda one: one[:0], empty)
        key = ("map", function)
        if key not in self._compiled:
            self._compiled[key] = _mapped(function)
        size = 1 if n == 1 else BLOCK
        parts = []
        for low in range(0, n, size):
            part = jax.tree.map(partial(_part, low=low, size=size), rows)
            parts.append(self._call(self._compiled[key], part, *shared))
        return jax.tree.map(lambda *arrays: np.concatenate(arrays)[:n], *parts)

    # ---- chains ------------------------------------------------------------------------------------------------

    def run(
        self,
        state: FloatArray,
        numbers: NDArray[np.uint32],
        betas: FloatArray,
        step_sizes: FloatArray,
        inverse_metrics: FloatArray,
        data: Data,
        base: PackedReference = PRIOR,
    ) -> Trace:
        """Run one chain: transition i leaves the density at ``betas[i]`` of the path from ``base`` invariant.

        It ends early where the tempered density of its state is not finite; the trace is then that short.
        """
        states, bases, ratios, n_gradients, n_divergences = [], [], [], 0, 0
        scan = partial(self._scan, base.form)
        for low in range(0, len(betas), STEPS):
            part = slice(low, low + STEPS)
            n = len(betas[part])
            steps = (np.arange(low, low + STEPS), betas[part], step_sizes[part], inverse_metrics[part])
            filled = [_filled(one, STEPS) for one in steps]
            own = (state, numbers, *filled, np.arange(STEPS) < n, dict(data), base.arrays)
            visited, log_base, ratio, gradients, diverging = self._call(scan, *own, key=("scan", base.form))
            finite = np.isfinite(log_base[:n]) & (np.isfinite(ratio[:n]) | (betas[part] == 0.0))
            n_kept = n if finite.all() else int(np.argmin(finite)) + 1
            states.append(visited[:n_kept])
            bases.append(log_base[:n_kept])
            ratios.append(ratio[:n_kept])
            n_gradients += int(gradients[:n_kept].sum())
            n_divergences += int(diverging[:n_kept].sum())
            if n_kept < n:
                break
            state = visited[-1]
        return Trace(np.concatenate(states), np.concatenate(bases), np.concatenate(ratios), n_gradients, n_divergences)

    def adapt(
        self,
        state: FloatArray,
        beta: float,
        numbers: NDArray[np.uint32],
        n_steps: int,
        step_size: float,
        inverse_metric: FloatArray,
        data: Data,
        base: PackedReference = PRIOR,
    ) -> Adapted:
        """Run NumPyro's own warm-up at one inverse temperature of the path from ``base``."""
        own = (state, np.float64(beta), numbers, np.float64(step_size), inverse_metric, dict(data), base.arrays)
        warm_up = partial(self._warm_up, n_steps, base.form)
        last, size, metric, ratio, n_gradients = self._call(warm_up, *own, key=("adapt", n_steps, base.form))
        return Adapted(last, float(size), metric, ratio, int(n_gradients.sum()) + 1)

    def _kernel(self, state: Any, key: Any, base: Base, model_args: Any, **settings: Any) -> tuple[Any, Any]:
        def potential(beta: Any, data: Any) -> Callable[[Any], Any]:
            return lambda state: -self.program.tempered(state, beta, data, base)

        init, sample = hmc(potential_fn_gen=potential, algo=self.kernel)
        length = {"trajectory_length": None, "num_steps": HMC_STEPS} if self.kernel == "HMC" else {}
        return init(state, model_args=model_args, rng_key=key, **settings, **length), sample

    def _warm_up(
        self,
        n_steps: int,
        form: Any,
        state: Any,
        beta: Any,
        numbers: Any,
        step_size: Any,
        inverse_metric: Any,
        data: Any,
        arrays: Any,
    ) -> Any:
        base = _base(form, arrays)
        carry, sample = self._kernel(
            state,
            key_of(numbers),
            base,
            (beta, data),
            num_warmup=n_steps,
            step_size=step_size,
            inverse_mass_matrix=inverse_metric,
        )

        def step(carry: Any, _: Any) -> tuple[Any, Any]:
            moved = sample(carry, model_args=(beta, data))
            return moved, (self.program.ends(moved.z, data, base)[1], moved.num_steps)

        carry, (ratio, n_gradients) = jax.lax.scan(step, carry, None, length=n_steps)
        frozen = carry.adapt_state
        return carry.z, frozen.step_size, frozen.inverse_mass_matrix, ratio, n_gradients

    def _scan(
        self,
        form: Any,
        state: Any,
        numbers: Any,
        index: Any,
        betas: Any,
        step_sizes: Any,
        inverse_metrics: Any,
        is_active: Any,
        data: Any,
        arrays: Any,
    ) -> Any:
        key, base = key_of(numbers), _base(form, arrays)
        start = {"num_warmup": 0, "adapt_step_size": False, "adapt_mass_matrix": False, "step_size": 1.0}
        template, sample = self._kernel(
            state, key, base, (betas[0], data), inverse_mass_matrix=jnp.ones_like(state), **start
        )

        def move(state: Any, number: Any, beta: Any, step_size: Any, metric: Any) -> Any:
            value, gradient = jax.value_and_grad(self.program.tempered)(state, beta, data, base)
            root = jnp.sqrt(metric)
            settings = template.adapt_state._replace(
                step_size=step_size,
                inverse_mass_matrix=metric,
                mass_matrix_sqrt=1.0 / root,
                mass_matrix_sqrt_inv=root,
            )
            begun = template._replace(
                z=state,
                potential_energy=-value,
                z_grad=-gradient,
                adapt_state=settings,
                rng_key=jax.random.fold_in(key, number),
            )
            moved = sample(begun, model_args=(beta, data))
            return moved.z, *self.program.ends(moved.z, data, base), moved.num_steps + 1, moved.diverging

        def step(state: Any, own: Any) -> tuple[Any, Any]:
            *settings, active = own
            zero = jnp.zeros(())
            idle = (state, zero, zero, jnp.zeros((), dtype=jnp.int64), jnp.zeros((), dtype=bool))
            moved = jax.lax.cond(active, lambda: move(state, *settings), lambda: idle)
            return moved[0], moved

        return jax.lax.scan(step, state, (index, betas, step_sizes, inverse_metrics, is_active))[1]


def _base(form: Any, arrays: Arrays) -> Base:
    """Return the log density of a reference of this form; None for the prior."""
    if not form:
        return None
    log_density = log_density_of(form)
    return lambda state: log_density(state, arrays)


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rows, *shared: jax.lax.map(lambda row: function(row, *shared), rows)


def _part(rows: NDArray[Any], low: int, size: int) -> NDArray[Any]:
    return _filled(rows[low : low + size], size)


def _filled(values: NDArray[Any], size: int) -> NDArray[Any]:
    return np.concatenate([values, np.repeat(values[-1:], size - len(values), axis=0)])
