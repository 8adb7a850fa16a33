"""The pilot: walk up the path, adapt the kernel at knots, freeze it. The knots are chosen as the pilot goes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Adaptation, FloatArray, Kernel, Posterior, Settings
from bread.paths import Path
from bread.schedules import next_knot
from bread.seeds import Purpose, chain_seeds, seed_sequence

KNOT_OVERLAP = 0.1  # share of the draws at one knot that still count at the next
MAX_KNOTS = 40


class Pilot(NamedTuple):
    """A frozen kernel and the log ratios at draws from the path's start (for the tail diagnostic)."""

    kernel: Kernel
    start_log_ratio: FloatArray


def tune(
    posterior: Posterior, path: Path, *, root: int, simulation: int, n_steps: int, n_start_draws: int, source: str
) -> Pilot:
    """Adapt the kernel along the path and freeze it.

    Knots are placed where draws at the one before still overlap (`bread.schedules.next_knot`), so that they grow
    geometrically where the path starts under a vague prior. Nothing here knows an exact posterior draw: the pilot
    starts from the path's start and sees the data alone.

    Parameters
    ----------
    posterior : Posterior
        Model and one data set.
    path : Path
    root : int
        Root entropy; the pilot has random numbers of its own (`Purpose.TUNE`).
    simulation : int
        Which data set, for the seed.
    n_steps : int
        Adaptation steps at every knot.
    n_start_draws : int
        Draws from the path's start that place the first knot (and show the tail of log_ratio).
    source : str
        Kept in the kernel, for the report.

    Returns
    -------
    Pilot
    """
    start = posterior.draw_start(path, chain_seeds(root, Purpose.TAIL, simulation, 0, range(n_start_draws)))
    start_log_ratio = posterior.log_ratio(path, start)
    usable = np.where(np.isnan(start_log_ratio), -np.inf, start_log_ratio)
    generator = np.random.default_rng(seed_sequence(root, Purpose.TUNE, simulation))
    betas = [0.0]
    first = posterior.adapt(
        path, 0.0, start[0], seed_sequence(root, Purpose.TUNE, simulation, 0, 0), n_steps, previous=None
    )
    adaptations: list[Adaptation] = [first]
    draws = [usable]
    state = start[0]
    while betas[-1] < 1.0:
        beta = _guarded_knot(betas, draws[-1])
        if len(betas) == 1:
            state = start[_resample(usable, beta, generator)]
        seed = seed_sequence(root, Purpose.TUNE, simulation, 0, len(betas))
        adaptation = posterior.adapt(path, beta, state, seed, n_steps, previous=adaptations[-1].settings)
        state = adaptation.state
        betas.append(beta)
        adaptations.append(adaptation)
        draws.append(adaptation.log_ratio)
    kernel = Kernel(
        betas=np.array(betas),
        settings=_stack([item.settings for item in adaptations]),
        log_ratio=tuple(draws),
        source=source,
        n_gradients=sum(item.n_gradients for item in adaptations),
        n_evaluations=sum(item.n_evaluations for item in adaptations) + len(start),
    )
    return Pilot(kernel, start_log_ratio)


def _guarded_knot(betas: list[float], log_ratio: FloatArray) -> float:
    """Return the next knot, at least so far that geometric steps of this size reach 1 within `MAX_KNOTS`."""
    beta = next_knot(betas[-1], log_ratio, KNOT_OVERLAP)
    left = MAX_KNOTS - len(betas)
    slowest = betas[-1] ** (1.0 - 1.0 / left) if left > 1 else 1.0
    return min(1.0, max(beta, slowest)) if betas[-1] > 0.0 else beta


def _resample(log_ratio: FloatArray, beta: float, generator: np.random.Generator) -> int:
    finite = np.flatnonzero(np.isfinite(log_ratio))
    if len(finite) == 0:
        return 0
    weights = np.exp(beta * (log_ratio[finite] - log_ratio[finite].max()))
    return int(generator.choice(finite, p=weights / weights.sum()))


def _stack(settings: list[Settings]) -> dict[str, NDArray[np.float64]]:
    return {name: np.stack([item[name] for item in settings]) for name in settings[0]}
