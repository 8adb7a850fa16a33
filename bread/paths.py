"""The path from an easy density to the posterior: the one seam between core and backends.

A path has a start it can be drawn from, a tempered log density
``log f_beta = log f_0 + beta * log_ratio`` and ``log_ratio = log f_1 - log f_0``, whose integral over the
inverse temperature is the log weight. Nothing outside the backends may assume which path it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PriorPath:
    """From the prior to the posterior: ``log_ratio`` is the log likelihood (BREAD, equation 2)."""

    name: str = "prior"
    ratio_name: str = "log likelihood"


Path = PriorPath  # later: PriorPath | ReferencePath | ...
