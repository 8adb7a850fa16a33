"""What the core and the report need to know of a model: who computes, how its states are laid out, the real data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.paths.kinds import KINDS

UNKNOWN = "unknown"  # of an outcome: the likelihood leaves out a factor that only the data are known to enter


@dataclass(frozen=True)
class Identity:
    """Who computes, for the report.

    Attributes
    ----------
    name, backend, engine, kernel : str
        Such as "model", "pymc", "pymc", "NUTS".
    versions : dict of str to str
        Versions of the packages that computed, such as {"pymc": "6.4.0"}.
    notes : tuple of str
        Facts that a reader of the report must know (rejection rate of the simulator, a constant that the log evidence
        leaves out, ...).
    runs_compiled : bool
        Whether whole chains run in compiled code, so that a thousand more are cheap.
    kernels_of : str
        The title of the library whose own kernels a check takes, and no others, such as "Pyro": a kernel that fails a
        test is then the last to be blamed. "" where they may be anybody's. Backends of bread itself leave it out.
    """

    name: str
    backend: str
    engine: str
    kernel: str
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    runs_compiled: bool = False
    kernels_of: str = ""


@dataclass(frozen=True)
class Layout:
    """The coordinates of a state, and the parameters that they make.

    Attributes
    ----------
    coordinates : tuple of str, length dim
        Label of each unconstrained coordinate, such as "tau_log__" or "theta[3]".
    discrete : ndarray of bool, shape (dim,)
        True for coordinates that hold whole numbers.
    hyperparameters : tuple of str
        What "fitted" holds and "localised" gives another law, unless the user says otherwise: free variables that
        other free variables depend on; where there are none, all but standardised effects (the z of a non-centred
        hierarchy); all where nothing else is left.
    parameters : dict of str to tuple of str
        Dimension names of each constrained free variable (and deterministic), in the model's order.
    positions : dict of str to ndarray of int
        Indices of the coordinates of each free variable.
    transformed : ndarray of bool, shape (dim,), or None
        True for coordinates of a constrained parameter: one of them may be the logarithm of a scale, and a reference
        must not have a heavy tail there. None: all may be.
    """

    coordinates: tuple[str, ...]
    discrete: NDArray[np.bool_]
    hyperparameters: tuple[str, ...]
    parameters: dict[str, tuple[str, ...]]
    positions: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    transformed: NDArray[np.bool_] | None = None

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return len(self.coordinates)

    @property
    def may_be_scale(self) -> NDArray[np.bool_]:
        """Coordinates that may be the logarithm of a scale, shape (dim,): ``transformed``, or all where it is None."""
        return np.ones(self.dim, dtype=bool) if self.transformed is None else self.transformed


@dataclass(frozen=True)
class RealData:
    """The data that the user's model came with.

    Attributes
    ----------
    observed : dict of str to ndarray
        Observed variables.
    observed_dims : dict of str to tuple of str
        Dimension names of each of them.
    constants : dict of str to tuple of (tuple of str, ndarray)
        Covariates: name -> (dimension names, values).
    coords : dict of str to ndarray
        Coordinate values of the dimensions named above and in `Layout.parameters` (only those that the model names).
    """

    observed: dict[str, NDArray[Any]]
    observed_dims: dict[str, tuple[str, ...]]
    constants: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = field(default_factory=dict)
    coords: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelInfo:
    """What the core and the report need to know of a model.

    Attributes
    ----------
    identity : Identity
        Who computes.
    layout : Layout
        Coordinates and parameters.
    data : RealData
        The real data.
    path_refusals : dict of str to str
        For each of `bread.paths.kinds.KINDS` that this model cannot be annealed along, why, and what to do about it:
        one sentence. "prior" needs prior and likelihood apart; "reference" needs the joint density alone, and kernels
        that move all coordinates by its gradient.
    may_propose : bool
        Whether a `Kernel` may also propose draws from the path's base, and rest at some temperatures: the backend can,
        and the user named no kernel.
    outcome_functions : dict of str to str
        For each observed variable of which the likelihood is no density, because it leaves out a factor without
        parameters (1 / y in ``log(y) ~ normal(mu, sigma)``): the function of it that it is a density of ("log",
        "logit"), or `UNKNOWN`. Tests that move outcomes need this.
    """

    identity: Identity
    layout: Layout
    data: RealData
    path_refusals: Mapping[str, str] = field(default_factory=dict)
    may_propose: bool = False
    outcome_functions: Mapping[str, str] = field(default_factory=dict)

    def with_notes(self, notes: Sequence[str]) -> ModelInfo:
        """Return the same with other notes."""
        return replace(self, identity=replace(self.identity, notes=tuple(notes)))

    def with_kernel(self, name: str) -> ModelInfo:
        """Return the same with another name of the kernel."""
        return replace(self, identity=replace(self.identity, kernel=name))

    @property
    def paths(self) -> tuple[str, ...]:
        """Kinds of path that the backend can anneal this model along."""
        return tuple(kind for kind in KINDS if kind not in self.path_refusals)
