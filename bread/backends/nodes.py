"""Nodes of a model, which a fit test replicates: values that cross the border; see `bread.backends.base`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bread.backends.values import FloatArray

Kind = Literal["data", "latent", "parameter"]


@dataclass(frozen=True)
class Node:
    """Variables that can be drawn together given what they depend on: the data, latents, a parameter.

    Attributes
    ----------
    name : str
        For the report; the variables' names, joined.
    kind : {"data", "latent", "parameter"}
        Observed variables; free ones that depend on other free ones; free ones that depend on none, so that their
        replicates are the same at every state.
    shapes : mapping of str to tuple of int
        Its variables with their shapes.
    refusal : str
        Why it cannot be replicated, as a sentence; "" where it can.
    most : int or None
        Replicates that are worth their cost at one state, where each is made by itself.
    """

    name: str
    kind: Kind
    shapes: Mapping[str, tuple[int, ...]]
    refusal: str = ""
    most: int | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return sum(int(np.prod(shape, dtype=np.int64)) for shape in self.shapes.values())


@dataclass(frozen=True)
class Replicates:
    """A node at one state, and replicates of it given the same parents. Elements are flat, in the order of `Node`.

    Attributes
    ----------
    values : ndarray, shape (1 + n, element)
        The node itself, then the replicates, in the model's own coordinates.
    log_density : ndarray, shape (1 + n,), or None
        Summed log density given the parents, in nats, up to a constant that is the same for all; None where a backend
        cannot tell it.
    pointwise : ndarray, shape (1 + n, part), or None
        Log density of each part of the node, in nats; None where a backend has none. Parts are elements, or rows of
        them where elements are dependent.
    """

    values: FloatArray
    log_density: FloatArray | None = None
    pointwise: FloatArray | None = None
