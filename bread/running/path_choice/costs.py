"""Which path is the cheapest: predicted gradient evaluations to reach the target, from pilots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from bread.backends.base import FloatArray
from bread.paths import schedules
from bread.running.pilots.tuning import Pilot
from bread.running.state.plan import FIRST_TEMPERATURES
from bread.statistics.bounds import bounds
from bread.statistics.bounds.goal import Goal, gap_of_error
from bread.statistics.exactness.relaxation import relaxation_time

SLOWEST = 0.2  # power of T with which a gap is taken to fall at least
WORTH_OF_MEAN = 3.0  # times the cost that a path may have along which B has a mean, where V decides
SATURATED = 0.9  # V beyond which it no longer tells far from very far


@dataclass(frozen=True)
class PathCost:
    """What a data set costs on one path, in gradient evaluations.

    Attributes
    ----------
    kind : str
    is_reliable : bool
        Whether the bound has a finite mean on this path.
    n_temperatures : float
        Predicted T at which the bound reaches the target.
    per_transition : float
        Gradient evaluations of one transition, averaged over the path.
    per_data_set : float
        Gradient evaluations of what is fitted or tuned for every data set.
    n_chains : int
        Chains up and down together.
    every : int
        Temperatures at which the kernel moves once (`bread.running.path_choice.proposing.moves_every`).
    """

    kind: str
    is_reliable: bool
    n_temperatures: float
    per_transition: float
    per_data_set: float
    n_chains: int
    every: int = 1

    @property
    def per_temperature(self) -> float:
        """Gradient evaluations of one chain at one temperature."""
        return self.per_transition / self.every

    @property
    def total(self) -> float:
        """Predicted gradient evaluations per data set."""
        return self.per_data_set + self.n_chains * self.n_temperatures * self.per_temperature


def is_reliable(pilots: list[Pilot]) -> bool:
    """Return whether the bound has a finite mean, from the log ratios at both ends of the pilots' paths."""
    base = [pilot.base_log_ratio for pilot in pilots]
    end = [pilot.end_log_ratio for pilot in pilots] if pilots[0].fit is not None else []
    calm = np.zeros((1, 1))
    return bounds.jeffreys_is_reliable(base, calm, end)


def path_length(pilots: list[Pilot]) -> schedules.PathLength:
    """Return the mean thermodynamic length of the pilots' paths."""
    lengths = [schedules.thermodynamic_length(pilot.kernel.betas, pilot.kernel.log_ratio) for pilot in pilots]
    return schedules.mean_length(lengths)


def shortest_length(log_ratio: FloatArray, log_evidence: float) -> float:
    """Return the least thermodynamic length of any path between two laws (Gelman & Meng 1998, section 4).

    It is twice the arc cosine of the integral of the root of both densities; pi where they do not overlap.

    Parameters
    ----------
    log_ratio : ndarray, shape (n,)
        Of the second law's density, not normalised, over the first's, at draws from the first (nats).
    log_evidence : float
        Log of the second law's normalising constant.
    """
    values = np.where(np.isnan(log_ratio), -np.inf, log_ratio)
    overlap = float(np.exp(bounds.log_mean_exp(values / 2.0) - log_evidence / 2.0))
    return float(2.0 * np.arccos(min(overlap, 1.0)))


def gap_times_temperatures(pilot: Pilot) -> float:
    """Return the product of gap (nats) and T that the pilot predicts: length times length, weighted by relaxation."""
    kernel = pilot.kernel
    length = schedules.thermodynamic_length(kernel.betas, kernel.log_ratio)
    times = [relaxation_time(values) for values in kernel.log_ratio[1:]]
    at_knots = np.interp(kernel.betas, length.betas, length.length)
    return float(length.total * (np.diff(at_knots) @ np.array(times)))


def gradients_per_transition(pilots: Sequence[Pilot], n_steps: int) -> float:
    """Return gradient evaluations of one transition, averaged over pilots that took ``n_steps`` at each knot."""
    n_transitions = sum(len(pilot.kernel.betas) * n_steps for pilot in pilots)
    return max(sum(pilot.kernel.n_gradients for pilot in pilots) / max(n_transitions, 1), 1.0)


