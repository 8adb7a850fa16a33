"""Kernels on JAX, as `bread.debug` tests them: many chains side by side, in one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from bread.testing.jax_numbers import key_of, require_double_precision

FloatArray = NDArray[np.float64]
SIDE_BY_SIDE = 256  # chains of one call of the program; fewer are padded, so that one compilation does for all


class JAXKernel:
    """Pure functions on JAX as a `bread.debugging.stepper.ManyChains`.

    Parameters
    ----------
    start : callable
        ``start(key, position)`` of a flat position (d,): a state, of any shape.
    step : callable
        ``step(key, state)``: the next one.
    position : callable
        ``position(state)``: an array or a tree of arrays, d numbers in all.
    log_density : callable, optional
        ``log_density(state)``: the log density that it holds, in nats.

    Raises
    ------
    InvalidArgumentError
        JAX computes in single precision.
    """

    def __init__(
        self,
        start: Callable[[Any, Any], Any],
        step: Callable[[Any, Any], Any],
        position: Callable[[Any], Any],
        log_density: Callable[[Any], Any] | None = None,
    ) -> None:
        require_double_precision()
        import jax
        import jax.numpy as jnp
        from jax.flatten_util import ravel_pytree

        def read(state: Any) -> tuple[Any, Any]:
            density = np.nan if log_density is None else log_density(state)
            return ravel_pytree(position(state))[0].astype(float), jnp.asarray(density, dtype=float)

        def advance(keys: Any, first: Any, last: Any, states: Any) -> Any:
            def all_once(number: Any, now: Any) -> Any:
                return jax.vmap(lambda key, state: step(jax.random.fold_in(key, number), state))(keys, now)

            return jax.lax.fori_loop(first, last, all_once, states)

        self._start, self._step, self._read = jax.jit(start), jax.jit(step), jax.jit(read)
        self._keys, self._start_all = jax.jit(jax.vmap(jax.random.key)), jax.jit(jax.vmap(start))
        self._advance, self._read_all = jax.jit(advance), jax.jit(jax.vmap(read))

    def __deepcopy__(self, memo: Any) -> JAXKernel:
        """Return itself: compiled programs remember nothing."""
        return self

    def start(self, position: FloatArray, rng: Generator) -> Any:
        """Return a state at a position, shape (d,); some hold more, drawn at random: a momentum, a path length."""
        return self._start(key_of(rng), position)

    def step(self, carry: Any, rng: Generator) -> Any:
        """Return the state after one transition."""
        return self._step(key_of(rng), carry)

    def position(self, carry: Any) -> FloatArray:
        """Return the position, shape (d,)."""
        return np.asarray(self._read(carry)[0], dtype=np.float64)

    def log_density(self, carry: Any) -> float:
        """Return the log density that the state holds (nats); NaN if it holds none."""
        return float(self._read(carry)[1])

    def run_chains(
        self, starts: FloatArray, keep: Sequence[int], seeds: Sequence[SeedSequence]
    ) -> tuple[FloatArray, FloatArray]:
        """Run one chain from each start; see `bread.debugging.stepper.ManyChains`."""
        positions, densities = np.empty((len(starts), len(keep), starts.shape[1])), np.empty((len(starts), len(keep)))
        numbers = np.array([default_rng(seed).integers(2**63) for seed in seeds], dtype=np.int64)
        for low in range(0, len(starts), SIDE_BY_SIDE):
            n = min(SIDE_BY_SIDE, len(starts) - low)
            rows, padding = slice(low, low + n), (0, SIDE_BY_SIDE - n)
            keys = self._keys(np.pad(numbers[rows], padding, mode="edge"))
            states = self._start_all(keys, np.pad(starts[rows], (padding, (0, 0)), mode="edge"))
            done = 0
            for column, wanted in enumerate(keep):
                states, done = self._advance(keys, done, wanted, states), wanted
                position, density = self._read_all(states)
                positions[rows, column], densities[rows, column] = np.asarray(position)[:n], np.asarray(density)[:n]
        return positions, densities
