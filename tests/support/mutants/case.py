"""What a planted bug is: a kernel or a law, the same with one line changed, and what that line breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bread.debugging.continuous_targets import log_gamma
from bread.debugging.target import Target
from bread.debugging.targets import default_targets

Breaks = Literal[
    "law",  # simulator and density disagree, or the kernel does not leave the density invariant
    "reversibility",  # invariant, but not reversible, as the good twin is
    "gradient",  # of no consequence for the law; not the derivative of the density
    "cache",  # the log density that the kernel holds is not that of its position
    "history",  # the same start and the same random numbers lead elsewhere after other chains have run
    "memory",  # the next state depends on more than the last, and not as a law of what is carried would have it
    "streams",  # chains share random numbers
    "motion",  # invariant; a chain cannot leave a part of the space
    "paths",  # annealed chains: their weights contradict Crooks
    "nothing",  # the law and its use are right; only time is lost
]


@dataclass(frozen=True, eq=False)
class Case:
    """What a battery is run on: a target, as the test is told of it, and a kernel."""

    target: Target
    kernel: Any
    is_reversible: bool = True


@dataclass(frozen=True, eq=False)
class Mutant:
    """A planted bug.

    ``build(target, is_bad)`` returns the case with the changed line, or without it. ``targets`` are names of those on
    which it shows. ``breaks`` says what; ``why`` says why it shows, or cannot.
    """

    name: str
    family: str
    defect: str
    build: Callable[[Target, bool], Any]
    targets: tuple[str, ...]
    breaks: Breaks
    why: str

    @property
    def detectable(self) -> bool:
        """Whether anything that a test of one, two or many transitions may look at is changed."""
        return self.breaks not in ("motion", "nothing")

    def bad(self, target: Target | None = None) -> Any:
        """Return the case with the bug, on its first target if none is given."""
        return self.build(named(self.targets[0]) if target is None else target, True)

    def good(self, target: Target | None = None) -> Any:
        """Return the case without it."""
        return self.build(named(self.targets[0]) if target is None else target, False)


TARGETS = {target.name: target for target in default_targets()}


def named(name: str) -> Target | None:
    """Return a default target; None for mutants that bring their own law ("own")."""
    return None if name == "own" else TARGETS[name]


def spread_of(target: Target) -> np.ndarray:
    """Typical size of each coordinate: half the width of the middle two thirds of exact draws."""
    draws = target.simulate(4000, np.random.default_rng(20_261_123))
    low, high = np.quantile(draws, [1.0 / 6.0, 5.0 / 6.0], axis=0)
    return np.maximum(0.5 * (high - low), 0.05)


LOG_GAMMA = log_gamma().name
