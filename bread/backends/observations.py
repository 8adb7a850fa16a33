"""Models whose data are observations that can be left out: an optional part of the contract.

For data annealing, which adds them block by block, and for leave-one-out scores.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from bread.backends.base import Data, Posterior
from bread.errors import UnsupportedModelError


@runtime_checkable
class Separable(Protocol):
    """A `bread.backends.base.Model` whose observations are independent given the state, and in an order."""

    def n_observations(self) -> int:
        """Return how many observations the data are.

        Raises
        ------
        UnsupportedModelError
            The data of this model do not split so.
        """
        ...

    def condition_first(self, data: Data, n: int) -> Posterior:
        """Return the posterior given the first ``n`` observations of ``data``, which are whole.

        States are those of the model. On the prior path its log ratio is the sum of the log likelihoods of observations
        1, ..., n, constants included: that of all of them is the log ratio of `condition`.

        Raises
        ------
        UnsupportedModelError
            As `n_observations`.
        """
        ...

    def condition_without(self, data: Data, index: int) -> Posterior:
        """Return the posterior given all observations but number ``index``, from 0; ``data`` are whole.

        Its log ratio on the prior path is that of `condition` less the log likelihood of that observation.

        Raises
        ------
        UnsupportedModelError
            As `n_observations`.
        """
        ...


def require_separable(model: Any) -> Separable:
    """Return the model if its data split into observations.

    Raises
    ------
    UnsupportedModelError
        They do not, or its backend cannot tell.
    """
    if not isinstance(model, Separable):
        raise dependent(type(model).__name__)
    model.n_observations()
    return model


def dependent(name: str, reason: str = "") -> UnsupportedModelError:
    """Return the error that says so of a model of this name."""
    because = f": {reason}" if reason else ""
    return UnsupportedModelError(
        f"The data of {name} do not split into observations that are known to be independent given the parameters, "
        f"which data annealing and leave-one-out scores need{because}. Use bread.check, which needs no such split."
    )
