"""Are these draws the posterior's? Stein's identity on a user's own draws and the real data: no simulation needed.

For draws x of a density p on the whole space, with gradient g of log p, ``E[g_i h(x) + d_i h(x)] = 0`` for every smooth
bounded h (Stein 1972). Coordinates are standardised by the draws themselves. The functions h of coordinate i are 1,
tanh(z_i), a smooth step in either tail of z_i, and tanh(z_j) for other coordinates j; and 1 and tanh along principal
axes of the gradient, which are chosen by one half of the draws and tested by the other
(`bread.statistics.first_look.stein`).

What fails is looked at once more by an identity that holds for *every* density, with jumps, bounds and heavy tails,
and whose terms are bounded. With a the move of coordinate i by a quarter of a standard deviation,
``E[h(x) min(1, p(a x) / p(x))] = E[h(a^-1 x) min(1, p(a^-1 x) / p(x))]``: both sides are the integral of
``h(x) min(p(x), p(a x))``. Only what fails both counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.agreement import effective_sample_size
from bread.statistics.bounds.bounds import FloatArray
from bread.statistics.exactness.means import COUNTER
from bread.statistics.first_look.chain_means import mean_test
from bread.statistics.first_look.stein import FUNCTIONS, Along, along_coordinates, along_directions, function_of, pairs
from bread.statistics.first_look.stein_sizes import sizes_of

LEVEL = 0.001  # a p-value below it is a disagreement
MOVE = 0.25  # standard deviations, of the second look
JUMP = 0.01  # p-value from which on the second identity sees nothing wrong: the density jumps, or has a heavy tail
CONFIRMED = 5  # failing functions that are looked at once more, the worst first
LEAST_FOR_TAILS = 300.0  # effective draws, of which a normal tail has 20: of 100 none may be there by chance
POWER = 0.9  # of what is called detectable


class FirstLook(NamedTuple):
    """Result of `first_look`; d coordinates, F functions, k quantities.

    Attributes
    ----------
    p_value : float
        Bonferroni: half of the level for 1 and tanh of each coordinate itself, a quarter for all pairs that there are,
        a quarter for the rest. Below `LEVEL` the draws are not the density's. NaN where nothing could be tested.
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
        too high), and its standard error. NaN where the gradient does not tell, and all of them where draws are so far
        off, or the density so far from a Gaussian near them, that what it tells there need not hold.
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
        What effective sizes are multiplied by, where draws are copies (`bread.statistics.agreement.repeats`).

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
    along = along_coordinates(x, slope)
    n_effective = np.where(along.is_tested, distinct_share * effective_sample_size(x), 0.0)
    tests = _Tests(log_density, distinct_share)
    tests.add(along, n_effective, [(kind, i, i) for kind in FUNCTIONS for i in range(x.shape[2])] + pairs(along), True)
    chosen = along_directions(along, n_effective)
    n_along = distinct_share * effective_sample_size(chosen.z) if chosen.z.shape[2] else np.zeros(0)
    tests.add(chosen, n_along, [(kind, i, i) for kind in FUNCTIONS[:2] for i in range(chosen.z.shape[2])], False)
    p_values = tests.adjusted()
    along.leave_out(tests.jumping)
    known = np.isfinite(p_values)
    p_value = float(p_values[known].min()) if known.any() else float("nan")
    of = x if quantities is None else np.asarray(quantities, dtype=np.float64)
    sizes = sizes_of(of, along, distinct_share, are_off=p_value < LEVEL)
    seen = ndtri(1.0 - 0.5 * LEVEL / tests.weights[~tests.are_pairs].max(initial=1.0)) + ndtri(POWER)
    directions = chosen.steps / np.where(along.scale > 0.0, along.scale, 1.0)
    d = x.shape[2]
    functions = tuple((kind, i + (d if block else 0), j + (d if block else 0)) for block, kind, i, j in tests.functions)
    return FirstLook(
        p_value, p_values, functions, directions, n_effective, *sizes, seen * sizes.shift_se, seen * sizes.sd_ratio_se
    )


def nothing_found(d: int, k: int) -> FirstLook:
    """Return what is known where there is no gradient of d coordinates and k quantities."""
    unknown = np.full(k, np.nan)
    return FirstLook(np.nan, np.zeros(0), (), np.zeros((0, d)), np.zeros(d), *[unknown] * 6)


class _Tests:
    """All identities, with their p-values; ``functions`` are (block, kind, own, other)."""

    def __init__(self, log_density: Callable[[FloatArray], FloatArray], share: float) -> None:
        self.functions: list[tuple[int, str, int, int]] = []
        self.jumping: list[int] = []  # coordinates along which the first identity fails and the second does not
        self._log_density, self._share = log_density, share
        self._blocks: list[Along] = []
        self._caps: list[FloatArray] = []
        self._p_values: list[FloatArray] = []
        self._is_main: list[bool] = []

    def add(self, along: Along, n_effective: FloatArray, functions: list[tuple[str, int, int]], main: bool) -> None:
        """Test the first identity for some functions; ``main``: those of 1 and tanh own have half of the level."""
        block = len(self._blocks)
        self._blocks.append(along)
        for kind in dict.fromkeys(kind for kind, _, _ in functions):
            own, other = map(list, zip(*((i, j) for name, i, j in functions if name == kind), strict=True))
            cap = np.minimum(n_effective[own], n_effective[other])
            if kind in FUNCTIONS[2:]:
                cap[cap < LEAST_FOR_TAILS] = 0.0
            self._caps.append(cap)
            self._p_values.append(mean_test(along.terms(kind, own, other), cap, self._share).p_values)
            self.functions += [(block, kind, i, j) for i, j in zip(own, other, strict=True)]
            self._is_main += [main and kind in FUNCTIONS[:2] and i == j for i, j in zip(own, other, strict=True)]

    @property
    def weights(self) -> FloatArray:
        """By what p-values are multiplied."""
        is_main = np.array(self._is_main, dtype=bool)
        rest = ~is_main & ~self.are_pairs
        d = self._blocks[0].z.shape[2]
        n_pairs = d * (d - 1)  # of which the draws themselves choose those that are tested
        return np.asarray(np.select([is_main, rest], [2.0 * is_main.sum(), 4.0 * rest.sum()], 4.0 * n_pairs))

    @property
    def are_pairs(self) -> NDArray[np.bool_]:
        """Which functions are of another coordinate."""
        return np.array([i != j for _, _, i, j in self.functions], dtype=bool)

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
        self, along: Along, base: FloatArray, kind: str, i: int, j: int, cap: float, is_main: bool
    ) -> float:
        """Return the p-value of the second identity."""
        forth, back = (self._accepted(along.x + sign * MOVE * along.steps[i], base) for sign in (1.0, -1.0))
        here, _ = function_of(kind, along.z[..., j])
        there, _ = function_of(kind, along.z[..., j] - (MOVE if i == j else 0.0))
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
