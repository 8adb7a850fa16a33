"""Do the real data look like the model's? Sampled posterior p-values.

Given one posterior draw, a node x of the model (the data, latents given hyperparameters, parameters) is exchangeable
with replicates drawn from p(x | its parents in that draw), because the draw and x come from one joint law. So the rank
of any statistic of x among the replicates is a p-value, exact for an exact draw and else wrong by at most the total
variation between the draw's law and the posterior.

Ties. Real and replicated values that are equal count as "at least as extreme", on both sides. Without ties the
p-values are exact on the grid k / (M + 1); with ties (discrete outcomes) they are conservative, and never depend on a
random number, so that a verdict does not change with the seed for that reason alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bread.errors import InvalidArgumentError
from bread.statistics.bounds.alarms import combined_p_value
from bread.statistics.bounds.bounds import FloatArray

FIT_LEVEL = 0.005  # from here on the fit is poor
LARGEST_P_VALUE = 0.95  # in Cauchy's rule: p = 1, common after Bonferroni, would hide every other draw
N_EXTREMES = 5
PLAIN, ORDINARY, MANY, MOST = 3, 20, 160, 320  # draws at which the p-value is looked at; all of them near the level
LOOKS = (PLAIN, ORDINARY, MANY, MOST)
PLAIN_LEVEL = 0.4 * FIT_LEVEL  # of each of the first draws
RANKED_LEVEL = 0.05  # of the rank among simulated data sets, without which no fit is poor
FEWEST_RANKED = 19  # simulated data sets that such a p-value needs
NEAR = {ORDINARY: 4.0, MANY: 2.0, MOST: 1.5}  # after so many, within this factor of the level more draws are looked at


class NodeFit(NamedTuple):
    """Fit of one node at one posterior draw.

    Attributes
    ----------
    p_value_total : float
        Two-sided rank of the summed log density: small if the node is less, or more, probable than replicates.
    p_value_extreme : float
        One-sided rank of the smallest pointwise log density: small if one element is an outlier. NaN if no pointwise
        densities were given.
    effect : float
        Median of the replicates' summed log density minus the real one, in nats; positive means that the real values
        are less probable. Divide by the number of observations before comparing models. Infinite where the real
        density is zero.
    extremes : ndarray of int
        Flat indices of the elements with the smallest log densities, most extreme first; at most 5.
    """

    p_value_total: float
    p_value_extreme: float
    effect: float
    extremes: NDArray[np.int64]


class SequentialFit(NamedTuple):
    """Result of `sequential_fit_p_value`.

    Attributes
    ----------
    p_value : float
    is_clear : bool
        False: more draws would make it surer on which side of `FIT_LEVEL` it is.
    """

    p_value: float
    is_clear: bool


class RankFit(NamedTuple):
    """Two-sided ranks of single elements at one posterior draw.

    Attributes
    ----------
    p_value : float
        Bonferroni over elements; NaN where the node has none.
    p_values : ndarray, shape (element,)
        Of each element, not adjusted.
    extremes : ndarray of int
        Flat indices of the elements with the smallest p-values, most extreme first; at most 5.
    """

    p_value: float
    p_values: FloatArray
    extremes: NDArray[np.int64]


def node_fit(
    log_density: float,
    replicated: ArrayLike,
    pointwise: ArrayLike | None = None,
    replicated_smallest: ArrayLike | None = None,
) -> NodeFit:
    """Compare a node's log density with that of replicates drawn given the same parents.

    Parameters
    ----------
    log_density : float
        Summed log density of the real node given its parents in one posterior draw, in nats. -inf is allowed.
    replicated : array_like, shape (M,)
        The same of M independent replicates; `n_replicates` says how many.
    pointwise : array_like, optional, any shape
        Log density of each element of the real node, in nats.
    replicated_smallest : array_like, optional, shape (M,)
        Smallest pointwise log density of each replicate; given if and only if ``pointwise`` is.

    Returns
    -------
    NodeFit
        Combine both p-values, and those of the other nodes, with `draw_p_value` before reading the smallest.

    Raises
    ------
    InvalidArgumentError
        No replicates, NaN, +inf, shapes that do not match, or one of the last two arguments alone.
    """
    total = _densities("log_density", [log_density])
    replicates = _densities("replicated", replicated)
    if (pointwise is None) != (replicated_smallest is None):
        raise InvalidArgumentError(
            "pointwise and replicated_smallest belong together, but only one of them was given. Give both or neither."
        )
    low, high = _tail_p_values(total, replicates[:, None])
    p_total = min(1.0, 2.0 * float(min(low[0], high[0])))
    middle = float(np.median(replicates))
    effect = 0.0 if total[0] == middle else middle - float(total[0])
    if pointwise is None or replicated_smallest is None:
        return NodeFit(p_total, float("nan"), effect, np.zeros(0, dtype=np.int64))
    elements = _densities("pointwise", pointwise)
    smallest = _densities("replicated_smallest", replicated_smallest)
    if smallest.shape != replicates.shape:
        raise InvalidArgumentError(
            f"replicated_smallest must hold one value a replicate, {replicates.size}, but got {smallest.size}."
        )
    p_extreme = float(_tail_p_values(elements.min()[None], smallest[:, None])[0][0])
    return NodeFit(p_total, p_extreme, effect, _first(elements))


def rank_fit(values: ArrayLike, replicated: ArrayLike) -> RankFit:
    """Compare each element of a node with the same element of replicates, two-sided.

    For parameters, and for outcomes where a backend has no pointwise log densities.

    Parameters
    ----------
    values : array_like, any shape
        The real node.
    replicated : array_like, shape (M, ...)
        Replicates drawn given the same parents. Infinite is allowed.

    Returns
    -------
    RankFit
        Bonferroni over N elements cannot fall below 2 N / (M + 1): ask for many replicates of a long node.

    Raises
    ------
    InvalidArgumentError
        No replicates, NaN, or shapes that do not match.
    """
    real, copies = np.asarray(values, dtype=np.float64), np.asarray(replicated, dtype=np.float64)
    if copies.ndim == 0 or len(copies) == 0 or copies.shape[1:] != real.shape:
        raise InvalidArgumentError(
            f"replicated must have shape (replicate, ...) with '...' = {real.shape}, but got {copies.shape}."
        )
    if np.isnan(real).any() or np.isnan(copies).any():
        raise InvalidArgumentError(
            f"values and replicated must not hold NaN, but {int(np.isnan(real).sum())} and "
            f"{int(np.isnan(copies).sum())} entries do. Leave out elements that are missing."
        )
    low, high = _tail_p_values(real.ravel(), copies.reshape(len(copies), -1))
    p_values = np.minimum(1.0, 2.0 * np.minimum(low, high))
    return RankFit(combined_p_value(p_values), p_values, _first(p_values))


def draw_p_value(p_values: ArrayLike) -> float:
    """Return the p-value of one draw over its nodes and statistics: Bonferroni. NaN, not tested, does not count.

    Nodes are given the real values of their parents and not the replicated ones, so different nodes are not jointly
    exchangeable with their replicates: Bonferroni, which needs no joint law.
    """
    return combined_p_value(p_values)


def fit_p_value(draw_p_values: ArrayLike) -> float:
    """Combine the p-values of several posterior draws on the same data by Cauchy's rule.

    ``T = mean of cot(pi p)``, ``p = 1/2 - arctan(T) / pi``, each p clipped at 0.95. The draws share the data, so
    their p-values are dependent; the rule is nearly exact for small p-values whatever the dependence: measured with 20
    draws, p-values exactly uniform and normal scores of correlation 0.3, 0.7 and 0.9 (20,000 data sets each), 7.2%,
    6.4% and 5.3% are at or below 0.05, and 0.6%, 0.7% and 0.6% at or below 0.005; with Bonferroni over six tests
    before, 5.2% to 6.1% and 0.5% to 0.6%. One draw alone would make the answer depend on the seed.

    Parameters
    ----------
    draw_p_values : array_like, shape (draw,)
        From `draw_p_value`. NaN, not tested, does not count.

    Returns
    -------
    float
        NaN if nothing was tested. Under ``simulate_from="prior"`` pass it to `ranked_fit_p_value`.

    References
    ----------
    Liu & Xie (2020), "Cauchy combination test", JASA 115, 393-402.
    Johnson (2004), "A Bayesian chi-squared test for goodness-of-fit", Ann. Statist. 32, 2361-2384.
    Gosselin (2011), "A new calibrated Bayesian internal goodness-of-fit method", PLoS ONE 6, e14770.
    """
    p = np.asarray(draw_p_values, dtype=np.float64).ravel()
    p = p[~np.isnan(p)]
    if p.size == 0:
        return float("nan")
    if not ((p > 0.0) & (p <= 1.0)).all():
        raise InvalidArgumentError(f"draw_p_values must lie in (0, 1], but range from {p.min()} to {p.max()}.")
    statistic = float((1.0 / np.tan(np.pi * np.minimum(p, LARGEST_P_VALUE))).mean())
    return float(0.5 - np.arctan(statistic) / np.pi) if statistic < 1.0 else float(np.arctan(1.0 / statistic) / np.pi)


def sequential_fit_p_value(draw_p_values: ArrayLike) -> SequentialFit:
    """Combine the p-values of draws, looked at after 3, 20, 160, 320 and all of them.

    After 3 draws it is clear that the fit is poor if each of them has p <= 0.4 `FIT_LEVEL`; after 20, unless p lies
    within a factor of 4 of `FIT_LEVEL`; after 160, unless it lies within a factor of 2; after 320, unless it lies
    within a factor of 1.5; then all draws count, so that the answer does not change with the seed, and p stays within
    the factor of the look before. A p-value at or below `FIT_LEVEL` may come from the first look (probability at most
    0.4 `FIT_LEVEL` on clean data), from those between (`FIT_LEVEL` / 4, / 2 and / 1.5) or from the last (`FIT_LEVEL`,
    as far as Cauchy's rule is exact): at most 0.014 for 0.005. Combined p-values are smaller than a level far less
    often than that.

    Parameters
    ----------
    draw_p_values : array_like, shape (draw,)
        In the order of the draws, from `draw_p_value`. None may be NaN where there are 3 or more.

    Returns
    -------
    SequentialFit
    """
    p = np.asarray(draw_p_values, dtype=np.float64).ravel()
    if p.size >= PLAIN and (p[:PLAIN] <= PLAIN_LEVEL).all():
        return SequentialFit(fit_p_value(p[:PLAIN]), True)
    if p.size < ORDINARY:
        return SequentialFit(fit_p_value(p), False)
    low, high = 0.0, 1.0
    for n, factor in NEAR.items():
        if p.size < n:
            break
        combined = min(max(fit_p_value(p[:n]), low), high)
        is_clear = not FIT_LEVEL / factor < combined < FIT_LEVEL * factor
        if is_clear or p.size == n:
            return SequentialFit(combined, is_clear)
        low, high = FIT_LEVEL / factor, FIT_LEVEL * factor
    return SequentialFit(min(max(fit_p_value(p), low), high), False)


def n_replicates(n_tests: int, level: float) -> int:
    """Return how many replicates a node needs so that the smallest p-value of a draw is a quarter of ``level``.

    A two-sided rank among M replicates is at least 2 / (M + 1), and Bonferroni over the ``n_tests`` p-values of a draw
    multiplies it: with 2000 replicates and six p-values no misfit, however gross, is below 0.005. At least 2000.
    """
    if n_tests < 1 or not 0.0 < level < 1.0:
        raise InvalidArgumentError(
            f"n_tests must be 1 or more and level between 0 and 1, but got {n_tests} and {level}."
        )
    return max(2000, int(np.ceil(8.0 * n_tests / level)) - 1)


def ranked_fit_p_value(observed: float, simulated: ArrayLike) -> float:
    """Return the rank of the real data's combined p-value among those of data sets simulated from the prior.

    The real data are one more simulation, tested with the same number of draws by the same sampler, so
    ``(1 + number of simulated p-values as small) / (R + 1)`` is a valid p-value whatever the sampler does. It cannot
    be below 1 / (R + 1): R = 40 says 0.024 of the grossest misfit, and 0.005 needs 199 simulations, each annealed at
    the largest T. `fit_p_value` has the resolution and needs an exact sampler; so a fit is "poor" where `fit_p_value`
    is at most `FIT_LEVEL` *and* this rank at most `RANKED_LEVEL`: a false "poor" then has a probability of at most
    0.05 whatever the sampler, and of about `FIT_LEVEL` or less where it is nearly exact. The rank alone never says
    "poor".

    Parameters
    ----------
    observed : float
        From `fit_p_value`.
    simulated : array_like, shape (R,)
        The same of R data sets simulated from the prior. NaN is an error: a data set that could not be tested may not
        be left out in silence.

    Returns
    -------
    float
        1 / (R + 1) or more.
    """
    others = np.asarray(simulated, dtype=np.float64).ravel()
    if others.size == 0 or np.isnan(others).any() or np.isnan(observed):
        raise InvalidArgumentError(
            f"observed and simulated p-values must be numbers, with one simulation or more, but got {observed} and "
            f"{others.size} values, {int(np.isnan(others).sum())} of them NaN."
        )
    return float((1 + (others <= observed).sum()) / (others.size + 1))


def _tail_p_values(real: FloatArray, replicated: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(as small) and P(as large) of each real value (n,) among replicates (M, n), itself counted."""
    n = len(replicated) + 1
    low = (1 + (replicated <= real).sum(axis=0)) / n
    high = (1 + (replicated >= real).sum(axis=0)) / n
    return low, high


def _first(values: FloatArray) -> NDArray[np.int64]:
    """Return the indices of the smallest values, smallest first."""
    return np.asarray(np.argsort(values, kind="stable")[:N_EXTREMES], dtype=np.int64)


def _densities(name: str, values: ArrayLike) -> FloatArray:
    """Return log densities as a flat array, checked."""
    array = np.asarray(values, dtype=np.float64).ravel()
    if array.size == 0 or np.isnan(array).any() or np.isposinf(array).any():
        raise InvalidArgumentError(
            f"{name} must hold one log density or more, finite or -inf, but got {array.size} values, "
            f"{int(np.isnan(array).sum())} of them NaN and {int(np.isposinf(array).sum())} +inf."
        )
    return array
