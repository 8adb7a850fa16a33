"""Whether chains along a fitted reference also propose draws from it.

NUTS leaves the far tail of a scale slowly, whatever the number of temperatures: one data set in ten may then carry V.
A draw from the reference leaves it at once, for one evaluation where a transition takes tens of gradients. Where
annealing is cheap the kernel stays what the PPL would assign, and says more about it.

A transition of NUTS that takes a hundred gradients moves a chain hardly farther than such a draw, where these are often
accepted: then it is made at some temperatures only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bread.backends.base import FloatArray, ModelInfo
from bread.running.path_choice.costs import PathCost
from bread.running.pilots.tuning import Pilot

DEAR = 3000.0  # gradient evaluations of a data set's chains, as predicted, from which on proposals are worth their own
DEAR_GIVEN = 1200.0  # the same along a law given scales: their tails are what NUTS is slow in, and no prediction sees
LEAST_ACCEPTED = 0.1  # share of them, at the end of the path
A_MOVE = 4.0  # gradient evaluations a temperature that are left to the kernel: a proposal costs as much with the rest
MOST_EVERY = 8  # temperatures for one move of the kernel, at most
CERTAIN = 0.5  # share of proposals, at the end of the path, from which on there may be so many; fewer below


def wants_proposals(info: ModelInfo, pilots: list[Pilot], cost: PathCost) -> bool:
    """Return whether draws from the pilots' references should be proposed on every data set, by what is predicted.

    Parameters
    ----------
    info : ModelInfo
    pilots : list of Pilot
        Along the path that was chosen, on extra data sets.
    cost : PathCost
        Of this path.
    """
    if not info.may_propose or any(pilot.fit is None for pilot in pilots):
        return False
    is_given = all(pilot.path.fitted and pilot.path.fitted.is_given for pilot in pilots)
    if cost.n_chains * cost.n_temperatures * cost.per_transition < (DEAR_GIVEN if is_given else DEAR):
        return False
    return _mean_accepted(pilots) >= LEAST_ACCEPTED


def moves_every(pilots: list[Pilot], cost: PathCost) -> int:
    """Return at how many temperatures the kernel moves once, where draws are proposed (`bread.backends.base.Kernel`).

    The dearer its moves, the fewer, where enough proposals are accepted between two of them.

    Parameters
    ----------
    pilots : list of Pilot
    cost : PathCost
        As of `wants_proposals`.
    """
    most = MOST_EVERY * min(1.0, _mean_accepted(pilots) / CERTAIN)
    return int(max(1.0, min(cost.per_transition / A_MOVE, most)))


def with_proposals(info: ModelInfo, pilots: list[Pilot], cost: PathCost) -> PathCost:
    """Return the cost of a path whose kernel rests where draws are proposed; parameters as of `wants_proposals`."""
    return replace(cost, every=moves_every(pilots, cost)) if wants_proposals(info, pilots, cost) else cost


def _mean_accepted(pilots: list[Pilot]) -> float:
    return float(np.mean([accepted(pilot.base_log_ratio, pilot.end_log_ratio) for pilot in pilots]))


def accepted(base_log_ratio: FloatArray, end_log_ratio: FloatArray) -> float:
    """Return the share of draws from the base that a chain at the end of the path would accept.

    Parameters
    ----------
    base_log_ratio, end_log_ratio : ndarray, shapes (n,) and (m,)
        Log ratios (nats) at draws from both.
    """
    base, end = (np.where(np.isnan(values), -np.inf, values) for values in (base_log_ratio, end_log_ratio))
    end = end[np.isfinite(end)]
    if not len(base) or not len(end):
        return 0.0
    return float(np.exp(np.minimum(base[:, None] - end, 0.0)).mean())
