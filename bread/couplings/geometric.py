"""Coupled pairs at many inverse temperatures of a geometric path: the inverse temperature is a held coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.couplings.adapting import adapted_kernel
from bread.couplings.chains import Pairs, run_pairs
from bread.couplings.compound import Compound
from bread.couplings.hmc import MixedKernel
from bread.couplings.kernel import CoupledKernel, DensityGradient, FloatArray

WINDOW = 4  # lags up to the end of the window that expectations are over
_WIDE = 1.0  # scales, over the root of the dimension
LAG = 1.5  # times the largest meeting time of a pilot


@dataclass
class GeometricPath:
    """The path f_lambda = f_0^(1 - lambda) f_1^lambda, for states whose last coordinate is lambda.

    Parameters
    ----------
    first, last : callable
        Of states (n, d): log f_0 and log f_1 (n,), and gradients (n, d).
    log_ratio : callable
        Of states (n, d): log f_1 - log f_0, shape (n,), which is d log f_lambda / d lambda.
    """

    first: DensityGradient
    last: DensityGradient
    log_ratio: Callable[[FloatArray], FloatArray]
    n_gradients: int = field(default=0, init=False)

    def density_gradient(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log f_lambda and its gradient, 0 along lambda; shapes (n,) and (n, d + 1)."""
        x, share = states[:, :-1], states[:, -1]
        self.n_gradients += 2 * len(states)
        with np.errstate(all="ignore"):
            (before, slope_before), (after, slope_after) = self.first(x), self.last(x)
            values = (1.0 - share) * before + share * after
            gradients = (1.0 - share)[:, None] * slope_before + share[:, None] * slope_after
        return values, np.concatenate([gradients, np.zeros((len(states), 1))], axis=1)

    def at(self, inverse_temperature: float) -> DensityGradient:
        """Return the density and gradient of states (n, d) at one lambda."""

        def density_gradient(states: FloatArray) -> tuple[FloatArray, FloatArray]:
            values, gradients = self.density_gradient(held(states, inverse_temperature))
            return values, gradients[:, :-1]

        return density_gradient

    def ratio_of(self, states: FloatArray) -> FloatArray:
        """Return the log ratio of states with their lambda, shape (n, 1): what expectations are wanted of."""
        with np.errstate(all="ignore"):
            return self.log_ratio(states[:, :-1])[:, None]


def held(states: FloatArray, inverse_temperatures: FloatArray | float) -> FloatArray:
    """Return states with their inverse temperatures as the last coordinate."""
    column = np.broadcast_to(np.asarray(inverse_temperatures, dtype=np.float64), (len(states),))
    return np.concatenate([states, column[:, None]], axis=1)


def frozen_kernel(
    path: GeometricPath, inverse_temperature: float, initial: FloatArray, n_steps: int, seed: SeedSequence
) -> Compound:
    """Return a kernel for any lambda, whose settings were found at one.

    Parameters
    ----------
    path : GeometricPath
    inverse_temperature : float
        Where step size and scales are found.
    initial : ndarray, shape (n, d)
        Where the chains begin that find them.
    n_steps : int
    seed : SeedSequence

    Returns
    -------
    Compound
        HMC and a small random walk, and a random walk of the size of the scales: it brings in chains that begin where
        trajectories are rejected because the density is steep.
    """
    found = adapted_kernel(path.at(inverse_temperature), initial, n_steps, seed)
    scales = np.append(found.scales, 0.0)
    wide = _WIDE / math.sqrt(len(found.scales))
    return Compound(
        (
            MixedKernel(path.density_gradient, found.step_size, found.n_leapfrog, scales, found.walk),
            MixedKernel(path.density_gradient, found.step_size, 0, scales, wide),
        )
    )


def on_path(kernel: Compound, path: GeometricPath) -> Compound:
    """Return the kernel with the same settings on another path."""
    return Compound(tuple(replace(one, density_gradient=path.density_gradient) for one in kernel.kernels))


def settled(
    kernel: CoupledKernel, initial: FloatArray, inverse_temperature: float, n_steps: int, seed: SeedSequence
) -> FloatArray:
    """Return where chains are that moved from ``initial`` (n, d) for ``n_steps``, shape (n, d)."""
    points, rngs = kernel.at(held(initial, inverse_temperature)), [default_rng(one) for one in seed.spawn(len(initial))]
    for _ in range(n_steps):
        points = kernel.move(points, rngs)
    return np.asarray(points.states[:, :-1])


def tempered_pairs(
    kernel: CoupledKernel,
    path: GeometricPath,
    initial: tuple[FloatArray, FloatArray],
    inverse_temperatures: FloatArray,
    seeds: Sequence[SeedSequence],
    *,
    lag: int,
    horizon: int,
    advance: Callable[[int], None] | None = None,
) -> Pairs:
    """Run pairs, each at its own lambda; ``estimates`` (n, 1) are of the expectation of the log ratio there."""
    x, y = (held(states, inverse_temperatures) for states in initial)
    return run_pairs(
        kernel, (x, y), seeds, lag=lag, horizon=horizon, functions=path.ratio_of, window=(lag, WINDOW * lag),
        advance=advance,
    )  # fmt: skip
