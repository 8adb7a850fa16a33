"""Shift of means and ratio of standard deviations between the user's draws and annealed ones, with errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.draws import are_constant, as_columns
from bread.statistics.bounds.bounds import FloatArray


class Moments(NamedTuple):
    """Result of `compare_moments`; d quantities, every array of shape (d,).

    Attributes
    ----------
    mean_shift : ndarray
        Mean of the user's draws minus mean of the annealed ones, in standard deviations of the annealed ones. 0
        for a quantity that is constant in both; infinite where only the annealed draws are constant.
    mean_shift_error : ndarray
        Its standard error.
    sd_ratio : ndarray
        Standard deviation of the user's draws over that of the annealed ones. NaN where the latter is 0.
    sd_ratio_error : ndarray
        Its standard error.
    """

    mean_shift: FloatArray
    mean_shift_error: FloatArray
    sd_ratio: FloatArray
    sd_ratio_error: FloatArray


def compare_moments(
    user: ArrayLike, annealed: ArrayLike, n_effective_mean: ArrayLike, n_effective_sd: ArrayLike
) -> Moments:
    """Return how far the user's means and standard deviations are from those of the annealed draws.

    A description that decides nothing: with heavy tails (no fourth moment) the errors are too small, with Cauchy
    tails neither number means anything. Interval contents do not have that weakness.

    Parameters
    ----------
    user : array_like, shape (chain, draw, d) or (draw, d)
    annealed : array_like, shape (n, d)
        Independent draws.
    n_effective_mean, n_effective_sd : array_like, shape (d,)
        Effective sizes of the user's draws for the mean and for the standard deviation (ArviZ: ``ess`` with
        method "mean" and "sd").

    Returns
    -------
    Moments
        Errors are the delta method's, with the sample's own kurtosis; NaN with fewer than 2 draws.
    """
    ours, theirs = as_columns(user, annealed)
    sizes = [np.asarray(values, dtype=np.float64) for values in (n_effective_mean, n_effective_sd)]
    for name, size in zip(("n_effective_mean", "n_effective_sd"), sizes, strict=True):
        if size.shape != ours.shape[1:] or not (size > 0.0).all():
            raise InvalidArgumentError(
                f"{name} must be positive and have shape {ours.shape[1:]}, but got shape {size.shape} with "
                f"{int((~(size > 0.0)).sum())} values that are not positive."
            )
    if min(len(ours), len(theirs)) < 2:
        missing = np.full(ours.shape[1], np.nan)
        return Moments(missing, missing.copy(), missing.copy(), missing.copy())
    constant = are_constant(ours, theirs)
    (mean_user, sd_user, kurtosis_user), (mean, sd, kurtosis) = _moments(ours), _moments(theirs)
    difference = np.where(constant, 0.0, mean_user - mean)
    sd_user, sd = np.where(constant, 0.0, sd_user), np.where(constant, 0.0, sd)
    n = len(theirs)
    log_sd_variance = (kurtosis - 1.0) / (4.0 * n)  # relative variance of a standard deviation
    log_sd_variance_user = (kurtosis_user - 1.0) / (4.0 * sizes[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(difference == 0.0, 0.0, difference / sd)
        ratio = np.where(sd == 0.0, np.nan, sd_user / sd)
        variance = ratio**2 / sizes[0] + 1.0 / n + shift**2 * log_sd_variance
        return Moments(
            np.asarray(shift),
            np.where(constant, 0.0, np.sqrt(variance)),
            np.asarray(ratio),
            np.asarray(ratio * np.sqrt(log_sd_variance_user + log_sd_variance)),
        )


def _moments(draws: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard deviation and kurtosis (3 for a normal law) of each column."""
    mean = draws.mean(axis=0)
    deviation = draws.std(axis=0, ddof=1)
    standardised = (draws - mean) / np.where(deviation > 0.0, deviation, 1.0)
    return mean, deviation, np.maximum(1.0, np.mean(standardised**4, axis=0))
