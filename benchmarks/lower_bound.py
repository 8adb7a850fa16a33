"""Level and power of the lower bound on the distance of own draws: how often a classifier tells draws apart.

    python benchmarks/lower_bound.py level 400
    python benchmarks/lower_bound.py power 40

Of each row: how often the lower limit at 97.5% was above 0, how often the p-value was small enough for a "disagreement"
(0.01 / 3), the mean limit, and seconds of processor time a run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from first_look_laws import autoregressive, student_t
from numpy.random import Generator
from scipy.special import ndtr, ndtri

from bread.statistics.agreement.disagreement import LEVEL, N_FAMILIES
from bread.statistics.agreement.lower_bound import tell_apart
from bread.statistics.agreement.repeats import find_repeats

Array = np.ndarray
Draws = tuple[Array, Array]  # own (chain, draw, d), certified (n, d)


def normal(rng: Generator, d: int, n: int = 1000, shape: tuple[int, int] = (4, 1000)) -> Draws:
    return rng.standard_normal((*shape, d)), rng.standard_normal((n, d))


def chains(rng: Generator, d: int, correlation: float, shape: tuple[int, int] = (4, 1000)) -> Draws:
    return autoregressive(d, correlation, shape).draw(rng), rng.standard_normal((1000, d))


def resampled(rng: Generator) -> Draws:
    """Draws of their own, taken again with replacement."""
    own, certified = normal(rng, 3)
    return own.reshape(-1, 3)[rng.integers(4000, size=(4, 1000))], certified


def copied(rng: Generator) -> Draws:
    """Four chains, of which two are those of the others up to rounding."""
    own, certified = normal(rng, 3)
    return np.concatenate([own[:2], own[:2] * (1.0 + 1e-12)]), certified


def slow_sign(rng: Generator) -> Draws:
    """Each coordinate moves fast, and the sign of the product of all three in steps of 100 draws."""
    own, certified = normal(rng, 3)
    sign = np.repeat(rng.choice([-1.0, 1.0], size=(4, 10)), 100, axis=1)
    own[..., 2] = np.abs(own[..., 2]) * np.sign(own[..., 0] * own[..., 1]) * sign
    return own, certified


def rounded(rng: Generator) -> Draws:
    own, certified = normal(rng, 3)
    return np.round(own, 1), certified


RIGHT: dict[str, Callable[[Generator], Draws]] = {
    "normal, d = 3": lambda rng: normal(rng, 3),
    "normal, d = 10": lambda rng: normal(rng, 10),
    "200 certified draws, d = 10": lambda rng: normal(rng, 10, 200),
    "AR(0.9), d = 3": lambda rng: chains(rng, 3, 0.9),
    "AR(0.9), one chain of 2500, d = 3": lambda rng: chains(rng, 3, 0.9, (1, 2500)),
    "AR(0.95), d = 10": lambda rng: chains(rng, 10, 0.95),
    "Student t, 1 degree, d = 3": lambda rng: (student_t(1.0, 3).draw(rng), student_t(1.0, 3).draw(rng).reshape(-1, 3)),
    "counts": lambda rng: (rng.poisson(1.0, (4, 1000, 3)) * 1.0, rng.poisson(1.0, (1000, 3)) * 1.0),
    "taken again with replacement": resampled,
    "copied chains": copied,
    "a slow sign of a product": slow_sign,
    "rounded to a tenth": rounded,
}  # fmt: skip


def triple(own: Array) -> None:
    own[..., 2] = np.abs(own[..., 2]) * np.sign(own[..., 0] * own[..., 1])


def teeth(own: Array) -> None:
    u = 10.0 * ndtr(own[..., 0])
    own[..., 0] = ndtri((np.floor(u) + (u % 1.0) / 2.0) / 10.0)


def hole(own: Array) -> None:
    u = ndtr(own[..., 0])
    own[..., 0] = ndtri(np.where(u < 0.5, 0.8 * u, 1.0 - 0.8 * (1.0 - u)))


def shift(own: Array) -> None:
    own[..., 0] += 2.0 * ndtri(0.55)  # TV 0.1


def correlation(own: Array) -> None:
    own[..., 1] = 0.3 * own[..., 0] + np.sqrt(1.0 - 0.09) * own[..., 1]  # TV 0.1


def narrow(own: Array) -> None:
    own *= 0.945  # TV 0.1 in ten dimensions


def wrong(spoil: Callable[[Array], None], d: int, n: int) -> Callable[[Generator], Draws]:
    def draw(rng: Generator) -> Draws:
        own, certified = normal(rng, d, n, (4, max(1000, n // 4)))
        spoil(own)
        return own, certified

    return draw


WRONG = {
    f"{spoil.__name__}, d = {d}, {n} certified": wrong(spoil, d, n)
    for spoil, d, n in [
        (triple, 3, 1000), (triple, 10, 1000), (teeth, 1, 1000), (teeth, 10, 1000), (hole, 1, 1000), (hole, 10, 1000),
        (shift, 10, 1000), (shift, 10, 2000), (correlation, 10, 1000), (correlation, 10, 2000),
        (correlation, 10, 4000), (narrow, 10, 1000), (narrow, 10, 4000),
    ]
}  # fmt: skip


def main(kind: str, n_runs: int, only: str = "") -> None:
    for name, draw in {"level": RIGHT, "power": WRONG}[kind].items():
        if only not in name:
            continue
        began, limits, small = time.process_time(), [], 0
        for seed in range(n_runs):
            own, certified = draw(np.random.default_rng(seed))
            found = tell_apart(own, certified, distinct_share=find_repeats(own).distinct_share)
            limits.append(0.0 if found is None else max(0.0, found.lower_limit(0.025)))
            small += found is not None and found.p_value(0.0) <= LEVEL / N_FAMILIES
        above = int(np.count_nonzero(limits))
        seconds = (time.process_time() - began) / n_runs
        print(
            f"{name:45s} above 0: {above} of {n_runs}; p: {small}; mean limit {np.mean(limits):.3f}; {seconds:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
