"""A kernel without a model, on a target that is known by its log density and by exact draws."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from bread.debugging.stepper import ManyChains, Step, Stepper, as_stepper
from bread.debugging.subject import Draws, FloatArray, Moved
from bread.debugging.target import Target
from bread.errors import InvalidArgumentError

BLOCK = 50  # draws that one call of the simulator makes
N_PROBED = 8  # states at which a batch is compared with single evaluations


class BareSubject:
    """A function or `Stepper` on a `Target`, as a `Subject`.

    Parameters
    ----------
    target : Target
    kernel : Stepper or callable or None
        Moves chains; None: only the simulator is tested.
    build : callable, optional
        ``build()`` returns a new kernel that has moved nothing yet. By default an object is copied before it moves
        anything; a plain function cannot be copied with what it refers to, so that its memory and random numbers from
        outside are told apart only with ``build``.
    name : str, optional
        The target's by default.
    coordinates : sequence of str, optional
        ``x[0]``, ... by default.

    Raises
    ------
    InvalidArgumentError
        Bounds or names that do not fit the number of coordinates.

    Notes
    -----
    A chain's generator is made from its own seed, and passed to `Stepper.start` and every step. The simulator is called
    for 50 draws at a time, under the seed of the first. A kernel that raises stops its chain alone, and what it raised
    is a finding. Cost is counted in steps: what a kernel evaluates cannot be seen.
    """

    anneals = is_between = False  # without a model there is no path

    def __init__(
        self,
        target: Target,
        kernel: Stepper | Step | None,
        *,
        build: Callable[[], Stepper | Step] | None = None,
        name: str | None = None,
        coordinates: Sequence[str] | None = None,
    ) -> None:
        self.target = target
        self.name = target.name if name is None else name
        self.coordinates = tuple(coordinates or (f"x[{i}]" for i in range(target.dim)))
        self.is_continuous: NDArray[np.bool_] = target.is_continuous
        self.lower = np.array(target.lower or (-np.inf,) * target.dim, dtype=np.float64)
        self.upper = np.array(target.upper or (np.inf,) * target.dim, dtype=np.float64)
        sizes = {len(self.coordinates), len(self.is_continuous), len(self.lower), len(self.upper)}
        if sizes != {target.dim}:
            raise InvalidArgumentError(
                f"target '{target.name}' has dim = {target.dim}; is_discrete, lower, upper and names of coordinates "
                f"must have as many entries or none, but got {sorted(sizes)}."
            )
        self.n_walkers = target.n_walkers
        if self.n_walkers < 1 or target.dim % self.n_walkers:
            raise InvalidArgumentError(
                f"n_walkers of target '{target.name}' must be positive and divide dim = {target.dim}, but is "
                f"{self.n_walkers!r}."
            )
        self._build = build
        self._pristine: Any = None  # a kernel as it was given, never moved
        self.missing: Mapping[str, str] = self._what_is_missing(kernel)
        self._stepper = as_stepper(kernel) if kernel is not None else None
        self.may_spread = frozenset[str]() if isinstance(self._stepper, ManyChains) else frozenset({"move"})

    def _what_is_missing(self, kernel: Stepper | Step | None) -> dict[str, str]:
        missing = {}
        if self.target.gradient is None:
            missing["gradient"] = "the target has no gradient"
        if kernel is None:
            missing["kernel"] = missing["renewed"] = "no kernel was given"
        elif self._build is None:
            if isinstance(kernel, FunctionType):
                missing["renewed"] = "a plain function cannot be copied with what it refers to; give build="
                return missing
            try:
                self._pristine = copy.deepcopy(kernel)
            except Exception as error:  # what a class does when copied is its own affair
                missing["renewed"] = f"the kernel cannot be copied ({type(error).__name__}: {error}); give build="
        return missing

    def __getstate__(self) -> dict[str, Any]:
        """Return what workers need: chains move there, and nothing is built or renewed."""
        return {**self.__dict__, "_build": None, "_pristine": None}

    def renewed(self) -> BareSubject:
        """Return this subject with a kernel that has moved nothing yet."""
        kernel = self._build() if self._build is not None else copy.deepcopy(self._pristine)
        return BareSubject(self.target, kernel, build=self._build, name=self.name, coordinates=self.coordinates)

    def draw(self, seeds: Sequence[SeedSequence]) -> Draws:
        """Return exact draws, `BLOCK` a call of the simulator."""
        blocks = []
        for low in range(0, len(seeds), BLOCK):
            n = min(BLOCK, len(seeds) - low)
            block = np.asarray(self.target.simulate(n, default_rng(seeds[low])), dtype=np.float64)
            if block.shape != (n, self.target.dim):
                raise InvalidArgumentError(
                    f"simulate({n}, rng) of target '{self.target.name}' must return shape {(n, self.target.dim)}, but "
                    f"returned {block.shape}."
                )
            blocks.append(block)
        return Draws(np.concatenate(blocks) if blocks else np.empty((0, self.target.dim)))

    def move(self, draws: Draws, keep: Sequence[int], seeds: Sequence[SeedSequence]) -> Moved:
        """Run one chain from each draw."""
        stepper = self._stepper
        assert stepper is not None
        if isinstance(stepper, ManyChains):
            return self._move_together(stepper, draws, keep, seeds)
        carried_of = getattr(stepper, "log_density", None)
        states = np.full((len(draws), len(keep), self.target.dim), np.nan)
        carried = np.full((len(draws), len(keep)), np.nan) if callable(carried_of) else None
        failures: dict[str, None] = {}
        n_steps = 0
        for row, (start, seed) in enumerate(zip(draws.states, seeds, strict=True)):
            rng = default_rng(seed)
            try:
                with np.errstate(all="ignore"):
                    carry = stepper.start(start.copy(), rng)
                    done = 0
                    for column, wanted in enumerate(keep):
                        while done < wanted:
                            carry = stepper.step(carry, rng)
                            done += 1
                            n_steps += 1
                        states[row, column] = stepper.position(carry)
                        if carried is not None and carried_of is not None:
                            carried[row, column] = float(carried_of(carry))
            except Exception as error:  # a kernel may raise anything: that it does is a finding
                failures.setdefault(f"{type(error).__name__}: {error}")
        return Moved(states, carried, n_steps, tuple(failures))

    def _move_together(
        self, chains: ManyChains, draws: Draws, keep: Sequence[int], seeds: Sequence[SeedSequence]
    ) -> Moved:
        n_steps = len(draws) * keep[-1]
        try:
            states, carried = chains.run_chains(draws.states, keep, seeds)
        except Exception as error:  # a kernel may raise anything: that it does is a finding
            nothing = np.full((len(draws), len(keep), self.target.dim), np.nan)
            return Moved(nothing, None, n_steps, (f"{type(error).__name__}: {error}",))
        return Moved(states, None if np.isnan(carried).all() else carried, n_steps)

    def log_density(self, draws: Draws) -> FloatArray:
        """Return the target's log density of each state; NaN where it raises an arithmetic error or a ValueError.

        All states at once where the function takes them and gives the same numbers for some of them one by one.
        """
        values = np.full(len(draws), np.nan)
        if len(draws) > N_PROBED:
            with np.errstate(all="ignore"), suppress(Exception):
                batch = np.asarray(self.target.log_density(draws.states), dtype=np.float64)
                probed = np.linspace(0, len(draws) - 1, N_PROBED).astype(np.int64)
                single = [float(self.target.log_density(draws.states[row])) for row in probed]
                if batch.shape == (len(draws),) and np.allclose(batch[probed], single, rtol=1e-12, atol=0.0):
                    return batch
        with np.errstate(all="ignore"):
            for row, state in enumerate(draws.states):
                with suppress(ArithmeticError, ValueError):
                    values[row] = self.target.log_density(state)
        return values

    def gradient(self, draws: Draws) -> FloatArray:
        """Return the target's gradient at each state."""
        assert self.target.gradient is not None
        with np.errstate(all="ignore"):
            values = [self.target.gradient(state) for state in draws.states]
        return np.array(values, dtype=np.float64).reshape(len(draws), self.target.dim)
