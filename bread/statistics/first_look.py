"""Are these draws the posterior's? Stein's identity on a user's own draws and the real data: no simulation needed.

For draws x of a density p on the whole space, with gradient g of log p, ``E[g_i h(x) + d_i h(x)] = 0`` for every smooth
bounded h (Stein 1972). Coordinates are standardised by the draws themselves. The functions h of coordinate i are 1,
tanh(z_i), a smooth step in either tail of z_i, and tanh(z_j) for other coordinates j; and 1 and tanh along principal
axes of the gradient, which are chosen by one half of the draws and tested by the other. A mean is compared with its
standard error: the larger of that by effective sample size and that by batch means.

What fails is looked at once more by an identity that holds for *every* density, with jumps, bounds and heavy tails,
and whose terms are bounded. With a the move of coordinate i by a quarter of a standard deviation,
``E[h(x) min(1, p(a x) / p(x))] = E[h(a^-1 x) min(1, p(a^-1 x) / p(x))]``: both sides are the integral of
``h(x) min(p(x), p(a x))``. Only what fails both counts.

How large a difference is comes from a regression: if a quantity f is a combination of terms with mean zero under p and
a residual, the mean of that combination over the draws is how far their mean of f is off (control variates: Mira,
Solgi & Imparato 2013); where it explains a share R^2 of the variance, a change of the law along f shows R^2 of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri
from scipy.stats import norm

from bread.errors import InvalidArgumentError
from bread.statistics.agreement import effective_sample_size, mean_effective_size
from bread.statistics.bounds import FloatArray
from bread.statistics.damping import location_and_scale
from bread.statistics.draws import MINIMUM_EFFECTIVE
from bread.statistics.means import COUNTER

LEVEL = 0.001  # a p-value below it is a disagreement
TAIL, STEEPNESS = 1.5, 4.0  # where the steps in the tails are, in standard deviations, and how steep
MOVE = 0.25  # standard deviations, of the second look
ALL_PAIRS, PAIRS = 30, 3  # dimension up to which all pairs are looked at; beyond, the most correlated of each
JUMP = 0.01  # p-value from which on the second identity sees nothing wrong: the density jumps, or has a heavy tail
CONFIRMED = 5  # failing functions that are looked at once more, the worst first
DIRECTIONS = 30  # principal axes of the gradient: half of them the widest, half the narrowest
LEAST_PER_TERM = 10  # draws for each term of a regression
OUTLIER = 0.2  # share of a term's sum of squares in one draw, from which on it has hardly a variance
SAME_TERMS = 1e-10  # of the largest eigenvalue of products of terms, below which one is rounding
CONSTANT = 1e-9  # spread of a column, relative to its size, below which it is one value up to rounding
# Share of a quantity's variance that its regression must explain for a size to be told. Draws of mean-field ADVI on
# eight schools: shifts were right within 0.25 sd where it was 0.8 or more, 0.8 to 2.9 off where it was 0.05 to 0.35.
EXPLAINED = 0.5
POWER = 0.9  # of what is called detectable
FUNCTIONS = ("1", "tanh", "upper tail", "lower tail")


class FirstLook(NamedTuple):
    """Result of `first_look`; d coordinates, F functions, k quantities.

    Attributes
    ----------
    p_value : float
        Bonferroni over all functions, half of the level for 1 and tanh of each coordinate itself. Below `LEVEL` the
        draws are not the density's. NaN where nothing could be tested.
    p_values : ndarray, shape (F,)
        Adjusted; NaN where there are fewer than 100 effective draws.
    functions : tuple of (str, int, int), length F
        Kind of function (`FUNCTIONS`), the coordinate i whose identity it is, and the coordinate that it is a function
        of; d and above: the principal axes of the gradient.
    directions : ndarray, shape (m, d)
        Those axes, in standardised coordinates.
    n_effective : ndarray, shape (d,)
        Effective draws of each coordinate; below 100 nothing is said of it.
    shift, shift_se : ndarray, shape (k,)
        How far the draws' mean of each quantity is from the posterior's, in standard deviations of the draws (positive:
        too high), and its standard error. NaN where the gradient does not tell. Of the first order: where draws are far
        off it says that they are, not how far.
    sd_ratio, sd_ratio_se : ndarray, shape (k,)
        The draws' standard deviation over the posterior's, and its standard error.
    detectable_shift, detectable_sd_ratio : ndarray, shape (k,)
        What this test would have called a disagreement 9 times in 10: a shift of so many standard deviations, and a
        ratio so far from 1.
    """

    p_value: float
    p_values: FloatArray
    functions: tuple[tuple[str, int, int], ...]
    directions: FloatArray
    n_effective: FloatArray
    shift: FloatArray
    shift_se: FloatArray
    sd_ratio: FloatArray
    sd_ratio_se: FloatArray
    detectable_shift: FloatArray
    detectable_sd_ratio: FloatArray


def first_look(
    draws: ArrayLike,
    gradient: ArrayLike,
    log_density: Callable[[FloatArray], FloatArray],
    quantities: ArrayLike | None = None,
    *,
    distinct_share: float = 1.0,
) -> FirstLook:
    """Test whether draws are a density's, by its gradient at them.

    Parameters
    ----------
    draws : array_like, shape (chain, draw, d)
        In unconstrained, continuous coordinates; 1000 in all are enough.
    gradient : array_like, shape (chain, draw, d)
        Of the log density (Jacobian included) at each of them. Where it is not finite, nothing is tested of that
        coordinate.
    log_density : callable
        Maps states (n, d), which are the draws moved, in the order of the draws (chain after chain), to log densities
        (n,), up to a constant, in nats; -inf or NaN is density zero. Called where something fails, at 2 n states for
        each of at most five functions.
    quantities : array_like, shape (chain, draw, k), optional
        What shifts and ratios are about; the coordinates themselves by default.
    distinct_share : float
        What effective sizes are multiplied by, where draws are copies (`bread.statistics.repeats`).

    Returns
    -------
    FirstLook
        Blind to the weights of separated modes, and to modes that no draw is in. The density must vanish at the ends of
        every coordinate, as it does after the usual transforms, for the *first* identity; not for the second.

    Raises
    ------
    InvalidArgumentError
        Shapes that do not match.

    References
    ----------
    Stein (1972), "A bound for the error in the normal approximation ...", Berkeley Symp. 2, 583-602.
    Mira, Solgi & Imparato (2013), "Zero variance Markov chain Monte Carlo for Bayesian estimators".
    """
    x, slope = np.asarray(draws, dtype=np.float64), np.asarray(gradient, dtype=np.float64)
    if x.ndim != 3 or slope.shape != x.shape or not np.isfinite(x).all():
        raise InvalidArgumentError(
            f"draws and gradient must have one shape (chain, draw, d), draws finite, but got {x.shape} and "
            f"{slope.shape} with {int((~np.isfinite(x)).sum())} draws that are not."
        )
    along = _along_coordinates(x, slope)
    n_effective = np.where(along.is_tested, distinct_share * effective_sample_size(x), 0.0)
    tests = _Tests(log_density, distinct_share)
    tests.add(along, n_effective, [(kind, i, i) for kind in FUNCTIONS for i in range(x.shape[2])] + _pairs(along), True)
    chosen = _along_directions(along, n_effective)
    sizes_of = distinct_share * effective_sample_size(chosen.z) if chosen.z.shape[2] else np.zeros(0)
    tests.add(chosen, sizes_of, [(kind, i, i) for kind in FUNCTIONS[:2] for i in range(chosen.z.shape[2])], False)
    p_values = tests.adjusted()
    along.leave_out(tests.jumping)
    known = np.isfinite(p_values)
    p_value = float(p_values[known].min()) if known.any() else float("nan")
    of = x if quantities is None else np.asarray(quantities, dtype=np.float64)
    sizes = _sizes(of, along, distinct_share)
    seen = ndtri(1.0 - 0.5 * LEVEL / tests.weights.max(initial=1.0)) + ndtri(POWER)
    directions = chosen.steps / np.where(along.scale > 0.0, along.scale, 1.0)
    d = x.shape[2]
    functions = tuple((kind, i + (d if block else 0), j + (d if block else 0)) for block, kind, i, j in tests.functions)
    return FirstLook(p_value, p_values, functions, directions, n_effective, *sizes, seen * sizes[1], seen * sizes[3])


def nothing_found(d: int, k: int) -> FirstLook:
    """Return what is known where there is no gradient of d coordinates and k quantities."""
    unknown = np.full(k, np.nan)
    return FirstLook(np.nan, np.zeros(0), (), np.zeros((0, d)), np.zeros(d), *[unknown] * 6)


class _Along:
    """Draws and gradients along some directions, in units of the draws' own location and scale there.

    Attributes
    ----------
    x : ndarray, shape (chain, draw, d)
    steps : ndarray, shape (m, d)
        One unit along each direction.
    z, slope : ndarray, shape (chain, last draws, m)
        Standardised draws, and the gradient by them; 0 where a direction is not tested. Of the last draws of each
        chain, where the first ones chose the directions.
    is_tested : ndarray of bool, shape (m,)
    """

    def __init__(self, x: FloatArray, steps: FloatArray, z: FloatArray, slope: FloatArray) -> None:
        self.x, self.steps, self.z, self.slope = x, steps, z, slope
        self.is_tested = np.ones(z.shape[2], dtype=bool)

    @property
    def scale(self) -> FloatArray:
        """Length of a unit of each coordinate, where the directions are these."""
        return np.diagonal(self.steps)

    def leave_out(self, which: Sequence[int] | NDArray[np.int64]) -> None:
        """Let nothing (more) be concluded from the gradient along some directions."""
        self.is_tested[list(which)] = False
        self.slope[..., list(which)] = self.z[..., list(which)] = 0.0

    def terms(self, kind: str, own: Sequence[int], other: Sequence[int]) -> FloatArray:
        """Return the left sides of identities of one kind, shape (chain, draw, len(own))."""
        h, derivative = _function(kind, self.z[..., other])
        is_own = np.equal(own, other) & self.is_tested[own]
        return self.slope[..., own] * h + np.where(is_own, derivative, 0.0)


def _along_coordinates(x: FloatArray, gradient: FloatArray) -> _Along:
    location, scale = location_and_scale(x.reshape(-1, x.shape[2]))
    unit = np.where(scale > 0.0, scale, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = gradient * unit
    along = _Along(x, np.diag(scale), (x - location) / unit, slope)
    along.leave_out(np.flatnonzero((scale <= 0.0) | ~np.isfinite(slope).all(axis=(0, 1))))
    return along


def _along_directions(along: _Along, n_effective: FloatArray) -> _Along:
    """Return the principal axes of the gradient in the first half of each chain, with the draws of the second half.

    They see what no single coordinate does: a law without its correlations.
    """
    half = along.x.shape[1] // 2
    used = np.flatnonzero(along.is_tested & (n_effective >= MINIMUM_EFFECTIVE))
    axes = np.zeros((0, len(along.steps)))
    if len(used) > 1:
        first = along.slope[:, :half, used].reshape(-1, len(used))
        vectors = np.linalg.eigh(np.cov(first, rowvar=False))[1].T
        ends = np.unique(np.r_[np.arange(len(vectors))[: DIRECTIONS // 2], np.arange(len(vectors))[-DIRECTIONS // 2 :]])
        axes = np.zeros((len(ends), len(along.steps)))
        axes[:, used] = vectors[ends]
    z = along.z[:, half:] @ axes.T
    location, unit = location_and_scale(z.reshape(z.shape[0] * z.shape[1], len(axes)))
    unit = np.where(unit > 0.0, unit, 1.0)
    steps = unit[:, None] * axes * along.scale
    return _Along(along.x, steps, (z - location) / unit, unit * (along.slope[:, half:] @ axes.T))


def _function(kind: str, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return h and its derivative at standardised values."""
    if kind == "1":
        return np.ones_like(z), np.zeros_like(z)
    if kind == "tanh":
        tanh = np.tanh(z)
        return tanh, 1.0 - tanh**2
    sign = 1.0 if kind == "upper tail" else -1.0
    step = expit(STEEPNESS * (sign * z - TAIL))
    return step, sign * STEEPNESS * step * (1.0 - step)


