"""What chains of a compiled program take and give."""

from __future__ import annotations

from typing import NamedTuple

from bread.backends.base import FloatArray, IntArray


class Schedule(NamedTuple):
    """Inverse temperatures (T,) with the frozen step size (T,) and inverse metric (T, dim) at each.

    ``every`` is of chains with proposals, see `bread.backends.base.Kernel`.
    """

    betas: FloatArray
    step_sizes: FloatArray
    inverse_metrics: FloatArray
    every: int = 1


class Chains(NamedTuple):
    """Annealed chains as the driver returns them: see `bread.backends.base.AnnealRun`."""

    log_ratio: FloatArray  # (chain, T)
    state_at_base: FloatArray  # (chain, dim)
    state_at_end: FloatArray
    log_base: FloatArray  # (chain, 2)
    counts: IntArray  # (chain, 4): gradients, evaluations, divergences, failure
    message: str


class Adapted(NamedTuple):
    """Result of Stan's adaptation."""

    step_size: float
    inverse_metric: FloatArray  # (dim,)
    state: FloatArray  # (dim,), the last one of finite log ratio
    log_ratio: FloatArray  # (n_steps,)
    n_gradients: int
    n_evaluations: int
