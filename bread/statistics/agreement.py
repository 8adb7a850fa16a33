"""Do the user's own draws agree with annealed draws on the same data? Rank tests, one per scalar component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import ks_2samp, rankdata

from bread.errors import InvalidArgumentError
from bread.statistics.bounds import FloatArray

EXACT_LIMIT = 10_000  # product of sample sizes up to which the exact null law is used
ROUNDING = 1e-8  # values closer than this, relative to their size, are one value


class Agreement(NamedTuple):
    """Result of `agreement_test`; P scalar components.

    Attributes
    ----------
    names : tuple of str, length P
        "mu", "theta[3]", "corr[0,1]".
    p_value : ndarray, shape (P,)
        Two-sample Kolmogorov-Smirnov, adjusted by Holm for the number of components; 1 where constant.
    p_value_combined : float
        The smallest: below 0.01 the two samples differ. NaN if every component is constant.
    shift : ndarray, shape (P,)
        Mean of the user's draws minus mean of the annealed ones, in standard deviations of the annealed ones.
    n_effective : ndarray, shape (P,)
        Effective sample size of the user's draws. A few times the number of chains or less means that those
        chains disagree with each other: then a large p-value says nothing.
    """

    names: tuple[str, ...]
    p_value: FloatArray
    p_value_combined: float
    shift: FloatArray
    n_effective: FloatArray


def agreement_test(reference: Mapping[str, ArrayLike], annealed: Mapping[str, ArrayLike]) -> Agreement:
    """Test whether the user's draws and the annealed draws come from one distribution.

    The user's draws are autocorrelated: chains are joined and thinned evenly to half their effective sample size,
    where neighbours are nearly independent, then compared with the annealed draws, which are independent. With
    discrete components (ties) the test is conservative.

    Parameters
    ----------
    reference : mapping of str to array_like, each (chain, draw, ...)
        The user's draws.
    annealed : mapping of str to array_like, each (n, ...)
        Last states of annealed chains on the same data. Components of names in both mappings are compared.

    Returns
    -------
    Agreement
        A small p_value_combined says that one of the two is wrong; which one, the bounds say.

    Raises
    ------
    InvalidArgumentError
        No common name, shapes that do not match, no draws, or draws that are not finite.
    """
    labels: list[str] = []
    reference_columns: list[FloatArray] = []
    annealed_columns: list[FloatArray] = []
    for name in reference:
        if name in annealed:
            ours, theirs = _columns(name, reference[name], annealed[name])
            labels += _component_names(name, np.shape(annealed[name])[1:])
            reference_columns.append(ours)
            annealed_columns.append(theirs)
    if not labels:
        raise InvalidArgumentError(
            f"reference and annealed must share a name with at least one component, but got {sorted(reference)} "
            f"and {sorted(annealed)}."
        )
    p_value, shift, n_effective = (np.empty(len(labels)) for _ in range(3))
    is_constant = np.zeros(len(labels), dtype=bool)
    position = 0
    for ours, theirs in zip(reference_columns, annealed_columns, strict=True):
        sizes = effective_sample_size(ours)
        for column in range(ours.shape[2]):
            x, y, size = ours[:, :, column].ravel(), theirs[:, column], float(sizes[column])
            is_constant[position] = _is_constant(np.concatenate([x, y]))
            n_effective[position] = size
            if is_constant[position]:
                p_value[position], shift[position] = 1.0, 0.0
            else:
                p_value[position] = _kolmogorov_smirnov(thin(x, size / 2.0), y)
                shift[position] = _standardised_difference(x, y)
            position += 1
    if not is_constant.all():
        p_value[~is_constant] = holm_adjusted(p_value[~is_constant])
    combined = float("nan") if is_constant.all() else float(p_value.min())
    return Agreement(tuple(labels), p_value, combined, shift, n_effective)


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
    half = draws.shape[1] // 2
    if half < 4:
        return np.full(draws.shape[2], float(draws.shape[0]))  # too short to see autocorrelation: one a chain
    split = np.concatenate([draws[:, :half], draws[:, -half:]])
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    n_total = float(draws.shape[0] * draws.shape[1])
    sizes = np.minimum(_raw_size(_rank_normalised(split)), _raw_size(_rank_normalised(folded)))
    return np.asarray(np.minimum(sizes, n_total), dtype=np.float64)


def thin(draws: FloatArray, size: float) -> FloatArray:
    """Return at most ``size`` of ``draws`` (at least one), evenly spaced."""
    n_kept = int(np.clip(size, 1, len(draws)))
    positions = ((np.arange(n_kept) + 0.5) * len(draws) / n_kept).astype(np.int64)
    return np.asarray(draws[positions], dtype=np.float64)


def _rank_normalised(draws: FloatArray) -> FloatArray:
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


def _kolmogorov_smirnov(x: FloatArray, y: FloatArray) -> float:
    """Return the two-sample Kolmogorov-Smirnov p-value."""
    method: Literal["exact", "asymp"] = "exact" if len(x) * len(y) <= EXACT_LIMIT else "asymp"
    return float(np.clip(ks_2samp(x, y, method=method).pvalue, 0.0, 1.0))


def _is_constant(values: FloatArray) -> bool:
    """Return whether values are equal up to rounding, such as the diagonal of a correlation matrix."""
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max())


def _standardised_difference(x: FloatArray, y: FloatArray) -> float:
    """Return (mean x - mean y) / standard deviation of y; infinite where y is constant and x is not."""
    difference = float(x.mean() - y.mean())
    if len(y) < 2:
        return float("nan")
    deviation = float(y.std(ddof=1))
    if deviation == 0.0:
        return float(np.copysign(np.inf, difference)) if difference != 0.0 else 0.0
    return difference / deviation


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
