"""Do the user's own draws agree with annealed draws on the same data? One test of equality per scalar quantity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import kstwo, rankdata

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.distribution_bound import cdf_differences
from bread.statistics.agreement.draws import are_constant
from bread.statistics.agreement.moments import compare_moments
from bread.statistics.agreement.pairs import products_of_pairs
from bread.statistics.bounds.bounds import FloatArray

LOG_DENSITY = "log density"
SHORTEST = 8  # draws of a chain, below which its halves are too short to see autocorrelation
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # where the effective size of a distribution function is looked at


class Agreement(NamedTuple):
    """Result of `agreement_test`; P scalar quantities: components, the log density, products of pairs.

    Attributes
    ----------
    names : tuple of str, length P
        "mu", "theta[3]", "corr[0,1]", "log density", "mu * tau".
    p_value : ndarray, shape (P,)
        Two-sample Kolmogorov-Smirnov, adjusted by Holm for the number of quantities; 1 where constant.
    p_value_combined : float
        The smallest: below 0.01 the two samples differ. NaN if every quantity is constant.
    shift : ndarray, shape (P,)
        Mean of the user's draws minus mean of the annealed ones, in standard deviations of the annealed ones.
    n_effective : ndarray, shape (P,)
        Effective sample size of the user's draws, the smallest of mean, scale and the five shares at `LEVELS`. A
        large p-value says nothing where this is small.
    difference : ndarray, shape (P,)
        Largest difference of the two empirical distribution functions; 0 where constant.
    p_value_beyond_error : ndarray, shape (P,)
        Of the hypothesis that no probability differs by more than ``error``; adjusted by Holm.
    p_value_beyond_error_combined : float
        The smallest: below 0.01 they differ by more than the annealed draws' own error explains.
    """

    names: tuple[str, ...]
    p_value: FloatArray
    p_value_combined: float
    shift: FloatArray
    n_effective: FloatArray
    difference: FloatArray
    p_value_beyond_error: FloatArray
    p_value_beyond_error_combined: float


def agreement_test(
    reference: Mapping[str, ArrayLike],
    annealed: Mapping[str, ArrayLike],
    *,
    log_density: tuple[ArrayLike, ArrayLike] | None = None,
    most_pairs: int = 0,
    error: float = 0.0,
    distinct_share: float = 1.0,
) -> Agreement:
    """Test whether the user's draws and the annealed draws come from one distribution.

    The largest difference of the empirical distribution functions of all draws is compared with the law that it
    has for independent draws, as many as the user's are worth. Their worth is the smallest effective size of five
    shares of draws (below the 5, 25, 50, 75 and 95% quantiles). The law is conservative for autocorrelated draws,
    whose distribution functions are smoother, and for discrete quantities (ties).

    Parameters
    ----------
    reference : mapping of str to array_like, each (chain, draw, ...)
        The user's draws.
    annealed : mapping of str to array_like, each (n, ...)
        Last states of annealed chains on the same data. Components of names in both mappings are compared.
    log_density : tuple of two array_like, shapes (chain, draw) and (n,), or None
        The log density of both, up to one constant: sees a wrong spread in many dimensions at once.
    most_pairs : int
        Largest number of products of two components (`bread.statistics.agreement.pairs`): these see a wrong
        correlation.
    error : float
        How far, at most, a probability under the law of the annealed draws may be from the posterior's.
    distinct_share : float
        What effective sizes are multiplied by: less than 1 where the user's draws hold copies
        (`bread.statistics.agreement.repeats`).

    Returns
    -------
    Agreement
        A small p_value_combined says that one of the two is wrong; which one, the bounds say.

    Raises
    ------
    InvalidArgumentError
        No common name, shapes that do not match, no draws, or draws that are not finite.
    """
    if not 0.0 <= error <= 1.0:
        raise InvalidArgumentError(f"error must lie between 0 and 1, but got {error}.")
    if not 0.0 < distinct_share <= 1.0:
        raise InvalidArgumentError(f"distinct_share must lie between 0 and 1, but got {distinct_share}.")
    labels, ours, theirs = _joined(reference, annealed)
    if most_pairs > 0:
        pair_labels, *products = products_of_pairs(ours, theirs, labels, most_pairs)
    if log_density is not None:
        extra_ours, extra_theirs = _columns(LOG_DENSITY, *log_density)
        _check_length(LOG_DENSITY, ours, theirs, extra_ours, extra_theirs)
        labels = (*labels, LOG_DENSITY)
        ours, theirs = np.concatenate([ours, extra_ours], axis=2), np.concatenate([theirs, extra_theirs], axis=1)
    if most_pairs > 0:
        labels = (*labels, *pair_labels)
        ours, theirs = np.concatenate([ours, products[0]], axis=2), np.concatenate([theirs, products[1]], axis=1)
    flat = ours.reshape(-1, ours.shape[2])
    constant = are_constant(flat, theirs)
    worth = distinct_share * distribution_size(ours)
    n_effective = np.minimum(distinct_share * effective_sample_size(ours), worth)
    difference = np.where(constant, 0.0, cdf_differences(flat, theirs))
    pooled = np.maximum(1.0, np.round(worth * len(theirs) / (worth + len(theirs))))
    p_value, beyond = np.ones(len(labels)), np.ones(len(labels))
    combined = beyond_combined = float("nan")
    if not constant.all():
        varies = ~constant
        p_value[varies] = holm_adjusted(kstwo.sf(difference[varies], pooled[varies]))
        beyond[varies] = holm_adjusted(kstwo.sf(np.maximum(0.0, difference[varies] - error), pooled[varies]))
        combined, beyond_combined = float(p_value.min()), float(beyond.min())
    shift = compare_moments(flat, theirs, n_effective, n_effective).mean_shift
    return Agreement(labels, p_value, combined, shift, n_effective, difference, beyond, beyond_combined)


def holm_adjusted(p_values: FloatArray) -> FloatArray:
    """Return p-values adjusted by Holm's step-down rule, shape unchanged; valid under any dependence."""
    n = len(p_values)
    order = np.argsort(p_values)
    adjusted = np.empty(n)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * np.arange(n, 0, -1)))
    return adjusted


