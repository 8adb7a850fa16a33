"""The path from an easy density to the posterior: the one seam between core and backends.

A path has a base f_0 that can be drawn from, a log ratio ``l = log f_1 - log f_0`` of its ends, and tempered
densities between them::

    log f_beta(theta) = log f_0(theta) + beta * l(theta),    and log f_0 at beta = 0 even where l is -inf

The log weight of a chain is the sum over t = 2..T of ``(beta_t - beta_{t-1}) * l(theta_{t-1})``; it estimates the log
of the integral of f_1 over that of f_0. Nothing outside the backends may assume which path it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bread.paths.mixture import FittedReference, Reference

FloatArray = NDArray[np.float64]

ROUND_DEPTH = 4  # doublings of a trajectory across rotations


class _Path:
    """What all paths have in common."""

    name: ClassVar[str]
    base_name: ClassVar[str]
    ratio_name: ClassVar[str]

    @property
    def doubt(self) -> str:
        """Why it is not known that the base integrates to one; empty where it is."""
        return ""

    def increments(self, betas: FloatArray, log_ratio: FloatArray) -> FloatArray:
        """Return what each step adds to the log weight (nats).

        Parameters
        ----------
        betas : ndarray, shape (T,)
        log_ratio : ndarray, shape (..., T)
            In order of inverse temperature; the last is used by no weight.

        Returns
        -------
        ndarray, shape (..., T - 1)
        """
        return np.asarray(np.diff(betas) * log_ratio[..., :-1])

    def log_weight(self, betas: FloatArray, log_ratio: FloatArray) -> FloatArray:
        """Return log weights (nats), shape ``log_ratio.shape[:-1]``: the sum of `increments`."""
        return np.asarray(self.increments(betas, log_ratio).sum(axis=-1))


@dataclass(frozen=True)
class PriorPath(_Path):
    """From the prior to the posterior: ``log_ratio`` is the log likelihood (BREAD, equation 2)."""

    name: ClassVar[str] = "prior"
    base_name: ClassVar[str] = "prior"
    ratio_name: ClassVar[str] = "log likelihood"

    @property
    def reference(self) -> None:
        """None: the base is the model's prior."""
        return None

    @property
    def fitted(self) -> None:
        """None: see `ReferencePath.fitted`."""
        return None

    @property
    def tree_depth(self) -> None:
        """None: see `ReferencePath.tree_depth`."""
        return None


@dataclass(frozen=True)
class ReferencePath(_Path):
    """From a normalised density q, fitted to the data alone, to the posterior.

    ``log f_beta = (1 - beta) log q + beta log p(theta, y)``: log f_0 is log q, the log ratio is
    ``log p(theta, y) - log q(theta)``, and the log weight estimates the log evidence whatever q is. Every inequality,
    interval, rank and alarm of the prior path holds, because q depends on y and never on the exact draw.

    Parameters
    ----------
    reference : Reference
        Normalised density on the unconstrained coordinates.
    """

    reference: Reference
    name: ClassVar[str] = "reference"
    base_name: ClassVar[str] = "reference"
    ratio_name: ClassVar[str] = "log joint over reference"

    @property
    def doubt(self) -> str:
        """Why it is not known that q integrates to one: log weights then tell an evidence up to a constant only."""
        return str(getattr(self.reference, "doubt", ""))

    @property
    def fitted(self) -> FittedReference | None:
        """The reference where it is one of bread's own, which tells more of itself than a user's; else None."""
        return self.reference if isinstance(self.reference, FittedReference) else None

    @property
    def tree_depth(self) -> int | None:
        """How often a trajectory of NUTS should double at most; None: as often as the sampler does.

        Where rotations leave a density alone, a trajectory goes round for hundreds of steps before it turns back, and
        comes nowhere that a short one does not come. The limit makes no kernel less exact.
        """
        return ROUND_DEPTH if getattr(self.reference, "goes_round", False) else None

    def increments(self, betas: FloatArray, log_ratio: FloatArray) -> FloatArray:
        """Return the steps as differences of tempered log ratios, whose last bit every stored weight has."""
        ratio = log_ratio[..., :-1]
        with np.errstate(invalid="ignore"):
            steps = betas[1:] * ratio - betas[:-1] * ratio
        return np.asarray(np.where(np.isinf(ratio), ratio, steps))


KINDS = (PriorPath.name, ReferencePath.name)
Path = PriorPath | ReferencePath
