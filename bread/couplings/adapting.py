"""Settings of the mixed kernel: found by chains of their own, and then frozen."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import SeedSequence, default_rng

from bread.couplings.hmc import MAX_LEAPFROG, MixedKernel
from bread.couplings.kernel import DensityGradient, FloatArray

TARGET_ACCEPTANCE = 0.9  # high: pairs are drawn together where both accept
_TIME = 1.2  # of a trajectory, in scales: near a quarter of a normal law's period
_WALK = 0.1
_FIRST_STEP = 0.1
_WINDOWS = (0.15, 0.35, 0.5)  # of the iterations; scales are learnt at the end of the first two
_SHRINK = 5.0  # draws that prior knowledge of the scales is worth


def adapted_kernel(
    density_gradient: DensityGradient, initial: FloatArray, n_steps: int, seed: SeedSequence
) -> MixedKernel:
    """Return a frozen kernel, adapted on chains that are used for nothing else.

    Parameters
    ----------
    density_gradient : callable
        Of states (n, d): log densities (n,) and gradients (n, d).
    initial : ndarray, shape (n, d)
        Where the chains begin, one a row.
    n_steps : int
        Iterations of each chain.
    seed : SeedSequence

    Returns
    -------
    MixedKernel
        With a step size by dual averaging (Hoffman & Gelman 2014, "The No-U-Turn sampler", JMLR 15, section 3.2.1;
        acceptance 0.9), scales from the spread of all chains, and a random walk of a tenth of them, less in many
        dimensions. Its counter of gradients holds what the adaptation spent.
    """
    n, d = initial.shape
    rngs = [default_rng(one) for one in seed.spawn(n)]
    scales, step = np.ones(d), _FIRST_STEP
    kernel = MixedKernel(density_gradient, step, 1, scales, 0.0)
    points = kernel.at(initial)
    for share in _WINDOWS:
        length = max(10, round(share * n_steps))
        averaging = _DualAveraging(step)
        kept: list[FloatArray] = []
        for i in range(length):
            kernel.step_size, kernel.scales = averaging.step, scales
            kernel.n_leapfrog = leapfrog_steps(averaging.step)
            points = kernel.move(points, rngs)
            averaging.update(float(np.mean(kernel.acceptance)))
            if i >= length // 2:
                kept.append(points.states)
        step = averaging.averaged
        if share != _WINDOWS[-1]:
            scales = _scales(np.array(kept), scales)
    kernel.step_size, kernel.scales, kernel.n_leapfrog = step, scales, leapfrog_steps(step)
    kernel.walk = min(_WALK, 0.5 / math.sqrt(d))
    return kernel


def leapfrog_steps(step_size: float) -> int:
    """Return the steps of a trajectory."""
    return int(min(max(math.ceil(_TIME / step_size), 1), MAX_LEAPFROG))


def _scales(draws: FloatArray, before: FloatArray) -> FloatArray:
    """Return standard deviations over all chains, drawn a little towards those before."""
    pooled = draws.reshape(-1, draws.shape[-1])
    variance = pooled.var(axis=0)
    n = len(draws)
    found = np.sqrt((n * variance + _SHRINK * 1e-3 * before**2) / (n + _SHRINK))
    return np.where(np.isfinite(found) & (found > 0.0), found, before)


class _DualAveraging:
    """Step size by dual averaging, with the constants of Hoffman & Gelman (2014)."""

    def __init__(self, step: float) -> None:
        self.centre, self.log_step, self.log_averaged = math.log(10.0 * step), math.log(step), math.log(step)
        self.gap, self.count = 0.0, 0

    def update(self, acceptance: float) -> None:
        self.count += 1
        weight = 1.0 / (self.count + 10.0)
        self.gap += weight * (TARGET_ACCEPTANCE - acceptance - self.gap)
        self.log_step = self.centre - math.sqrt(self.count) / 0.05 * self.gap
        share = self.count**-0.75
        self.log_averaged += share * (self.log_step - self.log_averaged)

    @property
    def step(self) -> float:
        return min(math.exp(self.log_step), 2.0)

    @property
    def averaged(self) -> float:
        return min(math.exp(self.log_averaged), 2.0)
