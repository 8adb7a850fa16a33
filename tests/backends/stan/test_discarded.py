"""Which of the draws made again the program gives mass to, and whether outcomes can be drawn at their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.backends.stan.simulation import JointDraws
from bread.backends.stan.state_draws import StateDraws
from bread.errors import DensityError

N = 200


class Simulated:
    """A program and its simulator: a ~ U(0, 1), rejected by the program below 0.1 and without state below 0.2.

    Outcomes can be drawn at half of the tries where a is in (0.2, 0.4), and never above 0.8.
    """

    can_redraw = True
    coordinates = fixable = ("a",)

    def names(self, block: str) -> tuple[str, ...]:
        return self.coordinates

    def draw(
        self, seeds: Sequence[SeedSequence], fixed: Mapping[str, Any] | None, *, only_parameters: bool = False
    ) -> JointDraws:
        generators = [default_rng(seed) for seed in seeds]
        a = np.array([float(fixed["a"]) if fixed else generator.random() for generator in generators])
        fails = [value > 0.8 or (0.2 < value < 0.4 and one.random() < 0.5)
                 for value, one in zip(a, generators, strict=True)]  # fmt: skip
        if any(fails) and not only_parameters:
            raise DensityError("too large")
        return JointDraws({"a": a}, {})

    def unconstrain(self, parameters: dict[str, np.ndarray]) -> np.ndarray:
        a = parameters["a"][:, None]
        return np.where((a > 0.1) & (a < 0.2), -np.inf, a)

    def terms(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        return np.where(states[:, 0] < 0.1, -np.inf, 0.0), np.zeros(len(states)), "rejected"

    def gradients(self, states: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(states)), np.zeros(states.shape)


def test_draws_made_again_are_told_apart() -> None:
    """For each one kept 0.1 are rejected by the program, 0.1 have no state, 0.1 and 0.2 no outcomes, over 0.5."""
    program = Simulated()
    draws = StateDraws(program, program, np.zeros((2, 1), dtype=bool))
    _, joint = draws.simulate(N, None, SeedSequence(1))
    found, expected = joint.discarded, N * np.array([0.1, 0.3, 0.05]) / 0.5
    counts = np.array([found.n_parameters, found.n_outcomes, found.n_by_chance])
    # four standard errors of counts; the last two are looked into at 20 draws, of which a sixth are by chance
    assert (np.abs(counts - expected) < 4 * np.sqrt(expected * [1.0, 1.0, len(joint.failed) / 20])).all()
    assert all(state[0] > 0.8 or 0.2 < state[0] < 0.4 for state in found.states) and 5 < len(found.states) <= 20
    assert not draws.draw_parameters(N, SeedSequence(1))[1].discarded.n_outcomes


def test_where_outcomes_cannot_be_drawn_anew_nobody_knows_whether_it_was_chance() -> None:
    program = Simulated()
    program.fixable = ()
    joint = StateDraws(program, program, np.zeros((2, 1), dtype=bool)).simulate(N, None, SeedSequence(1))[1]
    assert joint.discarded.n_by_chance == joint.discarded.n_outcomes > 0 and joint.discarded.states
