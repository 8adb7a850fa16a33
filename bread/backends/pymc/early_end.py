"""When ``pm.sample`` may end before all its draws: where they are dear, and those that are there are enough.

What is decided depends on draws and gradients alone, each chain up to the same draw, never on which chain was ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.statistics.agreement.agreement import distribution_size
from bread.statistics.agreement.mixing import mixing

LOOKS = (250, 500)  # draws of each chain, after tuning, at which it may end
LARGEST_R_HAT = 1.02
FEWEST_EFFECTIVE = 200.0  # of every parameter, and of its distribution function: twice what a comparison asks for
DEAR = 100_000  # gradients below which nothing is worth ending early
ELEMENTS = 400  # observed elements whose likelihood costs about what every gradient costs


class EnoughDrawsError(Exception):
    """Raised inside ``pm.sample`` to end it."""


class EarlyEnd:
    """A callback for ``pm.sample`` that raises `EnoughDrawsError`; ``draws`` are then what it leaves.

    Parameters
    ----------
    names : sequence of str
        Free variables.
    chains : int
    n_observed : int
        Elements of the observed data: a gradient counts as 1 and one more for every `ELEMENTS` of them.
    n_in_turn : int, optional
        Draws of each chain where PyMC runs one chain after another. After an interrupt it goes on with the next one
        (5.28, 6.4), so that the callback interrupts that too.

    Attributes
    ----------
    draws : dict of str to ndarray, each (chain, draw, ...)
        Empty until it has ended.
    n_divergences : int
        Among these draws.
    """

    def __init__(self, names: Sequence[str], chains: int, n_observed: int, n_in_turn: int = 0) -> None:
        self.draws: dict[str, NDArray[Any]] = {}
        self.n_divergences = 0
        self._names = names
        self._chains: list[_Chain] = [_Chain() for _ in range(chains)]
        self._unit = 1.0 + n_observed / ELEMENTS
        self._looks = list(LOOKS)
        self._n_in_turn = n_in_turn

    def __call__(self, trace: Any, draw: Any) -> None:
        """Take note of one draw of one chain, and look at all of them where each has come so far.

        Raises
        ------
        EnoughDrawsError
            The draws are dear, and enough.
        KeyboardInterrupt
            The chain before this one was interrupted.
        """
        if draw.chain and self._chains[draw.chain - 1].n_draws < self._n_in_turn:
            raise KeyboardInterrupt
        self._chains[draw.chain].note(trace, draw)
        if not self._looks or any(chain.n_draws < self._looks[0] for chain in self._chains):
            return
        n_draws = self._looks.pop(0)
        if self._unit * sum(chain.n_gradients[n_draws] for chain in self._chains) < DEAR:
            return
        found = {name: np.stack([chain.values(name, n_draws) for chain in self._chains]) for name in self._names}
        if is_enough(found):
            self.draws = found
            self.n_divergences = sum(chain.n_divergences[n_draws] for chain in self._chains)
            raise EnoughDrawsError


class _Chain:
    """One chain so far; gradients and divergences up to each look."""

    def __init__(self) -> None:
        self.n_draws = 0
        self.n_gradients: dict[int, int] = {}
        self.n_divergences: dict[int, int] = {}
        self._n_tune = self._gradients = self._divergences = 0
        self._trace: Any = None

    def note(self, trace: Any, draw: Any) -> None:
        """Take note of a draw, or of a step of tuning."""
        self._trace = trace
        self._gradients += sum(int(item.get("tree_size", item.get("n_steps", 0))) for item in draw.stats)
        if draw.tuning:
            self._n_tune += 1
            return
        self.n_draws += 1
        self._divergences += sum(bool(item.get("diverging", False)) for item in draw.stats)
        if self.n_draws in LOOKS:
            self.n_gradients[self.n_draws], self.n_divergences[self.n_draws] = self._gradients, self._divergences

    def values(self, name: str, n_draws: int) -> NDArray[Any]:
        """Return the first draws of a variable after tuning."""
        return np.array(self._trace.get_values(name, burn=self._n_tune)[:n_draws])


def is_enough(draws: dict[str, NDArray[Any]]) -> bool:
    """Return whether chains agree on every parameter, which all vary, and hold enough effective draws of it.

    Parameters
    ----------
    draws : dict of str to ndarray, each (chain, draw, ...)
    """
    columns = [np.asarray(values, dtype=np.float64).reshape(*values.shape[:2], -1) for values in draws.values()]
    table, found = np.concatenate(columns, axis=2), mixing(draws)
    return bool(
        (np.ptp(table, axis=(0, 1)) > 0.0).all()
        and found.r_hat <= LARGEST_R_HAT
        and found.n_effective >= FEWEST_EFFECTIVE
        and (distribution_size(table) >= FEWEST_EFFECTIVE).all()
    )