def _pairs(along: _Along) -> list[tuple[str, int, int]]:
    """Return the functions of other coordinates."""
    d = along.z.shape[2]
    if d <= ALL_PAIRS:
        return [("tanh", i, j) for i in range(d) for j in range(d) if i != j]
    flat = np.tanh(along.z.reshape(-1, d))
    centred = flat - flat.mean(axis=0)
    deviation = np.sqrt((centred**2).sum(axis=0))
    correlation = np.abs(centred.T @ centred) / np.where(deviation > 0.0, np.outer(deviation, deviation), np.inf)
    np.fill_diagonal(correlation, -1.0)
    nearest = np.argsort(-correlation, axis=1, kind="stable")[:, :PAIRS]
    return [("tanh", i, int(j)) for i in range(d) for j in nearest[i]]


class _Tests:
    """All identities, with their p-values; ``functions`` are (block, kind, own, other)."""

    def __init__(self, log_density: Callable[[FloatArray], FloatArray], share: float) -> None:
        self.functions: list[tuple[int, str, int, int]] = []
        self.jumping: list[int] = []  # coordinates along which the first identity fails and the second does not
        self._log_density, self._share = log_density, share
        self._blocks: list[_Along] = []
        self._caps: list[FloatArray] = []
        self._p_values: list[FloatArray] = []
        self._is_main: list[bool] = []

    def add(self, along: _Along, n_effective: FloatArray, functions: list[tuple[str, int, int]], main: bool) -> None:
        """Test the first identity for some functions; ``main``: those of 1 and tanh own have half of the level."""
        block = len(self._blocks)
        self._blocks.append(along)
        for kind in dict.fromkeys(kind for kind, _, _ in functions):
            own, other = map(list, zip(*((i, j) for name, i, j in functions if name == kind), strict=True))
            cap = np.minimum(n_effective[own], n_effective[other])
            self._caps.append(cap)
            self._p_values.append(mean_test(along.terms(kind, own, other), cap, self._share).p_values)
            self.functions += [(block, kind, i, j) for i, j in zip(own, other, strict=True)]
            self._is_main += [main and kind in FUNCTIONS[:2] and i == j for i, j in zip(own, other, strict=True)]

    @property
    def weights(self) -> FloatArray:
        """By what p-values are multiplied."""
        is_main = np.array(self._is_main, dtype=bool)
        return np.asarray(np.where(is_main, 2.0 * is_main.sum(), 2.0 * (~is_main).sum()))

    def adjusted(self) -> FloatArray:
        """Return p-values after Bonferroni, the larger of both identities where the first one fails.

        The worst few that fail stand for all of them.
        """
        caps = np.concatenate(self._caps)
        p_values = np.minimum(1.0, self.weights * np.concatenate(self._p_values))
        failing = np.flatnonzero(np.nan_to_num(p_values, nan=1.0) < LEVEL)
        looked = failing[np.argsort(p_values[failing], kind="stable")][:CONFIRMED]
        base = self._density(self._blocks[0].x) if looked.size else np.zeros(0)
        for k in looked:
            block, kind, i, j = self.functions[k]
            again = self._look_again(self._blocks[block], base, kind, i, j, caps[k], self._is_main[k])
            p_values[k] = max(p_values[k], min(1.0, self.weights[k] * again))
            if again >= JUMP and not block:
                self.jumping.append(i)
        if looked.size:
            p_values[failing] = np.maximum(p_values[failing], p_values[looked].min())
        return p_values

    def _look_again(
        self, along: _Along, base: FloatArray, kind: str, i: int, j: int, cap: float, is_main: bool
    ) -> float:
        """Return the p-value of the second identity."""
        forth, back = (self._accepted(along.x + sign * MOVE * along.steps[i], base) for sign in (1.0, -1.0))
        here, _ = _function(kind, along.z[..., j])
        there, _ = _function(kind, along.z[..., j] - (MOVE if i == j else 0.0))
        forth, back = (part[:, -along.z.shape[1] :] for part in (forth, back))
        # Measured at 20,000 samples of 1000 draws of log-gamma and normal laws: tail functions are skewed and keep
        # their level with the counter-value of `mean_zero_test`, the others with that of bounded values.
        counter = 1.0 if is_main else COUNTER
        terms = ((here * forth - there * back) / MOVE)[..., None]
        return float(np.nan_to_num(mean_test(terms, np.array([cap]), self._share, counter).p_values[0], nan=1.0))

    def _density(self, x: FloatArray) -> FloatArray:
        return self._log_density(x.reshape(-1, x.shape[2])).reshape(x.shape[:2])

    def _accepted(self, x: FloatArray, base: FloatArray) -> FloatArray:
        """Return min(1, p(x) / p(base)) at moved draws, shape (chain, draw)."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(np.nan_to_num(np.exp(np.minimum(self._density(x) - base, 0.0)), nan=0.0))


class MeanTest(NamedTuple):
    """P-values of means of zero, the means, and their standard errors, shape (F,) each."""

    p_values: FloatArray
    mean: FloatArray
    error: FloatArray


def mean_test(values: FloatArray, cap: FloatArray, share: float, counter: FloatArray | float = 0.0) -> MeanTest:
    """Test whether means of autocorrelated values (chain, draw, F) are zero.

    ``cap`` are effective sizes that none may exceed; ``counter`` so many times the largest value of one effective draw
    are taken to have been missed (`bread.statistics.means`).
    """
    flat = values.reshape(-1, values.shape[-1])
    n_effective = np.minimum(share * mean_effective_size(values), cap)
    mean = flat.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.maximum(flat.std(axis=0, ddof=1) / np.sqrt(n_effective), _batch_error(values) / np.sqrt(share))
        missed = counter * np.abs(flat).max(axis=0) / n_effective
        statistic = np.where(error > 0.0, np.maximum(np.abs(mean) - missed, 0.0) / error, 0.0)
    p_values = np.where(n_effective < MINIMUM_EFFECTIVE, np.nan, 2.0 * norm.sf(statistic))
    return MeanTest(p_values, mean, error)


def _batch_error(values: FloatArray) -> FloatArray:
    """Return standard errors of the means by batches of about the square root of a chain's length."""
    n_chains, n_draws, n_functions = values.shape
    length = max(1, int(np.sqrt(n_draws)))
    n_batches = n_draws // length
    batches = values[:, : n_batches * length].reshape(n_chains * n_batches, length, n_functions).mean(axis=1)
    return np.asarray(batches.std(axis=0, ddof=1) / np.sqrt(len(batches)), dtype=np.float64)


