"""A compiled Stan program with data: its variables, and the maps between them and unconstrained coordinates."""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.stan.native.interface import Library, Progress, load, pointer
from bread.backends.stan.native.values import Layout
from bread.errors import InvalidArgumentError
from bread.seeds import Children

Group = Literal["parameters", "transformed", "generated"]

SEED_WORDS = 4  # of 32 bits, for each generator of random numbers


class _Description(NamedTuple):
    coordinates: tuple[str, ...]
    layouts: Mapping[str, Layout]


@functools.lru_cache(maxsize=16)
def _read_description(text: str) -> _Description:
    """Return names and shapes of an instance: those of the last, where only values of data differ."""
    described = json.loads(text)
    coordinates = tuple(described.pop("coordinates"))
    layouts = {
        group: Layout(tuple(item["names"]), tuple(tuple(shape) for shape in item["dims"]))
        for group, item in described.items()
    }
    return _Description(coordinates, MappingProxyType(layouts))


class StanVariables:
    """The variables of a program with data.

    Parameters
    ----------
    path : pathlib.Path
        Of the compiled program.
    data : str
        Its data block as JSON.
    seed : int
        For random numbers in transformed data.

    Attributes
    ----------
    coordinates : tuple of str
        Label of each unconstrained coordinate, such as "theta.3".
    dim : int
        Their number.
    """

    def __init__(self, path: pathlib.Path, data: str, seed: int) -> None:
        self.loaded: Library = load(path)
        self._handle = self.loaded.new(data, seed)
        self._description = _read_description(self.loaded.describe(self._handle))
        self.coordinates = self._description.coordinates
        self.dim = len(self.coordinates)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.loaded.delete(self._handle)

    @property
    def handle(self) -> Any:
        """Pointer to the program with its data; it lives as long as this object."""
        return self._handle

    @property
    def _layouts(self) -> Mapping[str, Layout]:
        return self._description.layouts

    def names(self, group: Group) -> tuple[str, ...]:
        """Return the variables of one block: parameters, transformed parameters, or generated quantities."""
        names = self._layouts[group].names
        n_parameters = len(self._layouts["parameters"].names)
        return names if group == "parameters" else names[n_parameters:]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable of any of the three blocks."""
        for layout in self._layouts.values():
            if name in layout.names:
                return layout.shapes[layout.names.index(name)]
        raise InvalidArgumentError(f"the program has no variable {name!r}; it has {self._all_names()}.")

    def _all_names(self) -> list[str]:
        return [name for group in ("parameters", "transformed", "generated") for name in self.names(group)]

    def constrain(
        self, states: FloatArray, group: Group = "parameters", seeds: Sequence[SeedSequence] | None = None
    ) -> dict[str, FloatArray]:
        """Return named values of each state.

        Parameters
        ----------
        states : ndarray, shape (n, dim)
        group : {"parameters", "transformed", "generated"}
            Parameters alone; with transformed parameters; or all three blocks.
        seeds : sequence of SeedSequence, optional
            One per state, for generated quantities with random numbers; row i depends on ``seeds[i]`` alone.

        Returns
        -------
        dict of str to ndarray, each (n, *shape)

        Raises
        ------
        DensityError
            Transformed parameters or generated quantities reject a state or raise.
        """
        states = self._rows(states)
        if seeds is None and group == "generated":
            seeds = [SeedSequence(0)] * len(states)
        words = np.zeros((len(states), SEED_WORDS), dtype=np.uint32) if seeds is None else seed_words(seeds)
        layout = self._output_layout(group)
        values = np.empty((len(states), layout.n_values))
        with_transformed, with_generated = int(group != "parameters"), int(group == "generated")
        self._call(
            "bread_constrain", len(states), pointer(states), pointer(words), with_transformed, with_generated,
            layout.n_values, pointer(values),
        )  # fmt: skip
        return layout.split(values)

    def _output_layout(self, group: Group) -> Layout:
        layouts = self._layouts
        if group != "generated":
            return layouts[group]
        n_parameters = len(layouts["parameters"].names)
        return Layout(
            layouts["transformed"].names + layouts["generated"].names[n_parameters:],
            layouts["transformed"].shapes + layouts["generated"].shapes[n_parameters:],
        )

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the states (n, dim) of named parameters, each (n, *shape).

        Raises
        ------
        DensityError
            A value violates its declared constraint.
        InvalidArgumentError
            A parameter is missing or has another shape.
        """
        values = np.ascontiguousarray(self._layouts["parameters"].join(parameters))
        states = np.empty((len(values), self.dim))
        self._call("bread_unconstrain", len(values), values.shape[1], pointer(values), pointer(states))
        return states

    def _call(self, name: str, *arguments: Any) -> str:
        return self.loaded.call(name, self._handle, *arguments)

    def _watched(self, name: str, progress: Progress | None, *arguments: Any) -> str:
        return self.loaded.call_watched(name, self._handle, progress, *arguments)

    def _rows(self, states: FloatArray) -> FloatArray:
        result = np.ascontiguousarray(states, dtype=np.float64)
        if result.ndim != 2 or result.shape[1] != self.dim:
            raise InvalidArgumentError(f"states must have the shape (n, {self.dim}) but have the shape {result.shape}.")
        return result

    def _row(self, state: FloatArray) -> FloatArray:
        row: FloatArray = self._rows(np.asarray(state, dtype=np.float64)[None, :])[0]
        return row


class ManySeeds(Children):
    """Children of a seed for many draws that no one needs apart: those of Stan's generators are made all at once.

    Parameters
    ----------
    seed : SeedSequence
        It is not changed.
    n : int
    """

    def __init__(self, seed: SeedSequence, n: int) -> None:
        super().__init__(seed, range(n))

    def words(self) -> NDArray[np.uint32]:
        """Return the words of each, shape (n, SEED_WORDS); those of the first do not depend on how many there are."""
        words = np.asarray(self._seed.generate_state(SEED_WORDS * len(self), np.uint32), dtype=np.uint32)
        return words.reshape((len(self), SEED_WORDS))


def seed_words(seeds: Sequence[SeedSequence]) -> NDArray[np.uint32]:
    """Return `SEED_WORDS` words of 32 bits for each seed, shape (n, SEED_WORDS)."""
    if isinstance(seeds, ManySeeds):
        return seeds.words()
    words = np.array([seed.generate_state(SEED_WORDS, np.uint32) for seed in seeds], dtype=np.uint32)
    return words.reshape((len(seeds), SEED_WORDS))
