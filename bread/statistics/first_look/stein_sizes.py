"""How far means and standard deviations of draws are off, by combinations of terms whose mean is zero.

If a quantity f is a combination of terms with mean zero under p and a residual, the mean of that combination over the
draws is how far their mean of f is off (control variates: Mira, Solgi & Imparato 2013); where it explains a share R^2
of the variance, a change of the law along f shows R^2 of itself. Under a Gaussian law f is ``-sum_j Cov(f, x_j) g_j``,
and ``f^2`` the same combination of ``g_j f + d_j f``: the weights of the first serve for the second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bread.statistics.agreement.agreement import effective_sample_size
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.first_look.chain_means import mean_test
from bread.statistics.first_look.stein import FUNCTIONS, Along

NEAREST = 50  # gradients in a combination: 20 draws for each of 1000
LEAST_PER_TERM = 20  # draws for each gradient
OUTLIER = 0.2  # share of a term's sum of squares in one draw, from which on it has hardly a variance
RIDGE = 1e-10  # relative: terms that are the same up to rounding share one weight
CONSTANT = 1e-9  # spread of a column, relative to its size, below which it is one value up to rounding
# Share of a quantity's variance that its regression must explain for a size to be told. Draws of mean-field ADVI on
# eight schools: shifts were right within 0.25 sd where it was 0.8 or more, 0.8 to 2.9 off where it was 0.05 to 0.35.
EXPLAINED = 0.5
# The same of every quantity, where draws are known to be off, and standard deviations that a mean may be off then. By
# draws of mean-field ADVI on six models: sizes were right within 0.1 where both held; where regressions explained 0.64
# to 0.68 of two of 15 quantities, one whose own explained 0.9 was 13% off in place of 1; signs were wrong beyond.
CLEAR, NEAR = 0.7, 1.0
AT_ONCE = 200  # quantities, so that their terms stay below 20 MB


class Sizes(NamedTuple):
    """How far k quantities are off, shape (k,) each; NaN where it is not known."""

    shift: FloatArray
    shift_se: FloatArray
    sd_ratio: FloatArray
    sd_ratio_se: FloatArray

    def unknown(self) -> Sizes:
        """Return as many that are not known."""
        return Sizes(*(np.full_like(one, np.nan) for one in self))


def sizes_of(quantities: FloatArray, along: Along, share: float, *, are_off: bool) -> Sizes:
    """Return shifts and ratios of standard deviations with their standard errors.

    Parameters
    ----------
    quantities : ndarray, shape (chain, draw, k)
    along : Along
        Draws and gradients by coordinate.
    share : float
        What effective sizes are multiplied by, where draws are copies.
    are_off : bool
        Whether the draws are known not to be the density's. What holds at right draws may then not hold at these: no
        size is told unless all are near.
    """
    shape = quantities.shape
    n_draws, k, d = shape[0] * shape[1], shape[2], along.z.shape[2]
    values = quantities.reshape(n_draws, k)
    deviation = values.std(axis=0)
    varies = deviation > CONSTANT * np.abs(values).max(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(varies, deviation, 1.0)
    combined, explained = np.zeros((2, n_draws, k)), np.zeros((2, k))
    if d:
        z, slope = along.z.reshape(n_draws, d), along.slope.reshape(n_draws, d)
        near = np.abs(standard.T @ (z - z.mean(axis=0)))
        nearest, weights = near.argmax(axis=1), _weights(standard, slope, near * slope.std(axis=0))
        for low in range(0, k, AT_ONCE):
            chosen = np.arange(low, min(k, low + AT_ONCE))
            own, mine = nearest[chosen], weights[:, chosen]
            linear, diagonal = slope @ mine, mine[own, np.arange(len(chosen))] * along.is_tested[own]
            terms = [linear, linear * z[:, own] + diagonal, slope[:, own]]
            terms += [along.terms(kind, own, own).reshape(n_draws, -1) for kind in FUNCTIONS[1:]]
            terms.append(slope[:, own] * z[:, own] + along.is_tested[own])
            found = _combinations(np.stack(terms, axis=-1).transpose(1, 0, 2), standard[:, chosen].T)
            combined[:, :, chosen], explained[:, chosen] = found
    n_effective = share * effective_sample_size(quantities)
    results = []
    for parts, r_squared in zip(combined, explained, strict=True):
        test = mean_test(parts.reshape(shape), n_effective, share)
        with np.errstate(divide="ignore", invalid="ignore"):
            is_known = varies & np.isfinite(test.p_values) & (r_squared >= EXPLAINED)
            results += [np.where(is_known, value / r_squared, np.nan) for value in (test.mean, test.error)]
    shift, shift_se, excess, excess_se = results
    variance = 1.0 - excess - shift**2  # of the posterior, in the draws' own
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(variance > 0.0, variance, np.nan) ** -0.5
    # The draws' own variance is the unit of all terms, and varies as they do: the error of its logarithm is theirs.
    sizes = Sizes(shift, shift_se, ratio, ratio / 2.0 * excess_se)
    is_clear = (explained >= CLEAR).all(axis=0) & (np.abs(shift) <= NEAR)
    return sizes.unknown() if are_off and not is_clear[varies].all() else sizes


def _weights(standard: FloatArray, slope: FloatArray, near: FloatArray) -> FloatArray:
    """Return the weights (d, k) of the gradients nearest to each quantity in the combination that is nearest to it."""
    slope, deviation = _usable(slope)
    n_draws, d = slope.shape
    most = min(d, NEAREST, max(1, n_draws // LEAST_PER_TERM))
    around = slope - slope.mean(axis=0)
    products, against = around.T @ around, around.T @ standard
    products[np.diag_indices(d)] += np.where(deviation > 0.0, RIDGE * n_draws, 1.0)
    chosen = np.argsort(-near, axis=1, kind="stable")[:, :most]
    columns = np.arange(len(chosen))[:, None]
    weights = np.zeros((d, len(chosen)))
    if most == d:
        return np.linalg.solve(products, against) / np.where(deviation > 0.0, deviation, 1.0)[:, None]
    found = np.linalg.solve(products[chosen[:, :, None], chosen[:, None, :]], against[chosen, columns][..., None])
    weights[chosen, columns] = found[..., 0]
    return weights / np.where(deviation > 0.0, deviation, 1.0)[:, None]


def _usable(terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return terms (draw, ...) by their standard deviations, 0 where they hardly vary or one draw decides; these."""
    squares, deviation = (terms**2).sum(axis=0), terms.std(axis=0)
    usable = ((terms**2).max(axis=0) < OUTLIER * squares) & (deviation > CONSTANT * np.sqrt(squares))
    deviation = np.where(usable, deviation, 0.0)
    return np.where(usable, terms, 0.0) / np.where(usable, deviation, 1.0), deviation


def _combinations(terms: FloatArray, standard: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the combinations of terms nearest to quantities and their squares, and the shares of variances.

    Parameters
    ----------
    terms : ndarray, shape (k, n, terms)
    standard : ndarray, shape (k, n)

    Returns
    -------
    combined : ndarray, shape (2, n, k)
    explained : ndarray, shape (2, k)
    """
    terms = _usable(terms.transpose(1, 0, 2))[0].transpose(1, 0, 2)
    targets = np.stack([standard, standard**2], axis=-1)
    targets -= targets.mean(axis=1, keepdims=True)
    around = terms - terms.mean(axis=1, keepdims=True)
    products = around.transpose(0, 2, 1) @ around
    diagonal = np.einsum("kii->ki", products)
    diagonal += np.where(diagonal > 0.0, RIDGE * terms.shape[1], 1.0)
    weights = np.linalg.solve(products, around.transpose(0, 2, 1) @ targets)
    totals = (targets**2).sum(axis=1)
    explained = ((around @ weights) * targets).sum(axis=1)
    share = np.divide(explained, totals, out=np.zeros_like(totals), where=totals > 0.0)
    return (terms @ weights).transpose(2, 1, 0), share.T
