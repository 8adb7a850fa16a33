"""Paths and reference densities as the driver wants them: structures of cpp/paths.hpp and what it includes."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, IntArray
from bread.backends.stan.native.structures import (
    CALLBACK,
    ComponentStruct,
    DensityStruct,
    FactorsStruct,
    GaugeStruct,
    NestedStruct,
    PathStruct,
    PowersStruct,
)
from bread.errors import InvalidArgumentError
from bread.paths.factors import Couplings, FactorReference, Powers
from bread.paths.kinds import Path
from bread.paths.mixture import Component, MixtureReference, Reference
from bread.paths.nested import NestedReference
from bread.paths.rotated import Gauge, RotatedReference

UNBOUNDED, ONE_BOUND, TWO_BOUNDS = 0, 1, 2  # kinds of transform


class Law(NamedTuple):
    """A normalised density of some coordinates, which multiplies that of the program.

    Attributes
    ----------
    positions : ndarray of int, shape (n,)
        The coordinates.
    reference : Reference
    jacobians : ndarray of int, shape (n,)
        How each coordinate maps to its parameter, whose Jacobian the density is divided by: 0 for the identity, 1 for
        the exponential (one bound), 2 for the inverse logit (two); constant factors apart.
    """

    positions: IntArray
    reference: Reference
    jacobians: IntArray


class PathArguments:
    """A path in C structures; holds the memory that they point to.

    Parameters
    ----------
    path : Path
    dim : int
        Number of coordinates of a state.
    law : Law, optional
        What multiplies the program's density on every path.
    given : pointer, optional
        Of a program with data whose likelihood is a part of the prior on every path.

    Attributes
    ----------
    struct : PathStruct
    calls_python : bool
        Whether a reference of the user's is evaluated.
    error : str
        Text of the first exception that a reference of the user's raised in a call; "" if there was none.
    """

    def __init__(self, path: Path, dim: int, law: Law | None = None, given: Any = None) -> None:
        self._kept: list[Any] = []
        self.error, self.calls_python = "", False
        reference = None if path.reference is None else self._density(path.reference, np.arange(dim))
        own = None if law is None else self._density(law.reference, law.positions, law.jacobians)
        self.struct = PathStruct(reference, own, given)

    @property
    def address(self) -> int:
        """Address of the structure."""
        return ctypes.addressof(self.struct)

    def _density(self, reference: Reference, coordinates: NDArray[Any], jacobians: NDArray[Any] | None = None) -> int:
        components: tuple[int, int | None] = (0, None)
        nested, gauge, factors, callback, dim = None, None, None, CALLBACK(), len(coordinates)
        law: Reference = reference
        if isinstance(law, FactorReference) and _is_native(law.marginal):
            _require_dim(law.dim, dim)
            factors, dim = self._factors(law.couplings), len(law.couplings.drivers)
            law = law.marginal
        if isinstance(law, RotatedReference) and _is_native(law):
            _require_dim(law.dim, dim)
            gauge, dim = self._gauge(law.gauge), law.gauge.n_invariant
            law = law.law
        if isinstance(law, MixtureReference | NestedReference):
            _require_dim(law.dim, dim)
            if isinstance(law, MixtureReference):
                components = self._components(law)
            else:
                nested = self._nested(law)
        else:
            callback, self.calls_python = self._callback(reference, len(coordinates)), True
        struct = DensityStruct(
            *components,
            len(coordinates),
            self._array(coordinates, np.int64),
            None if jacobians is None else self._array(jacobians, np.int32),
            nested,
            gauge,
            factors,
            callback,
        )
        self._kept += [struct, callback]
        return ctypes.addressof(struct)

    def _gauge(self, gauge: Gauge) -> int:
        n_rows, n_columns = gauge.places.shape
        _require_shape(gauge.frame, (n_columns, n_columns), "frame", f"a gauge of {n_columns} columns")
        struct = GaugeStruct(
            n_rows,
            n_columns,
            self._array(gauge.places, np.int64),
            self._array(gauge.others, np.int64),
            self._array(gauge.frame, np.float64),
            gauge.log_volume,
        )
        self._kept.append(struct)
        return ctypes.addressof(struct)

    def _factors(self, couplings: Couplings) -> int:
        (k, m), n, r = couplings.inner.shape, couplings.outer.shape[1], len(couplings.rest)
        struct = FactorsStruct(
            k,
            m,
            n,
            r,
            *(self._array(part, np.int64) for part in (couplings.inner, couplings.outer, couplings.rest)),
            self._array(couplings.drivers, np.int64),
            self._array(couplings.units, np.float64),
            self._powers(couplings.own, r, (m,)),
            self._powers(couplings.curvature, r, (m, n)),
            self._powers(couplings.slopes, r, (m, n)),
        )
        self._kept.append(struct)
        return ctypes.addressof(struct)

    def _powers(self, powers: Powers, r: int, shape: tuple[int, ...]) -> PowersStruct:
        count = len(powers.exponents)
        owner = f"couplings of factors, of {count} exponentials of {r} coordinates"
        _require_shape(powers.exponents, (count, r), "exponents", owner)
        _require_shape(powers.values, (count, *shape), "values", owner)
        return PowersStruct(
            count, self._array(powers.exponents, np.float64), self._array(powers.values, np.float64)
        )  # fmt: skip

    def _nested(self, reference: NestedReference) -> int:
        n, m = reference.dim, len(reference.knots)
        if reference.marginal.dim != 1 or not 0 <= reference.driver < n or m < 2:
            raise InvalidArgumentError(
                f"a nested reference of {n} coordinates needs a driver from 0 to {n - 1}, a marginal of 1 coordinate "
                f"and at least 2 knots; received the driver {reference.driver}, {reference.marginal.dim} coordinates "
                f"and {m} knots."
            )
        functions = (m, 2, n - 1)
        shapes = {
            "centre": (n - 1,), "matrix": (n - 1, n - 1), "knots": (m,), "values": functions, "slopes": functions
        }  # fmt: skip
        for name, shape in shapes.items():
            _require_shape(getattr(reference, name), shape, name, f"a nested reference of {n} coordinates")
        struct = NestedStruct(
            reference.driver,
            *self._components(reference.marginal),
            self._array(reference.centre, np.float64),
            self._array(reference.matrix, np.float64),
            m,
            self._array(reference.knots, np.float64),
            *(self._array(part, np.float64) for part in reference.pieces),
            reference.log_normaliser,
        )
        self._kept.append(struct)
        return ctypes.addressof(struct)

    def _components(self, mixture: MixtureReference) -> tuple[int, int]:
        """Return number and address of the components."""
        weights = np.log(mixture.weights)
        components = [self._component(one, float(log)) for one, log in zip(mixture.components, weights, strict=True)]
        table = (ComponentStruct * len(components))(*components)
        self._kept.append(table)
        return len(components), ctypes.addressof(table)

    def _component(self, component: Component, log_weight: float) -> ComponentStruct:
        n, rank = len(component.mean), 0 if component.stretch is None else len(component.stretch)
        shapes = {
            "mean": (n,), "scale": (n,), "matrix": (n, n), "directions": (n, rank), "stretch": (rank,), "degrees": (n,)
        }  # fmt: skip
        addresses = []
        for name, shape in shapes.items():
            values = getattr(component, name)
            if values is not None:
                _require_shape(values, shape, name, f"a component of {n} coordinates")
            addresses.append(None if values is None else self._array(values, np.float64))
        return ComponentStruct(*addresses, rank, component.log_normaliser + log_weight)

    def _array(self, values: NDArray[Any], dtype: Any) -> int:
        array = np.ascontiguousarray(values, dtype=dtype)
        self._kept.append(array)
        return int(array.ctypes.data)

    def _callback(self, reference: Reference, n: int) -> Any:
        both = getattr(reference, "value_and_gradient", None)

        def call(state: Any, value: Any, gradient: Any) -> int:
            try:
                row: FloatArray = np.ctypeslib.as_array(state, (n,)).copy()
                if gradient and both is not None:
                    value[0], np.ctypeslib.as_array(gradient, (n,))[:] = both(row)
                    return 0
                value[0] = float(reference.log_density(row[None, :])[0])
                if gradient:
                    np.ctypeslib.as_array(gradient, (n,))[:] = reference.gradient(row[None, :])[0]
            except BaseException as error:  # C++ code stands between this frame and the caller
                self.error = self.error or f"{type(error).__name__}: {error}"
                return 1
            return 0

        return CALLBACK(call)


def _is_native(reference: RotatedReference) -> bool:
    """Return whether a law across rotations is evaluated by the driver itself."""
    return isinstance(reference.law, MixtureReference | NestedReference)


def _require_dim(found: int, wanted: int) -> None:
    if found != wanted:
        raise InvalidArgumentError(
            f"the reference is a density of {found} coordinates; here it must be one of {wanted}."
        )  # fmt: skip


def _require_shape(values: NDArray[Any], shape: tuple[int, ...], name: str, owner: str) -> None:
    if np.shape(values) != shape:
        raise InvalidArgumentError(f"{name} of {owner} must have the shape {shape}; received {np.shape(values)}.")