def effective_sample_size(draws: FloatArray) -> FloatArray:
    """Return the effective sample size of each component, at most the number of draws.

    The smaller one of location and scale: of the rank-normalised draws and of the rank-normalised distances from
    the median, chains split in half; autocorrelations of all chains combined, summed over Geyer's initial
    monotone positive sequence. A component that is constant counts as independent.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, component)

    Returns
    -------
    ndarray, shape (component,)

    References
    ----------
    Geyer (1992), "Practical Markov chain Monte Carlo", section 3.3.
    Vehtari et al. (2021), "Rank-normalization, folding, and localization", equations 10 to 13.
    """
    if draws.shape[1] < SHORTEST:
        return np.full(draws.shape[2], float(draws.shape[0]))  # too short to see autocorrelation: one a chain
    return size_of_scores(split_scores(draws), draws.shape[0] * draws.shape[1])


def split_scores(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rank-normalised draws and distances from the median: of location, and of scale.

    Chains are split in half, shape (2 chains, half, component) each; effective sizes and R-hats are made of them.
    """
    half = draws.shape[1] // 2
    split = np.concatenate([draws[:, :half], draws[:, -half:]])
    return rank_normalised(split), rank_normalised(np.abs(split - np.median(split, axis=(0, 1))))


def size_of_scores(scores: tuple[FloatArray, FloatArray], n_draws: int) -> FloatArray:
    """Return the smaller effective size of `split_scores`, at most ``n_draws``."""
    return np.asarray(np.minimum(np.minimum(*map(_raw_size, scores)), float(n_draws)), dtype=np.float64)


def mean_effective_size(draws: FloatArray) -> FloatArray:
    """Return the effective sample size of the mean of each component (chain, draw, component), at most the draws."""
    half = draws.shape[1] // 2
    if half < SHORTEST // 2:
        return np.full(draws.shape[2], float(draws.shape[0]))
    sizes = _raw_size(np.concatenate([draws[:, :half], draws[:, -half:]]))
    return np.asarray(np.minimum(sizes, float(draws.shape[0] * draws.shape[1])), dtype=np.float64)


def quantile_effective_size(draws: FloatArray, probability: float) -> FloatArray:
    """Return the effective sample size of the share of draws below a quantile, at most the number of draws.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, component)
    probability : float
        Which quantile, in (0, 1).

    Returns
    -------
    ndarray, shape (component,)
        ArviZ's ``ess`` with method "quantile". From few visits to a tail it is a rough number: take the smaller
        of this and `effective_sample_size`.
    """
    half = draws.shape[1] // 2
    if half < SHORTEST // 2:
        return np.full(draws.shape[2], float(draws.shape[0]))
    split = np.concatenate([draws[:, :half], draws[:, -half:]])
    quantile = np.quantile(draws, probability, axis=(0, 1), method="inverted_cdf")
    sizes = _raw_size((split <= quantile).astype(np.float64))
    return np.asarray(np.minimum(sizes, float(draws.shape[0] * draws.shape[1])), dtype=np.float64)


def distribution_size(draws: FloatArray) -> FloatArray:
    """Return how many independent draws the empirical distribution function is worth: the least of `LEVELS`.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, component)

    Returns
    -------
    ndarray, shape (component,)
    """
    return np.asarray(np.min([quantile_effective_size(draws, level) for level in LEVELS], axis=0), dtype=np.float64)


def rank_normalised(draws: FloatArray) -> FloatArray:
    """Map draws to normal scores of their ranks over all chains, component by component."""
    flat = draws.reshape(-1, draws.shape[2])
    scores = ndtri((rankdata(flat, axis=0) - 0.375) / (len(flat) + 0.25))
    return np.asarray(scores.reshape(draws.shape), dtype=np.float64)


def _raw_size(draws: FloatArray) -> FloatArray:
    """Return the effective sample size of each component's mean."""
    n_chains, n_draws, n_components = draws.shape
    centred = draws - draws.mean(axis=1, keepdims=True)
    length = next_fast_len(2 * n_draws, real=True)
    spectrum = rfft(centred, length, axis=1)
    covariance = irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :n_draws].mean(axis=0) / n_draws
    within = covariance[0] * n_draws / (n_draws - 1.0)
    between = draws.mean(axis=1).var(axis=0, ddof=1) if n_chains > 1 else np.zeros(n_components)
    total = covariance[0] + between
    varies = total > 0.0
    correlation = 1.0 - (within - covariance) / np.where(varies, total, 1.0)
    correlation[0] = 1.0
    n_pairs = n_draws // 2
    pairs = correlation[: 2 * n_pairs].reshape(n_pairs, 2, n_components).sum(axis=1)
    is_initial = np.logical_and.accumulate(pairs > 0.0, axis=0)
    monotone = np.minimum.accumulate(np.where(is_initial, pairs, 0.0), axis=0)
    n_total = float(n_chains * n_draws)
    # At most log10(n) times the number of draws, as for antithetic chains no more can be told.
    time = np.maximum(-1.0 + 2.0 * monotone.sum(axis=0), 1.0 / np.log10(n_total))
    return np.where(varies, n_total / time, n_total)


