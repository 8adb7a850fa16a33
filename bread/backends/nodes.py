"""Nodes of a model, which a fit test replicates: values that cross the border; see `bread.backends.base`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bread.backends.values import FloatArray

Kind = Literal["data", "latent", "parameter", "predictive"]
LOCALISED = "its law here is a fit to the data, so that it is in agreement with them."
_NAMED = 3  # variables in a title
MOST_DEPENDENT = 20  # coordinates that a density is integrated over: a t law fits few shapes of more


@dataclass(frozen=True)
class Node:
    """Variables that can be drawn together given what they depend on: the data, latents, a parameter.

    A "predictive" node is the data drawn anew together with the free variables that they depend on, all but those
    ``given``: an outlier that its own latent value follows is one there.

    Attributes
    ----------
    name : str
        For the report; the variables' names, joined.
    kind : {"data", "latent", "parameter", "predictive"}
        Observed variables; free ones that depend on other free ones; free ones that depend on none, so that their
        replicates are the same at every state; observed ones, given some free ones or none.
    shapes : mapping of str to tuple of int
        Its variables with their shapes.
    refusal : str
        Why it cannot be replicated, as a sentence; "" where it can.
    most : int or None
        Replicates that are worth their cost at one state, where each is made by itself.
    given : tuple of str
        Of a predictive node: the free variables that are held at their values; none, and it is drawn from the prior.
    log_integral : float or None
        Of a free variable: what its density given its parents integrates to, as a logarithm in nats, where that is
        known and the same whatever they are; 0 for a normalised one. None where it is not known: `Model.node_log_prior`
        is then integrated.
    """

    name: str
    kind: Kind
    shapes: Mapping[str, tuple[int, ...]]
    refusal: str = ""
    most: int | None = None
    given: tuple[str, ...] = ()
    log_integral: float | None = 0.0

    @property
    def has_no_parents(self) -> bool:
        """Whether its replicates are the same at every state."""
        return self.kind == "parameter" or (self.kind == "predictive" and not self.given)

    @property
    def size(self) -> int:
        """Number of elements."""
        return sum(int(np.prod(shape, dtype=np.int64)) for shape in self.shapes.values())


def predictive_nodes(
    observed: Mapping[str, tuple[int, ...]],
    free: Sequence[str],
    hyperparameters: Sequence[str],
    refusal: Callable[[Sequence[str]], str],
    most: int | None = None,
) -> list[Node]:
    """Return the data given the hyperparameters, where there are other free variables, and the data from the prior.

    ``refusal(names)`` says why these free variables, all that are not given, and the data cannot be drawn; "" where
    they can.
    """
    name = ", ".join(observed)
    found = []
    drawn = [one for one in free if one not in hyperparameters]
    if drawn and len(drawn) < len(free):
        given = tuple(hyperparameters)
        title = f"{name} given {', '.join(given[:_NAMED])}{', ...' if len(given) > _NAMED else ''}"
        found.append(Node(title, "predictive", observed, refusal(drawn), most, given))
    return [*found, Node(f"{name} from the prior", "predictive", observed, refusal(free), most)]


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
