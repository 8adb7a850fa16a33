"""Path sampling of leave-one-out scores: from the posterior without an observation to the posterior with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import default_rng

from bread.backends.base import Data, Posterior
from bread.backends.observations import Separable
from bread.couplings.geometric import GeometricPath, on_path, settled
from bread.paths.kinds import PriorPath
from bread.running.path_sampling import (
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

_CENTRES = 32  # chains from the prior whose ends starts are spread about


def score_pairs(model: Separable, data: Data, left_out: Sequence[int], work: Work) -> PathPairs:
    """Return pairs for the log predictive density of each left-out observation given the others.

    The path leads from the posterior without it to the posterior with it; lambda is uniform. Pairs start about where
    chains from the prior are on the posterior of all data, after as many iterations as the kernel was adapted in.

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
    first = Chains(work, paths[0], whole)
    work.display.phase("adapting the kernel")
    kernel = first.kernel(0, 1.0)
    (seed,) = work.seeds(0, SETTLE, 1)
    initial = first.starts(seed.spawn(_CENTRES))
    centres, scale = settled(kernel, initial, 1.0, work.tune, seed), kernel.kernels[0].scales[:-1]
    first = Chains(work, paths[0], whole, centres, scale)
    work.display.done()
    work.display.phase("pilot pairs", PILOTS)
    _, times = first.pairs(kernel, work.seeds(0, MEET, PILOTS), np.ones(PILOTS), 1, work.display.advance)
    work.display.done()
    if not np.isfinite(times).all():
        return unmet(paths[0], len(paths), int(np.isinf(times).sum()), 1.0)
    lag, shape = work.lag(times), (len(paths), work.pairs)
    estimates, met, at = np.empty(shape), np.empty(shape), np.empty(shape)
    work.display.phase("coupled pairs", len(paths) * work.pairs)
    for row, (index, path) in enumerate(zip(left_out, paths, strict=True)):
        chains = Chains(work, path, whole, centres, scale)
        at[row] = default_rng(work.seeds(index, PLACE, 1)[0]).random(work.pairs)
        own = on_path(kernel, path)
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
        n_gradients=sum(path.n_gradients for path in paths),
        n_unmet_pilots=0,
        unmet_at=smallest(at[np.isinf(met)]),
    )


def _leaving_out(whole: Posterior, without: Posterior) -> GeometricPath:
    return GeometricPath(
        lambda x: without.density_gradient(1.0, x),
        lambda x: whole.density_gradient(1.0, x),
        lambda x: whole.log_ratio(PriorPath(), x) - without.log_ratio(PriorPath(), x),
    )
