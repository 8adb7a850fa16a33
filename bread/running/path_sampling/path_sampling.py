"""Path sampling with coupled chains: what pairs are run, and what both kinds of paths share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from bread.backends.base import Posterior
from bread.couplings.compound import Compound
from bread.couplings.geometric import LAG, WINDOW, GeometricPath, frozen_kernel, tempered_pairs
from bread.couplings.kernel import CoupledKernel, FloatArray
from bread.errors import DensityError, UnsupportedModelError
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath
from bread.seeds import Purpose, seed_sequence

PILOTS = 24  # pairs of a pilot, for meeting times and again for moments
LOOKS = 1000  # prior draws at which the log ratio must be finite
LOOK, ADAPT, MEET, MOMENTS, PLACE, PAIRS, SETTLE, LAST, AROUND = range(9)  # stages, each with random numbers of its own
_ADAPTING = 8  # chains that settings are found on
_TRIES = 1000


@dataclass(frozen=True)
class PathPairs:
    """Pairs for some log ratios of normalising constants.

    Attributes
    ----------
    estimates : ndarray, shape (target, pair)
        Unbiased estimates of the log ratio, nats; NaN where a pair did not meet.
    inverse_temperatures, meeting_times, lags : ndarray, shape (target, pair)
        Meeting times count iterations of the first chain, which is ``lags`` ahead; infinite where a pair did not meet.
    knots, means, spreads, shares : ndarray, shape (knot,)
        Inverse temperatures of the pilots; d log Z / d u there and the root of the second moment of its estimates about
        the line through them; probability of the interval that ends there.
    n_gradients : int
    n_unmet_pilots : int
        Pairs of pilots that did not meet; with any, no pairs were run.
    unmet_at : float
        The smallest inverse temperature at which pairs did not meet; NaN where all did.
    """

    estimates: FloatArray
    inverse_temperatures: FloatArray
    meeting_times: FloatArray
    lags: FloatArray
    knots: FloatArray
    means: FloatArray
    spreads: FloatArray
    shares: FloatArray
    n_gradients: int
    n_unmet_pilots: int
    unmet_at: float


@dataclass(frozen=True)
class Work:
    """What both kinds of targets share.

    Parameters
    ----------
    pairs : int
        Of each target.
    horizon : int
        Iterations after which a pair is given up.
    tune : int
    root : int
        Root entropy.
    display : Display
    """

    pairs: int
    horizon: int
    tune: int
    root: int
    display: Display

    def seeds(self, target: int, stage: int, n: int) -> list[SeedSequence]:
        """Return a seed for each of ``n`` pairs of one stage."""
        return [seed_sequence(self.root, Purpose.PATH_SAMPLING, target, stage, i) for i in range(n)]

    def lag(self, meeting_times: FloatArray) -> int:
        """Return the lag that pilots with lag 1 ask for."""
        return int(min(max(math.ceil(LAG * meeting_times.max()), 2), self.horizon // WINDOW))


class Chains:
    """Pairs along one path from fresh starts where both ends have a density.

    Starts are draws from the prior, or, where there are ``centres`` (n, d) with a ``scale`` (d,), from the even mixture
    of normal laws about them.
    """

    def __init__(
        self,
        work: Work,
        path: GeometricPath,
        posterior: Posterior,
        centres: FloatArray | None = None,
        scale: FloatArray | None = None,
    ) -> None:
        self.work, self.path, self.posterior, self.centres, self.scale = work, path, posterior, centres, scale

    def draw(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior."""
        return np.asarray(self.posterior.draw_base(PriorPath(), seeds), dtype=np.float64)

    def starts(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Return starts, one a seed, shape (n, d)."""
        states, missing = self.around([seed.spawn(1)[0] for seed in seeds]), np.arange(len(seeds))
        for _ in range(_TRIES):
            values, gradients = self.path.at(0.5)(states[missing])
            is_right = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
            missing = missing[~is_right]
            if not len(missing):
                return states
            states[missing] = self.around([seeds[int(i)].spawn(1)[0] for i in missing])
        raise DensityError(
            f"Of {len(seeds)} starts, {len(missing)} had no finite density and gradient in {_TRIES} "
            "tries. Check the model, or use narrower priors."
        )

    def around(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Return starts that may have no density."""
        if self.centres is None or self.scale is None:
            return self.draw(seeds)
        rngs = [default_rng(seed) for seed in seeds]
        rows = [self.centres[rng.integers(len(self.centres))] for rng in rngs]
        noise = [rng.standard_normal(len(self.scale)) for rng in rngs]
        return np.asarray(np.array(rows) + self.scale * np.array(noise))

    def kernel(self, target: int, inverse_temperature: float) -> Compound:
        """Return a kernel adapted at one inverse temperature."""
        (seed,) = self.work.seeds(target, ADAPT, 1)
        return frozen_kernel(self.path, inverse_temperature, self.starts(seed.spawn(_ADAPTING)), self.work.tune, seed)

    def pairs(
        self, kernel: CoupledKernel, seeds: Sequence[SeedSequence], inverse_temperatures: FloatArray, lag: int,
        advance: Callable[[int], None] | None = None,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Return estimates of expectations of the log ratio, and meeting times, both (n,)."""
        n, own = len(seeds), [seed.spawn(3) for seed in seeds]
        both = self.starts([one for side in (0, 1) for one in (three[side] for three in own)])
        found = tempered_pairs(
            kernel, self.path, (both[:n], both[n:]), inverse_temperatures, [three[2] for three in own], lag=lag,
            horizon=self.work.horizon, advance=advance,
        )  # fmt: skip
        return found.estimates[:, 0], found.meeting_times


def unmet(path: GeometricPath, targets: int, n_unmet: int, at: float) -> PathPairs:
    """Return what is known where pairs of a pilot did not meet: nothing but that."""
    none, empty = np.zeros((targets, 0)), np.zeros(0)
    return PathPairs(none, none, none, none, empty, empty, empty, empty, path.n_gradients, n_unmet, at)


def smallest(values: FloatArray) -> float:
    """Return the smallest value; NaN where there is none."""
    return float(values.min()) if len(values) else float("nan")


def require_positive(is_positive: NDArray[np.bool_], where: str, places: str = "draws from the prior") -> None:
    """Raise UnsupportedModelError where densities vanish at some draws of the prior, or at other places."""
    n_zero = int((~is_positive).sum())
    if n_zero:
        raise UnsupportedModelError(
            f"The likelihood {where} is zero or not finite at {n_zero} of {len(is_positive)} {places}, and "
            "path sampling needs a path on which it never is. Use bread.check and bread.evidence."
        )