def _sizes(
    quantities: FloatArray, along: _Along, share: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return shift, its error, ratio of standard deviations and its error, shape (k,) each; NaN where not known.

    Of a Gaussian, f is the sum of -Cov(f, x_j) g_j, and (f - mean)^2 a combination of g_j and g_j f + d_j f. These
    terms are taken for the coordinates j with the largest weights, and those of bounded functions of the coordinate
    that f goes with.
    """
    shape = quantities.shape
    n_draws, k, d = shape[0] * shape[1], shape[2], along.z.shape[2]
    values = quantities.reshape(n_draws, k)
    deviation = values.std(axis=0)
    varies = deviation > CONSTANT * np.abs(values).max(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(varies, deviation, 1.0)
    z, slope = along.z.reshape(n_draws, d), along.slope.reshape(n_draws, d)
    most = min(d, n_draws // LEAST_PER_TERM // 2)
    near = np.abs(standard.T @ (z - z.mean(axis=0)))
    order = np.argsort(-near * slope.std(axis=0), axis=1, kind="stable")[:, :most]
    bounded = [along.terms(kind, range(d), range(d)).reshape(n_draws, d) for kind in FUNCTIONS[1:]]
    combined, explained = np.full((2, n_draws, k), np.nan), np.zeros((2, k))
    for column in np.flatnonzero(varies):
        i, nearest = int(np.argmax(near[column])), order[column]
        turned = slope[:, nearest] * z[:, [i]]
        turned[:, nearest == i] += float(along.is_tested[i])
        terms = _usable(np.column_stack([slope[:, nearest], turned, *(part[:, i] for part in bounded)]))
        targets = np.stack([standard[:, column], standard[:, column] ** 2], axis=1)
        near_both, explained[:, column] = _combinations(terms, targets - targets.mean(axis=0))
        combined[:, :, column] = near_both.T
    n_effective = share * effective_sample_size(quantities)
    results = []
    for terms, r_squared in zip(combined, explained, strict=True):
        test = mean_test(np.nan_to_num(terms).reshape(shape), n_effective, share)
        with np.errstate(divide="ignore", invalid="ignore"):
            is_known = np.isfinite(test.p_values) & (r_squared >= EXPLAINED)
            results += [np.where(is_known, value / r_squared, np.nan) for value in (test.mean, test.error)]
    shift, shift_se, excess, excess_se = results
    variance = 1.0 - excess - shift**2  # of the posterior, in the draws' own
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(variance > 0.0, variance, np.nan) ** -0.5
        return shift, shift_se, ratio, ratio**3 / 2.0 * excess_se


def _usable(terms: FloatArray) -> FloatArray:
    """Return the terms that vary and that no single draw decides, in units of their standard deviations."""
    squares, deviation = (terms**2).sum(axis=0), terms.std(axis=0)
    usable = ((terms**2).max(axis=0) < OUTLIER * squares) & (deviation > CONSTANT * np.sqrt(squares))
    return np.asarray(terms[:, usable] / deviation[usable], dtype=np.float64)


def _combinations(terms: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the combinations of terms nearest to targets of mean zero, shape (n, targets), and shares of variances."""
    around, totals = terms - terms.mean(axis=0), (targets**2).sum(axis=0)
    # By products of terms, ten times as fast as by the terms themselves; those alike to five digits count as one.
    weights = np.linalg.pinv(around.T @ around, rcond=SAME_TERMS, hermitian=True) @ (around.T @ targets)
    explained = ((around @ weights) * targets).sum(axis=0)
    return terms @ weights, np.divide(explained, totals, out=np.zeros_like(totals), where=totals > 0.0)
