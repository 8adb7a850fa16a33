"""Path sampling of the log evidence: from the prior to the posterior at a random inverse temperature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from bread.backends.base import Posterior
from bread.couplings.geometric import GeometricPath
from bread.couplings.kernel import CoupledKernel, FloatArray
from bread.couplings.refreshed import Refreshed
from bread.couplings.temperatures import law_from_spread, log_ratio_estimates
from bread.paths.kinds import PriorPath
from bread.running.path_sampling.path_sampling import (
    LOOK,
    LOOKS,
    MEET,
    MOMENTS,
    PAIRS,
    PILOTS,
    PLACE,
    Chains,
    PathPairs,
    Work,
    require_positive,
    smallest,
    unmet,
)

KNOTS = 12
POWER = 6.0  # of the place that becomes an inverse temperature
_EVEN = 0.2  # of the law of inverse temperatures, whatever the pilots say
_REFRESH = 0.05  # effective share of prior draws at an inverse temperature from which they are proposed there


def evidence_pairs(posterior: Posterior, work: Work) -> PathPairs:
    """Return pairs for the log evidence, along the prior path.

    Raises
    ------
    UnsupportedModelError
        The likelihood is zero on a part of the prior.
    DensityError
        No start has a finite density.
    """
    path = GeometricPath(
        lambda x: posterior.density_gradient(0.0, x),
        lambda x: posterior.density_gradient(1.0, x),
        lambda x: posterior.log_ratio(PriorPath(), x),
    )
    chains = Chains(work, path, posterior)
    ratios = path.log_ratio(chains.draw(work.seeds(0, LOOK, LOOKS)))
    require_positive(np.isfinite(ratios), "of the data")
    places = np.linspace(0.0, 1.0, KNOTS + 1)
    pilot = _pilot(chains, places**POWER, ratios)
    if pilot.n_unmet:
        return unmet(path, 1, pilot.n_unmet, pilot.unmet_at)
    slopes = POWER * places[1:] ** (POWER - 1.0)
    centre = np.append(0.0, slopes * pilot.means)
    spread = _spread(centre, np.append(0.0, slopes**2 * pilot.variances))
    cost = np.append(pilot.lags[0], pilot.lags).astype(float)
    law = law_from_spread(places, spread / np.sqrt(cost), power=POWER, even=_EVEN)
    where = law.draw(default_rng(work.seeds(0, PLACE, 1)[0]).random(work.pairs))
    estimates, times, used = _at_places(chains, pilot.kernels, pilot.lags, places, where)
    return PathPairs(
        estimates=log_ratio_estimates(law, where, estimates, centre)[None],
        inverse_temperatures=law.inverse_temperature(where)[None],
        meeting_times=times[None],
        lags=used[None],
        knots=places**POWER,
        means=centre,
        spreads=spread,
        shares=np.append(0.0, law.shares),
        n_gradients=path.n_gradients,
        n_unmet_pilots=0,
        unmet_at=smallest(law.inverse_temperature(where)[np.isinf(times)]),
    )


@dataclass
class _Pilot:
    """By knot but the first: kernels, lags, mean and variance of unbiased estimates."""

    kernels: list[CoupledKernel]
    lags: NDArray[np.int64]
    means: FloatArray
    variances: FloatArray
    n_unmet: int = 0
    unmet_at: float = float("nan")


def _pilot(chains: Chains, knots: FloatArray, ratios: FloatArray) -> _Pilot:
    """Return what pilots say at each knot, from the posterior down; nothing more from where pairs do not meet."""
    work, n = chains.work, len(knots) - 1
    found = _Pilot([], np.ones(n, dtype=np.int64), np.zeros(n), np.zeros(n))
    work.display.phase("kernels and pilots", n)
    for i in reversed(range(n)):
        knot = float(knots[i + 1])
        kernel = _kernel(chains, i, knot, ratios)
        at = np.full(PILOTS, knot)
        _, times = chains.pairs(kernel, work.seeds(i, MEET, PILOTS), at, 1)
        if np.isfinite(times).all():
            found.lags[i] = work.lag(times)
            estimates, times = chains.pairs(kernel, work.seeds(i, MOMENTS, PILOTS), at, int(found.lags[i]))
            found.means[i], found.variances[i] = estimates.mean(), estimates.var(ddof=1)
        found.kernels.insert(0, kernel)
        work.display.advance(1)
        if np.isinf(times).any():
            found.n_unmet, found.unmet_at = int(np.isinf(times).sum()), knot
            break
    work.display.done()
    return found


def _kernel(chains: Chains, index: int, knot: float, ratios: FloatArray) -> CoupledKernel:
    """Return a kernel adapted at a knot; near the prior it proposes draws from it, too."""
    kernel = chains.kernel(index, knot)
    weights = np.exp(knot * (ratios - ratios.max()))
    share = float(weights.sum() ** 2 / np.sum(weights**2) / len(weights))
    return Refreshed(kernel, chains.draw, chains.path.log_ratio) if share > _REFRESH else kernel


def _spread(centre: FloatArray, variances: FloatArray) -> FloatArray:
    """Return roots of the second moments of estimates about the line through ``centre``, as far as pilots tell.

    An eighth of the second difference stands for what the line leaves out between knots.
    """
    bend = np.abs(np.diff(centre, 2)) / 8.0
    bend = np.concatenate([bend[:1], bend, bend[-1:]])
    return np.asarray(np.sqrt(variances + bend**2))


def _at_places(
    chains: Chains, kernels: Sequence[CoupledKernel], lags: NDArray[np.int64], places: FloatArray, where: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimates of expectations, meeting times and lags at the places; kernels are those of the nearest knot."""
    work, n = chains.work, len(where)
    estimates, times, used = np.full(n, np.nan), np.full(n, np.inf), np.zeros(n)
    nearest = np.abs(where[:, None] - places[None, 1:]).argmin(axis=1)
    seeds = work.seeds(0, PAIRS, n)
    work.display.phase("coupled pairs", n)
    for i in np.unique(nearest):
        rows = np.flatnonzero(nearest == i)
        estimates[rows], times[rows] = chains.pairs(
            kernels[i], [seeds[row] for row in rows], where[rows] ** POWER, int(lags[i]), work.display.advance
        )
        used[rows] = lags[i]
    work.display.done()
    return estimates, times, used
