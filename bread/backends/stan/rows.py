"""Many data sets with one state each: one call of the driver, in which only the outcomes change.

An instance for each data set costs twice what a gradient of a small program does: its data go through JSON. Here the
rest of the data block is read once a call, and the outcomes are passed as arrays. Numbers are those of an instance, to
the last bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Evolution, FloatArray, Kernel
from bread.backends.stan.native.interface import doubles, pointer
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.native.path_arguments import PathArguments
from bread.backends.stan.native.structures import ColumnStruct
from bread.backends.stan.native.variables import seed_words
from bread.backends.support.rows import RowsOneByOne
from bread.errors import DensityError
from bread.paths.kinds import Path, PriorPath

_LARGEST = 2**31 - 1  # of Stan's integers


class Columns:
    """Outcomes of many data sets in C structures, with the memory that they point to.

    Parameters
    ----------
    data : mapping of str to ndarray, each (n, ...)
        Integers where the program declares them so.
    """

    def __init__(self, data: Mapping[str, NDArray[Any]]) -> None:
        self._kept: list[Any] = []
        self.structs = (ColumnStruct * len(data))(*(self._column(name, values) for name, values in data.items()))

    @property
    def address(self) -> int:
        """Of the structures."""
        return ctypes.addressof(self.structs)

    def _column(self, name: str, values: NDArray[Any]) -> ColumnStruct:
        shape = np.array(values.shape[1:], dtype=np.int64)
        by_column = values.transpose((0, *range(values.ndim - 1, 0, -1))).reshape(len(values), -1)
        doubles = np.ascontiguousarray(by_column, dtype=np.float64)
        text = name.encode()
        self._kept += [shape, doubles, text]
        size = doubles.shape[1]
        return ColumnStruct(text, pointer(doubles), pointer(shape), len(shape), size, values.dtype.kind in "iu", 0)


@dataclass
class StanRows:
    """Posteriors of many data sets; implements `bread.backends.support.rows.Rows`.

    Attributes
    ----------
    instance : StanInstance
        The tempered program with the real data.
    fixed : str
        The data block without the outcomes, as JSON.
    data : dict of str to ndarray, each (n, ...)
        The outcomes, each of the type that the program declares.
    log_integral : float
        Log of what the prior integrates to (nats).
    kernel : StanKernel
    condition : callable
        `StanModel.condition`: posteriors one by one, for chains, and where the driver refuses the outcomes.
    """

    instance: StanInstance
    fixed: str
    data: Mapping[str, NDArray[Any]]
    log_integral: float
    kernel: StanKernel
    condition: Callable[[Mapping[str, NDArray[Any]]], Any]

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the log likelihood of each row."""
        found = self._evaluated(states, None)
        return self._one_by_one.log_likelihood(states) if found is None else found[0][:, 1].copy()

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return density and gradient of each row."""
        found = self._evaluated(states, beta)
        if found is None:
            return self._one_by_one.density_gradient(beta, states)
        return found[0][:, 0] - self.log_integral, found[1]

    def move(
        self, path: Path, kernel: Kernel, beta: float, states: FloatArray, n_steps: int, seeds: Sequence[SeedSequence]
    ) -> Evolution:
        """Run one chain a row."""
        does_propose = self.kernel.proposes_base or kernel.proposes_base
        moved = None if does_propose else self._moved(path, kernel, beta, states, n_steps, seeds)
        return self._one_by_one.move(path, kernel, beta, states, n_steps, seeds) if moved is None else moved

    @cached_property
    def _one_by_one(self) -> RowsOneByOne:
        return RowsOneByOne(self.condition, self.data)

    def _evaluated(self, states: FloatArray, beta: float | None) -> tuple[FloatArray, FloatArray] | None:
        """Return log densities (n, 2) and gradients (n, dim), or None where instances must say what is wrong."""
        if not self._are_plain(states):
            return None
        states = np.ascontiguousarray(states, dtype=np.float64)
        terms, gradients = np.empty((len(states), 2)), np.empty(states.shape)
        columns, path = Columns(self.data), PathArguments(PriorPath(), self.instance.dim, self.instance.law)
        wanted = None if beta is None else pointer(gradients)
        try:
            self.instance.call_rows(
                "bread_rows", self.fixed.encode(), path.address, len(columns.structs), columns.address, len(states),
                pointer(states), 0.0 if beta is None else float(beta), pointer(terms), wanted,
            )  # fmt: skip
        except DensityError:
            return None
        return None if path.error else (terms, gradients)

    def _moved(
        self, path: Path, kernel: Kernel, beta: float, states: FloatArray, n_steps: int, seeds: Sequence[SeedSequence]
    ) -> Evolution | None:
        """Return where chains went, or None where instances must say what is wrong."""
        if not self._are_plain(states) or len(seeds) != len(states):
            return None
        moved = np.array(states, dtype=np.float64, order="C")
        settings, counts, words = kernel.at(beta), np.zeros(2, dtype=np.int64), seed_words(seeds)
        metric, struct = doubles(settings["inverse_metric"], (self.instance.dim,)), self.kernel.struct(path)
        columns, along = Columns(self.data), PathArguments(path, self.instance.dim, self.instance.law)
        try:
            self.instance.call_rows(
                "bread_move_rows", self.fixed.encode(), along.address, len(columns.structs), columns.address,
                ctypes.addressof(struct), float(beta), float(settings["step_size"]), pointer(metric), len(moved),
                n_steps, pointer(words), pointer(moved), pointer(counts), is_long=True,
            )  # fmt: skip
        except DensityError:
            return None
        return None if along.error else Evolution(moved, int(counts[0]), int(counts[1]))

    def _are_plain(self, states: FloatArray) -> bool:
        """Return whether states and outcomes fit the program, as far as their shapes and sizes go."""
        n = len(states)
        are_small = all(
            values.dtype.kind == "f" or not values.size or (values.min() >= -_LARGEST and values.max() <= _LARGEST)
            for values in self.data.values()
        )
        are_enough = all(len(values) == n for values in self.data.values())
        return n > 0 and np.shape(states) == (n, self.instance.dim) and are_small and are_enough
