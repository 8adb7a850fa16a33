"""The laws that kernels without a model are tested on by default, and tools for those who make their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bread.debugging import continuous_targets, discrete_targets
from bread.debugging.target import Target
from bread.errors import InvalidArgumentError

FloatArray = NDArray[np.float64]
Kind = Literal["continuous", "discrete", "all"]

CONTINUOUS = (
    continuous_targets.log_gamma,
    continuous_targets.correlated_normal,
    continuous_targets.student_t,
    continuous_targets.curved,
    continuous_targets.funnel,
    continuous_targets.mixture,
    continuous_targets.stick_breaking,
    continuous_targets.bounded,
    continuous_targets.simplex,
)
DISCRETE = (
    discrete_targets.offset,
    discrete_targets.binary,
    discrete_targets.categories,
    discrete_targets.counts,
)


def default_targets(kind: Kind = "all") -> tuple[Target, ...]:
    """Return the targets for kernels without a model.

    Parameters
    ----------
    kind : {"continuous", "discrete", "all"}, default "all"
        Which. "bounded" and "simplex", the last two continuous ones, have walls: leave them out for kernels that must
        not meet a log density of -inf.

    Returns
    -------
    tuple of Target
        Normalised log densities in nats, which take states of shape (..., d) and the array module as an optional
        second argument; gradients where continuous; exact draws.

    Raises
    ------
    InvalidArgumentError
        ``kind`` is none of these.
    """
    if kind not in get_args(Kind):
        raise InvalidArgumentError(f"kind must be one of {list(get_args(Kind))}; received {kind!r}.")
    makers = {"continuous": CONTINUOUS, "discrete": DISCRETE, "all": CONTINUOUS + DISCRETE}[kind]
    return tuple(make() for make in makers)


def copies(target: Target, n: int) -> Target:
    """Return the law of n independent draws side by side: what a kernel on an ensemble of n walkers leaves invariant.

    Parameters
    ----------
    target : Target
    n : int
        Number of walkers, at least 1; walker i holds coordinates ``i * dim`` to ``(i + 1) * dim - 1``.

    Raises
    ------
    InvalidArgumentError
        ``n`` is below 1.
    """
    if n < 1:
        raise InvalidArgumentError(f"n must be at least 1; received {n!r}.")
    d = target.dim

    def log_density(x: Any, *modules: Any) -> Any:
        return sum(target.log_density(x[..., i * d : (i + 1) * d], *modules) for i in range(n))

    def simulate(size: int, rng: Generator) -> FloatArray:
        return target.simulate(size * n, rng).reshape(size, n * d)

    gradient = None if target.gradient is None else _beside(target.gradient, d, n)
    return replace(
        target,
        name=f"{n} x {target.name}",
        dim=n * d,
        log_density=log_density,
        simulate=simulate,
        gradient=gradient,
        is_discrete=target.is_discrete * n,
        lower=target.lower * n,
        upper=target.upper * n,
        n_walkers=n * target.n_walkers,
    )


def _beside(own: Callable[[FloatArray], FloatArray], d: int, n: int) -> Callable[[FloatArray], FloatArray]:
    """Return the gradient of n walkers side by side."""
    return lambda x: np.concatenate([own(x[..., i * d : (i + 1) * d]) for i in range(n)], axis=-1)
