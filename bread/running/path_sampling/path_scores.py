"""Path sampling of leave-one-out scores: from the posterior without an observation to the posterior with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import default_rng

from bread.backends.base import Data, Posterior
from bread.backends.observations import Separable
from bread.couplings.compound import Compound
from bread.couplings.geometric import GeometricPath, on_path, settled
from bread.couplings.kernel import FloatArray
from bread.paths.kinds import PriorPath
from bread.running.path_sampling.path_sampling import (
    AROUND,
    LOOK,
    LOOKS,
    MEET,
    PAIRS,
    PILOTS,
    PLACE,
    SETTLE,
    Chains,
    PathPairs,
    Work,
    require_positive,
    smallest,
    unmet,
)

_CENTRES = 32  # chains from the prior, at either end of a path, whose ends starts are spread about


def score_pairs(model: Separable, data: Data, left_out: Sequence[int], work: Work) -> PathPairs:
    """Return pairs for the log predictive density of each left-out observation given the others.

    The path leads from the posterior without it to the posterior with it; lambda is uniform. Pairs start about where
    chains from the prior are at both ends of the path, after as many iterations as the kernel was adapted in: an
    observation may rule out a mode that the others allow, and its score then has that mode in it.

    Raises
    ------
    UnsupportedModelError
        The density of an observation is zero where that of the others is not.
    DensityError
        No start has a finite density.
    """
    whole = model.condition_first(data, model.n_observations())
    looks = np.asarray(whole.draw_base(PriorPath(), work.seeds(0, LOOK, LOOKS)), dtype=np.float64)
    paths = []
    for index in left_out:
        paths.append(_leaving_out(whole, model.condition_without(data, index)))
        before, ratio = paths[-1].first(looks)[0], paths[-1].log_ratio(looks)
        require_positive(np.isfinite(ratio) | ~np.isfinite(before), f"of observation {index}")
    work.display.phase("adapting the kernel", 1 + len(paths))
    all_data = _alone(whole)
    kernel = Chains(work, all_data, whole).kernel(0, 1.0)
    scale = kernel.kernels[0].scales[:-1]
    last = _settled(work, all_data, whole, kernel, 0)
    first = Chains(work, all_data, whole, last, scale)
    work.display.advance(1)
    starts = []
    for index, path in zip(left_out, paths, strict=True):
        others = _alone(model.condition_without(data, index))
        centres = np.concatenate([last, _settled(work, others, whole, kernel, 1 + index)])
        path.n_gradients += others.n_gradients
        starts.append(Chains(work, path, whole, centres, scale))
        require_support(starts[-1], index)
        work.display.advance(1)
    work.display.done()
    work.display.phase("pilot pairs", PILOTS)
    _, times = first.pairs(kernel, work.seeds(0, MEET, PILOTS), np.ones(PILOTS), 1, work.display.advance)
    work.display.done()
    if not np.isfinite(times).all():
        return unmet(all_data, len(paths), int(np.isinf(times).sum()), 1.0)
    lag, shape = work.lag(times), (len(paths), work.pairs)
    estimates, met, at = np.empty(shape), np.empty(shape), np.empty(shape)
    work.display.phase("coupled pairs", len(paths) * work.pairs)
    for row, (index, chains) in enumerate(zip(left_out, starts, strict=True)):
        at[row] = default_rng(work.seeds(index, PLACE, 1)[0]).random(work.pairs)
        own = on_path(kernel, chains.path)
        estimates[row], met[row] = chains.pairs(
            own, work.seeds(index, PAIRS, work.pairs), at[row], lag, work.display.advance
        )
    work.display.done()
    empty = np.zeros(0)
    return PathPairs(
        estimates=estimates,
        inverse_temperatures=at,
        meeting_times=met,
        lags=np.full(shape, float(lag)),
        knots=empty,
        means=empty,
        spreads=empty,
        shares=empty,
        n_gradients=all_data.n_gradients + sum(path.n_gradients for path in paths),
        n_unmet_pilots=0,
        unmet_at=smallest(at[np.isinf(met)]),
    )


def _leaving_out(whole: Posterior, without: Posterior) -> GeometricPath:
    def log_ratio(x: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):  # both are -inf where other observations are impossible
            return whole.log_ratio(PriorPath(), x) - without.log_ratio(PriorPath(), x)

    return GeometricPath(
        lambda x: without.density_gradient(1.0, x), lambda x: whole.density_gradient(1.0, x), log_ratio
    )


def _alone(posterior: Posterior) -> GeometricPath:
    """Return the path that is one posterior at every inverse temperature."""
    return GeometricPath(
        lambda x: posterior.density_gradient(1.0, x),
        lambda x: posterior.density_gradient(1.0, x),
        lambda x: np.zeros(len(x)),
    )


def _settled(work: Work, path: GeometricPath, whole: Posterior, kernel: Compound, target: int) -> FloatArray:
    """Return where chains from the prior are on a posterior, shape (`_CENTRES`, d)."""
    (seed,) = work.seeds(target, SETTLE, 1)
    initial = Chains(work, path, whole).starts(seed.spawn(_CENTRES))
    return settled(on_path(kernel, path), initial, 1.0, work.tune, seed)


def require_support(chains: Chains, index: int) -> None:
    """Refuse an observation that is impossible where the others are not.

    Draws of a wide prior rarely fall where the data are, so starts are looked at, too.

    Parameters
    ----------
    chains : Chains
        Of the path from the posterior without the observation to the one with it, with its centres.
    index : int
        Number of the observation.

    Raises
    ------
    UnsupportedModelError
        The likelihood is zero at one of them.
    """
    assert chains.centres is not None
    around = np.concatenate([chains.centres, chains.around(chains.work.seeds(index, AROUND, LOOKS))])
    before, ratio = chains.path.first(around)[0], chains.path.log_ratio(around)
    require_positive(np.isfinite(ratio) | ~np.isfinite(before), f"of observation {index}", "starts of chains")
