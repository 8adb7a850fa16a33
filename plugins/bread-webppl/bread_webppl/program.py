"""A WebPPL program in its process, as functions of states and data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import FloatArray
from bread.errors import UnsupportedModelError
from bread_webppl.bridge import Bridge, pack, unpack
from bread_webppl.given import Given
from bread_webppl.structure import Structure

CHECKED = 2  # prior draws at which gradients are compared with differences
STEP, TOLERANCE = 1e-5, 1e-4


@dataclass(frozen=True)
class Chain:
    """One chain of WebPPL's kernel.

    Attributes
    ----------
    states : ndarray, shape (kept, dim)
    log_likelihood : ndarray, shape (1 + n,)
        At the start and after each transition, in nats; shorter where the start has no finite density.
    log_prior : ndarray, shape (2,)
        At the start and at the end.
    end : ndarray, shape (dim,)
    n_evaluations : int
        Runs of the program, most of them from the site that is proposed on.
    """

    states: FloatArray
    log_likelihood: FloatArray
    log_prior: FloatArray
    end: FloatArray
    n_evaluations: int


@dataclass(frozen=True)
class Program:
    """A program in its process, and what was read of it; a copy starts a process of its own.

    Attributes
    ----------
    bridge : Bridge
    structure : Structure
    given : Given
        The real data.
    updates : int
        Proposals in a transition.
    has_gradients : bool
        Whether WebPPL's automatic differentiation is right for this program; else differences take its place.
    """

    bridge: Bridge
    structure: Structure
    given: Given
    updates: int
    has_gradients: bool = True

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.structure.discrete)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process so far."""
        return float(self.bridge.ask("time")["seconds"])

    def simulate(self, seeds: Sequence[SeedSequence], held: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return joint draws, one per seed: states (n, dim) and flat data (n, size); NaN in ``held`` is drawn."""
        texts = [seed_text(seed) for seed in seeds]
        drawn = self.bridge.ask("simulate", seeds=texts, held=None if held is None else pack(held))
        data = np.empty((len(seeds), self.given.size))
        data[:, self.structure.slots] = unpack(drawn["data"]).reshape(len(seeds), -1)
        values = unpack(drawn["states"]).reshape(len(seeds), self.dim)
        return self._states(values), data

    def _states(self, values: FloatArray) -> FloatArray:
        """Return the coordinates of values that the program drew."""
        coordinates = self.structure.coordinates
        outside = np.argwhere((values < coordinates.lower) | (values > coordinates.upper))
        if len(outside):
            row, place = outside[0]
            raise UnsupportedModelError(
                f"Coordinate {place + 1} of the program's sites was drawn as {values[row, place]:.6g}, outside of "
                f"({coordinates.lower[place]:.6g}, {coordinates.upper[place]:.6g}), the support it had when the "
                "program was opened. The ends of a support must be fixed, or change in every run: draw from (0, 1), "
                "and scale."
            )
        return coordinates.states(values)

    def densities(self, data: FloatArray, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log prior and log likelihood (nats) at each state, shape (n,); NaN where the program raises."""
        values = pack(self.structure.coordinates.values(states))
        found = self.bridge.ask("densities", data=pack(data), states=values, n=len(states))
        return unpack(found["prior"]) + self.structure.coordinates.log_jacobian(states), unpack(found["likelihood"])

    def gradients(self, data: FloatArray, states: FloatArray, beta: float) -> tuple[FloatArray, FloatArray]:
        """Return log prior + ``beta`` * log likelihood (nats) and its gradient, shapes (n,) and (n, dim).

        NaN at sites that are discrete, or whose law WebPPL does not differentiate (Dirichlet, ...).
        """
        if not self.has_gradients:
            return self._differences(data, states, beta)
        coordinates = self.structure.coordinates
        values = pack(coordinates.values(states))
        found = self.bridge.ask("gradients", data=pack(data), states=values, n=len(states), beta=float(beta))
        slopes = unpack(found["gradient"]).reshape(states.shape)
        return unpack(found["value"]) + coordinates.log_jacobian(states), coordinates.gradient(states, slopes)

    def with_gradients_checked(self) -> Program:
        """Return this program, with differences in place of gradients that are not those of its density.

        WebPPL's automatic differentiation does not see through functions of JavaScript, such as those of packages, and
        has no score of a KDE.
        """
        states, data = self.simulate(SeedSequence(0).spawn(CHECKED), None)
        rng = np.random.default_rng(0)
        for state, flat in zip(states, data, strict=True):
            for beta in (0.0, 1.0):
                slopes = np.where(self.structure.smooth, self.gradients(flat, state[None], beta)[1][0], 0.0)
                step = STEP * np.where(self.structure.smooth, rng.choice([-1.0, 1.0], self.dim), 0.0)
                up, down = self._tempered(flat, np.stack([state + step, state - step]), beta)
                difference = (up - down) / (2.0 * STEP)
                if not abs(slopes @ step / STEP - difference) <= TOLERANCE * (1.0 + np.abs(slopes).sum()):  # or NaN
                    return replace(self, has_gradients=False)
        return self

    def _tempered(self, data: FloatArray, states: FloatArray, beta: float) -> FloatArray:
        prior, ratio = self.densities(data, states)
        return prior + beta * ratio if beta else prior

    def _differences(self, data: FloatArray, states: FloatArray, beta: float) -> tuple[FloatArray, FloatArray]:
        """Return what `gradients` does, by central differences."""
        steps = STEP * np.eye(self.dim)[self.structure.smooth]
        gradient = np.full(states.shape, np.nan)
        for row, state in enumerate(states):
            around = self._tempered(data, np.concatenate([state + steps, state - steps]), beta)
            up, down = around.reshape(2, len(steps))
            with np.errstate(invalid="ignore"):
                gradient[row, self.structure.smooth] = (up - down) / (2.0 * STEP)
        return self._tempered(data, states, beta), gradient

    def chain(
        self, data: FloatArray, state: FloatArray, betas: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Chain:
        """Run one chain from ``state``: transition i leaves the tempered density at ``betas[i]`` invariant."""
        coordinates = self.structure.coordinates
        begin = coordinates.values(state[None])
        found = self.bridge.ask(
            "chain",
            data=pack(data),
            state=pack(begin),
            betas=pack(betas),
            updates=self.updates,
            seed=seed_text(seed),
            keep=sorted({int(one) for one in keep}),
        )
        states, end = (
            np.where(values == begin, state, self._states(values))  # what did not move is the same to the last bit
            for values in (unpack(found[part]).reshape(-1, self.dim) for part in ("states", "end"))
        )
        return Chain(
            states,
            unpack(found["ratios"]),
            unpack(found["prior"]) + coordinates.log_jacobian(np.concatenate([state[None], end])),
            end[0],
            int(found["evaluations"]),
        )


def seed_text(seed: SeedSequence) -> str:
    """Return what WebPPL's random numbers are seeded with."""
    return seed.generate_state(4, np.uint32).tobytes().hex()
