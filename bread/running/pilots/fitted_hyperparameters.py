"""Hyperparameters held while simulating: for every data set another draw of the fit to the real data; its worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Fit
from bread.running.state.results import DIRECT, OTHERS, SHARED
from bread.seeds import Purpose, seed_sequence
from bread.statistics.agreement.mixing import Mixing, mixing


def mixing_of(fit: Fit) -> Mixing:
    """Return the worst components of a fit; draws that are copies of others count once."""
    found = mixing(fit.draws)
    return found._replace(n_effective=fit.distinct_share * found.n_effective)


class HeldDraws:
    """Draws of the hyperparameters from a fit; a mean may lie between modes, where the posterior has nothing.

    Parameters
    ----------
    fit : Fit
    names : sequence of str
        The hyperparameters.
    root : int
        Root entropy.
    """

    def __init__(self, fit: Fit, names: Sequence[str], root: int) -> None:
        flat = fit.flat_draws()
        self.names = tuple(names)
        self._draws = {name: flat[name] for name in names}
        self._n_draws = len(next(iter(flat.values())))
        self._root = root

    def of(self, simulation: int, index: int, attempt: int = 0) -> dict[str, NDArray[Any]]:
        """Return the values held for data set ``index`` of those that begin at ``simulation``.

        The extra data set that one kernel is tuned on has the draw nearest the medians: a typical one. So have those
        that may stand in for it. Every other has a random one, and so has every further ``attempt``.
        """
        if simulation in (SHARED, *OTHERS) and not attempt:
            chosen = self._nearest_medians()
        else:
            seed = seed_sequence(self._root, Purpose.HELD, simulation, attempt, index)
            chosen = int(np.random.default_rng(seed).integers(self._n_draws))
        return {name: values[chosen] for name, values in self._draws.items()}

    def direct(self, index: int) -> dict[str, NDArray[Any]]:
        """Return the values held for draw ``index`` of the tests of exact draws."""
        return self.of(DIRECT, index)

    def _nearest_medians(self) -> int:
        distance = np.zeros(self._n_draws)
        for values in self._draws.values():
            columns = values.reshape(self._n_draws, -1).astype(float)
            gap = np.abs(columns - np.median(columns, axis=0))
            spread = np.median(gap, axis=0)
            distance += ((gap / np.where(spread > 0.0, spread, 1.0)) ** 2).sum(axis=1)
        return int(np.argmin(distance))