def predicted_cost(
    kind: str, pilots: list[Pilot], *, target: float, n_chains: int, n_steps: int, per_data_set: float
) -> PathCost:
    """Predict the cost from thermodynamic length and relaxation: with ideal kernels the gap at T is length^2 / T.

    Parameters
    ----------
    kind : str
    pilots : list of Pilot
    target : float
        Nats.
    n_chains : int
        Chains per data set, both directions together.
    n_steps : int
        Transitions of the pilot at each knot.
    per_data_set : float
        Gradient evaluations spent on every data set before it is annealed.
    """
    product = float(np.mean([gap_times_temperatures(pilot) for pilot in pilots]))
    wanted = max(product / target, FIRST_TEMPERATURES)
    return PathCost(
        kind, is_reliable(pilots), wanted, gradients_per_transition(pilots, n_steps), per_data_set, n_chains
    )


@dataclass(frozen=True)
class Round:
    """Chains annealed at one number of temperatures.

    Attributes
    ----------
    n_temperatures : int
    gap : float
        What has to fall to the target (nats): see `deciding_gap`.
    per_transition : float
        Gradient evaluations of one transition.
    """

    n_temperatures: int
    gap: float
    per_transition: float


def expected_upper(values: FloatArray, n_simulations: int, n_averaged: int = 1) -> float:
    """Return the upper limit to expect of a bound's interval: a search ends where that reaches its goal.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Of each data set: reverse minus forward log weight (nats), or V.
    n_simulations : int
        Data sets of the search.
    n_averaged : int
        Pairs of chains of a data set in the search, for each pair here; they are taken for independent.
    """
    if len(values) < 2 or not np.isfinite(values).all():
        return float(np.mean(values))
    error = float(np.std(values, ddof=1) / np.sqrt(n_averaged * n_simulations))
    return float(np.mean(values)) + float(stats.t.ppf(0.975, n_simulations - 1)) * error


def deciding_gap(
    gaps: FloatArray, errors: FloatArray, goal: Goal, n_chains: int, n_simulations: int, n_averaged: int = 1
) -> float:
    """Return what has to fall to the goal, as a gap (nats).

    Where V decides it is the gap of Gaussian log weights that have the V to expect: one data set with a gap of fifty
    nats is one whose V is 1, and no reason to expect the same of all. Where V is nearly 1 everywhere, gaps say more.

    Parameters
    ----------
    gaps, errors : ndarray, shape (n,)
        Of each data set.
    goal : Goal
    n_chains : int
        Forward chains of a data set.
    n_simulations, n_averaged : int
        As of `expected_upper`.
    """
    gap = expected_upper(gaps, n_simulations, n_averaged)
    if goal.target is not None:
        return gap
    error = expected_upper(errors, n_simulations, n_averaged)
    return gap_of_error(error, n_chains) if error < SATURATED else max(gap, gap_of_error(SATURATED, n_chains))


def rate_of_fall(rounds: Sequence[Round]) -> float:
    """Return a in gap ~ T^-a, between the first round and the last; at most 1, the rate of an ideal kernel.

    1 where there is one round, or where the gap has vanished.
    """
    first, last = rounds[0], rounds[-1]
    if last.n_temperatures <= first.n_temperatures or last.gap <= 0.0 or not np.isfinite(first.gap):
        return 1.0
    if not np.isfinite(last.gap) or first.gap <= last.gap:
        return SLOWEST
    fall = np.log(first.gap / last.gap) / np.log((last.n_temperatures - 1) / (first.n_temperatures - 1))
    return float(np.clip(fall, SLOWEST, 1.0))


def measured(cost: PathCost, rounds: Sequence[Round], target: float) -> PathCost:
    """Return the cost with the T that measured gaps ask for, if they go on falling as they have fallen.

    Parameters
    ----------
    cost : PathCost
        As predicted.
    rounds : sequence of Round
        At increasing numbers of temperatures.
    target : float
        Nats.
    """
    last = rounds[-1]
    excess = max(last.gap / target, 0.1)
    power = 1.0 / rate_of_fall(rounds) if excess > 1.0 else 1.0
    wanted = max(last.n_temperatures * excess**power, FIRST_TEMPERATURES)
    return PathCost(cost.kind, cost.is_reliable, wanted, last.per_transition, cost.per_data_set, cost.n_chains)


def may_serve(cost: PathCost, goal: Goal) -> bool:
    """Return whether a path leads to the goal: B, where it decides, needs a mean along it."""
    return goal.target is None or cost.is_reliable


def best(costs: Sequence[PathCost], goal: Goal) -> PathCost:
    """Return the cheapest path that may serve, of all where none may; one along which B has a mean may cost more."""

    def price(cost: PathCost) -> float:
        return cost.total / (WORTH_OF_MEAN if cost.is_reliable else 1.0)

    return min([cost for cost in costs if may_serve(cost, goal)] or costs, key=price)
