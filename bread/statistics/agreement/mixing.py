"""Did the chains of a fit mix? The usual diagnostics, for every scalar component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.agreement import SHORTEST, effective_sample_size, size_of_scores, split_scores
from bread.statistics.bounds.bounds import FloatArray

LARGEST_R_HAT = 1.05
FEWEST_EFFECTIVE = 100.0


class Mixing(NamedTuple):
    """The worst components of a fit.

    Attributes
    ----------
    r_hat : float
        The largest rank-normalised split R-hat; 1 in theory, above 1.05 chains disagree. NaN where it is not defined:
        fewer than 8 draws a chain, or everything constant.
    r_hat_name : str
        Whose it is, such as "tau" or "theta[3]".
    n_effective : float
        The smallest effective sample size, of location or scale.
    n_effective_name : str
        Whose it is.
    """

    r_hat: float
    r_hat_name: str
    n_effective: float
    n_effective_name: str

    @property
    def is_doubtful(self) -> bool:
        """Whether chains disagree, or are too few effective draws for any law to be read from them."""
        return self.r_hat > LARGEST_R_HAT or self.n_effective < FEWEST_EFFECTIVE


def mixing(draws: Mapping[str, ArrayLike]) -> Mixing:
    """Return the worst R-hat and effective sample size over all components.

    Parameters
    ----------
    draws : mapping of str to array_like, each (chain, draw, ...)
        Constant components are left out.

    Returns
    -------
    Mixing

    Raises
    ------
    InvalidArgumentError
        There are no draws.

    References
    ----------
    Vehtari et al. (2021), "Rank-normalization, folding, and localization", Bayesian Analysis 16, equations 3 and 14.
    """
    names, table = components(draws)
    varies = np.ptp(table, axis=(0, 1)) > 0.0
    if not varies.any():
        return Mixing(float("nan"), "", float("nan"), "")
    table, names = table[:, :, varies], [name for name, kept in zip(names, varies, strict=True) if kept]
    if table.shape[1] < SHORTEST:
        sizes, r_hat = effective_sample_size(table), rank_r_hat(table)
    else:
        scores = split_scores(table)
        sizes, r_hat = size_of_scores(scores, table.shape[0] * table.shape[1]), np.fmax(*map(_r_hat, scores))
    fewest = int(np.argmin(sizes))
    largest = None if np.isnan(r_hat).all() else int(np.nanargmax(r_hat))
    return Mixing(
        float("nan") if largest is None else float(r_hat[largest]),
        "" if largest is None else names[largest],
        float(sizes[fewest]),
        names[fewest],
    )


def components(draws: Mapping[str, ArrayLike]) -> tuple[list[str], FloatArray]:
    """Return names of all scalar components, such as "theta[3]", and their draws (chain, draw, component).

    Raises
    ------
    InvalidArgumentError
        There are no draws.
    """
    names: list[str] = []
    columns: list[FloatArray] = []
    for name, given in draws.items():
        values = np.asarray(given, dtype=np.float64)
        if values.ndim < 2 or 0 in values.shape[:2]:
            raise InvalidArgumentError(f"'{name}' must have shape (chain, draw, ...), but has {values.shape}.")
        names += [name if not index else f"{name}{list(index)}" for index in np.ndindex(*values.shape[2:])]
        columns.append(values.reshape(*values.shape[:2], -1))
    return names, np.concatenate(columns, axis=2) if columns else np.zeros((1, 1, 0))


def rank_r_hat(draws: FloatArray) -> FloatArray:
    """Return the rank-normalised split R-hat of each component: the larger one of location and scale.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw, component)
        Each component must vary.

    Returns
    -------
    ndarray, shape (component,)
        NaN with fewer than 8 draws a chain.
    """
    if draws.shape[1] < SHORTEST:
        return np.full(draws.shape[2], np.nan)
    return np.fmax(*map(_r_hat, split_scores(draws)))


def _r_hat(draws: FloatArray) -> FloatArray:
    n_draws = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that stand still apart from each other: infinite
        return np.asarray(np.sqrt((n_draws - 1) / n_draws + between / within), dtype=np.float64)
