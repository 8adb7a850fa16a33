"""Kernel settings of one data set given to another, whose law is wider in some coordinates and narrower in others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bread.backends.support.arguments import within_limits
from bread.backends.values import FloatArray, Kernel, Settings


def stretched_kernel(posterior: object, kernel: Kernel, factor: FloatArray) -> Kernel:
    """Return the kernel for a law whose standard deviations are ``factor`` times as large, shape (dim,).

    The same kernel where the posterior has no `bread.backends.base.Posterior.stretch`, which not every one inherits.
    """
    stretch: Callable[[Settings, FloatArray], Settings] | None = getattr(posterior, "stretch", None)
    return kernel if stretch is None else replace(kernel, settings=stretch(kernel.settings, factor))


def stretched_metric(settings: Settings, factor: FloatArray) -> Settings:
    """Return settings whose "inverse_metric", one variance a coordinate, is stretched; others stay.

    Parameters
    ----------
    settings : dict of str to ndarray, shape (..., dim)
    factor : ndarray, shape (dim,)
        In the order of the metric.
    """
    metric = settings.get("inverse_metric")
    if metric is None or metric.shape[-1] != len(factor):
        return settings
    return {**settings, "inverse_metric": within_limits(metric * factor**2)}