def _joined(
    reference: Mapping[str, ArrayLike], annealed: Mapping[str, ArrayLike]
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Return names, the user's draws (chain, draw, component) and the annealed ones (n, component), checked."""
    labels: list[str] = []
    ours: list[FloatArray] = []
    theirs: list[FloatArray] = []
    for name in reference:
        if name in annealed:
            columns = _columns(name, reference[name], annealed[name])
            labels += _component_names(name, np.shape(annealed[name])[1:])
            ours.append(columns[0])
            theirs.append(columns[1])
            _check_length(name, ours[0], theirs[0], *columns)
    if not labels:
        raise InvalidArgumentError(
            f"reference and annealed must share a name with at least one component, but got {sorted(reference)} "
            f"and {sorted(annealed)}."
        )
    return tuple(labels), np.concatenate(ours, axis=2), np.concatenate(theirs, axis=1)


def _check_length(
    name: str, ours: FloatArray, theirs: FloatArray, extra_ours: FloatArray, extra_theirs: FloatArray
) -> None:
    if extra_ours.shape[:2] != ours.shape[:2] or len(extra_theirs) != len(theirs):
        raise InvalidArgumentError(
            f"every quantity must have the same draws, but '{name}' has {extra_ours.shape[:2]} (chain, draw) in "
            f"reference and {len(extra_theirs)} in annealed where the first has {ours.shape[:2]} and {len(theirs)}."
        )


def _columns(name: str, reference: ArrayLike, annealed: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return draws as (chain, draw, component) and (n, component), checked."""
    ours, theirs = np.asarray(reference, dtype=np.float64), np.asarray(annealed, dtype=np.float64)
    if ours.ndim < 2 or theirs.ndim != ours.ndim - 1 or ours.shape[2:] != theirs.shape[1:]:
        raise InvalidArgumentError(
            f"'{name}' must have shape (chain, draw, ...) in reference and (n, ...) in annealed, with equal '...', "
            f"but got {ours.shape} and {theirs.shape}."
        )
    if 0 in ours.shape[:2] or theirs.shape[0] == 0:
        raise InvalidArgumentError(f"'{name}' must have draws, but got shapes {ours.shape} and {theirs.shape}.")
    for label, values in (("reference", ours), ("annealed", theirs)):
        if not np.isfinite(values).all():
            raise InvalidArgumentError(
                f"draws of '{name}' must be finite, but {int((~np.isfinite(values)).sum())} {label} values are not."
            )
    n_components = int(np.prod(ours.shape[2:], dtype=np.int64))
    return ours.reshape(*ours.shape[:2], n_components), theirs.reshape(theirs.shape[0], n_components)


def _component_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return "mu" for a scalar, "theta[3]" or "corr[0,1]" for each component of an array."""
    if not shape:
        return [name]
    return [f"{name}[{','.join(str(i) for i in index)}]" for index in np.ndindex(*shape)]
