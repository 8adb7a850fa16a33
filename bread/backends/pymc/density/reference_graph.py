"""A reference density as a graph: the law of localised hyperparameters inside the compiled prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from bread.errors import UnsupportedModelError
from bread.paths.mixture import Component, MixtureReference, Reference


@dataclass(frozen=True)
class LocalLaw:
    """A law of some free variables, in place of their prior statements.

    Attributes
    ----------
    names : tuple of str
        Free variables, in the model's order.
    reference : Reference
        Normalised density on their unconstrained coordinates, in the same order.
    """

    names: tuple[str, ...]
    reference: Reference

    def log_density(self, values: Sequence[Variable]) -> Variable:
        """Return the graph of the log density (nats) of the variables' unconstrained values.

        Raises
        ------
        UnsupportedModelError
            The reference is not one of bread's own, whose formula is known.
        """
        if not isinstance(self.reference, MixtureReference):
            raise UnsupportedModelError(
                f"The law of {', '.join(self.names)} must be a bread.paths.mixture.MixtureReference, whose formula can "
                f"be compiled with the model; received a {type(self.reference).__name__}. Use "
                "bread.paths.mixture.gaussian."
            )
        state = pt.concatenate([value.ravel() for value in values])
        terms = [
            np.log(weight) + _component(part, state)
            for weight, part in zip(self.reference.weights, self.reference.components, strict=True)
        ]
        return terms[0] if len(terms) == 1 else pt.logsumexp(pt.stack(terms))


def _component(part: Component, state: Variable) -> Variable:
    v = (state - part.mean) / part.scale
    z = v
    if part.matrix is not None:
        z = pt.dot(part.matrix, v)
    elif part.directions is not None and part.stretch is not None:
        z = v + pt.dot(part.directions, pt.dot(part.directions.T, v) * (1.0 / part.stretch - 1.0))
    terms = -0.5 * z**2
    if part.degrees is not None:
        is_normal = np.isinf(part.degrees)
        nu = np.where(is_normal, 1.0, part.degrees)
        terms = pt.switch(is_normal, terms, -0.5 * (nu + 1) * pt.log1p(z**2 / nu))
    return terms.sum() + part.log_normaliser
